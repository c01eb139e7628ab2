//! Pause, resume, stop and retry a task.
//!
//! A worker that has a task sees its row at the next heartbeat and comes to rest; the job is laid aside until it is resumed. A task
//! that was never begun gets its session now, at rest: the worker that takes its job finds that and lays it aside. A resume waits
//! for a task that is on its way to rest: its worker has the order, or will have it in a moment, and cannot be asked to forget it.
//! What was let go is looked at once more: a worker may have taken its job before, found that it rests, and laid it aside only now.
//!
//! A stop takes the job out of the queue. The worker that has it finds its job gone and ends the session; where none has it, that
//! is done here. What the job says is noted in the session first: `retry` makes a job of it again.

use super::add::{make, put_at_rest, reopen};
use super::standing::{TaskStanding, TaskState, find, job_of};
use super::{by_people, check_may_change};
use crate::work::source_of;
use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, Route};
use komado_agent::Error as AgentError;
use komado_agent::handler::keep;
use komado_agent::source::SourceEnd;
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_core::session::{State, TaskKey};
use komado_engine::Error as Engine;
use komado_provider::Cancel;
use komado_store::{Error as Store, SessionChange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Declares an operation that changes a task: its verb, its title, and the function that does it to a task that was found.
macro_rules! change {
    ($(#[$doc:meta])* $name:ident, $verb:literal, $title:literal, $change:path) => {
        $(#[$doc])*
        #[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
        pub struct $name {
            /// Its session or a unique beginning of it, or its key, such as github:ann/tool/issue/27
            #[schemars(length(min = 1, max = 500), example = &"fix-login")]
            pub task: String,
        }

        impl Operation for $name {
            const ABOUT: OperationLabel = OperationLabel::edit(concat!("task_", $verb), $title);
            const INTERFACES: Interfaces = by_people(
                concat!("task ", $verb),
                Route::post("tasks", concat!("/tasks/{task}/", $verb)),
            );
            type Output = TaskChanged;

            fn run(self, context: &OperationContext) -> OpResult<TaskChanged> {
                check_may_change(context)?;
                let found = find(context, &self.task)?;
                // Other calls of this process that write the session wait, or are waited for.
                let lock = context.lock(&found.session);
                let _held = lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                $change(context, find(context, found.session.as_str())?)
            }
        }
    };
}

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
fn changed(
    session: &SessionId,
    state: TaskState,
    what: impl Into<String>,
    undo: Option<&str>,
) -> OpResult<TaskChanged> {
    let undo = undo.map(|verb| format!("komado task {verb} {session}"));
    Ok(TaskChanged { session: session.to_string(), state, undo, what: what.into() })
}

/// A task in a state in which this makes no sense.
fn refused(session: &SessionId, why: impl std::fmt::Display) -> OpFault {
    OpFault::refused(format!("task {session} {why}"))
}

change! {
    /// Pause a task: a step that is under way is ended first.
    PauseTask, "pause", "Let a task rest", pause
}

fn pause(context: &OperationContext, task: TaskStanding) -> OpResult<TaskChanged> {
    let (id, state) = (&task.session, task.state());
    match (&task.row, state) {
        (_, TaskState::Paused) => return Err(refused(id, "rests already")),
        (None, TaskState::Dead) => {
            return Err(refused(
                id,
                format!("is laid aside already: `komado task retry {id}` tries it again"),
            ));
        }
        (None, _) => make(context, &task)?,
        (Some(row), _) if row.status.is_ended() => {
            return Err(refused(id, format!("has ended: {}", state.name())));
        }
        (Some(_), _) => {}
    }
    let undo = Some("resume");
    if task.is_held() || task.row.is_none() {
        let change = SessionChange::State { to: State::Paused, at: context.engine.now(), why: None };
        context.engine.store().change(id, &change)?;
        return match task.is_held() {
            true => changed(id, TaskState::Pausing, "pauses when its step is done", undo),
            false => changed(id, TaskState::Paused, "rests", undo),
        };
    }
    if let Some(about) = task.task() {
        keep(&context.engine, id, &about)?;
    }
    context.engine.pause(id, Some("a user paused it".to_owned()))?;
    changed(id, TaskState::Paused, "rests", undo)
}

/// How often a task that comes to rest is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How much longer than its grace a task may take to rest. A caller who is not on this machine waits no longer than this.
const SLACK: Duration = Duration::from_secs(10);

change! {
    /// Resume a paused task; one that comes to rest is waited for.
    ResumeTask, "resume", "Let a task go on", resume
}

fn resume(context: &OperationContext, mut task: TaskStanding) -> OpResult<TaskChanged> {
    let id = task.session.clone();
    if task.state() == TaskState::Pausing {
        context.note(format!("{id} pauses first and continues after that"));
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
            TaskState::Pausing => return Err(refused(&id, "has not paused yet: try again later")),
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
fn rests(context: &OperationContext, task: &TaskStanding) -> OpResult<bool> {
    let is_lost =
        task.queued.is_none() && task.is_open() && context.engine.store().writer(&task.session)?.is_none();
    Ok(task.state() == TaskState::Paused || is_lost)
}

/// Opens its session and lets its job be taken; one whose job is gone gets another.
fn let_go(context: &OperationContext, task: TaskStanding) -> OpResult {
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
pub(super) fn queue_again(context: &OperationContext, task: &TaskStanding) -> OpResult {
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
fn check_is_its_own(context: &OperationContext, task: &TaskStanding) -> OpResult {
    let (id, key) = (&task.session, &task.key);
    match job_of(context, key)? {
        Some(other) if other.job.session == *id => Ok(()),
        _ => Err(refused(id, format!("has no job, and another task has its key: `komado task show {key}`"))),
    }
}

change! {
    /// Stop a task, also a running one; `retry` starts it again.
    StopTask, "stop", "Stop a task", stop
}

fn stop(context: &OperationContext, task: TaskStanding) -> OpResult<TaskChanged> {
    let id = &task.session;
    if task.queued.is_none() && !task.is_open() {
        return Err(refused(id, format!("is {} already", task.state().name())));
    }
    let Some(about) = task.for_tracker() else {
        // Its job is not a task and was never begun: there is nothing to keep, and no tracker to tell.
        context.engine.store().withdraw(id)?;
        return changed(id, TaskState::Stopped, "is out of the queue", None);
    };
    if task.row.is_none() {
        make(context, &task)?;
    }
    let is_written = keep_words(context, &task)?;
    context.engine.store().withdraw(id)?;
    let undo = Some("retry");
    let is_open = || context.engine.session(id).map(|row| !row.status.is_ended());
    if is_written || (is_open()? && !end(context, id)?) {
        let what = "is out of the queue; its worker stops";
        return changed(id, TaskState::Stopping, what, undo);
    }
    let status = context.engine.session(id)?.status;
    tell_tracker(context, &about, label_of(status));
    match status {
        State::Stopped => changed(id, status.into(), "is stopped", undo),
        State::Completed => changed(id, status.into(), "is completed, and out of the queue", None),
        ended => changed(id, ended.into(), format!("is {}, and out of the queue", ended.name()), undo),
    }
}

/// Notes what its job says; true when a process writes the session, which does so when it finds the job gone.
fn keep_words(context: &OperationContext, task: &TaskStanding) -> OpResult<bool> {
    let id = &task.session;
    let Some(about) = task.task() else { return Ok(context.engine.store().writer(id)?.is_some()) };
    match keep(&context.engine, id, &about) {
        Ok(true) => Ok(false),
        Ok(false) => keep_in_closed(context, id, &about).map(|()| false),
        // One that no worker has is written by a process that will not end it.
        Err(AgentError::Engine(Engine::Store(busy @ Store::Busy { .. }))) => match &task.queued {
            Some(_) if !task.is_held() => Err(busy.into()),
            _ => Ok(true),
        },
        Err(other) => Err(other.into()),
    }
}

/// Closed without a word of it: it is opened to take them in, and ends as it had. One that is completed is not taken up
/// again, and needs none.
fn keep_in_closed(context: &OperationContext, id: &SessionId, about: &Task) -> OpResult {
    let engine = &context.engine;
    let before = engine.session(id)?;
    if before.status == State::Completed {
        return Ok(());
    }
    reopen(context, id)?;
    keep(engine, id, about)?;
    match before.status {
        State::Failed => engine.fail(id, before.error_message.as_deref().unwrap_or_default())?,
        State::Stopped => engine.stop(id, before.error_message)?,
        _ => return Ok(()),
    };
    Ok(())
}

/// Ends its session; false when a process writes it by now.
fn end(context: &OperationContext, id: &SessionId) -> OpResult<bool> {
    match context.engine.stop(id, Some("a user stopped it".to_owned())) {
        Ok(_) => Ok(true),
        Err(Engine::Store(Store::Busy { .. })) => Ok(false),
        Err(other) => Err(other.into()),
    }
}

/// Tells the tracker of a task of which only the key is known that it is not worked on.
pub fn tell_tracker_stopped(context: &OperationContext, key: &TaskKey) {
    tell_tracker(context, &Task::of(key.clone()), SourceEnd::Stopped);
}

/// One that had come to its end keeps the label of that.
fn label_of(status: State) -> SourceEnd {
    match status {
        State::Completed => SourceEnd::Done,
        State::Failed => SourceEnd::Failed,
        _ => SourceEnd::Stopped,
    }
}

/// Sets the label at the tracker; of one that was stopped none of ours stays. A tracker that cannot be told is noted.
fn tell_tracker(context: &OperationContext, task: &Task, ended: SourceEnd) {
    match source_of(context, task, &Cancel::default()).map(|mut source| source.end(task, ended)) {
        Ok(Ok(())) => {}
        Ok(Err(why)) => context.note(why.to_string()),
        Err(fault) => context.note(fault.message()),
    }
}

change! {
    /// Retry a task that failed, was stopped, or waits for its next try.
    RetryTask, "retry", "Take up a task again", retry
}

fn retry(context: &OperationContext, task: TaskStanding) -> OpResult<TaskChanged> {
    let (id, state) = (&task.session, task.state());
    match state {
        TaskState::Paused => {
            return Err(refused(id, format!("rests: `komado task resume {id}` lets it go on")));
        }
        TaskState::Pausing => {
            return Err(refused(id, format!("is pausing: `komado task resume {id}` continues it then")));
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
fn take_up(context: &OperationContext, task: TaskStanding) -> OpResult<TaskChanged> {
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
