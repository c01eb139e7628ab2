//! `komado playbook`: look at the course of a task before it is followed, and follow it.

mod check;
mod given;
mod graph;
mod run;

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use clap::{Args as ClapArgs, Subcommand};
use komado_agent::playbook::{Playbook, Problem};
use komado_core::session::MetaConfig;
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
        Verb::Run(args) => {
            app.claim()?;
            run::run(app, *args)
        }
    }
}

/// How deep child threads may nest in a session that says nothing of it.
pub(crate) fn most_depth(app: &App) -> u32 {
    app.context.config.threads(&MetaConfig::default()).max_depth
}

/// Reads one; everything that is wrong with it where child threads may be at most `most` deep.
fn read(path: &Path, most: u32) -> Outcome<Result<Playbook, Vec<Problem>>> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let exit = if error.kind() == ErrorKind::NotFound { Exit::NotFound } else { Exit::BadInput };
        Fault::new(exit, format!("the playbook {name} cannot be read: {error}"))
    })?;
    Ok(Playbook::parse_within(&name, &text, most).map_err(komado_agent::playbook::Error::problems))
}

/// Reads one that must be right; the built-in one when none is named.
pub(crate) fn right(path: Option<&Path>, most: u32) -> Outcome<Playbook> {
    let Some(path) = path else { return Ok(Playbook::built_in()) };
    read(path, most)?.map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Fault::input(lines.join("\n"))
    })
}
