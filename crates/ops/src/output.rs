//! Outputs of tools that are too long to be shown: listed, read by lines, searched, read by characters of a line.
//!
//! The readings are those that a model has as tools. They stream, so an output may be larger than memory.

use crate::address::{AtMoment, AtThread, Target};
use crate::stream::{self, StreamBytes, StreamForm, StreamSink};
use crate::{
    Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, ResultPage, Route, Streamed,
};
use komado_core::clip::{CHARS, LINES, ReadOnCall};
use komado_core::journal::Entry;
use komado_core::message::{OutputRef, ToolOutcome};
use komado_core::{Kind, Seq};
use komado_engine::Thread;
use komado_engine::engine::ResolvedAddress;
use komado_engine::output::OutputReference;
use komado_engine::output::grep::{GrepPattern, GrepSearch};
use komado_engine::output::read;
use komado_engine::output::read::LineStretch;
use komado_engine::output::{OutputAsk, OutputCall};
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;

/// A reading for programs and people: a verb and a route.
const fn by_people(verb: &'static str, path: &'static str) -> Interfaces {
    Interfaces::everywhere(verb, Route::get("outputs", path))
}

/// The thread and the output that a request means.
fn find<'a>(
    context: &'a OperationContext,
    at: Target,
    ref_id: &str,
) -> OpResult<(Thread<'a>, OutputReference, ResolvedAddress)> {
    let found = context.find(at)?;
    let reference = complete(context, &found, ref_id.parse()?)?;
    Ok((context.engine.open(&found.session, &found.thread, OpenMode::Read)?, reference, found))
}

/// The whole id of an output, of which a beginning may have been given.
fn complete(
    context: &OperationContext,
    found: &ResolvedAddress,
    reference: OutputReference,
) -> OpResult<OutputReference> {
    let OutputReference::Blob(given) = &reference else { return Ok(reference) };
    if context.engine.store().blob(&found.session, given).is_ok() {
        return Ok(reference);
    }
    let named = context.engine.named_blobs(&found.session)?;
    let mut fits: Vec<&String> = named.iter().filter(|id| id.starts_with(given.as_str())).collect();
    fits.sort();
    match fits[..] {
        [only] => Ok(OutputReference::Blob(only.clone())),
        [] => Ok(reference),
        _ => {
            let fits: Vec<&str> = fits.iter().map(|id| id.as_str()).collect();
            let message = format!("{given:?} fits several: {}; write more of it", fits.join(", "));
            Err(OpFault::not_found(message))
        }
    }
}

/// List the outputs that are too long to be shown.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ListOutputs {
    /// The thread, and up to which moment of it.
    #[serde(flatten)]
    pub at: AtMoment,
}

/// An output that is too long to be shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct LongOutput {
    /// Its id.
    #[serde(rename = "ref")]
    pub ref_id: String,
    /// Its bytes.
    pub byte_size: Option<u64>,
    /// Its lines.
    pub line_count: Option<u64>,
    /// The tool that gave it.
    pub tool: Option<String>,
    /// The entry that names it.
    pub seq: Seq,
}

impl Operation for ListOutputs {
    const ABOUT: OperationLabel = OperationLabel::read("outputs", "List long outputs");
    const INTERFACES: Interfaces =
        by_people("session output", "/sessions/{session}/threads/{thread}/outputs")
            .not_mcp("the view names each output where it is cut");
    type Output = ResultPage<LongOutput>;

    fn run(self, context: &OperationContext) -> OpResult<ResultPage<LongOutput>> {
        let found = context.find(&self.at)?;
        let thread = context.engine.open(&found.session, &found.thread, OpenMode::Read)?;
        let mut outputs = Vec::new();
        for seq in 1..=found.seq.unwrap_or(thread.last()).min(thread.last()) {
            if thread.source().head(seq)?.kind != Kind::Tool {
                continue;
            }
            let Entry::Message(message, _) = thread.record(seq)?.entry else { continue };
            let Some(ToolOutcome { name, output_ref: Some(output), .. }) = message.outcome() else {
                continue;
            };
            let OutputRef { id, byte_size, line_count } = output.clone();
            outputs.push(LongOutput { ref_id: id, byte_size, line_count, tool: name.clone(), seq });
        }
        Ok(ResultPage::whole(outputs))
    }
}

/// Read lines of an output, search it, or read a part of one line.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ReadOutput {
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
    /// The output's id, a beginning of it, or @ and the number of an entry.
    #[schemars(regex(pattern = r"^(@[0-9]{1,8}|[0-9a-f]{1,64})$"), example = &"@1")]
    pub ref_id: String,
    /// What to read of it.
    #[serde(flatten)]
    pub part: OutputPart,
}

