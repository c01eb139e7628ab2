//! `komado append`: add messages, durably.
//!
//! What a tool printed streams through, and may be larger than memory.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::Paper;
use clap::Args as ClapArgs;
use komado_core::{Address, Role, Seq};
use komado_engine::engine::Found;
use komado_engine::output::Output;
use komado_ops::address::AtThread;
use komado_ops::choice::one_of;
use komado_ops::journal::{Append, AppendLines, MessageLines, append_output};
use serde_json::json;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD
    address: Address,
    /// The words; standard input when left out
    text: Vec<String>,
    /// Read the words from FILE
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "jsonl"])]
    file: Option<PathBuf>,
    /// Who speaks
    #[arg(long, default_value = "user", value_parser = one_of(&Role::ALL, Role::name))]
    role: Role,
    /// The call that a tool's message answers
    #[arg(long, value_name = "ID")]
    call: Option<String>,
    /// The message is a tool's error
    #[arg(long)]
    error: bool,
    /// Read chat messages, one JSON object per line, from FILE or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "call", "error"])]
    jsonl: Option<PathBuf>,
    /// Pass over lines that cannot be taken in, and say which
    #[arg(long, requires = "jsonl")]
    skip_bad: bool,
    /// Refuse a message while calls wait, instead of answering them as interrupted
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find_now(&args.address)?;
    if let Some(path) = &args.jsonl {
        return append_lines(app, &found, &args, path);
    }
    let words = !args.text.is_empty() && args.text != ["-"];
    let text = match &args.file {
        None if words => args.text.join(" "),
        Some(path) if args.role == Role::Tool => {
            return append_tool(app, &found, &args, &mut open_file(path)?);
        }
        None if args.role == Role::Tool => return append_tool(app, &found, &args, &mut piped()?),
        Some(path) => {
            let mut bytes = Vec::new();
            open_file(path)?.read_to_end(&mut bytes)?;
            words_of(bytes, &path.display().to_string())?
        }
        None => read_stdin()?,
    };
    let Args { role, call, error, strict, .. } = args;
    let at = AtThread { session: Some(found.session.to_string()), thread: Some(found.thread.to_string()) };
    let (text, role) = (Some(text), Some(role));
    app.show(Append { at, text, role, call, error, strict, messages: None })
}

/// Adds what a tool printed; what is short enough to be shown whole ends without its last line break.
fn append_tool(app: &mut App, found: &Found, args: &Args, from: &mut dyn Read) -> Outcome {
    let output =
        Output { call_id: args.call.clone().unwrap_or_default(), is_error: args.error, ..Output::default() };
    let appended = append_output(&app.context, found, &output, args.strict, from)?;
    app.print(&appended)
}

pub(super) fn read_stdin() -> Outcome<String> {
    let mut bytes = Vec::new();
    piped()?.read_to_end(&mut bytes)?;
    words_of(bytes, "standard input")
}

/// Standard input, where something is piped in.
fn piped() -> Outcome<io::StdinLock<'static>> {
    if io::stdin().is_terminal() {
        return Err(Fault::usage("nothing given: write the words, or pipe them in"));
    }
    Ok(io::stdin().lock())
}

fn open_file(path: &Path) -> Outcome<File> {
    let wrong = |why: String| Fault::new(Exit::NotFound, format!("cannot {why}"));
    let file = File::open(path).map_err(|e| wrong(format!("open {}: {e}", path.display())))?;
    if file.metadata()?.is_dir() {
        return Err(wrong(format!("read {}: it is a folder; name a file", path.display())));
    }
    Ok(file)
}

/// The words that bytes are, without their last line break.
fn words_of(bytes: Vec<u8>, name: &str) -> Outcome<String> {
    let mut text = String::from_utf8(bytes).map_err(|e| {
        Fault::input(format!(
            "{name} is not UTF-8: byte {} is wrong; convert it first",
            e.utf8_error().valid_up_to()
        ))
    })?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

/// Takes lines in. A reader of the numbers that goes away does not end it.
fn append_lines(app: &mut App, found: &Found, args: &Args, path: &Path) -> Outcome {
    let (from, name): (Box<dyn Read>, _) = match path.as_os_str() == "-" {
        true => (Box::new(io::stdin()), "standard input".to_owned()),
        false => (Box::new(open_file(path)?), path.display().to_string()),
    };
    let App { context, paper, progress } = app;
    let mut is_gone = false;
    let mut told = |said: &[Seq]| match is_gone {
        true => Ok(()),
        false => match said.iter().try_for_each(|seq| print(paper, *seq)).and_then(|()| paper.flush()) {
            Err(fault) if fault.is_gone() => {
                is_gone = true;
                Ok(())
            }
            printed => printed,
        },
    };
    let lines = AppendLines { strict: args.strict, skip_bad: args.skip_bad };
    let outcome = lines.take(context, found, MessageLines::new(from, name), &mut told);
    progress.clear();
    outcome
}

fn print(paper: &mut Paper, seq: Seq) -> Outcome {
    if paper.json { paper.json(&json!({ "seq": seq })) } else { paper.line(seq.to_string()) }
}
