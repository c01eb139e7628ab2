//! `komado bench`: what an append costs as a session grows, what opening a large one costs, what planning and rendering
//! its view does, what sending it takes, and what the process of a task holds.
//!
//! Everything is measured through the file store and the engine as an agent uses them, next to what people use
//! instead, in the same run on the same disk. The sessions live in a folder of their own, which is removed at the end.

mod append;
mod child;
mod costs;
pub(in crate::verb) mod dice;
mod digest;
mod gateway;
mod machine;
mod open;
mod peers;
mod place;
mod plan;
mod request;
mod store;
mod task;
mod words;

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::Ink;
use clap::{Args as ClapArgs, Subcommand};
use komado_config::mask;
use machine::Machine;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// One durable append, in a small session and in a large one
    Append(append::Args),
    /// Opening a large session and reading what the model sees
    Open(open::Args),
    /// What a digest keeps of conversations, beside keeping their last messages
    Digest(digest::Args),
    /// Planning and rendering a view of 200,000 tokens, in a short session and in a long one
    Plan(plan::Args),
    /// Sending a long conversation: memory and bytes copied, beside a Python client
    Request(request::Args),
    /// The way through the gateway, many conversations at once, and a journal that grows
    Gateway(gateway::Args),
    /// A store beside its own driver, in a small session and in a large one
    Store(store::Args),
    /// What the process of a task holds: of a context that grows, and in a long task
    Task(task::Args),
    /// One process of `bench open`
    #[command(hide = true)]
    OpenChild(child::Args),
    /// One process of `bench plan`
    #[command(hide = true)]
    PlanChild(plan::DeedArgs),
    /// One process of `bench request`
    #[command(hide = true)]
    RequestChild(request::DeedArgs),
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match args.what {
        What::Append(args) => append::run(app, args),
        What::Open(args) => open::run(app, args),
        What::Digest(args) => digest::run(app, args),
        What::Plan(args) => plan::run(app, args),
        What::Gateway(args) => gateway::run(app, args),
        What::Store(args) => store::run(app, args),
        What::Task(args) => task::run(app, args),
        What::OpenChild(args) => child::run(app, args),
        What::PlanChild(args) => plan::run_deed(app, args),
        What::Request(args) => request::run(app, args),
        What::RequestChild(args) => request::run_deed(app, args),
    }
}

/// The command as it was typed, without the path of the program and without passwords.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| mask::url(&word));
    std::iter::once("komado".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// What every report begins with: how to get it again, and where it was got.
fn heading(app: &mut App, machine: &Machine) -> Outcome {
    let line = app.paper.ink(Ink::Bold, &format!("$ {}", command()));
    app.paper.line(line)?;
    app.paper.line(machine.to_string())?;
    app.paper.line("")
}

/// A figure with as many decimals as anyone wants to read.
fn round(n: f64) -> f64 {
    (n * 1000.0).round() / 1000.0
}

/// Bytes as megabytes.
fn megabytes(bytes: f64) -> f64 {
    round(bytes / 1e6)
}
