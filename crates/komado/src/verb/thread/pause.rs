//! `komado thread pause`: let a child thread wait.

use super::{child, ended};
use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_core::thread::Status;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The thread, SESSION/THREAD
    pub(crate) address: Address,
    /// Why, for people
    pub(crate) why: Option<String>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = child(app, &args.address)?;
    let finished = app.context.engine.pause_child(&found.session, &found.thread, args.why)?;
    ended::tell(app, &found, Status::Paused, &finished)
}