/// What to read of an output: lines, matches, or a part of one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args, Deserialize, JsonSchema)]
pub struct OutputPart {
    /// First line to read, or to search
    #[arg(long, value_name = "N", conflicts_with = "line")]
    #[schemars(range(min = 1))]
    pub offset: Option<u64>,
    /// Lines to read at most [default: 200]
    #[arg(long, value_name = "N", conflicts_with_all = ["grep", "line"])]
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
    /// Search for this text
    #[arg(long, value_name = "PATTERN", conflicts_with = "line")]
    #[schemars(length(min = 1, max = 1000))]
    pub grep: Option<String>,
    /// The pattern is a regular expression
    #[arg(long, requires = "grep")]
    #[serde(default)]
    pub regex: bool,
    /// Lines to show before each match
    #[arg(long, value_name = "N", requires = "grep")]
    pub before: Option<u64>,
    /// Lines to show after each match
    #[arg(long, value_name = "N", requires = "grep")]
    pub after: Option<u64>,
    /// Matches to show at most [default: 50]
    #[arg(long, value_name = "N", requires = "grep")]
    #[schemars(range(min = 1))]
    pub max_matches: Option<u64>,
    /// Read a part of this line
    #[arg(long, value_name = "N")]
    #[schemars(range(min = 1))]
    pub line: Option<u64>,
    /// Characters of the line to skip
    #[arg(long, value_name = "N")]
    pub char_offset: Option<u64>,
    /// Characters to read at most [default: 2000]
    #[arg(long, value_name = "N", requires = "line")]
    #[schemars(range(min = 1))]
    pub char_limit: Option<u64>,
}

/// A part of an output.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct OutputExcerpt {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The output.
    #[serde(rename = "ref")]
    pub ref_id: String,
    /// What was read, with a note at its end.
    pub text: String,
    /// The call that reads on; null at the end.
    pub next: Option<ReadingCall>,
}

/// A call of a tool that reads on.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ReadingCall {
    /// The tool.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: Value,
}

impl Operation for ReadOutput {
    const ABOUT: OperationLabel = OperationLabel::read("output", "Read a long output");
    const INTERFACES: Interfaces =
        by_people("session output", "/sessions/{session}/threads/{thread}/outputs/{ref_id}")
            .not_mcp("models know the three tools `tool_output_cache`, `_grep` and `_line`");
    type Output = OutputExcerpt;

    fn run(self, context: &OperationContext) -> OpResult<OutputExcerpt> {
        self.part.check()?;
        read(context, (&self.at).into(), &self.ref_id, self.part.ask())
    }
}

/// Reads a part of an output.
pub(super) fn read(
    context: &OperationContext,
    at: Target,
    ref_id: &str,
    ask: OutputAsk,
) -> OpResult<OutputExcerpt> {
    let (thread, reference, found) = find(context, at, ref_id)?;
    let ref_id = reference.to_string();
    let read = OutputCall { reference, ask }.answer(&thread)?;
    let (session, thread) = (found.session.to_string(), found.thread.to_string());
    Ok(OutputExcerpt { session, thread, ref_id, text: read.text, next: read.next.map(reads_on).transpose()? })
}

fn reads_on(call: ReadOnCall) -> OpResult<ReadingCall> {
    Ok(ReadingCall { tool: call.tool, arguments: serde_json::from_str(&call.arguments)? })
}

impl OutputPart {
    /// Refuses what stands beside something it does not go with: it is most likely meant otherwise.
    fn check(&self) -> OpResult {
        let searches = [
            ("regex", self.regex),
            ("before", self.before.is_some()),
            ("after", self.after.is_some()),
            ("max_matches", self.max_matches.is_some()),
        ];
        if let Some((name, _)) = searches.iter().find(|(_, given)| *given && self.grep.is_none()) {
            return Err(OpFault::usage(format!("{name} goes with grep")));
        }
        if self.line.is_some() && (self.grep.is_some() || self.offset.is_some() || self.limit.is_some()) {
            return Err(OpFault::usage("line reads one line; leave out grep, offset and limit"));
        }
        if self.char_limit.is_some() && self.line.is_none() {
            return Err(OpFault::usage("char_limit goes with line"));
        }
        Ok(())
    }

    pub(super) fn ask(self) -> OutputAsk {
        let (offset, char_offset) = (self.offset.unwrap_or(1), self.char_offset.unwrap_or(0));
        if let Some(text) = self.grep {
            return OutputAsk::Grep(GrepSearch {
                pattern: if self.regex { GrepPattern::Regex(text) } else { GrepPattern::Literal(text) },
                before: self.before.unwrap_or(0),
                after: self.after.unwrap_or(0),
                max_matches: self.max_matches.unwrap_or(GrepSearch::MATCHES),
                offset,
                char_offset,
            });
        }
        match self.line {
            Some(line_number) => {
                let char_limit = self.char_limit.unwrap_or(CHARS);
                OutputAsk::Line(LineStretch { line_number, char_offset, char_limit })
            }
            None => OutputAsk::Read(read::OutputPage { offset, limit: self.limit.unwrap_or(LINES) }),
        }
    }
}

