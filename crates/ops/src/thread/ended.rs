//! What end, abort and pause tell: what became of the thread, and what its parent knows of it.

use super::Chronicle;
use crate::change;
use komado_core::thread::Status;
use komado_engine::engine::Found;
use komado_engine::stelis::Finished;
use schemars::JsonSchema;
use serde::Serialize;

/// A child thread that has ended, or waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Ended {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// `completed`, `aborted` or `paused`.
    pub status: &'static str,
    /// What was done in it.
    pub chronicle: Option<Chronicle>,
    /// Child threads that were aborted with it.
    pub aborted: Vec<String>,
    /// Why the digest wrote the chronicle, and not the summariser that was asked.
    pub declined: Option<String>,
    /// False when its parent is being changed by another process, and hears of it later.
    pub told: bool,
    /// The command that lets it go on.
    pub undo: String,
    /// The commands that let those go on that were aborted with it, in order, after `undo`.
    pub undo_aborted: Vec<String>,
}

impl Ended {
    /// Of the thread `found`, which is `status` now.
    pub fn of(found: &Found, status: Status, finished: Finished) -> Self {
        let resume = |thread| format!("komado thread resume {}/{thread}", found.session);
        Self {
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            status: status.name(),
            chronicle: finished.chronicle.as_ref().map(Chronicle::from),
            aborted: finished.aborted.iter().map(ToString::to_string).collect(),
            declined: finished.declined,
            told: finished.is_told,
            undo: format!("komado thread resume {}", change::name(found)),
            // Those further up come first.
            undo_aborted: finished.aborted.iter().rev().map(resume).collect(),
        }
    }
}
