//! Putting right what a process left of its threads when it ended without a word.
//!
//! A thread that a guard holds is open for writing as long as the guard lives. So one that can be opened by somebody else
//! has lost its holder: it is closed as aborted, with what the digest can tell, and its parent goes on. Threads that
//! nobody holds outlive processes and are left alone, unless the thread above them has ended.

use super::finish::{Finish, is_passed_over};
use crate::engine::Engine;
use crate::error::Result;
use crate::thread::Thread;
use komado_core::journal::Chronicle;
use komado_core::thread::Branch;
use komado_core::{SessionId, ThreadId};
use komado_store::{Mode, Which};
use std::collections::BTreeSet;

/// Why a thread ended whose holder is gone.
const GONE: &str = "the process that held it ended";
/// Why a thread ended that was left under one that had.
pub(super) const ABOVE_ENDED: &str = "the thread above it ended";

/// A thread that lost its holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovered {
    /// The thread.
    pub thread: ThreadId,
    /// Who had held it; nobody, for one that was left under a thread that ended.
    pub held_by: Option<String>,
    /// What was done in it so far.
    pub chronicle: Option<Chronicle>,
}

impl Engine {
    /// Breaks off the threads of processes that ended, and tells their parents. [`Engine::open`] does it when it opens to
    /// write.
    pub fn recover(&self, id: &SessionId) -> Result<Vec<Recovered>> {
        let rows = self.store().branches(id, Which::Unsettled)?;
        self.recover_rows(&rows)
    }

    /// Looks after the session of a thread that was just opened for writing; it knows then what was broken off.
    pub(crate) fn look_after(&self, opened: &mut Thread<'_>) -> Result<()> {
        let rows = self.store().branches(opened.session(), Which::Unsettled)?;
        if rows.is_empty() && opened.header().base.is_none() {
            return Ok(());
        }
        if let Some(row) = rows.iter().find(|row| row.thread == *opened.id()) {
            // Its guard would have it open, and we have.
            match self.is_left(opened) {
                Ok(true) => {
                    let recovered = break_off(opened)?;
                    opened.recovered.push(recovered);
                }
                Ok(false) => {}
                // The thread above cannot be read; that is no reason not to work in this one.
                Err(error) if is_passed_over(&error) => {}
                Err(error) => return Err(error),
            }
            if let (0, Some(moment)) = (opened.last(), opened.header().parent.clone()) {
                let parent = self.open_as_left(opened.session(), &moment.thread, Mode::Read)?;
                opened.break_off_unbegun(&parent, row)?;
            }
        }
        opened.recovered.extend(self.recover_rows(&rows)?);
        opened.tend().map(|_| ())
    }

    fn recover_rows(&self, rows: &[Branch]) -> Result<Vec<Recovered>> {
        let mut recovered = Vec::new();
        // Those further down first: what they did is part of what the ones above tell.
        for row in rows.iter().rev().filter(|row| row.parent.is_some()) {
            match self.recover_one(row) {
                Ok(found) => recovered.extend(found),
                Err(error) if is_passed_over(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let Some(id) = rows.first().map(|row| &row.session) else { return Ok(recovered) };
        // Parents are opened for a moment, and only where there is something to tell.
        let untold = self.store().branches(id, Which::Unsettled)?.into_iter().filter(|row| !row.told);
        let parents: BTreeSet<ThreadId> = untold.filter_map(|row| row.parent).collect();
        for parent in &parents {
            match self.tell_parent(id, parent) {
                Err(error) if !is_passed_over(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(recovered)
    }

    pub(super) fn recover_one(&self, row: &Branch) -> Result<Option<Recovered>> {
        if !row.status.is_open() {
            return Ok(None);
        }
        let thread = self.open_as_left(&row.session, &row.thread, Mode::Read)?;
        if !thread.status()?.is_open() {
            thread.put_row()?;
            return Ok(None);
        }
        if !self.is_left(&thread)? {
            return Ok(None);
        }
        // Refused while its holder lives.
        let mut thread = self.open_as_left(&row.session, &row.thread, Mode::Write)?;
        if !self.is_left(&thread)? {
            return Ok(None);
        }
        break_off(&mut thread).map(Some)
    }

    /// True for an open thread that lost its holder, or the thread above it. One without a share has hardly begun: whoever
    /// spawns it may be at work, and if not, its parent knows.
    fn is_left(&self, thread: &Thread<'_>) -> Result<bool> {
        let Some(share) = thread.share()? else { return Ok(false) };
        if !thread.status()?.is_open() {
            return Ok(false);
        }
        // The share that a fork has from the thread it left does not say who holds the fork.
        if share.held_by.is_some() && thread.view().share() > Some(thread.header().base_seq()) {
            return Ok(true);
        }
        let Some(moment) = &thread.header().parent else { return Ok(false) };
        let parent = self.open_as_left(thread.session(), &moment.thread, Mode::Read)?;
        Ok(!parent.status()?.is_open())
    }
}

/// Ends a thread that is left.
fn break_off(thread: &mut Thread<'_>) -> Result<Recovered> {
    let held_by = thread.share()?.and_then(|share| share.held_by);
    let why = if held_by.is_some() { GONE } else { ABOVE_ENDED };
    let chronicle = thread.finish(Finish::aborted(Some(why.to_owned())))?.chronicle;
    Ok(Recovered { thread: thread.id().clone(), held_by, chronicle })
}
