//! Asking a model: a conversation in a thread, one question after the other.
//!
//! What is said while a question is answered goes to a [`Listener`]: words as they come, edits that were made to fit, and what
//! went wrong on the way. The answer itself is the result. A question that brings no answer is kept like any other.

mod answered;
mod conversation;
mod listener;

pub use answered::{Answered, AskedCall};
pub use conversation::{Beginning, Conversation};
pub use listener::{Listener, Silent};

use crate::address::Target;
use crate::choice::ModelArgs;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// Ask a model one question in a session, or in a new one.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Ask {
    /// The session or its address; a new one when left out.
    pub session: Option<String>,
    /// The thread; the root when left out.
    pub thread: Option<String>,
    /// The question; left out: ask once more without saying anything new.
    pub question: Option<String>,
    /// What stands before a new conversation.
    #[serde(flatten)]
    pub beginning: Beginning,
    /// The model that is asked.
    #[serde(skip)]
    pub model: ModelArgs,
}

impl Ask {
    /// Asks, while `listener` hears what happens.
    pub fn hear(self, context: &Context, listener: &mut dyn Listener) -> Outcome<Answered> {
        let Self { session, thread, question, beginning, model } = self;
        let at = session.map(|session| Target { session: Some(session), thread, seq: None });
        let conversation = Conversation::open(context, at, model.into(), beginning)?;
        conversation.ask(context, question, listener)
    }
}

impl Operation for Ask {
    const NAME: &'static str = "ask";
    const TITLE: &'static str = "Ask a model";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces =
        Interfaces::only_cli("ask", "the gateway serves models over HTTP, streamed, and counts them by key")
            .not_mcp("a client of MCP is asked by a model of its own");
    type Output = Answered;

    fn run(self, context: &Context) -> Outcome<Answered> {
        let answered = self.hear(context, &mut Silent)?;
        answered.check().map(|()| answered)
    }
}
