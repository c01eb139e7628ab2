//! `komado append`: add messages, durably.
//!
//! JSON lines are taken in as they arrive: whatever has come is journaled with one write and one sync, and only then
//! are its numbers printed. A slow writer gets each number at once, a fast one gets them in bulk. What a tool printed
//! streams through, and may be larger than memory.

use super::change;
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::gauge;
use crate::paper::{number, say};
use crate::progress;
use crate::share;
use clap::Args as ClapArgs;
use komado_core::clip::clip;
use komado_core::message::{Message, Outcome as ToolOutcome, Part, Role};
use komado_core::{Address, Seq, openai};
use komado_engine::engine::Found;
use komado_engine::output::Output;
use komado_engine::{OnOpenCalls, Thread};
use komado_store::Mode;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

/// Bytes of lines journaled at once.
const BATCH: usize = 1 << 18;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD
    pub(crate) address: Address,
    /// The words; standard input when left out
    pub(crate) text: Vec<String>,
    /// Read the words from FILE
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "jsonl"])]
    pub(crate) file: Option<PathBuf>,
    /// Who speaks: system, developer, user, assistant or tool
    #[arg(long, default_value = "user")]
    pub(crate) role: String,
    /// The call that a tool's message answers
    #[arg(long, value_name = "ID")]
    pub(crate) call: Option<String>,
    /// The message is a tool's error
    #[arg(long)]
    pub(crate) error: bool,
    /// Read chat messages, one JSON object per line, from FILE or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "call", "error"])]
    pub(crate) jsonl: Option<PathBuf>,
    /// Pass over lines that cannot be taken in, and say which
    #[arg(long, requires = "jsonl")]
    pub(crate) skip_bad: bool,
    /// Refuse a message while calls wait, instead of answering them as interrupted
    #[arg(long)]
    pub(crate) strict: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find_now(&args.address)?;
    let choice = if args.strict { OnOpenCalls::Refuse } else { OnOpenCalls::Answer };
    let thread = app.context.open(&found, Mode::Write)?.on_open_calls(choice);
    match &args.jsonl {
        Some(path) => append_lines(app, thread, path, args.skip_bad),
        None => append_text(app, thread, &found, &args),
    }
}

fn append_text(app: &App, mut thread: Thread<'_>, found: &Found, args: &Args) -> Outcome {
    let role = role(args)?;
    let before = thread.last();
    let seq = match &args.file {
        None if !args.text.is_empty() && args.text != ["-"] => {
            thread.say(message(args, role, args.text.join(" ")))?
        }
        None if role != Role::Tool => thread.say(message(args, role, read_stdin()?))?,
        Some(path) if role != Role::Tool => {
            let mut bytes = Vec::new();
            open_file(path)?.read_to_end(&mut bytes)?;
            thread.say(message(args, role, words(bytes, &path.display().to_string())?))?
        }
        Some(path) => append_output(&mut thread, args, &mut open_file(path)?)?,
        None => append_output(&mut thread, args, &mut piped()?)?,
    };
    app.settle(&mut thread);
    let tokens = thread.record(seq)?.tokens;
    let given = app.context.session(thread.session())?.meta.config.context_length;
    let window = share::window(&thread, given)?;
    // Calls that were answered for it go back, too.
    let undo = change::rewind_to(found, before);
    let mut paper = app.paper.another();
    if paper.json {
        paper.json(&json!({
            "session": found.session.as_str(),
            "thread": found.thread.as_str(),
            "seq": seq,
            "tokens": tokens,
            "context_tokens": thread.view().tokens(),
            "window": window,
            "undo": undo,
        }))?;
        return paper.flush();
    }
    paper.line(seq.to_string())?;
    paper.flush()?;
    say(format!(
        "@{seq} {}: {} tokens  {}",
        args.role,
        number(u64::from(tokens)),
        gauge::line(&paper, &thread.view().weight().into(), window, 24)
    ));
    say(format!("undo: {undo}"));
    Ok(())
}

