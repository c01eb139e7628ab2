//! Tools that read: outputs, what was said, what is seen, which sessions there are.

use super::desk::{Desk, Words};
use super::tool::{Answer, Errand};
use crate::fault::Outcome;
use komado_core::SessionId;
use komado_ops::Effect;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Results of a search, unless more are asked for.
const RESULTS: u32 = 10;

/// Reads lines of an output.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolOutputCache {
    /// The output: its id or a beginning of it, or @SEQ for any entry.
    ref_id: String,
    /// First line to read, from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Lines to read at most; 200 when left out.
    limit: Option<u64>,
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
    /// The thread; the root when left out.
    thread: Option<String>,
}

impl Errand for ToolOutputCache {
    const NAME: &'static str = "tool_output_cache";
    const TITLE: &'static str = "Read an output";
    const ABOUT: &'static str =
        "Read lines of a tool output that was too long to be shown whole, or of any entry of the journal.";
    const EFFECT: Effect = Effect::Read;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), None)?;
        let words = Words::of("output").option("offset", self.offset).option("limit", self.limit);
        output(desk, words.word(address).word(self.ref_id))
    }
}

/// Searches in an output.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolOutputCacheGrep {
    /// The output: its id or a beginning of it, or @SEQ for any entry.
    ref_id: String,
    /// The text to look for.
    pattern: String,
    /// The pattern is a regular expression.
    regex: Option<bool>,
    /// Lines to show before each match.
    before: Option<u64>,
    /// Lines to show after each match.
    after: Option<u64>,
    /// Matches to show at most; 50 when left out.
    max_matches: Option<u64>,
    /// First line to search, from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Characters of that line to pass over.
    char_offset: Option<u64>,
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
    /// The thread; the root when left out.
    thread: Option<String>,
}

impl Errand for ToolOutputCacheGrep {
    const NAME: &'static str = "tool_output_cache_grep";
    const TITLE: &'static str = "Search in an output";
    const ABOUT: &'static str = "Search a tool output, or any entry of the journal, for a text or a regular expression; gives numbered lines.";
    const EFFECT: Effect = Effect::Read;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), None)?;
        let words = Words::of("output").option("grep", Some(self.pattern)).flag("regex", self.regex);
        let words = words.option("before", self.before).option("after", self.after);
        let words = words.option("max-matches", self.max_matches).option("offset", self.offset);
        output(desk, words.option("char-offset", self.char_offset).word(address).word(self.ref_id))
    }
}

/// Reads a part of one line of an output.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolOutputCacheLine {
    /// The output: its id or a beginning of it, or @SEQ for any entry.
    ref_id: String,
    /// The line, from 1.
    #[schemars(range(min = 1))]
    line_number: u64,
    /// Characters of the line to pass over.
    char_offset: Option<u64>,
    /// Characters to read at most; 2000 when left out.
    char_limit: Option<u64>,
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
    /// The thread; the root when left out.
    thread: Option<String>,
}

impl Errand for ToolOutputCacheLine {
    const NAME: &'static str = "tool_output_cache_line";
    const TITLE: &'static str = "Read a long line";
    const ABOUT: &'static str = "Read a part of one long line of a tool output, by characters.";
    const EFFECT: Effect = Effect::Read;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), None)?;
        let words = Words::of("output").option("line", Some(self.line_number));
        let words = words.option("char-offset", self.char_offset).option("char-limit", self.char_limit);
        output(desk, words.word(address).word(self.ref_id))
    }
}

/// What was read, with the call that reads on.
fn output(desk: &Desk, words: Words) -> Outcome<Answer> {
    let value = desk.value(&words.all())?;
    Ok(Answer { text: value["text"].as_str().unwrap_or_default().to_owned(), value })
}

/// How a search looks.
#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
enum How {
    Ranked,
    Exact,
    Regex,
}

