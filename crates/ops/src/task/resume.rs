//! Let a task that rests go on.
//!
//! One that is on its way to rest is waited for: its worker has the order, or will have it in a moment, and cannot be asked
//! to forget it. What was let go is looked at once more: a worker may have taken its job before, found that it rests, and
//! laid it aside only now.

use super::change::{TaskChanged, change, changed, refused};
use super::find::find;
use super::put::{put_at_rest, reopen};
use super::standing::{Standing, TaskState, job_of};
use crate::{Context, Outcome};
use std::time::{Duration, Instant};

/// How often a task that comes to rest is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How much longer than its grace a task may take to rest. A caller who is not on this machine waits no longer than this.
const SLACK: Duration = Duration::from_secs(10);

change! {
    /// Let a task that rests go on; one that comes to rest is waited for.
    ResumeTask, "resume", "Let a task go on", resume
}

fn resume(context: &Context, mut task: Standing) -> Outcome<TaskChanged> {
    let id = task.session.clone();
    if task.state() == TaskState::Pausing {
        context.note(format!("{id} comes to rest first; it goes on after that"));
    }
    let pace = &context.config.agent.pace;
    let patience = if context.is_here() { pace.grace + pace.hidden } else { Duration::ZERO };
    let until = Instant::now() + patience + SLACK;
    let mut is_let_go = false;
    loop {
        let state = task.state();
        if is_let_go && let Some((state, what, undo)) = went_on(state) {
            return changed(&id, state, what, undo);
        }
        match state {
            TaskState::Pausing if Instant::now() < until => std::thread::sleep(LOOK),
            TaskState::Pausing => return Err(refused(&id, "has not come to rest yet: try again later")),
            _ if Instant::now() < until && rests(context, &task)? => {
                let_go(context, task)?;
                is_let_go = true;
            }
            TaskState::Paused => {
                let why = "rests still, after all the time a worker may take to lay it aside";
                return Err(refused(&id, format!("{why}: try again with `komado task resume {id}`")));
            }
            TaskState::Stopped | TaskState::Failed | TaskState::Dead => {
                let state = state.name();
                return Err(refused(&id, format!("is {state}: `komado task retry {id}` takes it up again")));
            }
            state => {
                return Err(refused(&id, format!("is {}: only one that rests can go on", state.name())));
            }
        }
        task = find(context, id.as_str())?;
    }
}

/// The state, the words and the undo for one that was let go; `None` where it rests again. It may have come to its end by
/// the time it is looked at.
fn went_on(state: TaskState) -> Option<(TaskState, &'static str, Option<&'static str>)> {
    match state {
        TaskState::Queued | TaskState::Retry => Some((TaskState::Queued, "waits to go on", Some("pause"))),
        TaskState::Running => Some((state, "goes on", Some("pause"))),
        TaskState::Completed => Some((state, "went on, and is completed", None)),
        TaskState::Failed => Some((state, "went on, and failed", None)),
        TaskState::Stopped => Some((state, "went on, and was stopped", None)),
        _ => None,
    }
}

/// True also for one that is open and has neither a job nor a process that writes it: none would ever go on with it.
fn rests(context: &Context, task: &Standing) -> Outcome<bool> {
    let is_lost =
        task.queued.is_none() && task.is_open() && context.engine.store().writer(&task.session)?.is_none();
    Ok(task.state() == TaskState::Paused || is_lost)
}

/// Opens its session and lets its job be taken; one whose job is gone gets another.
fn let_go(context: &Context, task: Standing) -> Outcome {
    if task.queued.is_none() {
        return queue_again(context, &task.remembered(context)?);
    }
    reopen(context, &task.session)?;
    if !context.engine.store().requeue(&task.session)? {
        // A worker has it by now: to work on it, or to lay it aside.
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Makes a job again from what the journal remembers, and opens the session for it. The job is there first, at rest: a
/// worker that starts meanwhile finds no open session without one.
pub(super) fn queue_again(context: &Context, task: &Standing) -> Outcome {
    let (id, store) = (&task.session, context.engine.store());
    let Some(about) = task.remembered_task() else {
        let why = "has no job in the queue any more, and was never begun: what it was to do is not known; add it again";
        let end = if task.is_open() {
            format!(", and end this one: `komado task stop {id}`")
        } else {
            String::new()
        };
        return Err(refused(id, format!("{why}{end}")));
    };
    if !put_at_rest(context, id.clone(), about)? {
        return check_is_its_own(context, task);
    }
    if let Err(fault) = reopen(context, id) {
        store.withdraw(id)?;
        return Err(fault);
    }
    // Where it is not at rest any more, another process let it go, or took it out.
    store.requeue(id)?;
    Ok(())
}

/// Refuses when the job with its key is another task's. Its own was put there by another process at the same moment.
fn check_is_its_own(context: &Context, task: &Standing) -> Outcome {
    let (id, key) = (&task.session, &task.key);
    match job_of(context, key)? {
        Some(other) if other.job.session == *id => Ok(()),
        _ => Err(refused(id, format!("has no job, and another task has its key: `komado task show {key}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_ended_right_after_it_was_let_go_is_told_with_its_end_and_one_that_rests_is_looked_at_again() {
        for state in [TaskState::Completed, TaskState::Failed, TaskState::Stopped] {
            let (told, words, undo) = went_on(state).unwrap();
            assert_eq!((told, undo), (state, None));
            assert!(words.contains(state.name()), "{words}");
        }
        assert_eq!(went_on(TaskState::Retry).unwrap().0, TaskState::Queued);
        assert_eq!((went_on(TaskState::Paused), went_on(TaskState::Pausing)), (None, None));
    }
}
