//! Take up a task again that failed or was stopped, in the session it has.

use super::change::{TaskChanged, change, changed, refused};
use super::put::reopen;
use super::resume::queue_again;
use super::standing::{Standing, TaskState};
use crate::{Context, Outcome};

change! {
    /// Take up a task again that failed or was stopped, or that waits to be tried again.
    RetryTask, "retry", "Take up a task again", retry
}

fn retry(context: &Context, task: Standing) -> Outcome<TaskChanged> {
    let (id, state) = (&task.session, task.state());
    match state {
        TaskState::Paused => {
            return Err(refused(id, format!("rests: `komado task resume {id}` lets it go on")));
        }
        TaskState::Pausing => {
            return Err(refused(id, format!("comes to rest: `komado task resume {id}` lets it go on then")));
        }
        _ if task.queued.is_none() => return take_up(context, task),
        TaskState::Running => return Err(refused(id, "is worked on")),
        TaskState::Queued => return Err(refused(id, "waits already")),
        _ => {}
    }
    // One that came to its end and is in the queue still has only to be told at its tracker.
    let is_untold = matches!(state, TaskState::Completed | TaskState::Stopped);
    if !is_untold && task.row.as_ref().is_some_and(|row| row.status.is_ended()) {
        reopen(context, id)?;
    }
    if !context.engine.store().requeue(id)? {
        return changed(id, TaskState::Running, "is worked on by now", Some("stop"));
    }
    let what = if is_untold { "waits to be told at its tracker" } else { "waits to be tried again" };
    changed(id, TaskState::Queued, what, Some("stop"))
}

/// One that is no longer in the queue gets a job again.
fn take_up(context: &Context, task: Standing) -> Outcome<TaskChanged> {
    let id = task.session.clone();
    match task.state() {
        TaskState::Stopped | TaskState::Failed => {}
        TaskState::Running if context.engine.store().writer(&id)?.is_some() => {
            return Err(refused(&id, "is still being stopped: try again when it has come to its end"));
        }
        TaskState::Running => {
            return Err(refused(&id, format!("has no job: `komado task resume {id}` lets it go on")));
        }
        state => return Err(refused(&id, format!("is {}, and no longer in the queue", state.name()))),
    }
    queue_again(context, &task.remembered(context)?)?;
    changed(&id, TaskState::Queued, "waits to be tried again", Some("stop"))
}
