//! `komado confine`: runs a command shut in, and ends all it started. The shell tool and MCP servers are started with it.
//!
//! It opens no store and reads no settings: whatever it opened would be open inside.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use clap::Args as ClapArgs;
use komado_ops::work::launcher;
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
    crate::descriptors::keep_to_oneself();
    let ended = launcher().map_err(|why| why.to_string()).and_then(|launcher| {
        komado_agent::sandbox::run(&launcher, &args.words).map_err(|why| why.to_string())
    });
    match ended {
        Ok(code) => std::process::exit(code.into()),
        Err(why) => Fault::new(Exit::Failed, why),
    }
}
