//! End a task, until it is wanted after all.
//!
//! It is taken out of the queue. The worker that has it finds its job gone and ends the session; where none has it, that is
//! done here. What the job says is noted in the session first, which one that was never begun gets for it: `retry` makes a
//! job of it again.

use super::change::{TaskChanged, change, changed, refused};
use super::put::{make, reopen};
use super::standing::{Standing, TaskState};
use crate::work::source_of;
use crate::{Context, Outcome};
use komado_agent::Error as AgentError;
use komado_agent::handler::keep;
use komado_agent::source::Ended;
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_core::session::{State, TaskKey};
use komado_engine::Error as Engine;
use komado_provider::Cancel;
use komado_store::Error as Store;

change! {
    /// End a task, also one that is worked on; `retry` takes it up again.
    StopTask, "stop", "Stop a task", stop
}

fn stop(context: &Context, task: Standing) -> Outcome<TaskChanged> {
    let id = &task.session;
    if task.queued.is_none() && !task.is_open() {
        return Err(refused(id, format!("is {} already", task.state().name())));
    }
    let Some(about) = task.for_tracker() else {
        // Its job is no task and was never begun: there is nothing to keep, and no tracker to tell.
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
fn keep_words(context: &Context, task: &Standing) -> Outcome<bool> {
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
fn keep_in_closed(context: &Context, id: &SessionId, about: &Task) -> Outcome {
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
fn end(context: &Context, id: &SessionId) -> Outcome<bool> {
    match context.engine.stop(id, Some("somebody stopped it".to_owned())) {
        Ok(_) => Ok(true),
        Err(Engine::Store(Store::Busy { .. })) => Ok(false),
        Err(other) => Err(other.into()),
    }
}

/// Tells the tracker of a task of which only the key is known that it is not worked on.
pub fn tell_tracker_stopped(context: &Context, key: &TaskKey) {
    tell_tracker(context, &Task::of(key.clone()), Ended::Stopped);
}

/// One that had come to its end keeps the label of that.
fn label_of(status: State) -> Ended {
    match status {
        State::Completed => Ended::Done,
        State::Failed => Ended::Failed,
        _ => Ended::Stopped,
    }
}

/// Sets the label at the tracker; of one that was stopped none of ours stays. A tracker that cannot be told is noted.
fn tell_tracker(context: &Context, task: &Task, ended: Ended) {
    match source_of(context, task, &Cancel::default()).map(|mut source| source.end(task, ended)) {
        Ok(Ok(())) => {}
        Ok(Err(why)) => context.note(why.to_string()),
        Err(fault) => context.note(fault.message()),
    }
}