/// Searches everything that was said.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Recall {
    /// What to look for; a name, a path or an error message is best.
    query: String,
    /// The session or its address; all sessions when left out and none is set.
    session: Option<String>,
    /// Only this thread.
    thread: Option<String>,
    /// How many results; 10 when left out.
    #[schemars(range(min = 1, max = 100))]
    k: Option<u32>,
    /// ranked: best fit first; exact: the text as it stands; regex: a regular expression. ranked when left out.
    mode: Option<How>,
    /// Only what this speaker said: system, developer, user, assistant or tool.
    role: Option<String>,
    /// Only calls and results of this tool.
    tool: Option<String>,
    /// Only calls and results about this file or folder.
    file: Option<String>,
    /// Only what was said then or later: 2024-01-15, 2024-01-15T10:30:00Z, or 3h, 2d, 1w ago.
    since: Option<String>,
    /// Only what was said then or earlier.
    until: Option<String>,
    /// Also give so many entries before and after each result.
    neighbours: Option<u32>,
}

impl Errand for Recall {
    const NAME: &'static str = "recall";
    const TITLE: &'static str = "Find again what was said";
    const ABOUT: &'static str = "Search everything that was ever said in a session, or in all of them, also what no longer is in the model's window: messages, calls and whole outputs. Each result has an address to read on at.";
    const EFFECT: Effect = Effect::Read;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let words = Words::of("recall").option("limit", Some(self.k.unwrap_or(RESULTS)));
        let words = words.flag("exact", Some(self.mode == Some(How::Exact)));
        let words = words.flag("regex", Some(self.mode == Some(How::Regex)));
        let words = words.option("role", self.role).option("tool", self.tool).option("file", self.file);
        let words = words.option("since", self.since).option("until", self.until);
        let words = words.option("neighbours", self.neighbours);
        let is_wide = self.session.is_none() && self.thread.is_none() && desk.named.is_none();
        let found = if is_wide {
            wide(desk, words, self.query, self.k.unwrap_or(RESULTS))?
        } else {
            let address = desk.at(self.session.as_deref(), self.thread.as_deref(), None)?;
            desk.lines(&words.word(address).word(self.query).all())?
        };
        let text = match found.is_empty() {
            true => "nothing was found; try other words, or fewer filters".to_owned(),
            false => found.iter().map(line).collect::<Vec<_>>().join("\n"),
        };
        Ok(Answer { text, value: json!({ "results": found }) })
    }
}

/// A search through every session that may be seen: all, or the guest's own and those that the key lists.
fn wide(desk: &Desk, words: Words, query: String, most: u32) -> Outcome<Vec<Value>> {
    if desk.guest.sees_all {
        return desk.lines(&words.flag("all", Some(true)).word(query).all());
    }
    let own = desk.guest.user.as_ref();
    let mut found = match own {
        Some(user) => desk.lines(&words.clone().option("user", Some(user)).word(&query).all())?,
        None => Vec::new(),
    };
    for id in &desk.guest.sessions {
        let Ok(name) = SessionId::new(id.as_str()) else { continue };
        let Ok(session) = desk.app.session(&name) else { continue };
        // One's own were searched already.
        if own.is_none() || session.meta.user.as_ref() != own {
            found.extend(desk.lines(&words.clone().word(id).word(&query).all())?);
        }
    }
    let score = |one: &Value| one["score"].as_f64().unwrap_or_default();
    found.sort_by(|a, b| score(b).total_cmp(&score(a)));
    found.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    Ok(found)
}

fn line(found: &Value) -> String {
    let word = |name: &str| found[name].as_str().unwrap_or_default();
    let hidden = if found["hidden"] == true { ", not in the view" } else { "" };
    format!("{} ({}{hidden}): {}", word("address"), word("role"), word("snippet"))
}

/// Says what fills a window.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Context {
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
    /// The thread; the root when left out.
    thread: Option<String>,
    /// At the moment of this entry; now when left out.
    seq: Option<u32>,
    /// The model's window in tokens, in place of the session's own.
    #[schemars(range(min = 1))]
    window: Option<u32>,
}

impl Errand for Context {
    const NAME: &'static str = "context";
    const TITLE: &'static str = "The window and what fills it";
    const ABOUT: &'static str = "Say how full the model's window is: tokens by kind, what is free, edits in force, pins and open calls.";
    const EFFECT: Effect = Effect::Read;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), self.seq)?;
        desk.both(&Words::of("context").option("window", self.window).word(address).all())
    }
}
