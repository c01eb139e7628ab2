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
    /// How.
    #[serde(flatten)]
    pub how: HowEnded,
}

/// How a child thread ended, and how it goes on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct HowEnded {
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
    pub(super) fn of(found: &Found, status: Status, finished: Finished) -> Self {
        let (session, thread) = (found.session.to_string(), found.thread.to_string());
        Self { session, thread, how: HowEnded::of(found, status, finished) }
    }
}

impl HowEnded {
    pub(super) fn of(found: &Found, status: Status, finished: Finished) -> Self {
        let resume = |thread| format!("komado thread resume {}/{thread}", found.session);
        Self {
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
