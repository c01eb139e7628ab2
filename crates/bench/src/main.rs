//! `komado-bench`: what an append costs as a session grows, what opening a large one costs, what planning and rendering
//! its view does, what sending it takes, and what the process of a task holds.
//!
//! Everything is measured through the store and the engine as an agent uses them, or on a real `komado`, next to what
//! people use instead, in the same run on the same disk. The sessions live in a folder of their own, which is removed at
//! the end.

#![deny(unsafe_code)]

mod append;
mod child;
mod clock;
mod context;
mod conversations;
mod costs;
mod dice;
mod digest;
mod error;
mod facts;
mod gateway;
mod heap;
mod machine;
mod open;
mod output;
mod peers;
mod place;
mod plan;
mod replay;
mod request;
mod store;
mod task;
mod words;

use clap::{Parser, Subcommand};
use context::BenchContext;
use error::Result;
use machine::Machine;
use output::BenchOutput;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures komado: each figure with the machine it was got on, and beside what people use instead.
#[derive(Parser, Debug)]
#[command(name = "komado-bench", version, max_term_width = 100)]
struct Cli {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// The komado to start; the one beside this program when left out
    #[arg(long, global = true, value_name = "PATH")]
    komado: Option<PathBuf>,
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
    /// Conversations again in several windows: how full they are after an edit, what is still seen of what is used later, price
    Replay(replay::Args),
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
    /// One process of `open`
    #[command(hide = true)]
    OpenChild(child::Args),
    /// One process of `plan`
    #[command(hide = true)]
    PlanChild(plan::DeedArgs),
    /// One process of `request`
    #[command(hide = true)]
    RequestChild(request::DeedArgs),
}

fn main() -> ExitCode {
    let Cli { json, komado, what } = Cli::parse();
    let mut context = BenchContext::new(json, komado);
    match run(&mut context, what).and_then(|()| context.out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(json),
    }
}

fn run(context: &mut BenchContext, what: What) -> Result {
    match what {
        What::Append(args) => append::run(context, args),
        What::Open(args) => open::run(context, args),
        What::Digest(args) => digest::run(context, args),
        What::Replay(args) => replay::run(context, args),
        What::Plan(args) => plan::run(context, args),
        What::Request(args) => request::run(context, args),
        What::Gateway(args) => gateway::run(context, args),
        What::Store(args) => store::run(context, args),
        What::Task(args) => task::run(context, args),
        What::OpenChild(args) => child::run(context, args),
        What::PlanChild(args) => plan::run_deed(args),
        What::RequestChild(args) => request::run_deed(args),
    }
}

/// The command as it was typed, without the path of the program and without passwords.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| masked(&word));
    std::iter::once("komado-bench".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A word of the command line; of an address only what is public: its scheme, its hosts and ports, its path.
fn masked(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    // The last `@`, since a password may hold one that is not escaped.
    let (user, rest) = rest.rsplit_once('@').map_or(("", rest), |(_, rest)| ("***@", rest));
    let public = rest.split('?').next().unwrap_or_default();
    let port = |host: &str| {
        host.rsplit_once(']').map_or(host, |(_, port)| port).split_once(':').map(|(_, p)| p.to_owned())
    };
    let is_port = |port: String| port.bytes().all(|byte| byte.is_ascii_digit());
    let hosts = public.split('/').next().unwrap_or_default();
    match hosts.split(',').filter_map(port).all(is_port) {
        true => format!("{scheme}://{user}{public}"),
        false => format!("{scheme}://***"),
    }
}

/// What every report begins with: how to get it again, and where it was got.
fn heading(out: &mut BenchOutput, machine: &Machine) -> Result {
    let line = out.bold(&komado_core::notation::shown(&format!("$ {}", command())));
    out.line(line)?;
    out.line(machine.to_string())?;
    out.line("")
}

/// A figure with as many decimals as a reader wants.
fn round(n: f64) -> f64 {
    (n * 1000.0).round() / 1000.0
}

/// Bytes as megabytes.
fn megabytes(bytes: f64) -> f64 {
    round(bytes / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_told_without_passwords() {
        for (word, told) in [
            ("--json", "--json"),
            ("redis://127.0.0.1:6379/1", "redis://127.0.0.1:6379/1"),
            ("postgres://ann:p@ss?w@h:5432,i/db?sslmode=require", "postgres://***@h:5432,i/db"),
            ("redis://:secret@[::1]:7", "redis://***@[::1]:7"),
            ("redis://h?password=secret", "redis://h"),
            ("redis://ann:secret", "redis://***"),
        ] {
            assert_eq!(masked(word), told);
        }
    }
}
