//! `komado playbook`: look at the course of a task before it is followed, and follow it.

mod graph;
mod run;

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::count;
use clap::{Args as ClapArgs, Subcommand};
use komado_ops::playbook::CheckPlaybooks;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Say everything that is wrong with playbooks
    Check(CheckPlaybooks),
    /// Draw a playbook
    Graph(graph::Args),
    /// Follow a playbook here and now, in a new session or where one stopped
    Run(Box<run::Args>),
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match args.verb {
        Verb::Check(request) => check(app, request),
        Verb::Graph(args) => graph::run(app, args),
        Verb::Run(args) => run::run(app, *args),
    }
}

/// Prints what is wrong; an error when anything is.
fn check(app: &mut App, request: CheckPlaybooks) -> Outcome {
    let checked = app.run(request)?;
    app.print(&checked)?;
    let wrong = checked.items.iter().filter(|one| !one.ok).count();
    if wrong == 0 {
        return Ok(());
    }
    app.paper.flush()?;
    let all = count(checked.items.len() as u64, "playbook");
    Err(Fault::input(format!("{wrong} of {all} cannot be followed")))
}
