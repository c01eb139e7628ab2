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
    if task.row.is_none() {
        pause::make(app, &task)?;
    }
    let is_written = keep_words(app, &task)?;
    app.engine.store().withdraw(id)?;
    let undo = Some("retry");
    if is_written || (is_open(app, id)? && !end(app, id)?) {
        return tell(app, id, "stopping", "is out of the queue; whoever works on it stops", undo);
    }
    task.for_tracker().iter().for_each(|task| tell_tracker(app, task));
    match app.engine.session(id)?.status {
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
    let Some(about) = task.task() else { return Ok(app.engine.store().writer(id)?.is_some()) };
    match keep(&app.engine, id, &about) {
        Ok(true) => Ok(false),
        // Closed without a word of it: it is opened to take them in, and stopped then.
        Ok(false) => {
            reopen(app, id)?;
            keep(&app.engine, id, &about).map_err(super::fault)?;
            Ok(false)
        }
        Err(AgentError::Engine(Engine::Store(Store::Busy { .. }))) => Ok(true),
        Err(other) => Err(super::fault(other)),
    }
}

fn is_open(app: &App, id: &SessionId) -> Outcome<bool> {
    Ok(!app.engine.session(id)?.status.is_ended())
}

/// Ends its session; false when somebody writes it by now.
fn end(app: &App, id: &SessionId) -> Outcome<bool> {
    match app.engine.stop(id, Some("somebody stopped it".to_owned())) {
        Ok(_) => Ok(true),
        Err(Engine::Store(Store::Busy { .. })) => Ok(false),
        Err(other) => Err(other.into()),
    }
}

/// Tells the tracker of a task of which only the key is known that nobody works on it.
pub(crate) fn tell_tracker_of(app: &App, key: &TaskKey) {
    tell_tracker(app, &bare(key.clone()));
}

/// No label of ours stays at the tracker. When it cannot be told, the person is.
fn tell_tracker(app: &App, task: &Task) {
    let ended = source_of(app, task, &Cancel::default()).map(|mut source| source.end(task, Ended::Stopped));
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(why)) => say(format!("komado: {why}")),
        Err(fault) => say(format!("komado: {}", fault.message())),
    }
}
