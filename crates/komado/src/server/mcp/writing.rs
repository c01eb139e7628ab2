//! Tools that write: words, pins, edits, and the way back.

use super::desk::{Desk, Words};
use super::tool::{Answer, Errand};
use crate::fault::Outcome;
use crate::server::Speaker;
use komado_ops::Effect;
use schemars::JsonSchema;
use serde::Deserialize;
use std::io::Write;

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
