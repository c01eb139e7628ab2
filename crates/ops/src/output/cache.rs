//! The three readings of an output as the tools that models know: lines, a search, a part of one line.

use super::read::{Part, Reading, read};
use crate::address::AtThread;
use crate::{Context, Effect, Interfaces, Offer, Operation, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// A reading as a tool: its name, its title, and the part of an output that it reads.
macro_rules! tool {
    ($type:ident, $name:literal, $title:literal, $part:expr) => {
        impl Operation for $type {
            const NAME: &'static str = $name;
            const TITLE: &'static str = $title;
            const EFFECT: Effect = Effect::Read;
            const INTERFACES: Interfaces = Interfaces {
                cli: Offer::Not("`output` does all three"),
                http: Offer::Not("the route of `output` does all three"),
                mcp: Offer::As(()),
            };
            type Output = Reading;

            fn run(self, context: &Context) -> Outcome<Reading> {
                let part: fn(&Self) -> Part = $part;
                read(context, (&self.at).into(), &self.ref_id, part(&self).ask())
            }

            fn text(output: &Reading) -> Option<String> {
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

tool!(ToolOutputCache, "tool_output_cache", "Read an output", |given| Part {
    offset: given.offset,
    limit: given.limit,
    ..Part::default()
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

tool!(ToolOutputCacheGrep, "tool_output_cache_grep", "Search in an output", |given| Part {
    grep: Some(given.pattern.clone()),
    regex: given.regex,
    before: given.before,
    after: given.after,
    max_matches: given.max_matches,
    offset: given.offset,
    char_offset: given.char_offset,
    ..Part::default()
});

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

tool!(ToolOutputCacheLine, "tool_output_cache_line", "Read a long line", |given| Part {
    line: Some(given.line_number),
    char_offset: given.char_offset,
    char_limit: given.char_limit,
    ..Part::default()
});
