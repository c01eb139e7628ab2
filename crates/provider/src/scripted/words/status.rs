//! What a provider says to a status that has no story behind it.

use super::{Refusal, Trouble, Words};
use crate::dialect::Dialect;

impl Words {
    /// An error of which only the status is known.
    pub(in crate::scripted) fn plain(self, dialect: Dialect, status: u16) -> Refusal {
        let code = match status {
            401 => Some("invalid_api_key"),
            429 => Some("rate_limit_exceeded"),
            _ => None,
        };
        self.refuse(dialect, &Trouble { status, message: message(status).into(), param: None, code })
    }

    /// There is nothing at this path, or not for this method.
    pub(in crate::scripted) fn nothing_here(self, dialect: Dialect, status: u16, asked: &str) -> Refusal {
        let message = match (self.to(dialect), status) {
            (Self::Anthropic, 404) => "Not Found".to_owned(),
            (Self::Ollama, 404) => "404 page not found".to_owned(),
            (Self::LlamaCpp, 404) => "File Not Found".to_owned(),
            (_, 404) => format!("Invalid URL ({asked})"),
            _ => format!("Not allowed to {asked}"),
        };
        let code = (status == 404).then_some("unknown_url");
        self.refuse(dialect, &Trouble { status, message, param: None, code })
    }

    /// The body is no JSON.
    pub(in crate::scripted) fn no_json(self, dialect: Dialect, why: &str) -> Refusal {
        let message = match self.to(dialect) {
            Self::OpenAi | Self::Groq => {
                format!(
                    "We could not parse the JSON body of your request. The API expects a JSON payload: {why}"
                )
            }
            Self::Anthropic => format!("The request body is not valid JSON: {why}"),
            Self::LlamaCpp => format!("[json.exception.parse_error.101] parse error: {why}"),
            Self::Vllm => format!("[{{'type': 'json_invalid', 'msg': 'JSON decode error: {why}'}}]"),
            Self::Gemini => format!("Invalid JSON payload received. {why}"),
            _ => why.to_owned(),
        };
        self.refuse(dialect, &Trouble::bad(message))
    }
}

fn message(status: u16) -> &'static str {
    match status {
        401 => "Incorrect API key provided.",
        403 => "You are not allowed to use this model.",
        404 => "The model does not exist or you do not have access to it.",
        408 => "Request timed out.",
        413 => "Request exceeds the maximum size",
        429 => "Rate limit reached for requests. Please try again later.",
        500 => "The server had an error while processing your request.",
        502 => "Bad gateway.",
        503 => "The server is currently unavailable. Please try again later.",
        504 => "Gateway time-out.",
        529 => "Overloaded",
        400..=499 => "The request was refused.",
        _ => "The server had an error.",
    }
}
