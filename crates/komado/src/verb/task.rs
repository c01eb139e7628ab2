//! `komado task`: what waits in the queue, what is worked on, and what became of it.

mod add;
mod fetch;

use crate::app::App;
use crate::fault::Outcome;
use clap::{Args as ClapArgs, Subcommand};
use komado_ops::task::{ListTasks, PauseTask, ResumeTask, RetryTask, ShowTask, StopTask};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Put a task into the queue: text, a file, or standard input
    Add(add::Args),
    /// Put the issues that wait at GitHub and GitLab into the queue
    Fetch(fetch::Args),
    /// List tasks: those in the queue, and those that are worked on or rest
    List(ListTasks),
    /// Show one task: its words, where it stands, and why
    Show(ShowTask),
    /// Let a task rest
    Pause(PauseTask),
    /// Let a task that rests go on
    Resume(ResumeTask),
    /// End a task, also one that is worked on; `retry` takes it up again
    Stop(StopTask),
    /// Take up a task again that failed or was stopped, or that waits to be tried again
    Retry(RetryTask),
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match args.verb {
        Verb::Add(args) => add::run(app, args),
        Verb::Fetch(args) => fetch::run(app, &args),
        Verb::List(request) => app.show(request),
        Verb::Show(request) => app.show(request),
        Verb::Pause(request) => app.show(request),
        Verb::Resume(request) => app.show(request),
        Verb::Stop(request) => app.show(request),
        Verb::Retry(request) => app.show(request),
    }
}
