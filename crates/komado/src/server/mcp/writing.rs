//! Tools that write: words, pins, edits, and the way back.

use super::desk::{Desk, Words};
use super::tool::{Answer, Errand};
use crate::fault::{Fault, Outcome};
use crate::server::Speaker;
use komado_ops::Effect;
use schemars::JsonSchema;
use serde::Deserialize;
use std::io::Write;

/// Makes a session.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct New {
    /// The model it will talk to.
    model: Option<String>,
    /// The model's window in tokens.
    #[schemars(range(min = 1))]
    window: Option<u32>,
    /// Whose session it is; the user of the key where there is one.
    user: Option<String>,
    /// What it works on, such as github:ann/tool/issue/27.
    task: Option<String>,
    /// The system prompt.
    system: Option<String>,
}

impl Errand for New {
    const NAME: &'static str = "new";
    const TITLE: &'static str = "Make a session";
    const ABOUT: &'static str =
        "Make a session: a journal of its own, in which messages can be kept and found again.";
    const EFFECT: Effect = Effect::Add;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let user = match (&desk.guest.user, desk.guest.sees_all) {
            (own, true) => self.user.or_else(|| own.clone()),
            (Some(own), false) => Some(own.clone()),
            (None, false) => {
                return Err(Fault::usage("this key belongs to no user, and could not see what it made"));
            }
        };
        let words = Words::of("new").option("model", self.model).option("window", self.window);
        let words = words.option("user", user).option("task", self.task).option("system", self.system);
        desk.change(&words.all())
    }
}

/// Adds a message.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Append {
    /// The words.
    text: String,
    /// Who says them; user when left out.
    role: Option<Speaker>,
    /// The call that a tool's message answers.
    call: Option<String>,
    /// The message is a tool's error.
    error: Option<bool>,
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
    /// The thread; the root when left out.
    thread: Option<String>,
}

impl Errand for Append {
    const NAME: &'static str = "append";
    const TITLE: &'static str = "Add a message";
    const ABOUT: &'static str =
        "Add a message to a thread, durably. A tool output that is too long is kept whole and shown in part.";
    const EFFECT: Effect = Effect::Add;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), None)?;
        let role = self.role.unwrap_or(Speaker::User).name();
        let words = Words::of("append").option("role", Some(role)).option("call", self.call);
        let words = words.flag("error", self.error);
        if self.text != "-" {
            return desk.change(&words.word(address).word(self.text).all());
        }
        // On a command line that word means standard input.
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(self.text.as_bytes())?;
        desk.change(&words.option("file", Some(file.path().display())).word(address).all())
    }
}

/// Shows a summary in place of a span.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Condense {
    /// The entries to hide, such as 3..50 or 3..10,12..50; with text. Left out: all but what is kept, in a summary written now.
    span: Option<String>,
    /// The summary to show in place of the span.
    text: Option<String>,
    /// The model's window in tokens, in place of the session's own; without span.
    #[schemars(range(min = 1))]
    window: Option<u32>,
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
    /// The thread; the root when left out.
    thread: Option<String>,
}

impl Errand for Condense {
    const NAME: &'static str = "condense";
    const TITLE: &'static str = "Show a summary in place of a span";
    const ABOUT: &'static str = "Show a summary in place of entries: yours, with span and text, or one that is written now. The entries stay in the journal; revert brings them back.";
    const EFFECT: Effect = Effect::Edit;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        // Half of the pair would make the verb look for the other half on standard input.
        if self.span.is_some() != self.text.is_some() {
            return Err(Fault::usage("span and text go together: give both, or neither"));
        }
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), None)?;
        let words = Words::of("condense").option("text", self.text).option("window", self.window);
        let words = words.word(address);
        desk.change(&self.span.into_iter().fold(words, Words::word).all())
    }
}

/// Makes the view fit.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Fit {
    /// Only say what would be done.
    dry_run: Option<bool>,
    /// First take back edits for which the window has room again.
    relax: Option<bool>,
    /// The model's window in tokens, in place of the session's own.
    #[schemars(range(min = 1))]
    window: Option<u32>,
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
    /// The thread; the root when left out.
    thread: Option<String>,
}

impl Errand for Fit {
    const NAME: &'static str = "fit";
    const TITLE: &'static str = "Make the view fit its window";
    const ABOUT: &'static str = "Make the view fit its window: trim old outputs, condense, truncate, as far as is needed. Says what was done and how to undo it.";
    const EFFECT: Effect = Effect::Settle;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), None)?;
        let words = Words::of("fit").flag("dry-run", self.dry_run).flag("relax", self.relax);
        desk.change(&words.option("window", self.window).word(address).all())
    }
}
