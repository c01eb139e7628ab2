//! Operations on what was said: append it, read it, show what the model sees of it, take a secret out.

mod append;
mod read;

pub use append::{AppendLines, AppendMessages, Appended, MessageLines, append_output};
pub use read::{
    EntriesOf, GetEntry, JournalLine, JournalPage, Log, Logged, ShowView, ViewFormat, ViewItem, Viewed,
};

use crate::address::{self, AtSession, AtThread, Target};
use crate::tools::ToolDefinitions;
use crate::{
    ChangedView, Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, Route, change,
};
use komado_core::journal::{self, Setup};
use komado_core::openai;
use komado_core::raw::RawJson;
use komado_engine::Thread;
use komado_engine::redact::RedactTarget;
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
    /// The API whose format the tools and parameters have; `openai` when left out.
    pub dialect: Option<String>,
}

impl Operation for SetUp {
    const ABOUT: OperationLabel = OperationLabel::edit("setup", "Set system prompt, tools and parameters");
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "edit setup",
        Route::post("view", "/sessions/{session}/threads/{thread}/setup"),
    )
    .not_mcp("what stands before the conversation is for people to say, not for the model in it");
    type Output = ChangedView;

    fn run(self, context: &OperationContext) -> OpResult<ChangedView> {
        let found = context.find_now(&self.at)?;
        let Self { system, tools, params, dialect, .. } = self;
        if system.is_none() && tools.is_none() && params.is_none() {
            return Err(OpFault::usage("nothing is set up: give system, tools or params"));
        }
        let tools = tools.map(RawJson::from);
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
fn object(given: &RawValue) -> OpResult<RawJson> {
    // What cannot be read whole could not be sent.
    let read: Result<Map<String, Value>, _> = serde_json::from_str(given.get());
    match read {
        Ok(_) => Ok(RawJson::from_value(given)),
        Err(error) => Err(OpFault::malformed(format!("params is not a JSON object: {error}"))),
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

/// Remove a secret for good: one entry, a text, or what matches a pattern. This cannot be undone.
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
    #[schemars(regex(pattern = concat!("^", komado_core::id_pattern!(), "@[0-9]{1,8}$")))]
    pub entry: Option<String>,
    /// Why; kept with each changed entry.
    pub reason: String,
}

/// What was taken out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct RedactionReport {
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
    const ABOUT: OperationLabel = OperationLabel::remove("redact", "Remove a secret for good");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("edit redact", Route::post("journal", "/sessions/{session}/redact"))
            .not_mcp("what cannot be undone is for people to do");
    type Output = RedactionReport;

    fn run(self, context: &OperationContext) -> OpResult<RedactionReport> {
        let done = self.take_out(context)?;
        match done.left.is_empty() {
            true => Ok(done),
            false => Err(done.still()),
        }
    }
}

impl Redact {
    /// Takes it out; tells what was changed, and where it still stands.
    pub fn take_out(self, context: &OperationContext) -> OpResult<RedactionReport> {
        let session = context.find(&self.at)?.session;
        let what = match (self.text, self.pattern, self.entry) {
            (Some(text), None, None) if !text.is_empty() => {
                RedactTarget::Matching(pattern(&regex::escape(&text))?)
            }
            (None, Some(text), None) => RedactTarget::Matching(pattern(&text)?),
            (None, None, Some(entry)) => {
                let (thread, seq) = address::moment(&entry)?;
                let wrong = || OpFault::malformed(format!("{entry:?} is not an entry; write THREAD@SEQ"));
                let seq = seq.ok_or_else(wrong)?;
                let (session, thread) = (Some(session.to_string()), Some(thread.to_string()));
                RedactTarget::Entry(context.find(Target { session, thread, seq: None })?.thread, seq)
            }
            _ => return Err(OpFault::usage("give one of text, pattern and entry")),
        };
        let done = context.engine.redact(&session, &what, &self.reason)?;
        let left = match &what {
            RedactTarget::Matching(pattern) => context.engine.redact_leaves(&session, pattern)?,
            RedactTarget::Entry(..) => Vec::new(),
        };
        let (entries, blobs) = (done.entries, done.blobs);
        Ok(RedactionReport { session: session.to_string(), entries, blobs, left, undo: None })
    }
}

impl RedactionReport {
    /// A secret that is still somewhere is a failure, whatever else was done.
    pub fn still(&self) -> OpFault {
        let places = self.left.join(", ");
        let why = format!("it is still in {places}, which cannot be changed; export, edit and import");
        OpFault::refused(why)
    }
}

fn pattern(text: &str) -> OpResult<Regex> {
    Regex::new(text).map_err(|error| OpFault::input(format!("pattern is not a regular expression: {error}")))
}
