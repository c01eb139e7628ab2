//! `komado completions`: a script that lets a shell complete verbs and options.

use crate::app::App;
use crate::cli::Cli;
use crate::fault::Outcome;
use clap::{Args as ClapArgs, CommandFactory};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "komado", &mut script);
    Ok(app.paper.raw().write_all(&script)?)
}
