//! `komado playbook`: look at the course of a task before it is followed, and follow it.

mod check;
mod graph;
mod run;

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use clap::{Args as ClapArgs, Subcommand};
use komado_agent::playbook::{Playbook, Problem};
use std::io::ErrorKind;
use std::path::Path;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Say everything that is wrong with playbooks
    Check(check::Args),
    /// Draw a playbook
    Graph(graph::Args),
    /// Follow a playbook here and now, in a new session or where one stopped
    Run(Box<run::Args>),
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match args.verb {
        Verb::Check(args) => check::run(app, args),
        Verb::Graph(args) => graph::run(app, args),
        Verb::Run(args) => run::run(app, *args),
    }
}

/// Reads one; everything that is wrong with it.
fn read(path: &Path) -> Outcome<Result<Playbook, Vec<Problem>>> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let exit = if error.kind() == ErrorKind::NotFound { Exit::NotFound } else { Exit::BadInput };
        Fault::new(exit, format!("the playbook {name} cannot be read: {error}"))
    })?;
    Ok(Playbook::parse(&name, &text).map_err(komado_agent::playbook::Error::problems))
}

/// Reads one that must be right; the built-in one when none is named.
fn right(path: Option<&Path>) -> Outcome<Playbook> {
    let Some(path) = path else { return Ok(Playbook::built_in()) };
    read(path)?.map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Fault::input(lines.join("\n"))
    })
}
