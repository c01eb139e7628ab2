//! `komado output`: read on in what was too long to be shown.
//!
//! The same three readings that a model has as tools, for people and scripts: lines, a search, a part of one line. They
//! stream, so an output may be larger than memory.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::table::table;
use clap::Args as ClapArgs;
use komado_core::clip::{CHARS, Call, LINES};
use komado_core::journal::Entry;
use komado_core::message::{Outcome as ToolOutcome, OutputRef};
use komado_core::{Address, Kind, Seq};
use komado_engine::Thread;
use komado_engine::engine::Found;
use komado_engine::output::grep::{Pattern, Search};
use komado_engine::output::line::Stretch;
use komado_engine::output::read::Page;
use komado_engine::output::tools::{Ask, Request};
use komado_engine::output::{Error, Reference, open};
use komado_store::Mode;
use serde_json::{Value, json};
use std::io;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD
    pub(crate) address: Address,
    /// The output: its id or a beginning of it, or @SEQ for an entry; a list of the outputs when left out
    #[arg(value_name = "REF")]
    pub(crate) reference: Option<String>,
    /// First line to read, or to search
    #[arg(long, value_name = "N", conflicts_with = "line")]
    pub(crate) offset: Option<u64>,
    /// Lines to read at most [default: 200]
    #[arg(long, value_name = "N", conflicts_with_all = ["grep", "line"])]
    pub(crate) limit: Option<u64>,
    /// Search for this text
    #[arg(long, value_name = "PATTERN", conflicts_with = "line")]
    pub(crate) grep: Option<String>,
    /// The pattern is a regular expression
    #[arg(long, requires = "grep")]
    pub(crate) regex: bool,
    /// Lines to show before each match
    #[arg(long, value_name = "N", requires = "grep")]
    pub(crate) before: Option<u64>,
    /// Lines to show after each match
    #[arg(long, value_name = "N", requires = "grep")]
    pub(crate) after: Option<u64>,
    /// Matches to show at most [default: 50]
    #[arg(long, value_name = "N", requires = "grep")]
    pub(crate) max_matches: Option<u64>,
    /// Read a part of this line
    #[arg(long, value_name = "N")]
    pub(crate) line: Option<u64>,
    /// Characters of the line to pass over
    #[arg(long, value_name = "N")]
    pub(crate) char_offset: Option<u64>,
    /// Characters to read at most [default: 2000]
    #[arg(long, value_name = "N", requires = "line")]
    pub(crate) char_limit: Option<u64>,
    /// Copy the bytes to standard output
    #[arg(long, conflicts_with_all = ["offset", "limit", "grep", "line", "char_offset"])]
    pub(crate) raw: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find(&args.address)?;
    let engine = app.context.engine.clone();
    let thread = engine.open(&found.session, &found.thread, Mode::Read)?;
    let Some(given) = &args.reference else {
        if args.raw || args.ask() != Ask::Read(Page::default()) {
            return Err(Fault::usage("which output? `komado output SESSION` lists them"));
        }
        return list(app, &thread, found.seq.unwrap_or(thread.last()));
    };
    let reference = complete(app, &found, given.parse().map_err(fault)?)?;
    if args.raw {
        if app.paper.json {
            return Err(Fault::usage("--raw copies bytes, which are no JSON; leave out one of the two"));
        }
        io::copy(&mut open(&thread, &reference).map_err(fault)?, app.paper.raw())?;
        return Ok(());
    }
    let name = reference.to_string();
    let reading = Request { reference, ask: args.ask() }.answer(&thread).map_err(fault)?;
    if app.paper.json {
        return app.paper.json(&json!({
            "session": found.session.as_str(),
            "thread": found.thread.as_str(),
            "ref": name,
            "text": reading.text,
            "next": reading.next.map(next).transpose()?,
        }));
    }
    app.paper.line(reading.text)
}

