//! `komado task resume`: let a task that rests go on.

use super::found::find;
use super::{Named, refused, tell};
use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_engine::Error as Engine;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
}

pub(crate) fn run(app: &mut App, args: &Args) -> Outcome {
    let task = find(app, &args.named)?;
    let id = &task.session;
    if task.state() != "paused" {
        return Err(refused(id, format!("is {}: only one that rests can go on", task.state())));
    }
    if task.queued.is_none() {
        let why = format!("has no job in the queue any more; `komado resume {id}` opens its session");
        return Err(refused(id, why));
    }
    reopen(app, id)?;
    app.engine.store().requeue(id)?;
    tell(app, id, "queued", "waits to go on", Some("pause"))
}

/// Opens the session again; one that is open needs no opening.
pub(super) fn reopen(app: &App, id: &komado_core::SessionId) -> Outcome {
    match app.engine.resume(id) {
        Ok(_) | Err(Engine::WrongState { .. }) => Ok(()),
        Err(other) => Err(other.into()),
    }
}
