//! The tables of spawned threads, filled from the journals that were brought in.
//!
//! An export holds journals alone: the rest follows from them. Whether a parent's anchor says what its child's journal
//! says is not asked here; whoever opens the parent next brings that in line.

use crate::engine::Engine;
use crate::error::Result;
use komado_core::head::{Kind, Source};
use komado_core::journal::{Entry, Record};
use komado_core::thread::branch;
use komado_core::{Seq, SessionId, ThreadId};
use komado_store::{Journal, Mail, Mode};
use std::collections::BTreeMap;

/// Words on their way from thread to thread.
#[derive(Default)]
struct Post {
    /// Who told whom, and when.
    told: Vec<(String, ThreadId, Mail)>,
    /// What each thread has heard of each other one.
    heard: BTreeMap<(ThreadId, ThreadId), Seq>,
}

impl Engine {
    /// Puts a session's spawned threads, and the words that wait for them, into the tables.
    pub(super) fn enroll(&self, id: &SessionId) -> Result<()> {
        let mut post = Post::default();
        for header in self.store().threads(id)? {
            let journal = self.store().open(id, &header.thread, Mode::Read)?;
            let row = branch(&header, &*journal)?;
            if row.parent.is_some() {
                self.store().put_branch(&row)?;
            }
            post.gather(&*journal)?;
        }
        post.told.sort_by(|(a, _, x), (b, _, y)| (a, &x.from, x.seq).cmp(&(b, &y.from, y.seq)));
        for (_, to, mail) in &post.told {
            let heard = post.heard.get(&(to.clone(), mail.from.clone()));
            if heard.is_none_or(|upto| *upto < mail.seq) {
                self.store().post(id, to, mail)?;
            }
        }
        Ok(())
    }
}

impl Post {
    /// Takes in what the own entries of a thread say, also those it went back on: what was told was told.
    fn gather(&mut self, journal: &dyn Journal) -> Result<()> {
        let (own, mut seq) = (journal.header().base_seq(), journal.last());
        while seq > own {
            let head = journal.head(seq)?;
            if matches!(head.kind, Kind::Tell | Kind::Heard) {
                self.take(&journal.header().thread, Source::record(journal, seq)?);
            }
            seq = head.prev_op;
        }
        Ok(())
    }

    fn take(&mut self, thread: &ThreadId, record: Record) {
        match record.entry {
            Entry::Tell { to, .. } => {
                let mail = Mail { from: thread.clone(), seq: record.seq };
                self.told.push((record.timestamp, to, mail));
            }
            Entry::Heard { from, upto } => {
                let most = self.heard.entry((thread.clone(), from)).or_default();
                *most = upto.max(*most);
            }
            _ => {}
        }
    }
}
