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
        match self.to(dialect) {
            Self::OpenAi | Self::Groq | Self::ByDialect => json!({
                "error": { "message": message, "type": openai_type(*status), "param": param, "code": code }
            }),
            Self::Anthropic => json!({
                "type": "error",
                "error": { "type": anthropic_type(*status), "message": message },
                "request_id": "req_scripted"
            }),
            Self::Ollama | Self::LmStudio => json!({ "error": message }),
            Self::LlamaCpp => json!({
                "error": { "code": status, "message": message, "type": llama_type(*status) }
            }),
            Self::Vllm => json!({
                "error": { "message": message, "type": vllm_type(*status), "param": param, "code": status }
            }),
            Self::OpenRouter => json!({ "error": { "message": message, "code": status } }),
            Self::Gemini => json!([{
                "error": { "code": status, "message": message, "status": gemini_status(*status) }
            }]),
            Self::Mistral => json!({
                "object": "error", "message": message, "type": mistral_type(*status), "param": param, "code": code
            }),
            Self::Bedrock => json!({ "message": message }),
        }
    }
}

fn openai_type(status: u16) -> &'static str {
    match status {
        401 | 403 => "authentication_error",
        429 => "requests",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        529 => "overloaded_error",
        _ => "api_error",
    }
}

fn llama_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        400..=499 => "invalid_request_error",
        503 => "unavailable_error",
        _ => "server_error",
    }
}

fn vllm_type(status: u16) -> &'static str {
    match status {
        401 => "AuthenticationError",
        404 => "NotFoundError",
        400..=499 => "BadRequestError",
        _ => "InternalServerError",
    }
}

fn gemini_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        400..=499 => "INVALID_ARGUMENT",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}

fn mistral_type(status: u16) -> &'static str {
    match status {
        401 | 403 => "unauthorized",
        429 => "rate_limited",
        400..=499 => "invalid_request_error",
        _ => "internal_server_error",
    }
}