/// A reading as a tool: its name, its title, and the part of an output that it reads.
macro_rules! tool {
    ($type:ident, $name:literal, $title:literal, $part:expr) => {
        impl Operation for $type {
            const ABOUT: OperationLabel = OperationLabel::read($name, $title);
            const INTERFACES: Interfaces = Interfaces {
                cli: Err("`output` does all three"),
                http: Err("the route of `output` does all three"),
                mcp: Ok(()),
            };
            type Output = OutputExcerpt;

            fn run(self, context: &OperationContext) -> OpResult<OutputExcerpt> {
                let part: fn(&Self) -> OutputPart = $part;
                read(context, (&self.at).into(), &self.ref_id, part(&self).ask())
            }

            fn text(output: &OutputExcerpt) -> Option<String> {
                Some(output.text.clone())
            }
        }
    };
}

/// Read lines of a tool output that was too long to be shown whole, or of any entry of the journal.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ToolOutputCache {
    /// The output: its id or a beginning of it, or @SEQ for any entry.
    pub ref_id: String,
    /// First line to read, from 1.
    #[schemars(range(min = 1))]
    pub offset: Option<u64>,
    /// Lines to read at most; 200 when left out.
    pub limit: Option<u64>,
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
}

tool!(ToolOutputCache, "tool_output_cache", "Read an output", |given| OutputPart {
    offset: given.offset,
    limit: given.limit,
    ..OutputPart::default()
});

/// Search a tool output, or any entry of the journal, for a text or a regular expression; gives numbered lines.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ToolOutputCacheGrep {
    /// The output: its id or a beginning of it, or @SEQ for any entry.
    pub ref_id: String,
    /// The text to look for.
    pub pattern: String,
    /// The pattern is a regular expression.
    #[serde(default)]
    pub regex: bool,
    /// Lines to show before each match.
    pub before: Option<u64>,
    /// Lines to show after each match.
    pub after: Option<u64>,
    /// Matches to show at most; 50 when left out.
    pub max_matches: Option<u64>,
    /// First line to search, from 1.
    #[schemars(range(min = 1))]
    pub offset: Option<u64>,
    /// Characters of that line to pass over.
    pub char_offset: Option<u64>,
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
}

tool!(ToolOutputCacheGrep, "tool_output_cache_grep", "Search in an output", |given| OutputPart {
    grep: Some(given.pattern.clone()),
    regex: given.regex,
    before: given.before,
    after: given.after,
    max_matches: given.max_matches,
    offset: given.offset,
    char_offset: given.char_offset,
    ..OutputPart::default()
});

/// Read a part of one long line of a tool output, by characters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ToolOutputCacheLine {
    /// The output: its id or a beginning of it, or @SEQ for any entry.
    pub ref_id: String,
    /// The line, from 1.
    #[schemars(range(min = 1))]
    pub line_number: u64,
    /// Characters of the line to skip.
    pub char_offset: Option<u64>,
    /// Characters to read at most; 2000 when left out.
    pub char_limit: Option<u64>,
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
}

tool!(ToolOutputCacheLine, "tool_output_cache_line", "Read a long line", |given| OutputPart {
    line: Some(given.line_number),
    char_offset: given.char_offset,
    char_limit: given.char_limit,
    ..OutputPart::default()
});

/// Give the bytes of an output, all of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RawOutput {
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
    /// The output's id, a beginning of it, or @ and the number of an entry.
    #[schemars(regex(pattern = r"^(@[0-9]{1,8}|[0-9a-f]{1,64})$"), example = &"@1")]
    pub ref_id: String,
}

impl Streamed for RawOutput {
    const ABOUT: OperationLabel = OperationLabel::read("output_raw", "The bytes of a long output");
    const INTERFACES: Interfaces =
        by_people("session output --raw", "/sessions/{session}/threads/{thread}/outputs/{ref_id}/raw")
            .not_mcp("bytes may be no text; `tool_output_cache` reads them by lines");
    const FORM: StreamForm = StreamForm::Bytes(&["application/octet-stream"]);
    type Head = ();
    type Item = StreamBytes;

    fn run(self, context: &OperationContext, to: &mut dyn StreamSink<Self>) -> OpResult {
        let (thread, reference, _) = find(context, (&self.at).into(), &self.ref_id)?;
        let mut bytes = komado_engine::output::open(&thread, &reference)?;
        to.begin(())?;
        stream::pieces(to, |out| Ok(io::copy(&mut bytes, out).map(|_| ())?))
    }
}
