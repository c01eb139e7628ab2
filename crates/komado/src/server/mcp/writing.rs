//! Tools that write: words, pins, edits, and the way back.

use super::desk::{Desk, Words};
use super::tool::{Answer, Errand};
use crate::fault::{Fault, Outcome};
use komado_ops::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

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
