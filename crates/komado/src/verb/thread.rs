//! `komado thread`: child threads, windows inside the window.
//!
//! A child has a share of its parent's window and works there as long as it likes; the parent keeps one anchor of it.
//! Each of the verbs here has a file of the same shape as those above them.

pub(crate) mod abort;
pub(crate) mod balance;
pub(crate) mod chronicle;
pub(crate) mod end;
pub(crate) mod ended;
pub(crate) mod pause;
pub(crate) mod resume;
mod run;
pub(crate) mod spawned;
pub(crate) mod start;
pub(crate) mod tell;
pub(crate) mod tree;

use crate::app::App;
use crate::fault::{Fault, Outcome};
use clap::{Args as ClapArgs, Subcommand};
use komado_core::Address;
use komado_engine::engine::Found;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Start a child thread that outlives this command
    Start(start::Args),
    /// End a child thread well, and tell its parent what was done
    End(end::Args),
    /// Break a child thread off, with as much of a chronicle as there is
    Abort(abort::Args),
    /// Let a child thread wait
    Pause(pause::Args),
    /// Let a child thread go on, also days after its end
    Resume(resume::Args),
    /// Draw a session's threads: who has how much of the window, and what became of it
    Tree(tree::Args),
    /// Give a task to a child thread and wait for the answer: start, ask, end
    Run(run::Args),
    /// Send words from one thread to another
    Tell(tell::Args),
    /// Share the window out otherwise
    Balance(balance::Args),
    /// Show what was done in a child thread, or write it anew
    Chronicle(chronicle::Args),
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match args.verb {
        Verb::Start(args) => start::run(app, args),
        Verb::End(args) => end::run(app, args),
        Verb::Abort(args) => abort::run(app, args),
        Verb::Pause(args) => pause::run(app, args),
        Verb::Resume(args) => resume::run(app, args),
        Verb::Tree(args) => tree::run(app, args),
        Verb::Run(args) => run::run(app, args),
        Verb::Tell(args) => tell::run(app, args),
        Verb::Balance(args) => balance::run(app, args),
        Verb::Chronicle(args) => chronicle::run(app, args),
    }
}

/// The child thread that an address leads to, for a verb that changes what is now.
fn child(app: &App, address: &Address) -> Outcome<Found> {
    let found = app.find_now(address)?;
    if found.thread.is_root() {
        return Err(Fault::usage(format!(
            "name a child thread, such as {0}/stelis_1; `komado thread tree {0}` shows which there are",
            found.session
        )));
    }
    Ok(found)
}
