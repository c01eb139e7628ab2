//! `komado task retry`: try a task again that failed, in the session it has.

use super::found::find;
use super::resume::reopen;
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
        "running" => return Err(refused(id, "is worked on")),
        "queued" => return Err(refused(id, "waits already")),
        _ if task.queued.is_none() => {
            return Err(refused(id, format!("is {}, and no longer in the queue", task.state())));
        }
        _ => {}
    }
    // One that came to its end and is in the queue still has only to be told at its tracker.
    let is_untold = matches!(task.state(), "completed" | "stopped");
    if !is_untold && task.row.as_ref().is_some_and(|row| row.status.is_ended()) {
        reopen(app, id)?;
    }
    app.engine.store().requeue(id)?;
    let words = if is_untold { "waits to be told at its tracker" } else { "waits to be tried again" };
    tell(app, id, "queued", words, Some("stop"))
}