impl Args {
    fn ask(&self) -> Ask {
        let (offset, char_offset) = (self.offset.unwrap_or(1), self.char_offset.unwrap_or(0));
        if let Some(text) = self.grep.clone() {
            return Ask::Grep(Search {
                pattern: if self.regex { Pattern::Regex(text) } else { Pattern::Literal(text) },
                before: self.before.unwrap_or(0),
                after: self.after.unwrap_or(0),
                max_matches: self.max_matches.unwrap_or(Search::MATCHES),
                offset,
                char_offset,
            });
        }
        match self.line {
            Some(line_number) => {
                let char_limit = self.char_limit.unwrap_or(CHARS);
                Ask::Line(Stretch { line_number, char_offset, char_limit })
            }
            None => Ask::Read(Page { offset, limit: self.limit.unwrap_or(LINES) }),
        }
    }
}

/// The arguments of the call that reads on.
fn next(call: Call) -> Outcome<Value> {
    Ok(json!({ "tool": call.tool, "arguments": serde_json::from_str::<Value>(&call.arguments)? }))
}

/// The whole id of an output, of which a beginning may have been given.
pub(crate) fn complete(app: &App, found: &Found, reference: Reference) -> Outcome<Reference> {
    let Reference::Blob(given) = &reference else { return Ok(reference) };
    if app.context.engine.store().blob(&found.session, given).is_ok() {
        return Ok(reference);
    }
    let named = app.context.engine.named_blobs(&found.session)?;
    let mut fits: Vec<&String> = named.iter().filter(|id| id.starts_with(given.as_str())).collect();
    fits.sort();
    match fits[..] {
        [only] => Ok(Reference::Blob(only.clone())),
        [] => Ok(reference),
        _ => {
            let fits: Vec<&str> = fits.iter().map(|id| id.as_str()).collect();
            let message = format!("{given:?} fits several: {}; write more of it", fits.join(", "));
            Err(Fault::new(Exit::NotFound, message))
        }
    }
}

/// Every output that an entry up to `end` names.
pub(crate) fn list(app: &mut App, thread: &Thread<'_>, end: Seq) -> Outcome {
    let heading = ["ref", "bytes", "lines", "tool", "entry"].map(str::to_owned).to_vec();
    let mut rows = vec![heading];
    for seq in 1..=end {
        if thread.source().head(seq)?.kind != Kind::Tool {
            continue;
        }
        let Entry::Message(message, _) = thread.record(seq)?.entry else { continue };
        let Some(ToolOutcome { name, output_ref: Some(output), .. }) = message.outcome() else { continue };
        let OutputRef { id, byte_size, line_count } = output;
        if app.paper.json {
            app.paper.json(&json!({
                "ref": id, "byte_size": byte_size, "line_count": line_count, "tool": name, "seq": seq,
            }))?;
            continue;
        }
        let number = |n: &Option<u64>| n.map_or("?".to_owned(), crate::paper::number);
        let tool = name.clone().unwrap_or_else(|| "?".to_owned());
        rows.push(vec![id.clone(), number(byte_size), number(line_count), tool, format!("@{seq}")]);
    }
    if rows.len() > 1 {
        table(&rows, &[1, 2]).iter().try_for_each(|line| app.paper.line(line))?;
    } else if !app.paper.json {
        crate::paper::say("no output is too long to be shown; @SEQ reads any entry");
    }
    Ok(())
}

/// What went wrong in a reading, with its exit code.
pub(crate) fn fault(error: Error) -> Fault {
    let exit = match error {
        Error::Engine(error) => return error.into(),
        Error::Io(error) => return error.into(),
        Error::NoOutput { .. } | Error::NoLine { .. } | Error::NoChars { .. } => Exit::NotFound,
        Error::NoWords { .. } => Exit::Refused,
        Error::BadPattern(_) | Error::BadReference { .. } => Exit::BadInput,
        _ => Exit::Usage,
    };
    Fault::new(exit, error.to_string())
}
