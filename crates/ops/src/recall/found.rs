//! A result of a search.

use komado_core::Seq;
use komado_engine::recall::Found;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Range;

/// An entry that was found.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Recalled {
    /// The session.
    pub session: String,
    /// The thread whose own entry it is.
    pub thread: String,
    /// The entry.
    pub seq: Seq,
    /// Its address.
    pub address: String,
    /// How well it fits; comparable within one search, also over sessions.
    pub score: f64,
    /// Who speaks.
    pub role: &'static str,
    /// The tools it calls, or the one that answers.
    pub tools: Vec<String>,
    /// When it was said.
    pub timestamp: String,
    /// The words around what was found.
    pub snippet: String,
    /// What was found in them.
    pub matches: Vec<String>,
    /// True when it stands in the output that the entry names, and not in what the model was shown.
    pub in_output: bool,
    /// True when the model does not see the entry as it was said: hidden, replaced, or left behind by a rewind.
    pub hidden: bool,
    /// Entries before and after it, when they were asked for.
    pub around: Vec<Beside>,
    /// Where in the snippet the matches are, in bytes.
    #[serde(skip)]
    pub marks: Vec<Range<usize>>,
}

/// An entry beside a result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Beside {
    /// Its number.
    pub seq: Seq,
    /// Who speaks.
    pub role: &'static str,
    /// How it begins.
    pub snippet: String,
}

impl From<Found> for Recalled {
    fn from(found: Found) -> Self {
        let thread = if found.thread.is_root() { String::new() } else { format!("/{}", found.thread) };
        let (text, marks) = (found.snippet.text, found.snippet.marks);
        let beside = |one: komado_engine::recall::Beside| Beside {
            seq: one.seq,
            role: one.role.name(),
            snippet: one.snippet,
        };
        Self {
            address: format!("{}{thread}@{}", found.session, found.seq),
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            seq: found.seq,
            score: (f64::from(found.score) * 1e4).round() / 1e4,
            role: found.role.name(),
            tools: found.tools,
            timestamp: found.timestamp,
            matches: marks.iter().filter_map(|mark| text.get(mark.clone())).map(str::to_owned).collect(),
            snippet: text,
            in_output: found.in_output,
            hidden: found.hidden,
            around: found.around.into_iter().map(beside).collect(),
            marks,
        }
    }
}

impl Recalled {
    /// A line for a model.
    pub(super) fn line(&self) -> String {
        let hidden = if self.hidden { ", not in the view" } else { "" };
        format!("{} ({}{hidden}): {}", self.address, self.role, self.snippet)
    }
}
