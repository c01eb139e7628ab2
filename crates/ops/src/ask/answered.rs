//! The answer to a question.

use crate::window::{MadeEdit, Recut};
use crate::{Exit, Fault, Outcome};
use komado_core::Seq;
use komado_core::journal::Usage;
use komado_core::message::{Call, Message};
use komado_engine::engine::Found;
use komado_engine::exchange::Conversed;
use komado_engine::lesson::Window;
use schemars::JsonSchema;
use serde::Serialize;

/// What a model answered.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Answered {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The answer's entry.
    pub seq: Seq,
    /// Its words.
    pub text: String,
    /// Calls that wait for a result.
    pub calls: Vec<AskedCall>,
    /// The model that answered, as it calls itself.
    pub model: Option<String>,
    /// What it took, as the provider says.
    pub usage: Option<Usage>,
    /// Why it stopped.
    pub finish: String,
    /// The words with which it declines, beside the answer.
    pub refusal: Option<String>,
    /// Tokens of the view now.
    pub tokens: u64,
    /// The model's window in its own tokens.
    pub window: u64,
    /// Where that is known from: given, learned, probed or listed.
    pub window_from: &'static str,
    /// Turns that it took.
    pub turns: u32,
    /// Requests that were sent.
    pub attempts: u32,
    /// Edits that were made to fit.
    pub edits: Vec<MadeEdit>,
    /// What is seen of the threads above, where it was cut anew.
    pub slices: Vec<Recut>,
    /// True when no model said it: the request stayed too large to the end.
    pub ours: bool,
    /// True when the model did not stop calling tools, and was not asked again.
    #[serde(skip)]
    pub gave_up: bool,
}

/// A call that waits for a result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct AskedCall {
    /// The call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
}

impl From<Call> for AskedCall {
    fn from(Call { id, name, arguments, .. }: Call) -> Self {
        Self { id, name, arguments }
    }
}

/// What was done to the view while a question was answered.
#[derive(Default)]
pub(super) struct Edits {
    pub(super) edits: Vec<MadeEdit>,
    pub(super) slices: Vec<Recut>,
    /// Tokens of the view once all was said.
    pub(super) tokens: u64,
}

impl Answered {
    pub(super) fn of(found: &Found, window: Window, conversed: Conversed, done: Edits) -> Self {
        let Conversed { turned, turns, attempts, open, gave_up } = conversed;
        Self {
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            seq: turned.seq,
            text: turned.message.words(),
            calls: open.into_iter().map(Into::into).collect(),
            model: turned.reply.model,
            usage: turned.reply.usage,
            finish: turned.reply.finish,
            refusal: refusal(&turned.message),
            tokens: done.tokens,
            window: window.tokens,
            window_from: window.told.name(),
            turns,
            attempts,
            edits: done.edits,
            slices: done.slices,
            ours: turned.is_ours,
            gave_up,
        }
    }

    /// True when the model neither said nor called anything.
    pub fn is_silent(&self) -> bool {
        self.text.trim().is_empty() && self.calls.is_empty() && !self.gave_up
    }

    /// Refuses an answer that says nothing because the model did not stop calling tools.
    pub fn check(&self) -> Outcome {
        match self.gave_up {
            false => Ok(()),
            true => Err(Fault::new(
                Exit::Failed,
                format!("the model called tools for {} turns and said nothing", self.turns),
            )),
        }
    }
}

/// The words with which a model of OpenAI declines; they stand beside the answer.
fn refusal(message: &Message) -> Option<String> {
    let extra: serde_json::Value = serde_json::from_str(message.extra.as_ref()?.json.get()).ok()?;
    extra.get("refusal")?.as_str().map(str::to_owned)
}
