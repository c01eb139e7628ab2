//! One process of `komado-bench open`: does one thing, and tells what the kernel counted while it did.
//!
//! What is printed goes nowhere; the figures go to standard error, for the parent. Only a process of its own has a peak of
//! memory of its own, and a child's peak begins with what its parent holds: so `komado` is started from here, where
//! nothing is held yet.

use super::machine::ProcessFigures;
use super::place::opened;
use crate::context::{BenchContext, BenchEngine};
use crate::error::{Error, Result};
use crate::output::say;
use clap::{Args as ClapArgs, ValueEnum};
use komado_core::SessionId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// What to do
    what: ChildTask,
    /// The session
    session: String,
    /// The folder of the sessions
    #[arg(long)]
    base_dir: PathBuf,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum ChildTask {
    /// `komado show --json`
    Show,
    /// `komado context --json`
    Context,
    /// The peer: read the whole file, keep the end of it
    Tail,
}

impl ChildTask {
    fn name(self) -> &'static str {
        match self {
            Self::Show => "show",
            Self::Context => "context",
            Self::Tail => "tail",
        }
    }
}

pub(crate) fn run(context: &mut BenchContext, args: Args) -> Result {
    if args.what != ChildTask::Tail {
        return tell(&watched(&context.komado()?, &args)?);
    }
    let start = Instant::now();
    let id = SessionId::new(args.session.as_str())?;
    let path = opened(&args.base_dir).0.folder(&id)?.join("messages.jsonl");
    tail(&path, super::place::WINDOW as usize, &mut |message| context.out.write_json(message))?;
    context.out.flush()?;
    tell(&Took { seconds: start.elapsed().as_secs_f64(), process: ProcessFigures::now()? })
}

/// Runs `komado` and gives what the kernel counted of it.
///
/// It must be the only process this one starts: the peak is that of the largest child so far.
fn watched(komado: &BenchEngine, args: &Args) -> Result<Took> {
    let mut store = OsString::from("store.url=file:");
    store.push(&args.base_dir);
    let mut command = komado.command();
    command.args([args.what.name(), &args.session, "--json", "--base-dir"]).arg(&args.base_dir);
    // Whatever the settings say, it looks where we have written.
    command.args(["--set", "context_storage.enabled=true", "--set"]).arg(store);
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let counted = ProcessFigures::ended(&child)?;
    let seconds = start.elapsed().as_secs_f64();
    let status = child.wait()?;
    if !status.success() {
        return Err(Error::failed(format!(
            "{} {} failed ({status})",
            komado.path().display(),
            args.what.name()
        )));
    }
    Ok(Took { process: ProcessFigures { peak: peak_of_children(), ..counted }, seconds })
}

/// The most memory that any child had which was waited for, in bytes.
#[allow(unsafe_code)]
fn peak_of_children() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes to the structure that it is handed, and zeroes are a valid value of that.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024
}

/// Tells the parent what was counted.
pub(super) fn tell(figures: &impl Serialize) -> Result {
    say(serde_json::to_string(figures)?);
    Ok(())
}

/// What people do today: read every line, parse it, keep the last ones that fit into `window` tokens.
pub(super) fn tail(path: &Path, window: usize, out: &mut dyn FnMut(&serde_json::Value) -> Result) -> Result {
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

/// What one thing took.
#[derive(Serialize, Deserialize)]
pub(super) struct Took {
    pub(super) process: ProcessFigures,
    pub(super) seconds: f64,
}

/// Starts this program again to do `deed` on a session in `base`, and waits for its figures.
pub(super) fn spawn(komado: &BenchEngine, base: &Path, deed: ChildTask, session: &str) -> Result<Took> {
    let words = ["open-child", deed.name(), session, "--komado"].map(OsStr::new);
    let (took, _) = start(base, &[&words[..], &[komado.path().as_os_str()]].concat())?;
    Ok(took)
}

/// Starts this program again with `words`, for what is in `base`; gives what it tells, and the seconds it ran.
pub(super) fn ask<T: DeserializeOwned>(base: &Path, words: &[&str]) -> Result<(T, f64)> {
    start(base, &words.iter().map(OsStr::new).collect::<Vec<_>>())
}

fn start<T: DeserializeOwned>(base: &Path, words: &[&OsStr]) -> Result<(T, f64)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words).args(["--json", "--base-dir"]).arg(base);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let start = Instant::now();
    let out = command.output()?;
    let seconds = start.elapsed().as_secs_f64();
    let told = String::from_utf8_lossy(&out.stderr);
    let figures = told.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    match figures.filter(|_| out.status.success()) {
        Some(figures) => Ok((figures, seconds)),
        None => Err(Error::input(format!("a measured process failed ({}): {}", out.status, told.trim()))),
    }
}
