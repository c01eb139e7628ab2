//! `komado task stop`: end a task, until somebody wants it after all.
//!
//! It is taken out of the queue. Whoever works on it finds its job gone and ends the session; where nobody does, that is
//! done here. What the job says is noted in the session first, which one that was never begun gets for it: `retry` makes a
//! job of it again.

use super::found::find;
use super::put::bare;
use super::resume::reopen;
use super::standing::Standing;
use super::{Named, pause, refused, tell};
use crate::app::App;
use crate::fault::Outcome;
use crate::paper::say;
use crate::verb::work::source_of;
use clap::Args as ClapArgs;
use komado_agent::Error as AgentError;
use komado_agent::handler::keep;
use komado_agent::source::Ended;
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_core::session::{State, TaskKey};
use komado_engine::Error as Engine;
use komado_provider::Cancel;
use komado_store::Error as Store;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
}

pub(crate) fn run(app: &mut App, args: &Args) -> Outcome {
    let task = find(app, &args.named)?;
    let id = &task.session;
    if task.queued.is_none() && !task.is_open() {
        return Err(refused(id, format!("is {} already", task.state())));
    }
    if task.for_tracker().is_none() {
        // Its job is no task and was never begun: there is nothing to keep, and nobody to tell.
        app.context.engine.store().withdraw(id)?;
        return tell(app, id, "stopped", "is out of the queue", None);
    }
    if task.row.is_none() {
        pause::make(app, &task)?;
    }
    let is_written = keep_words(app, &task)?;
    app.context.engine.store().withdraw(id)?;
    let undo = Some("retry");
    if is_written || (is_open(app, id)? && !end(app, id)?) {
        return tell(app, id, "stopping", "is out of the queue; whoever works on it stops", undo);
    }
    let status = app.context.engine.session(id)?.status;
    task.for_tracker().iter().for_each(|task| tell_tracker(app, task, label_of(status)));
    match status {
        State::Stopped => tell(app, id, "stopped", "is stopped", undo),
        State::Completed => tell(app, id, "completed", "is completed, and out of the queue", None),
        ended => {
            let words = format!("is {}, and out of the queue", ended.name());
            tell(app, id, ended.name(), &words, undo)
        }
    }
}

/// Notes what its job says; true when somebody writes the session, who does so when they find the job gone.
fn keep_words(app: &App, task: &Standing) -> Outcome<bool> {
    let id = &task.session;
    let Some(about) = task.task() else { return Ok(app.context.engine.store().writer(id)?.is_some()) };
    match keep(&app.context.engine, id, &about) {
        Ok(true) => Ok(false),
        Ok(false) => keep_in_closed(app, id, &about).map(|()| false),
        Err(AgentError::Engine(Engine::Store(Store::Busy { .. }))) => Ok(true),
        Err(other) => Err(super::fault(other)),
    }
}

/// Closed without a word of it: it is opened to take them in, and ends as it had. One that is completed is not taken up
/// again, and needs none.
fn keep_in_closed(app: &App, id: &SessionId, about: &Task) -> Outcome {
    let before = app.context.engine.session(id)?;
    if before.status == State::Completed {
        return Ok(());
    }
    reopen(app, id)?;
    keep(&app.context.engine, id, about).map_err(super::fault)?;
    match before.status {
        State::Failed => app.context.engine.fail(id, before.error_message.as_deref().unwrap_or_default())?,
        State::Stopped => app.context.engine.stop(id, before.error_message)?,
        _ => return Ok(()),
    };
    Ok(())
}

fn is_open(app: &App, id: &SessionId) -> Outcome<bool> {
    Ok(!app.context.engine.session(id)?.status.is_ended())
}

/// Ends its session; false when somebody writes it by now.
fn end(app: &App, id: &SessionId) -> Outcome<bool> {
    match app.context.engine.stop(id, Some("somebody stopped it".to_owned())) {
        Ok(_) => Ok(true),
        Err(Engine::Store(Store::Busy { .. })) => Ok(false),
        Err(other) => Err(other.into()),
    }
}

/// Tells the tracker of a task of which only the key is known that nobody works on it.
pub(crate) fn tell_tracker_of(app: &App, key: &TaskKey) {
    tell_tracker(app, &bare(key.clone()), Ended::Stopped);
}

/// One that had come to its end keeps the label of that.
fn label_of(status: State) -> Ended {
    match status {
        State::Completed => Ended::Done,
        State::Failed => Ended::Failed,
        _ => Ended::Stopped,
    }
}

/// Sets the label at the tracker; of one that was stopped none of ours stays. When it cannot be told, the person is.
fn tell_tracker(app: &App, task: &Task, ended: Ended) {
    match source_of(app, task, &Cancel::default()).map(|mut source| source.end(task, ended)) {
        Ok(Ok(())) => {}
        Ok(Err(why)) => say(format!("komado: {why}")),
        Err(fault) => say(format!("komado: {}", fault.message())),
    }
}
