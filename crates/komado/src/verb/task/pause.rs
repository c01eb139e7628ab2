//! `komado task pause`: let a task rest.
//!
//! Whoever works on it sees its row at the next heartbeat and comes to rest; its job is laid aside until it is resumed.

use super::found::find;
use super::{Named, refused, tell};
use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_core::session::State;
use komado_store::Change;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
}

pub(crate) fn run(app: &mut App, args: &Args) -> Outcome {
    let task = find(app, &args.named)?;
    let id = &task.session;
    let state = task.state();
    match (&task.row, state) {
        (_, "paused") => return Err(refused(id, "rests already")),
        (None, _) => {
            let why = format!("has not begun: `komado task stop {id}` takes it out of the queue");
            return Err(refused(id, why));
        }
        (Some(row), _) if row.status.is_ended() => return Err(refused(id, format!("is {state}"))),
        (Some(_), _) => {}
    }
    if task.is_held() {
        let change = Change::State { to: State::Paused, at: app.engine.now(), why: None };
        app.engine.store().change(id, &change)?;
        return tell(app, id, "pausing", "comes to rest when its step is done", Some("resume"));
    }
    app.engine.pause(id, Some("somebody paused it".to_owned()))?;
    tell(app, id, "paused", "rests", Some("resume"))
}
