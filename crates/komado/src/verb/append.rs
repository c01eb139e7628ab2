//! `komado append`: add messages, durably.
//!
//! JSON lines are taken in as they arrive: whatever has come is journaled with one write and one sync, and only then
//! are its numbers printed. A slow writer gets each number at once, a fast one gets them in bulk. What a tool printed
//! streams through, and may be larger than memory.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::say;
use crate::progress;
use clap::Args as ClapArgs;
use komado_core::message::Message;
use komado_core::{Address, Role, Seq, openai};
use komado_engine::engine::Found;
use komado_engine::output::Output;
use komado_engine::{OnOpenCalls, Thread};
use komado_ops::address::AtThread;
use komado_ops::journal::{Append, append_output};
use komado_ops::name::one_of;
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
        let choice = if args.strict { OnOpenCalls::Refuse } else { OnOpenCalls::Answer };
        let thread = app.context.open(&found, Mode::Write)?.on_open_calls(choice);
        return append_lines(app, thread, path, args.skip_bad);
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
