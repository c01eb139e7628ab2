//! One process of `bench open`: does one thing, and tells what the kernel counted while it did.
//!
//! What is done is printed as ever, for the parent to throw away; the figures go to standard error, where nothing of
//! it is. A process of its own is the only honest way to a peak of memory.

use super::machine::Process;
use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::say;
use crate::verb::show;
use clap::{Args as ClapArgs, FromArgMatches, ValueEnum};
use komado_ops::window::ReadContext;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// What to do
    what: Deed,
    /// The session
    session: String,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Deed {
    /// `komado show --json`
    Show,
    /// `komado context --json`
    Context,
    /// The peer: read the whole file, keep the end of it
    Tail,
}

impl Deed {
    fn name(self) -> &'static str {
        match self {
            Self::Show => "show",
            Self::Context => "context",
            Self::Tail => "tail",
        }
    }
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match args.what {
        Deed::Show => show::run(app, parsed(&args.session)?)?,
        Deed::Context => app.show(parsed::<ReadContext>(&args.session)?)?,
        Deed::Tail => {
            let id = komado_core::SessionId::new(args.session.as_str())?;
            let path = app.files()?.folder(&id)?.join("messages.jsonl");
            tail(&path, super::place::WINDOW as usize, &mut |message| app.paper.json(message))?;
        }
    }
    app.paper.flush()?;
    tell(&Process::now()?)
}

/// Tells the parent what was counted.
pub(super) fn tell(figures: &impl Serialize) -> Outcome {
    say(serde_json::to_string(figures)?);
    Ok(())
}

/// The arguments of another verb, from the words one would type.
fn parsed<A: ClapArgs + FromArgMatches>(session: &str) -> Outcome<A> {
    let matches = A::augment_args(clap::Command::new("verb")).try_get_matches_from(["verb", session]);
    matches.and_then(|matches| A::from_arg_matches(&matches)).map_err(|e| Fault::usage(e.to_string()))
}

/// What people do today: read every line, parse it, keep the last ones that fit into `window` tokens.
pub(super) fn tail(
    path: &Path,
    window: usize,
    out: &mut dyn FnMut(&serde_json::Value) -> Outcome,
) -> Outcome {
    let mut kept: VecDeque<(serde_json::Value, usize)> = VecDeque::new();
    let mut tokens = 0;
    for line in BufReader::new(File::open(path)?).lines() {
        let line = line?;
        tokens += line.len() / 4;
        kept.push_back((serde_json::from_str(&line)?, line.len() / 4));
        while tokens > window {
            tokens -= kept.pop_front().map_or(0, |(_, tokens)| tokens);
        }
    }
    kept.iter().try_for_each(|(message, _)| out(message))
}

/// What a child took.
pub(super) struct Took {
    pub(super) process: Process,
    pub(super) seconds: f64,
}

/// Starts this program again to do `deed` on a session in `base`, and waits for its figures.
pub(super) fn spawn(base: &Path, deed: Deed, session: &str) -> Outcome<Took> {
    let (process, seconds) = ask(base, &["open-child", deed.name(), session])?;
    Ok(Took { process, seconds })
}

/// Starts this program again with `words` after `bench`, for what is in `base`; gives what it tells, and the seconds
/// it ran.
pub(super) fn ask<T: DeserializeOwned>(base: &Path, words: &[&str]) -> Outcome<(T, f64)> {
    let program: PathBuf = std::env::current_exe()?;
    let mut store = std::ffi::OsString::from("store.url=file:");
    store.push(base);
    let mut command = Command::new(program);
    command.arg("bench").args(words).args(["--json", "--base-dir"]).arg(base);
    // Whatever the settings say, the child looks where we have written.
    command.args(["--set", "context_storage.enabled=true", "--set"]).arg(store);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let start = Instant::now();
    let out = command.output()?;
    let seconds = start.elapsed().as_secs_f64();
    let told = String::from_utf8_lossy(&out.stderr);
    let figures = told.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    match figures.filter(|_| out.status.success()) {
        Some(figures) => Ok((figures, seconds)),
        None => Err(Fault::input(format!("a measured process failed ({}): {}", out.status, told.trim()))),
    }
}
