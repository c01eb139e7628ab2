//! Ending a spawned thread: those below it first, then its chronicle, then its close.
//!
//! The row is marked before the journal says anything, so that a crash in between leaves a parent that will be told. The
//! anchor itself is the parent's to write: see [`Thread::tend`].

use super::chronicle::{Telling, Written};
use super::recover::ABOVE_ENDED;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::thread::Thread;
use komado_core::ThreadId;
use komado_core::journal::{Chronicle, Close, Ending, Entry};
use komado_core::thread::{Branch, Status, branch};
use komado_store::{Error as StoreError, Mode, Which};

/// How a thread ends.
pub struct Finish<'a> {
    /// In what way.
    pub ending: Ending,
    /// Its result, or the reason.
    pub result: Option<String>,
    /// Who tells what was done.
    pub telling: Telling<'a>,
}

impl Finish<'_> {
    /// Broken off, with what the digest can tell.
    pub fn aborted(why: Option<String>) -> Self {
        Self { ending: Ending::Aborted, result: why, telling: Telling::Digest }
    }

    /// Not ended; waits to go on.
    pub fn paused(why: Option<String>) -> Self {
        Self { ending: Ending::Paused, result: why, telling: Telling::Nothing }
    }
}

/// How it ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Finished {
    /// What was done.
    pub chronicle: Option<Chronicle>,
    /// The threads below it that were broken off by this, those further down first.
    pub aborted: Vec<ThreadId>,
    /// True when the parent's anchor says so already; else it will, when the parent is next at work.
    pub is_told: bool,
    /// Why the chronicle is the digest's and not that of the summariser that was asked.
    pub declined: Option<String>,
}

impl Thread<'_> {
    /// Ends or pauses a spawned thread. Threads below it that are still open are broken off first, unless it only pauses;
    /// one that someone in this process still holds is left to its holder.
    pub fn finish(&mut self, finish: Finish<'_>) -> Result<Finished> {
        self.check_writer()?;
        if self.header().parent.is_none() {
            return Err(Error::NotSpawned { thread: self.id().to_string() });
        }
        let Finish { ending, result, telling } = finish;
        telling.check()?;
        let close = Entry::Close(Close { ending, result });
        self.stage().push(close.clone(), String::new())?;
        self.put_row()?;
        let aborted = if ending == Ending::Paused { Vec::new() } else { self.abort_below()? };
        let Written { chronicle, declined } = self.write_story(telling, ending != Ending::Completed)?;
        let mut staged = self.stage();
        if let Some(chronicle) = chronicle.clone() {
            staged.push(Entry::Chronicle(chronicle), self.engine().now())?;
        }
        staged.push(close, self.engine().now())?;
        let work = staged.finish();
        // Telling may have taken minutes, and the parent may have looked in between and found nothing new.
        self.put_row()?;
        self.commit(work)?;
        self.put_row()?;
        if ending != Ending::Paused {
            self.mark_below()?;
        }
        self.settle()?;
        Ok(Finished { chronicle, aborted, is_told: false, declined })
    }

    /// Breaks off every open thread below this one, those further down first. Gives their names.
    pub(super) fn abort_below(&mut self) -> Result<Vec<ThreadId>> {
        let rows = self.store().branches(self.session(), Which::Under(self.id().clone()))?;
        let mut aborted = Vec::new();
        for row in rows.into_iter().filter(|row| row.status.is_open()) {
            aborted.extend(self.engine().abort_branch(row)?);
        }
        self.tend()?;
        Ok(aborted)
    }

    /// Marks the threads below this one that someone still has open: whoever looks after the session next ends them.
    fn mark_below(&self) -> Result<()> {
        let rows = self.store().branches(self.session(), Which::Under(self.id().clone()))?;
        for row in rows.into_iter().filter(|row| row.status.is_open()) {
            self.store().put_branch(&Branch { told: false, ..row })?;
        }
        Ok(())
    }

    /// Puts what the journal says of this thread into the table; the parent is still to be told.
    pub(crate) fn put_row(&self) -> Result<()> {
        let row = branch(self.header(), self.source())?;
        Ok(self.store().put_branch(&Branch { told: false, ..row })?)
    }

    /// Where the thread is in its life.
    pub fn status(&self) -> Result<Status> {
        let Some(seq) = self.view().closed() else { return Ok(Status::Active) };
        Ok(Status::from(match self.record(seq)?.entry {
            Entry::Close(close) => Some(close.ending),
            _ => None,
        }))
    }
}

impl Engine {
    /// Breaks off one thread and those below it.
    fn abort_branch(&self, row: Branch) -> Result<Vec<ThreadId>> {
        let mut child = match self.open_as_left(&row.session, &row.thread, Mode::Write) {
            Ok(child) => child,
            Err(error) if is_passed_over(&error) => {
                // Whoever holds it ends it; should that fail, the next one to look finds it here.
                self.store().put_branch(&Branch { told: false, ..row })?;
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        if !child.status()?.is_open() {
            child.put_row()?;
            return Ok(Vec::new());
        }
        let why = Some(ABOVE_ENDED.to_owned());
        let mut aborted = child.finish(Finish::aborted(why))?.aborted;
        aborted.push(row.thread);
        Ok(aborted)
    }

    /// Breaks off every open thread of the session: it ends.
    pub(crate) fn abort_all(&self, root: &mut Thread<'_>) -> Result<Vec<ThreadId>> {
        let mut aborted = root.abort_below()?;
        let rows = self.store().branches(root.session(), Which::All)?;
        // What is left was spawned from forks of the root.
        for row in rows.into_iter().filter(|row| row.status.is_open() && row.parent.is_some()) {
            let (session, parent) = (row.session.clone(), row.parent.clone());
            let ended = self.abort_branch(row)?;
            if let (false, Some(parent)) = (ended.is_empty(), parent) {
                self.tell_parent(&session, &parent)?;
            }
            aborted.extend(ended);
        }
        Ok(aborted)
    }
}

/// True for what is no reason to stop looking after the others: someone has the thread open, or it cannot be read.
pub(super) fn is_passed_over(error: &Error) -> bool {
    let Error::Store(error) = error else { return false };
    matches!(
        error,
        StoreError::Busy { .. }
            | StoreError::NoThread(..)
            | StoreError::Damaged { .. }
            | StoreError::Header { .. }
            | StoreError::Io { .. }
    )
}
