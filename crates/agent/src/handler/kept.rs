//! A job's words in the journal of its task: what is stopped leaves the queue, and may be wanted after all.
//!
//! They are noted before the session is closed and the job goes, so that nothing is lost to whoever is killed in between.
//! One note is enough: a task never changes.

use super::mark::{Mark, note, noted};
use crate::error::Result;
use crate::task::Task;
use komado_core::{SessionId, ThreadId};
use komado_engine::{Engine, Thread};
use komado_store::Mode;

/// What the note is about.
const ABOUT: &str = "job";

/// Notes in its session what a task is, unless that was done. False when the session was closed before anybody could say
/// anything of it: then nothing can be noted, either.
pub fn keep(engine: &Engine, session: &SessionId, task: &Task) -> Result<bool> {
    let mut root = engine.open(session, &ThreadId::root(), Mode::Amend)?;
    if root.noted(ABOUT)?.is_some() {
        return Ok(true);
    }
    if root.view().closed().is_some() {
        return Ok(Mark::of(&root)?.is_some());
    }
    root.note(ABOUT, note(task)?)?;
    root.settle()?;
    Ok(true)
}

/// What was noted.
pub fn kept(root: &Thread<'_>) -> Result<Option<Task>> {
    noted(root, ABOUT)
}