pub(super) fn read_stdin() -> Outcome<String> {
    let mut bytes = Vec::new();
    piped()?.read_to_end(&mut bytes)?;
    words(bytes, "standard input")
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
fn words(bytes: Vec<u8>, name: &str) -> Outcome<String> {
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

/// Adds what a tool printed, which may be more than fits in memory.
fn append_output(thread: &mut Thread<'_>, args: &Args, from: &mut dyn Read) -> Outcome<Seq> {
    let limits = thread.clip().unwrap_or_default();
    let mut begun = Vec::new();
    from.take(limits.bytes() as u64 + 1).read_to_end(&mut begun)?;
    if std::str::from_utf8(&begun).is_ok_and(|text| clip(text, &limits, "").is_none()) {
        return Ok(thread.say(message(args, Role::Tool, words(begun, "the output")?))?);
    }
    let call_id = args.call.clone().unwrap_or_default();
    let output = Output { call_id, is_error: args.error, ..Output::default() };
    Ok(thread.say_output(&output, &mut (&begun[..]).chain(from))?)
}

fn role(args: &Args) -> Outcome<Role> {
    let Some(role) = Role::named(&args.role) else {
        return Err(Fault::usage(format!(
            "unknown role: {:?}; known are system, developer, user, assistant, tool",
            args.role
        )));
    };
    if role != Role::Tool && (args.call.is_some() || args.error) {
        return Err(Fault::usage("--call and --error go with --role tool"));
    }
    Ok(role)
}

fn message(args: &Args, role: Role, text: String) -> Message {
    if role != Role::Tool {
        return Message::text(role, text);
    }
    Message::of(
        role,
        vec![Part::Result(ToolOutcome {
            call_id: args.call.clone().unwrap_or_default(),
            name: None,
            content: vec![Part::text(text)],
            is_error: args.error,
            output_ref: None,
            duration_ms: None,
            interrupted: false,
        })],
    )
}

/// Where lines come from, with what is needed to say which one was wrong.
struct Lines {
    from: BufReader<Box<dyn Read>>,
    name: String,
    number: u64,
}

impl Lines {
    fn open(path: &Path) -> Outcome<Self> {
        if path.as_os_str() == "-" {
            let from = BufReader::with_capacity(BATCH, Box::new(io::stdin()) as Box<dyn Read>);
            return Ok(Self { from, name: "standard input".into(), number: 0 });
        }
        let from = BufReader::with_capacity(BATCH, Box::new(open_file(path)?) as Box<dyn Read>);
        Ok(Self { from, name: path.display().to_string(), number: 0 })
    }

    /// Reads the next message; `None` at the end. Empty lines are passed over.
    fn next(&mut self) -> io::Result<Option<Result<Message, String>>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if self.from.read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if !line.trim_ascii().is_empty() {
                return Ok(Some(self.parse(&line)));
            }
        }
    }

    fn parse(&self, line: &[u8]) -> Result<Message, String> {
        let text = std::str::from_utf8(line)
            .map_err(|e| format!("not UTF-8: byte {} is wrong", e.valid_up_to() + 1))?;
        openai::read(text.trim_start_matches('\u{feff}').trim()).map_err(|e| e.to_string())
    }

    /// True when another whole line has already arrived.
    fn waits(&self) -> bool {
        self.from.buffer().contains(&b'\n')
    }

    fn wrong(&self, why: &str) -> Fault {
        Fault::input(format!("{} line {}: {why}", self.name, self.number))
    }
}

fn append_lines(app: &App, mut thread: Thread<'_>, path: &Path, skip_bad: bool) -> Outcome {
    let mut lines = Lines::open(path)?;
    let mut paper = app.paper.another();
    let bar = progress::spinner("entries");
    let (mut skipped, mut told) = (0u64, true);
    let outcome = loop {
        match append_batch(&mut thread, &mut lines, skip_bad, &mut skipped) {
            Ok(Batch { said, more }) => {
                told = told && tell(&mut paper, &said)?;
                bar.inc(said.len() as u64);
                if !more {
                    break Ok(());
                }
            }
            Err((said, fault)) => {
                if told {
                    tell(&mut paper, &said)?;
                }
                break Err(fault);
            }
        }
    };
    bar.finish_and_clear();
    app.settle(&mut thread);
    if skipped > 0 {
        say(format!("komado: {skipped} lines were passed over"));
    }
    outcome
}

/// Prints the numbers of what is durable now. False when nobody reads them any more; the words are taken in all the
/// same.
fn tell(paper: &mut crate::paper::Paper, said: &[Seq]) -> Outcome<bool> {
    let printed = said.iter().try_for_each(|seq| print(paper, *seq)).and_then(|()| paper.flush());
    match printed {
        Ok(()) => Ok(true),
        Err(fault) if fault.is_gone() => Ok(false),
        Err(fault) => Err(fault),
    }
}

fn print(paper: &mut crate::paper::Paper, seq: Seq) -> Outcome {
    if paper.json { paper.json(&json!({ "seq": seq })) } else { paper.line(seq.to_string()) }
}

struct Batch {
    said: Vec<Seq>,
    more: bool,
}

/// Takes in what has arrived, up to a batch, and makes it durable. A bad line ends it; what came before is kept.
fn append_batch(
    thread: &mut Thread<'_>,
    lines: &mut Lines,
    skip_bad: bool,
    skipped: &mut u64,
) -> Result<Batch, (Vec<Seq>, Fault)> {
    let first = lines.number + 1;
    let mut batch = thread.batch();
    let mut wrong = None;
    let mut more = true;
    while batch.bytes() < BATCH {
        let message = match lines.next() {
            Ok(Some(message)) => message,
            Ok(None) => {
                more = false;
                break;
            }
            Err(error) => {
                wrong = Some(Fault::input(format!("cannot read {}: {error}", lines.name)));
                break;
            }
        };
        let why = match message {
            Ok(message) => batch.say(message, None).err().map(|e| e.to_string()),
            Err(why) => Some(why),
        };
        if let Some(why) = why {
            let fault = lines.wrong(&why);
            if !skip_bad {
                wrong = Some(fault);
                break;
            }
            say(format!("komado: passed over {} line {}: {why}", lines.name, lines.number));
            *skipped += 1;
        }
        if !lines.waits() {
            break;
        }
    }
    let (said, work) = batch.finish();
    if let Err(error) = thread.commit(work) {
        let fault = Fault::from(error);
        return Err((Vec::new(), fault.and(format!("{} from line {first} on was not taken in", lines.name))));
    }
    match wrong {
        Some(fault) => Err((said, fault)),
        None => Ok(Batch { said, more }),
    }
}
