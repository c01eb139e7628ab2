//! The three readings of an output as the tools that models know: lines, a search, a part of one line.

use super::read::{Part, Reading, read};
use crate::address::AtThread;
use crate::{Context, Effect, Interfaces, Offer, Operation, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

const INTERFACES: Interfaces = Interfaces {
    cli: Offer::Not("`output` does all three"),
    http: Offer::Not("the route of `output` does all three"),
    mcp: Offer::As(()),
};

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

impl Operation for ToolOutputCache {
    const NAME: &'static str = "tool_output_cache";
    const TITLE: &'static str = "Read an output";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = INTERFACES;
    type Output = Reading;

    fn run(self, context: &Context) -> Outcome<Reading> {
        let part = Part { offset: self.offset, limit: self.limit, ..Part::default() };
        read(context, (&self.at).into(), &self.ref_id, part.ask())
    }

    fn text(output: &Reading) -> Option<String> {
        Some(output.text.clone())
    }
}

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

impl Operation for ToolOutputCacheGrep {
    const NAME: &'static str = "tool_output_cache_grep";
    const TITLE: &'static str = "Search in an output";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = INTERFACES;
    type Output = Reading;

    fn run(self, context: &Context) -> Outcome<Reading> {
        let part = Part {
            grep: Some(self.pattern),
            regex: self.regex,
            before: self.before,
            after: self.after,
            max_matches: self.max_matches,
            offset: self.offset,
            char_offset: self.char_offset,
            ..Part::default()
        };
        read(context, (&self.at).into(), &self.ref_id, part.ask())
    }

    fn text(output: &Reading) -> Option<String> {
        Some(output.text.clone())
    }
}

/// Read a part of one long line of a tool output, by characters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ToolOutputCacheLine {
    /// The output: its id or a beginning of it, or @SEQ for any entry.
    pub ref_id: String,
    /// The line, from 1.
    #[schemars(range(min = 1))]
    pub line_number: u64,
    /// Characters of the line to pass over.
    pub char_offset: Option<u64>,
    /// Characters to read at most; 2000 when left out.
    pub char_limit: Option<u64>,
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
}

impl Operation for ToolOutputCacheLine {
    const NAME: &'static str = "tool_output_cache_line";
    const TITLE: &'static str = "Read a long line";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = INTERFACES;
    type Output = Reading;

    fn run(self, context: &Context) -> Outcome<Reading> {
        let part = Part {
            line: Some(self.line_number),
            char_offset: self.char_offset,
            char_limit: self.char_limit,
            ..Part::default()
        };
        read(context, (&self.at).into(), &self.ref_id, part.ask())
    }

    fn text(output: &Reading) -> Option<String> {
        Some(output.text.clone())
    }
}
