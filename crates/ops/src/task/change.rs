//! What the operations that change one task have in common.

use super::standing::TaskState;
use crate::{Exit, Fault, Outcome};
use komado_core::SessionId;
use schemars::JsonSchema;
use serde::Serialize;

/// Declares an operation that changes a task: its verb, its title, and the function that does it to a task that was found.
macro_rules! change {
    ($(#[$doc:meta])* $name:ident, $verb:literal, $title:literal, $change:path) => {
        $(#[$doc])*
        #[derive(Clone, Debug, clap::Args, serde::Deserialize, schemars::JsonSchema)]
        pub struct $name {
            /// Its session or a unique beginning of it, or its key, such as github:ann/tool/issue/27
            #[schemars(length(min = 1, max = 500), example = &"fix-login")]
            pub task: String,
        }

        impl crate::Operation for $name {
            const NAME: &'static str = concat!("task_", $verb);
            const TITLE: &'static str = $title;
            const EFFECT: crate::Effect = crate::Effect::Edit;
            const INTERFACES: crate::Interfaces = super::by_people(
                concat!("task ", $verb),
                crate::Route::post("tasks", concat!("/tasks/{task}/", $verb)),
            );
            type Output = super::TaskChanged;

            fn run(self, context: &crate::Context) -> crate::Outcome<super::TaskChanged> {
                super::check_may_change(context)?;
                let found = super::find::find(context, &self.task)?;
                // Other calls of this process that write the session wait, or are waited for.
                let lock = context.lock(&found.session);
                let _held = lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                $change(context, super::find::find(context, found.session.as_str())?)
            }
        }
    };
}

pub(super) use change;

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

/// A task in a state in which this makes no sense.
pub(super) fn refused(session: &SessionId, why: impl std::fmt::Display) -> Fault {
    Fault::new(Exit::Refused, format!("task {session} {why}"))
}
