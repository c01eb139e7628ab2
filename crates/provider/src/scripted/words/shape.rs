//! The JSON around an error's words.

use super::{Refusal, Words};
use crate::dialect::Dialect;
use serde_json::{Value, json};

/// What is wrong with a request, before anyone's words are put around it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::scripted) struct Trouble {
    pub(in crate::scripted) status: u16,
    pub(in crate::scripted) message: String,
    /// Which field is to blame, as OpenAI tells it.
    pub(in crate::scripted) param: Option<String>,
    /// A word for programs.
    pub(in crate::scripted) code: Option<&'static str>,
}

impl Trouble {
    /// A request that is wrong in itself.
    pub(in crate::scripted) fn bad(message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into(), param: None, code: None }
    }

    /// The same, at a field.
    pub(in crate::scripted) fn at(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }
}

impl Words {
    /// The error as a client of `dialect` receives it.
    pub(in crate::scripted) fn refuse(self, dialect: Dialect, trouble: &Trouble) -> Refusal {
        let body = self.shape(dialect, trouble);
        Refusal::new(trouble.status, body.to_string())
    }

    fn shape(self, dialect: Dialect, trouble: &Trouble) -> Value {
        let Trouble { status, message, param, code } = trouble;
        let who = self.to(dialect);
        match who {
            Self::OpenAi | Self::Groq | Self::ByDialect => json!({
                "error": { "message": message, "type": kind(who, *status), "param": param, "code": code }
            }),
            Self::Anthropic => json!({
                "type": "error",
                "error": { "type": kind(who, *status), "message": message },
                "request_id": "req_scripted"
            }),
            Self::Ollama | Self::LmStudio => json!({ "error": message }),
            Self::LlamaCpp => json!({
                "error": { "code": status, "message": message, "type": kind(who, *status) }
            }),
            Self::Vllm => json!({
                "error": { "message": message, "type": kind(who, *status), "param": param, "code": status }
            }),
            Self::OpenRouter => json!({ "error": { "message": message, "code": status } }),
            Self::Gemini => json!([{
                "error": { "code": status, "message": message, "status": kind(who, *status) }
            }]),
            Self::Mistral => json!({
                "object": "error", "message": message, "type": kind(who, *status), "param": param, "code": code
            }),
            Self::Bedrock => json!({ "message": message }),
        }
    }
}

/// The word for a status, as `who` says it to programs.
fn kind(who: Words, status: u16) -> &'static str {
    match (who, status) {
        (Words::OpenAi | Words::Groq | Words::ByDialect, 401 | 403) => "authentication_error",
        (Words::OpenAi | Words::Groq | Words::ByDialect, 429) => "requests",
        (Words::OpenAi | Words::Groq | Words::ByDialect, 400..=499) => "invalid_request_error",
        (Words::OpenAi | Words::Groq | Words::ByDialect, _) => "server_error",
        (Words::Anthropic, 401) => "authentication_error",
        (Words::Anthropic, 403) => "permission_error",
        (Words::Anthropic, 404) => "not_found_error",
        (Words::Anthropic, 413) => "request_too_large",
        (Words::Anthropic, 429) => "rate_limit_error",
        (Words::Anthropic, 400..=499) => "invalid_request_error",
        (Words::Anthropic, 529) => "overloaded_error",
        (Words::Anthropic, _) => "api_error",
        (Words::LlamaCpp, 401) => "authentication_error",
        (Words::LlamaCpp, 403) => "permission_error",
        (Words::LlamaCpp, 404) => "not_found_error",
        (Words::LlamaCpp, 400..=499) => "invalid_request_error",
        (Words::LlamaCpp, 503) => "unavailable_error",
        (Words::LlamaCpp, _) => "server_error",
        (Words::Vllm, 401) => "AuthenticationError",
        (Words::Vllm, 404) => "NotFoundError",
        (Words::Vllm, 400..=499) => "BadRequestError",
        (Words::Vllm, _) => "InternalServerError",
        (Words::Gemini, 401) => "UNAUTHENTICATED",
        (Words::Gemini, 403) => "PERMISSION_DENIED",
        (Words::Gemini, 404) => "NOT_FOUND",
        (Words::Gemini, 429) => "RESOURCE_EXHAUSTED",
        (Words::Gemini, 400..=499) => "INVALID_ARGUMENT",
        (Words::Gemini, 503) => "UNAVAILABLE",
        (Words::Gemini, _) => "INTERNAL",
        (Words::Mistral, 401 | 403) => "unauthorized",
        (Words::Mistral, 429) => "rate_limited",
        (Words::Mistral, 400..=499) => "invalid_request_error",
        (Words::Mistral, _) => "internal_server_error",
        _ => "",
    }
}
