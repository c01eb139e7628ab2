//! Operations on what was said: append it, read it, show what the model sees of it, take a secret out.

mod append;
mod read;

pub use append::{Append, AppendLines, Appended, MessageLines, append_output};
pub use read::{Entries, EntriesOf, Entry, Format, GetEntry, Log, Logged, Show, ViewItem, Viewed};

use crate::address::{self, AtSession, AtThread, Target};
use crate::tools::ToolDefinitions;
use crate::{About, Changed, Context, Fault, Interfaces, Operation, Outcome, Route, change};
use komado_core::journal::{self, Setup};
use komado_core::openai;
use komado_core::raw::Raw;
use komado_engine::Thread;
use komado_engine::redact::What;
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Columns of a line, unless a request says otherwise.
const WIDTH: u32 = 160;

/// Columns that a line may have.
fn columns(full: bool, width: Option<u32>) -> usize {
    match full {
        true => usize::MAX,
        false => width.unwrap_or(WIDTH) as usize,
    }
}

/// Set system prompt, tools and parameters; what is left out stays.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(example = serde_json::json!({ "system": "You are a careful engineer." }))]
pub struct SetUp {
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
    /// The system prompt.
    pub system: Option<String>,
    /// Tool definitions.
    pub tools: Option<ToolDefinitions>,
    /// Other parameters of the request.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub params: Option<Box<RawValue>>,
    /// Whose form tools and parameters have; `openai` when left out.
    pub dialect: Option<String>,
}

impl Operation for SetUp {
    const ABOUT: About = About::edit("setup", "Set system prompt, tools and parameters");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("setup", Route::post("view", "/sessions/{session}/threads/{thread}/setup"))
            .not_mcp("what stands before the conversation is for people to say, not for the model in it");
    type Output = Changed;

    fn run(self, context: &Context) -> Outcome<Changed> {
        let found = context.find_now(&self.at)?;
        let Self { system, tools, params, dialect, .. } = self;
        if system.is_none() && tools.is_none() && params.is_none() {
            return Err(Fault::usage("nothing is set up: give system, tools or params"));
        }
        let tools = tools.map(Raw::from);
        let params = params.as_deref().map(object).transpose()?;
        let form = dialect.unwrap_or_else(|| openai::DIALECT.to_owned());
        let dialect = (tools.is_some() || params.is_some()).then_some(form);
        let changed = change::make(context, &found, Self::ABOUT.name, |thread| {
            let before = current(thread)?;
            thread.set_up(Setup {
                system: system.or(before.system),
                tools: tools.or(before.tools),
                params: params.or(before.params),
                dialect: dialect.or(before.dialect),
            })
        })?;
        let undo = change::rewind_before(&found, changed.seq);
        Ok(changed.told("set up; what was not given stays", undo))
    }
}

/// Parameters as the journal keeps them.
fn object(given: &RawValue) -> Outcome<Raw> {
    // What cannot be read whole could not be sent.
    let read: Result<Map<String, Value>, _> = serde_json::from_str(given.get());
    match read {
        Ok(_) => Ok(Raw::from_value(given)),
        Err(error) => Err(Fault::malformed(format!("params is not a JSON object: {error}"))),
    }
}

/// The setup in force; what is not given anew is carried over.
fn current(thread: &Thread<'_>) -> komado_engine::Result<Setup> {
    let Some(seq) = thread.view().setup() else { return Ok(Setup::default()) };
    match thread.record(seq)?.entry {
        journal::Entry::Setup(setup) => Ok(setup),
        _ => Ok(Setup::default()),
    }
}

/// Take a secret out for good: one entry, a text, or what matches a pattern. This cannot be undone.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(example = serde_json::json!({ "text": "hunter2", "reason": "a password" }))]
pub struct Redact {
    /// The session.
    #[serde(flatten)]
    pub at: AtSession,
    /// Every occurrence of this text.
    #[schemars(length(min = 1))]
    pub text: Option<String>,
    /// Everything that matches this regular expression.
    #[schemars(length(min = 1))]
    pub pattern: Option<String>,
    /// One entry, THREAD@SEQ.
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}@[0-9]{1,8}$"))]
    pub entry: Option<String>,
    /// Why; kept with each changed entry.
    pub reason: String,
}

/// What was taken out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Redacted {
    /// The session.
    pub session: String,
    /// Lines of journals that were changed.
    pub entries: u64,
    /// Outputs that were changed.
    pub blobs: u64,
    /// Where it still stands; empty, or the call has failed.
    pub left: Vec<String>,
    /// Nothing undoes it.
    pub undo: Option<String>,
}

impl Operation for Redact {
    const ABOUT: About = About::remove("redact", "Take a secret out for good");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("redact", Route::post("journal", "/sessions/{session}/redact"))
            .not_mcp("what cannot be undone is for people to do");
    type Output = Redacted;

    fn run(self, context: &Context) -> Outcome<Redacted> {
        let done = self.take_out(context)?;
        match done.left.is_empty() {
            true => Ok(done),
            false => Err(done.still()),
        }
    }
}

impl Redact {
    /// Takes it out; tells what was changed, and where it still stands.
    pub fn take_out(self, context: &Context) -> Outcome<Redacted> {
        let session = context.find(&self.at)?.session;
        let what = match (self.text, self.pattern, self.entry) {
            (Some(text), None, None) if !text.is_empty() => What::Matching(pattern(&regex::escape(&text))?),
            (None, Some(text), None) => What::Matching(pattern(&text)?),
            (None, None, Some(entry)) => {
                let (thread, seq) = address::moment(&entry)?;
                let wrong = || Fault::malformed(format!("{entry:?} is no entry; write THREAD@SEQ"));
                let seq = seq.ok_or_else(wrong)?;
                let (session, thread) = (Some(session.to_string()), Some(thread.to_string()));
                What::Entry(context.find(Target { session, thread, seq: None })?.thread, seq)
            }
            _ => return Err(Fault::usage("give one of text, pattern and entry")),
        };
        let done = context.engine.redact(&session, &what, &self.reason)?;
        let left = match &what {
            What::Matching(pattern) => context.engine.redact_leaves(&session, pattern)?,
            What::Entry(..) => Vec::new(),
        };
        let (entries, blobs) = (done.entries, done.blobs);
        Ok(Redacted { session: session.to_string(), entries, blobs, left, undo: None })
    }
}

impl Redacted {
    /// A secret that is still somewhere is a failure, whatever else was done.
    pub fn still(&self) -> Fault {
        let places = self.left.join(", ");
        let why = format!("it is still in {places}, which cannot be changed; export, edit and import");
        Fault::refused(why)
    }
}

fn pattern(text: &str) -> Outcome<Regex> {
    Regex::new(text).map_err(|error| Fault::input(format!("pattern is no regular expression: {error}")))
}
