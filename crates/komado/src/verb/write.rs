//! Verbs that write into a thread: `append`, `setup`, `condense`, `redact`.
//!
//! What a tool printed streams through, and may be larger than memory.

use crate::app::App;
use crate::cli_output::{CliOutput, read_text};
use komado_core::raw::RawJson;
use komado_core::{Address, Role, Seq};
use komado_engine::engine::ResolvedAddress;
use komado_engine::output::ToolOutput;
use komado_ops::address::{AtSession, AtThread};
use komado_ops::choice::one_of;
use komado_ops::journal::{AppendLines, AppendMessages, MessageLines, Redact, SetUp, append_output};
use komado_ops::tools::ToolDefinitions;
use komado_ops::window::Condense;
use komado_ops::{FaultKind, OpFault, OpResult};
use serde_json::json;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug)]
pub(crate) struct AppendArgs {
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
    /// Skip lines that cannot be read, and say which
    #[arg(long, requires = "jsonl")]
    skip_bad: bool,
    /// Refuse a message while calls wait, instead of answering them as interrupted
    #[arg(long)]
    strict: bool,
}

pub(crate) fn append(app: &mut App, args: AppendArgs) -> OpResult {
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
    let AppendArgs { role, call, error, strict, .. } = args;
    let at = AtThread { session: Some(found.session.to_string()), thread: Some(found.thread.to_string()) };
    let (text, role) = (Some(text), Some(role));
    app.show(AppendMessages { at, text, role, call, error, strict, messages: None })
}

/// Adds what a tool printed; what is short enough to be shown whole ends without its last line break.
fn append_tool(app: &mut App, found: &ResolvedAddress, args: &AppendArgs, from: &mut dyn Read) -> OpResult {
    let output = ToolOutput {
        call_id: args.call.clone().unwrap_or_default(),
        is_error: args.error,
        ..ToolOutput::default()
    };
    let appended = append_output(&app.context, found, &output, args.strict, from)?;
    app.print(&appended)
}

pub(super) fn read_stdin() -> OpResult<String> {
    let mut bytes = Vec::new();
    piped()?.read_to_end(&mut bytes)?;
    words_of(bytes, "standard input")
}

/// Standard input, where something is piped in.
fn piped() -> OpResult<io::StdinLock<'static>> {
    if io::stdin().is_terminal() {
        return Err(OpFault::usage("nothing given: write the words, or pipe them in"));
    }
    Ok(io::stdin().lock())
}

fn open_file(path: &Path) -> OpResult<File> {
    let wrong = |why: String| OpFault::new(FaultKind::NotFound, format!("cannot {why}"));
    let file = File::open(path).map_err(|e| wrong(format!("open {}: {e}", path.display())))?;
    if file.metadata()?.is_dir() {
        return Err(wrong(format!("read {}: it is a folder; name a file", path.display())));
    }
    Ok(file)
}

/// The words that bytes are, without their last line break.
fn words_of(bytes: Vec<u8>, name: &str) -> OpResult<String> {
    let mut text = String::from_utf8(bytes).map_err(|e| {
        OpFault::input(format!(
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
fn append_lines(app: &mut App, found: &ResolvedAddress, args: &AppendArgs, path: &Path) -> OpResult {
    let (from, name): (Box<dyn Read>, _) = match path.as_os_str() == "-" {
        true => (Box::new(io::stdin()), "standard input".to_owned()),
        false => (Box::new(open_file(path)?), path.display().to_string()),
    };
    let App { context, paper, progress } = app;
    let mut is_gone = false;
    let mut told = |said: &[Seq]| match is_gone {
        true => Ok(()),
        false => match said.iter().try_for_each(|seq| print_seq(paper, *seq)).and_then(|()| paper.flush()) {
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

fn print_seq(paper: &mut CliOutput, seq: Seq) -> OpResult {
    if paper.json { paper.json(&json!({ "seq": seq })) } else { paper.line(seq.to_string()) }
}

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = true)]
struct Given {
    /// The system prompt
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Tool definitions: a file with a JSON array
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Other parameters of the request: a file with a JSON object
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
#[command(
    override_usage = "komado edit setup <ADDRESS> [--system <TEXT>] [--tools <FILE>]\n       [--params <FILE>]"
)]
pub(crate) struct SetupArgs {
    /// The session, or SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    at: AtThread,
    #[command(flatten)]
    given: Given,
    /// The API whose format the tools and parameters have
    #[arg(long, default_value = "openai")]
    dialect: String,
}

pub(crate) fn setup(app: &mut App, args: SetupArgs) -> OpResult {
    let SetupArgs { at, given, dialect } = args;
    let tools = given.tools.as_deref().map(read_tools).transpose()?;
    let params = given.params.as_deref().map(|path| read_json(path, '{', "a JSON object")).transpose()?;
    let params = params.map(|raw| RawValue::from_string(raw.get().to_owned())).transpose()?;
    app.show(SetUp { at, system: given.system, tools, params, dialect: Some(dialect) })
}

/// Tool definitions from a file.
pub(super) fn read_tools(path: &Path) -> OpResult<ToolDefinitions> {
    let raw = read_json(path, '[', "a JSON array")?;
    raw.try_into().map_err(|why| OpFault::input(format!("{}: {why}", path.display())))
}

fn read_json(path: &Path, first: char, what: &str) -> OpResult<RawJson> {
    let text = read_text(path)?;
    let wrong = |why: String| OpFault::input(format!("{} is not {what}: {why}", path.display()));
    let raw = RawJson::parse(text.trim()).map_err(|e| wrong(e.to_string()))?;
    if raw.get().starts_with(first) { Ok(raw) } else { Err(wrong("it begins otherwise".into())) }
}

/// A summary for a span is read from standard input when it is not given.
pub(crate) fn condense(app: &mut App, mut args: Condense) -> OpResult {
    if args.span.is_some() && args.text.is_none() {
        args.text = Some(read_stdin()?);
    }
    app.show(args)
}

#[derive(clap::Args, Debug)]
pub(crate) struct RedactArgs {
    /// One entry, SESSION@SEQ; or a session with --text or --pattern
    address: Address,
    /// Remove every occurrence of this text
    #[arg(long, conflicts_with = "pattern")]
    text: Option<String>,
    /// Remove everything that matches this regular expression
    #[arg(long)]
    pattern: Option<String>,
    /// Why; kept with each changed entry
    #[arg(long)]
    reason: String,
    /// Confirm: what is removed cannot be restored
    #[arg(long)]
    yes: bool,
}

pub(crate) fn redact(app: &mut App, args: RedactArgs) -> OpResult {
    let found = app.find(&args.address)?;
    let entry = found.seq.map(|seq| format!("{}@{seq}", found.thread));
    let given = [&args.text, &args.pattern, &entry].iter().filter(|one| one.is_some()).count();
    if given != 1 || args.text.as_deref() == Some("") {
        return Err(OpFault::usage(
            "name one entry (komado edit redact SESSION@SEQ), or a session with --text or --pattern",
        ));
    }
    if !args.yes {
        return Err(OpFault::new(
            FaultKind::Refused,
            "what is redacted cannot be brought back; say --yes to do it (`komado export` first, to keep a copy)",
        ));
    }
    let RedactArgs { text, pattern, reason, .. } = args;
    let at = AtSession { session: Some(found.session.to_string()) };
    let done = Redact { at, text, pattern, entry, reason }.take_out(&app.context)?;
    app.print(&done)?;
    match done.left.is_empty() {
        true => Ok(()),
        false => Err(OpFault::new(FaultKind::Failed, done.still().message())),
    }
}
