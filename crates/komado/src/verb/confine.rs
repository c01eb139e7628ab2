//! `komado confine`: runs a command shut in, and ends all it started. The shell tool starts it; nobody else has to.
//!
//! It opens no store and reads no settings: whatever it opened would be open inside.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use clap::Args as ClapArgs;
use std::ffi::OsString;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// What may be reached, then `--` and the command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    words: Vec<OsString>,
}

pub(crate) fn run(_: &mut App, args: Args) -> Outcome {
    Err(without_app(args))
}

/// Ends as the command does, and comes back only when it could not be run.
pub(crate) fn without_app(args: Args) -> Fault {
    match komado_agent::builtin::confine::run(args.words) {
        Ok(code) => std::process::exit(code.into()),
        Err(why) => Fault::new(Exit::Failed, why.to_string()),
    }
}
