//! A fork of a spawned thread: it has an anchor of its own, and lives and ends by itself.
//!
//! It shares every entry with the thread it left, the share included, so it sees what that one sees. Nobody holds it. Where
//! the thread it left had ended, the fork goes on from before that end.

use super::anchor::{self, Tale};
use super::finish::is_passed_over;
use super::spawn::push_anchor;
use crate::error::{Error, Result};
use crate::thread::Thread;
use komado_core::admit::Refusal;
use komado_core::journal::{Entry, Share};
use komado_core::thread::{Branch, Header, Moment, branch};
use komado_core::{ThreadId, View};
use komado_store::{Error as StoreError, Mode};

impl Thread<'_> {
    /// Forks this thread, which was spawned from `parent`.
    pub(crate) fn fork_child(&self, mut header: Header, parent: &Moment) -> Result<Header> {
        let at = header.base_seq();
        if View::fold(self.source(), at)?.share().is_none() {
            let why = "the thread began after that; name a later entry";
            return Err(Refusal::NoEntry { seq: at, why }.into());
        }
        let engine = self.engine();
        self.free_name(Some(&header.thread))?;
        let mut above = engine
            .open_as_left(self.session(), &parent.thread, Mode::Write)
            .map_err(|error| self.parent_away(error, &parent.thread))?;
        let language = match above.record(parent.seq)?.entry {
            Entry::Anchor(own) => anchor::language(&own.text),
            _ => self.speaks()?,
        };
        let tale = Tale::begun(header.thread.clone(), header.label.clone(), header.timestamp.clone());
        let cap = anchor::cap(self.share()?.as_ref());
        let mut staged = above.stage();
        let seq = push_anchor(&mut staged, &tale, language, &above, cap)?;
        let work = staged.finish();
        header.parent = Some(Moment { thread: parent.thread.clone(), seq });
        // Under its own name, and held by nobody.
        let row = Branch { held_by: None, told: false, ..branch(&header, self.source())? };
        self.store().put_branch(&row)?;
        above.commit(work)?;
        self.store().spawn(&header)?;
        let mut fork = engine.open_as_left(self.session(), &header.thread, Mode::Write)?;
        fork.begin_fork()?;
        drop(fork);
        above.tend()?;
        above.settle()?;
        Ok(header)
    }

    /// Opens a fork again that was closed, and lets go of it where the thread it left was held.
    fn begin_fork(&mut self) -> Result<()> {
        self.reopen()?;
        let before = self.share()?;
        let share = self.recounted()?.map(|share| Share { held_by: None, ..share });
        if let Some(share) = share.filter(|share| before.as_ref() != Some(share)) {
            self.append(Entry::Share(share))?;
        }
        self.put_row()
    }

    pub(super) fn parent_away(&self, error: Error, parent: &ThreadId) -> Error {
        if is_passed_over(&error) && !matches!(error, Error::Store(StoreError::Io { .. })) {
            return Error::ParentBusy { thread: self.id().to_string(), parent: parent.to_string() };
        }
        error
    }
}
