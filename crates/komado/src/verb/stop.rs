//! `komado stop`: end a session because you want it so.

use super::ending;
use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_core::Address;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session
    pub(crate) address: Address,
    /// Why
    pub(crate) reason: Option<String>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    ending::make(app, &args.address, "resume", |engine, id| engine.stop(id, args.reason))
}
