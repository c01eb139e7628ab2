//! `komado task retry`: take up a task again that failed or was stopped, in the session it has.

use super::found::find;
use super::resume::{queue_again, reopen};
use super::standing::Standing;
use super::{Named, refused, tell};
use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
}

pub(crate) fn run(app: &mut App, args: &Args) -> Outcome {
    let task = find(app, &args.named)?;
    let id = &task.session;
    match task.state() {
        "paused" => return Err(refused(id, format!("rests: `komado task resume {id}` lets it go on"))),
        "pausing" => {
            return Err(refused(id, format!("comes to rest: `komado task resume {id}` lets it go on then")));
        }
        _ if task.queued.is_none() => return take_up(app, task),
        "running" => return Err(refused(id, "is worked on")),
        "queued" => return Err(refused(id, "waits already")),
        _ => {}
    }
    // One that came to its end and is in the queue still has only to be told at its tracker.
    let is_untold = matches!(task.state(), "completed" | "stopped");
    if !is_untold && task.row.as_ref().is_some_and(|row| row.status.is_ended()) {
        reopen(app, id)?;
    }
    if !app.context.engine.store().requeue(id)? {
        return tell(app, id, "running", "is worked on by now", Some("stop"));
    }
    let words = if is_untold { "waits to be told at its tracker" } else { "waits to be tried again" };
    tell(app, id, "queued", words, Some("stop"))
}

/// One that is no longer in the queue gets a job again.
fn take_up(app: &mut App, task: Standing) -> Outcome {
    let id = task.session.clone();
    match task.state() {
        "stopped" | "failed" => {}
        "running" if app.context.engine.store().writer(&id)?.is_some() => {
            return Err(refused(&id, "is still being stopped: try again when it has come to its end"));
        }
        "running" => {
            return Err(refused(&id, format!("has no job: `komado task resume {id}` lets it go on")));
        }
        state => return Err(refused(&id, format!("is {state}, and no longer in the queue"))),
    }
    queue_again(app, &task.remembered(app)?)?;
    tell(app, &id, "queued", "waits to be tried again", Some("stop"))
}
