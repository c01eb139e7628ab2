//! A session's threads as their journals tell of them: what the tables of spawned threads are made from, and checked by.
//!
//! Nothing here is an error that keeps a session from opening. A parent that is not there, threads that go round in a
//! circle, an anchor that leads nowhere: each is told by who checks, and the rest goes on.

use super::rebuild::Finding;
use super::tasks::Tasks;
use super::{FileJournal, FileStore};
use crate::tree::{Mail, Which};
use crate::{Journal, Mode, Result, Store};
use komado_core::head::{Kind, Source};
use komado_core::journal::{Ending, Entry, Record};
use komado_core::thread::{self, Branch, Header, Status};
use komado_core::{Seq, SessionId, ThreadId, View};
use std::collections::{BTreeMap, BTreeSet};

/// What the journals of a session say of its threads.
#[derive(Default)]
struct Family {
    /// A row for each spawned thread, and for those they were spawned from.
    branches: Vec<Branch>,
    /// Who told whom, and when: the oldest first.
    told: Vec<(String, ThreadId, Mail)>,
    /// What each thread has heard of each other one.
    heard: BTreeMap<(ThreadId, ThreadId), Seq>,
    /// What does not fit together.
    gaps: Vec<Finding>,
}

impl Family {
    /// Takes in what the own entries of a thread say.
    fn take(&mut self, branch: &Branch, journal: &FileJournal, known: &BTreeSet<ThreadId>) -> Result<()> {
        let view = View::fold(journal, Source::last(journal))?;
        for seq in journal.header().base_seq() + 1..=Source::last(journal) {
            match Source::head(journal, seq)?.kind {
                Kind::Tell | Kind::Heard => self.take_mail(&branch.thread, Source::record(journal, seq)?),
                Kind::Anchor if view.on_path(seq) => {
                    let record = Source::record(journal, view.anchor(seq))?;
                    self.take_lost(branch, seq, record, known);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn take_mail(&mut self, thread: &ThreadId, record: Record) {
        match record.entry {
            Entry::Tell { to, .. } => {
                self.told.push((record.timestamp, to, Mail { from: thread.clone(), seq: record.seq }));
            }
            Entry::Heard { from, upto } => {
                let most = self.heard.entry((thread.clone(), from)).or_default();
                *most = upto.max(*most);
            }
            _ => {}
        }
    }

    /// A child of which there is nothing but an open anchor: whoever opens the parent next ends it there.
    fn take_lost(&mut self, parent: &Branch, seq: Seq, record: Record, known: &BTreeSet<ThreadId>) {
        let Entry::Anchor(anchor) = record.entry else { return };
        if known.contains(&anchor.thread) || anchor.ending.is_some_and(|ending| ending != Ending::Paused) {
            return;
        }
        let place = format!("{}/{}@{seq}", parent.session, parent.thread);
        self.gaps.push(Finding::LostChild { place, child: anchor.thread.to_string() });
        self.branches.push(Branch {
            session: parent.session.clone(),
            parent: Some(parent.thread.clone()),
            depth: parent.depth + 1,
            window_ratio: 1.0,
            status: Status::from(anchor.ending),
            label: anchor.label,
            chronicle_summary: None,
            held_by: None,
            told: false,
            created_at: record.timestamp,
            completed_at: None,
            thread: anchor.thread,
        });
    }

    /// What waits for each thread, in the order it was told.
    fn mail(&self) -> impl Iterator<Item = (&ThreadId, &Mail)> {
        let waits = |to: &ThreadId, mail: &Mail| {
            self.heard.get(&(to.clone(), mail.from.clone())).is_none_or(|upto| *upto < mail.seq)
        };
        self.told.iter().map(|(_, to, mail)| (to, mail)).filter(move |(to, mail)| waits(to, mail))
    }
}

/// What headers name that is not there, and those that stand on one another in a circle.
fn gaps(headers: &[Header], known: &BTreeSet<ThreadId>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut left: Vec<&Header> = headers.iter().collect();
    for header in headers {
        for moment in header.base.iter().chain(&header.parent).filter(|m| !known.contains(&m.thread)) {
            let thread = format!("{}/{}", header.session, header.thread);
            found.push(Finding::NoParent { thread, parent: moment.thread.to_string() });
        }
    }
    loop {
        let names: BTreeSet<ThreadId> = left.iter().map(|header| header.thread.clone()).collect();
        left.retain(|h| h.base.iter().chain(&h.parent).any(|moment| names.contains(&moment.thread)));
        if left.len() == names.len() {
            break;
        }
    }
    if let Some(first) = left.first() {
        let threads: Vec<&str> = left.iter().map(|header| header.thread.as_str()).collect();
        found.push(Finding::Circle { session: first.session.to_string(), threads: threads.join(", ") });
    }
    found
}

/// The same row, whoever was told of it.
fn is_same(a: &Branch, b: &Branch) -> bool {
    *a == Branch { told: a.told, ..b.clone() }
}

fn words(branch: &Branch) -> String {
    let parent = branch.parent.as_ref().map_or("nobody", ThreadId::as_str);
    let chronicle = if branch.chronicle_summary.is_some() { ", with a chronicle" } else { "" };
    let Branch { depth, window_ratio: ratio, status, .. } = branch;
    format!("{}, child of {parent}, depth {depth}, ratio {ratio}{chronicle}", status.name())
}

impl FileStore {
    fn family(&self, id: &SessionId) -> Result<Family> {
        let headers = self.threads(id)?;
        let known: BTreeSet<ThreadId> = headers.iter().map(|header| header.thread.clone()).collect();
        let mut family = Family { gaps: gaps(&headers, &known), ..Family::default() };
        for header in &headers {
            let journal = self.open_file(id, &header.thread, Mode::Read)?;
            // Where the depth is to be had only from a parent that is not there, it is that of a root's child.
            let branch = match thread::branch(header, &journal) {
                Err(crate::Error::NoThread(..)) => rootless(header),
                branch => branch?,
            };
            family.take(&branch, &journal, &known)?;
            family.branches.push(branch);
        }
        let parents: BTreeSet<ThreadId> = family.branches.iter().filter_map(|b| b.parent.clone()).collect();
        family.branches.retain(|branch| branch.parent.is_some() || parents.contains(&branch.thread));
        for root in family.branches.iter_mut().filter(|branch| branch.parent.is_none()) {
            root.told = true;
        }
        family.told.sort_by(|(a, _, x), (b, _, y)| (a, &x.from, x.seq).cmp(&(b, &y.from, y.seq)));
        Ok(family)
    }

    /// Makes the rows of a session's threads again from its journals. A row without a thread stays while its parent was
    /// not told: somebody may be about to make the thread.
    pub(super) fn fill_tree(&self, tasks: &Tasks, id: &SessionId) -> Result<()> {
        let family = self.family(id)?;
        // Rows that cannot be read are not worth keeping.
        let known = match tasks.branches(id, Which::All) {
            Ok(known) => known,
            Err(_) => tasks.forget_branches(id).map(|()| Vec::new())?,
        };
        let is_there = |row: &Branch| family.branches.iter().any(|branch| branch.thread == row.thread);
        for row in known.iter().filter(|row| row.told && !is_there(row)) {
            tasks.drop_branch(id, &row.thread)?;
        }
        family.branches.iter().try_for_each(|branch| tasks.put_branch(branch))?;
        family.mail().try_for_each(|(to, mail)| tasks.post(id, to, mail))?;
        family.heard.iter().try_for_each(|((to, from), upto)| tasks.taken(id, to, from, *upto))
    }

    /// Compares the rows of a session's threads with its journals; puts right what differs, and tells it.
    pub(super) fn check_tree(&self, id: &SessionId) -> Result<()> {
        let family = self.family(id)?;
        let known = match self.with_tasks(|tasks| tasks.branches(id, Which::All)) {
            Ok(known) => known,
            Err(_) => self.with_tasks(|tasks| tasks.forget_branches(id)).map(|()| Vec::new())?,
        };
        for branch in family.branches.iter().filter(|branch| branch.parent.is_some()) {
            let row = known.iter().find(|row| row.thread == branch.thread);
            if !row.is_some_and(|row| is_same(row, branch)) {
                self.note_branch(branch, row.map_or_else(|| "nothing".into(), words), words(branch));
                self.with_tasks(|tasks| tasks.put_branch(branch))?;
            }
        }
        for root in family.branches.iter().filter(|branch| branch.parent.is_none()) {
            if !self.with_tasks(|tasks| tasks.has_branch(id, &root.thread))? {
                self.with_tasks(|tasks| tasks.put_branch(root))?;
            }
        }
        let is_there = |row: &Branch| family.branches.iter().any(|branch| branch.thread == row.thread);
        for row in known.iter().filter(|row| row.told && !is_there(row)) {
            self.note_branch(row, words(row), "gone".into());
            self.with_tasks(|tasks| tasks.drop_branch(id, &row.thread))?;
        }
        self.check_mail(id, &family)?;
        family.gaps.into_iter().for_each(|gap| self.opener.note(gap));
        Ok(())
    }

    fn note_branch(&self, branch: &Branch, was: String, is: String) {
        let thread = format!("{}/{}", branch.session, branch.thread);
        self.opener.note(Finding::BranchChanged { thread, was, is });
    }

    /// Words that wait are in the table, words that were heard are not.
    fn check_mail(&self, id: &SessionId, family: &Family) -> Result<()> {
        let threads: BTreeSet<&ThreadId> =
            family.told.iter().map(|(_, to, _)| to).chain(family.heard.keys().map(|(to, _)| to)).collect();
        for to in threads {
            let waits: Vec<&Mail> = family.mail().filter(|(whose, _)| *whose == to).map(|(_, m)| m).collect();
            let known = self.with_tasks(|tasks| tasks.mail(id, to))?;
            let lost: Vec<&Mail> = waits.into_iter().filter(|mail| !known.contains(mail)).collect();
            let heard = |mail: &&Mail| {
                family.heard.get(&(to.clone(), mail.from.clone())).is_some_and(|upto| mail.seq <= *upto)
            };
            let stale: Vec<&Mail> = known.iter().filter(heard).collect();
            if lost.is_empty() && stale.is_empty() {
                continue;
            }
            for mail in &lost {
                self.with_tasks(|tasks| tasks.post(id, to, mail))?;
            }
            for mail in &stale {
                self.with_tasks(|tasks| tasks.taken(id, to, &mail.from, mail.seq))?;
            }
            let (lost, stale) = (lost.len() as u64, stale.len() as u64);
            self.opener.note(Finding::MailChanged { thread: format!("{id}/{to}"), lost, stale });
        }
        Ok(())
    }
}

/// The row of a spawned thread whose parent is not there and whose share was never written.
fn rootless(header: &Header) -> Branch {
    Branch {
        session: header.session.clone(),
        thread: header.thread.clone(),
        parent: header.parent.as_ref().map(|moment| moment.thread.clone()),
        depth: 1,
        window_ratio: 1.0,
        status: Status::Active,
        label: header.label.clone(),
        chronicle_summary: None,
        held_by: None,
        told: false,
        created_at: header.timestamp.clone(),
        completed_at: None,
    }
}
