//! Whose words an error has: the same trouble, said as each provider says it.
//!
//! Status, shape and wording follow the real ones, because clients read them: by a code, by a type, by numbers in a
//! sentence. Numbers are always those of the request at hand.

mod overflow;
mod shape;
mod status;

pub(super) use overflow::Overflow;
pub(super) use shape::Trouble;

use crate::dialect::Dialect;

/// Whose words errors have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Words {
    /// Those of the dialect that is spoken: OpenAI, Anthropic or Ollama.
    #[default]
    ByDialect,
    /// OpenAI.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Ollama.
    Ollama,
    /// The server of llama.cpp; in the same shape on every path.
    LlamaCpp,
    /// vLLM.
    Vllm,
    /// LM Studio.
    LmStudio,
    /// OpenRouter.
    OpenRouter,
    /// Gemini, at its OpenAI-compatible address.
    Gemini,
    /// Mistral.
    Mistral,
    /// Groq.
    Groq,
    /// Bedrock.
    Bedrock,
}

komado_core::names! {
    /// The name on the command line.
    Words {
        ByDialect = "dialect", OpenAi = "openai", Anthropic = "anthropic", Ollama = "ollama",
        LlamaCpp = "llamacpp", Vllm = "vllm", LmStudio = "lmstudio", OpenRouter = "openrouter",
        Gemini = "gemini", Mistral = "mistral", Groq = "groq", Bedrock = "bedrock",
    }
}

impl Words {
    /// Who speaks to a client of `dialect`; never [`Words::ByDialect`].
    pub(super) const fn to(self, dialect: Dialect) -> Self {
        match (self, dialect) {
            (Self::ByDialect, Dialect::Chat | Dialect::Responses) => Self::OpenAi,
            (Self::ByDialect, Dialect::Messages) => Self::Anthropic,
            (Self::ByDialect, Dialect::Ollama) => Self::Ollama,
            (own, _) => own,
        }
    }

    /// True when the answer asked for counts against the window before it is written.
    pub(super) const fn counts_answer(self, dialect: Dialect) -> bool {
        match self.to(dialect) {
            Self::OpenAi => !matches!(dialect, Dialect::Responses),
            Self::Anthropic | Self::Vllm | Self::OpenRouter | Self::Groq => true,
            _ => false,
        }
    }

    /// True when a prompt that just fills the window is already too large: something must be written, too.
    pub(super) const fn wants_room(self, dialect: Dialect) -> bool {
        matches!(self.to(dialect), Self::LlamaCpp | Self::LmStudio)
    }
}

/// An error, ready to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) body: String,
    pub(super) retry_after: Option<u64>,
}

impl Refusal {
    pub(super) fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, body: body.into(), retry_after: None }
    }
}
