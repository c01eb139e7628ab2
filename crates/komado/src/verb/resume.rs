//! `komado resume`: let a paused session go on, or open an ended one again.

use super::{ending, task};
use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_core::Address;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session
    pub(crate) address: Address,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    task::check_by_hand(app, &app.find(&args.address)?.session)?;
    ending::make(app, &args.address, "pause", |engine, id| engine.resume(id))
}
