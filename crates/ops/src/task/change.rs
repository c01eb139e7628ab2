//! What was done to a task, and what makes no sense where it stands.

use super::check_may_change;
use super::find::find;
use super::standing::{Standing, TaskState};
use crate::{Context, Exit, Fault, Outcome};
use komado_core::SessionId;
use schemars::JsonSchema;
use serde::Serialize;

/// What was done to a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct TaskChanged {
    /// Its session.
    pub session: String,
    /// Where it is now.
    pub state: TaskState,
    /// The command that undoes it.
    pub undo: Option<String>,
    /// The same in words, after its name.
    #[serde(skip)]
    pub what: String,
}

/// What was done; `undo` is the verb that undoes it.
pub(super) fn changed(
    session: &SessionId,
    state: TaskState,
    what: impl Into<String>,
    undo: Option<&str>,
) -> Outcome<TaskChanged> {
    let undo = undo.map(|verb| format!("komado task {verb} {session}"));
    Ok(TaskChanged { session: session.to_string(), state, undo, what: what.into() })
}

/// A task that is to be changed.
pub(super) fn found(context: &Context, task: &str) -> Outcome<Standing> {
    check_may_change(context)?;
    find(context, task)
}

/// A task in a state in which this makes no sense.
pub(super) fn refused(session: &SessionId, why: impl std::fmt::Display) -> Fault {
    Fault::new(Exit::Refused, format!("task {session} {why}"))
}
