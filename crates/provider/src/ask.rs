//! What is asked of a model, beside the messages themselves.

use komado_core::journal::Setup;
use komado_core::message::Message;

/// Everything in a request that is not a message of the conversation.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The model.
    pub model: &'a str,
    /// System prompt, tools and parameters.
    pub setup: &'a Setup,
    /// The longest answer wanted; over the one in the parameters.
    pub max_tokens: Option<u64>,
    /// True when the answer should come in pieces.
    pub stream: bool,
    /// The window to ask for, where a dialect lets one choose (Ollama's `num_ctx`).
    pub window: Option<u64>,
    /// Whether the model may call tools.
    pub tools: Tools,
    /// True when the server refuses fields that are not its own.
    pub is_strict: bool,
    /// True when neighbouring texts of the user are to be one message: some models' templates refuse two.
    pub joins: bool,
}

/// Whether the model may call tools.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tools {
    /// As the setup says.
    #[default]
    AsSetUp,
    /// They are named, so that the prompt is the one the provider has cached, but none may be called.
    NamedOnly,
}

/// A request, read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The model asked.
    pub model: String,
    /// System prompt, tools and every parameter that is not named here, in the dialect's own form.
    pub setup: Setup,
    /// The conversation. A system prompt that leads it is in `setup`, not here.
    pub messages: Vec<Message>,
    /// The longest answer wanted.
    pub max_tokens: Option<u64>,
    /// True when the answer should come in pieces.
    pub stream: bool,
}

/// Why a request cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub struct BadRequest {
    /// Where, such as `messages[3]`.
    pub place: String,
    /// What is wrong there.
    pub why: String,
}

impl BadRequest {
    /// Something is wrong at `place`.
    pub fn new(place: impl Into<String>, why: impl ToString) -> Self {
        Self { place: place.into(), why: why.to_string() }
    }
}
