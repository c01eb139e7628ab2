//! `komado key`: the keys of those who may reach `komado serve`.

use crate::app::App;
use crate::fault::Outcome;
use clap::{Args as ClapArgs, Subcommand};
use komado_ops::key::{AddKey, ListKeys, RevokeKey};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Make a key and show it, this once
    Add(AddKey),
    /// List the keys, without their secrets
    List(ListKeys),
    /// Take a key back: it opens nothing from the next request on
    Revoke(RevokeKey),
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match args.verb {
        Verb::Add(request) => app.show(request),
        Verb::List(request) => app.show(request),
        Verb::Revoke(request) => app.show(request),
    }
}
