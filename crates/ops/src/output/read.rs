//! Read lines of an output, search it, or read a part of one line.

use super::find;
use crate::address::{AtThread, Target};
use crate::{Context, Effect, Fault, Interfaces, Operation, Outcome, Route};
use komado_core::clip::{CHARS, Call, LINES};
use komado_engine::output::grep::{Pattern, Search};
use komado_engine::output::read::Page;
use komado_engine::output::read::Stretch;
use komado_engine::output::{Ask, Request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    pub part: Part,
}

/// What to read of an output: lines, matches, or a part of one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args, Deserialize, JsonSchema)]
pub struct Part {
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
    /// Characters of the line to pass over
    #[arg(long, value_name = "N")]
    pub char_offset: Option<u64>,
    /// Characters to read at most [default: 2000]
    #[arg(long, value_name = "N", requires = "line")]
    #[schemars(range(min = 1))]
    pub char_limit: Option<u64>,
}

/// A part of an output.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Reading {
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
    const NAME: &'static str = "output";
    const TITLE: &'static str = "Read a long output";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "output",
        Route::get("outputs", "/sessions/{session}/threads/{thread}/outputs/{ref_id}"),
    )
    .not_mcp("models know the three tools `tool_output_cache`, `_grep` and `_line`");
    type Output = Reading;

    fn run(self, context: &Context) -> Outcome<Reading> {
        self.part.check()?;
        read(context, (&self.at).into(), &self.ref_id, self.part.ask())
    }
}

/// Reads a part of an output.
pub(super) fn read(context: &Context, at: Target, ref_id: &str, ask: Ask) -> Outcome<Reading> {
    let (thread, reference, found) = find(context, at, ref_id)?;
    let ref_id = reference.to_string();
    let read = Request { reference, ask }.answer(&thread)?;
    let (session, thread) = (found.session.to_string(), found.thread.to_string());
    Ok(Reading { session, thread, ref_id, text: read.text, next: read.next.map(reads_on).transpose()? })
}

fn reads_on(call: Call) -> Outcome<ReadingCall> {
    Ok(ReadingCall { tool: call.tool, arguments: serde_json::from_str(&call.arguments)? })
}

impl Part {
    /// Refuses what stands beside something it does not go with: it is most likely meant otherwise.
    fn check(&self) -> Outcome {
        let searches = [
            ("regex", self.regex),
            ("before", self.before.is_some()),
            ("after", self.after.is_some()),
            ("max_matches", self.max_matches.is_some()),
        ];
        if let Some((name, _)) = searches.iter().find(|(_, given)| *given && self.grep.is_none()) {
            return Err(Fault::usage(format!("{name} goes with grep")));
        }
        if self.line.is_some() && (self.grep.is_some() || self.offset.is_some() || self.limit.is_some()) {
            return Err(Fault::usage("line reads one line; leave out grep, offset and limit"));
        }
        if self.char_limit.is_some() && self.line.is_none() {
            return Err(Fault::usage("char_limit goes with line"));
        }
        Ok(())
    }

    pub(super) fn ask(self) -> Ask {
        let (offset, char_offset) = (self.offset.unwrap_or(1), self.char_offset.unwrap_or(0));
        if let Some(text) = self.grep {
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
