//! `komado thread`: child threads, windows inside the window.
//!
//! A child has a share of its parent's window and works there as long as it likes; the parent keeps one anchor of it.

mod chronicle;
mod run;
mod start;
mod tell;

use crate::app::App;
use crate::fault::Outcome;
use clap::{Args as ClapArgs, Subcommand};
use komado_ops::thread::{AbortThread, BalanceThread, DrawThreads, EndThread, PauseThread, ResumeThread};

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
    End(EndThread),
    /// Break a child thread off, with as much of a chronicle as there is
    Abort(AbortThread),
    /// Let a child thread wait
    Pause(PauseThread),
    /// Let a child thread go on, also days after its end
    Resume(ResumeThread),
    /// Draw a session's threads: who has how much of the window, and what became of it
    Tree(DrawThreads),
    /// Give a task to a child thread and wait for the answer: start, ask, end
    Run(run::Args),
    /// Send words from one thread to another
    Tell(tell::Args),
    /// Share the window out otherwise
    Balance(BalanceThread),
    /// Show what was done in a child thread, or write it anew
    Chronicle(chronicle::Args),
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match args.verb {
        Verb::Start(args) => start::run(app, args),
        Verb::End(request) => app.show(request),
        Verb::Abort(request) => app.show(request),
        Verb::Pause(request) => app.show(request),
        Verb::Resume(request) => app.show(request),
        Verb::Tree(request) => app.show(request),
        Verb::Run(args) => run::run(app, args),
        Verb::Tell(args) => tell::run(app, args),
        Verb::Balance(request) => app.show(request),
        Verb::Chronicle(args) => chronicle::run(app, args),
    }
}
