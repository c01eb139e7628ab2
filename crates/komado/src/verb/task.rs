//! `komado task`: what waits in the queue, what is worked on, and what became of it.
//!
//! A task is named by its session, by a unique beginning of that, or by its key. Each of the verbs here has a file of the
//! same shape as those above them.

pub(crate) mod add;
pub(crate) mod fetch;
mod found;
pub(crate) mod list;
pub(crate) mod pause;
mod put;
pub(crate) mod resume;
pub(crate) mod retry;
pub(crate) mod show;
mod standing;
pub(crate) mod stop;

pub(crate) use standing::each_job;

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::say;
use clap::{Args as ClapArgs, Subcommand};
use komado_agent::Error;
use komado_core::SessionId;
use serde_json::json;

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
    List(list::Args),
    /// Show one task: its words, where it stands, and why
    Show(show::Args),
    /// Let a task rest
    Pause(pause::Args),
    /// Let a task that rests go on
    Resume(resume::Args),
    /// End a task, also one that is worked on; `retry` takes it up again
    Stop(stop::Args),
    /// Take up a task again that failed or was stopped, or that waits to be tried again
    Retry(retry::Args),
}

/// Which task.
#[derive(ClapArgs, Debug)]
pub(crate) struct Named {
    /// Its session or a unique beginning of it, or its key, such as github:ann/tool/issue/27
    task: String,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match args.verb {
        Verb::Add(args) => add::run(app, args),
        Verb::Fetch(args) => fetch::run(app, args),
        Verb::List(args) => list::run(app, args),
        Verb::Show(args) => show::run(app, &args),
        Verb::Pause(args) => pause::run(app, &args),
        Verb::Resume(args) => resume::run(app, &args),
        Verb::Stop(args) => stop::run(app, &args),
        Verb::Retry(args) => retry::run(app, &args),
    }
}

/// What a verb did to a task, and how it is undone.
fn tell(app: &mut App, session: &SessionId, state: &str, words: &str, undo: Option<&str>) -> Outcome {
    let undo = undo.map(|verb| format!("komado task {verb} {session}"));
    if app.paper.json {
        return app.paper.json(&json!({ "session": session.as_str(), "state": state, "undo": undo }));
    }
    app.paper.line(format!("{session} {words}"))?;
    undo.iter().for_each(|undo| say(format!("undo: {undo}")));
    Ok(())
}

/// A task in a state in which this makes no sense.
fn refused(session: &SessionId, why: impl std::fmt::Display) -> Fault {
    Fault::new(Exit::Refused, format!("task {session} {why}"))
}

/// What went wrong below, with its exit code.
pub(crate) fn fault(error: Error) -> Fault {
    error.into()
}
