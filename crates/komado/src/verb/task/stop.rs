//! `komado task stop`: end a task for good.
//!
//! It is taken out of the queue. Whoever works on it finds its job gone and ends the session; where nobody does, that is
//! done here.

use super::found::find;
use super::put::bare;
use super::{Named, refused, tell};
use crate::app::App;
use crate::fault::Outcome;
use crate::paper::say;
use crate::verb::work::source_of;
use clap::Args as ClapArgs;
use komado_agent::source::Ended;
use komado_agent::task::Task;
use komado_core::session::TaskKey;
use komado_provider::Cancel;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
}

pub(crate) fn run(app: &mut App, args: &Args) -> Outcome {
    let task = find(app, &args.named)?;
    let id = &task.session;
    let is_open = task.row.as_ref().is_some_and(|row| !row.status.is_ended());
    if task.queued.is_none() && !is_open {
        return Err(refused(id, format!("is {} already", task.state())));
    }
    app.engine.store().withdraw(id)?;
    if is_open && app.engine.store().writer(id)?.is_some() {
        return tell(app, id, "stopping", "is out of the queue; whoever works on it stops", None);
    }
    if is_open {
        app.engine.stop(id, Some("somebody stopped it".to_owned()))?;
    }
    task.for_tracker().iter().for_each(|task| tell_tracker(app, task));
    tell(app, id, "stopped", "is stopped", None)
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
