//! Tasks: what waits in the queue, what is worked on, and what became of it.
//!
//! A task is named by its session or by its key, where sessions may be named so also by a beginning of its session. Who sees
//! a session sees its task; to add tasks and to change what they do is for callers who see all, since tasks run commands on
//! the machine of their worker.

mod add;
mod change;
mod show;
mod standing;

pub use add::{AddTask, AddTasks, AddedTasks, FetchTasks, FetchedTasks, QueuedTask};
pub use change::{PauseTask, ResumeTask, RetryTask, StopTask, TaskChanged, tell_tracker_stopped};
pub use show::{ListTasks, ShowTask, TaskDetails, TaskJournal, TaskList, TaskPaths};
pub use standing::{TaskRow, TaskState};

use crate::{Interfaces, OpFault, OpResult, OperationContext, Route};

/// What people do to a task: a verb, and a route of the same name.
const fn by_people(verb: &'static str, route: Route) -> Interfaces {
    const WHY: &str =
        "a task runs commands on this machine: whether it does is for people to say, not for a model";
    Interfaces::everywhere(verb, route).not_mcp(WHY)
}

/// What everyone may read who sees the session.
const fn everywhere(verb: &'static str, path: &'static str) -> Interfaces {
    Interfaces::everywhere(verb, Route::get("tasks", path))
}

/// Refuses a change by a caller who does not see all.
fn check_may_change(context: &OperationContext) -> OpResult {
    match context.caller.sees_all {
        true => Ok(()),
        false => Err(OpFault::forbidden(
            "tasks run commands on this machine, and this key does not see all; `komado admin key add --sees all` makes one \
             that may add and change them",
        )),
    }
}
