//! Redact: take a secret out for good.

use crate::address::{self, AtSession, Target};
use crate::{Context, Effect, Exit, Fault, Interfaces, Operation, Outcome, Route};
use komado_engine::redact::What;
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    const NAME: &'static str = "redact";
    const TITLE: &'static str = "Take a secret out for good";
    const EFFECT: Effect = Effect::Remove;
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
                let wrong =
                    || Fault::new(Exit::Malformed, format!("{entry:?} is no entry; write THREAD@SEQ"));
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
        Fault::new(Exit::Refused, why)
    }
}

fn pattern(text: &str) -> Outcome<Regex> {
    Regex::new(text).map_err(|error| Fault::input(format!("pattern is no regular expression: {error}")))
}
