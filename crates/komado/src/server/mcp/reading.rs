//! Tools that read: what was said, what is seen, which sessions there are.

use super::desk::{Desk, Words};
use super::tool::{Answer, Errand};
use crate::fault::Outcome;
use komado_ops::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

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
