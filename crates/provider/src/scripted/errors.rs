//! Whose words an error has: the same trouble, said as each provider says it.
//!
//! Status, shape and wording follow the real ones, because clients read them: by a code, by a type, by numbers in a
//! sentence. Numbers are always those of the request at hand.

use crate::dialect::Dialect;
use serde_json::{Value, json};

/// The provider whose error texts are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum ErrorStyle {
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
    ErrorStyle {
        ByDialect = "dialect", OpenAi = "openai", Anthropic = "anthropic", Ollama = "ollama",
        LlamaCpp = "llamacpp", Vllm = "vllm", LmStudio = "lmstudio", OpenRouter = "openrouter",
        Gemini = "gemini", Mistral = "mistral", Groq = "groq", Bedrock = "bedrock",
    }
}

impl ErrorStyle {
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
pub(super) struct HttpRefusal {
    pub(super) status: u16,
    pub(super) body: String,
    pub(super) retry_after: Option<u64>,
}

impl HttpRefusal {
    pub(super) fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, body: body.into(), retry_after: None }
    }
}

// A request that is too large, in the words of each provider.

/// By how much a request is too large.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::scripted) struct OverflowFigures {
    /// Tokens of the request.
    pub(in crate::scripted) prompt: u64,
    /// The longest answer asked for.
    pub(in crate::scripted) answer: Option<u64>,
    /// Tokens of the window.
    pub(in crate::scripted) window: u64,
}

impl ErrorStyle {
    /// `None` when the request fits.
    pub(in crate::scripted) fn too_large(
        self,
        dialect: Dialect,
        prompt: u64,
        answer: Option<u64>,
        window: u64,
    ) -> Option<OverflowFigures> {
        let answer = answer.filter(|_| self.counts_answer(dialect));
        let least = u64::from(self.wants_room(dialect));
        let over = prompt.saturating_add(answer.unwrap_or(0).max(least)) > window;
        over.then_some(OverflowFigures { prompt, answer, window })
    }

    /// The error that says so.
    pub(in crate::scripted) fn overflow(self, dialect: Dialect, over: &OverflowFigures) -> HttpRefusal {
        let who = self.to(dialect);
        let message = said(who, dialect, over);
        if who == Self::LlamaCpp {
            let body = json!({ "error": {
                "code": 400, "message": message, "type": "exceed_context_size_error",
                "n_prompt_tokens": over.prompt, "n_ctx": over.window
            } });
            return HttpRefusal::new(400, body.to_string());
        }
        let param = match (who, dialect) {
            (Self::OpenAi, Dialect::Responses) => Some("input"),
            (Self::OpenAi | Self::Groq, _) => Some("messages"),
            (Self::Vllm, _) => Some("input_tokens"),
            _ => None,
        };
        let code = match who {
            Self::OpenAi | Self::Groq => Some("context_length_exceeded"),
            Self::Mistral => Some("3051"),
            _ => None,
        };
        self.refuse(dialect, &RequestTrouble { status: 400, message, param: param.map(str::to_owned), code })
    }
}

fn said(who: ErrorStyle, dialect: Dialect, over: &OverflowFigures) -> String {
    let OverflowFigures { prompt, answer, window } = *over;
    let sum = prompt.saturating_add(answer.unwrap_or(0));
    match who {
        ErrorStyle::OpenAi | ErrorStyle::ByDialect => openai(dialect, over),
        ErrorStyle::Anthropic => match answer {
            Some(answer) if prompt <= window => format!(
                "input length and `max_tokens` exceed context limit: {prompt} + {answer} > {window}, decrease input \
                 length or `max_tokens` and try again"
            ),
            _ => format!("prompt is too long: {prompt} tokens > {window} maximum"),
        },
        ErrorStyle::Ollama => "the prompt is longer than the context length currently available to the model; shorten the \
                          prompt, adjust the context length in settings, or use a model with a longer context length"
            .to_owned(),
        ErrorStyle::LlamaCpp => {
            format!("request ({prompt} tokens) exceeds the available context size ({window} tokens), try increasing it")
        }
        ErrorStyle::Vllm => match answer {
            Some(answer) => format!(
                "This model's maximum context length is {window} tokens. However, you requested {answer} output tokens \
                 and your prompt contains at least {prompt} input tokens, for a total of at least {sum} tokens. Please \
                 reduce the length of the input prompt or the number of requested output tokens."
            ),
            None => format!(
                "This model's maximum context length is {window} tokens. However, your request has {prompt} input \
                 tokens. Please reduce the length of the input messages."
            ),
        },
        ErrorStyle::LmStudio => format!(
            "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: {prompt}>= \
             n_ctx: {window}). Try to load the model with a larger context length, or provide a shorter input."
        ),
        ErrorStyle::OpenRouter => format!(
            "This endpoint's maximum context length is {window} tokens. However, you requested about {sum} tokens \
             ({prompt} of text input, {} in the output). Please reduce the length of either one, or use the \
             \"middle-out\" transform to compress your prompt automatically.",
            answer.unwrap_or(0)
        ),
        ErrorStyle::Gemini => format!(
            "The input token count ({prompt}) exceeds the maximum number of tokens allowed ({window})."
        ),
        ErrorStyle::Mistral => format!(
            "Prompt contains {prompt} tokens and 0 draft tokens, too large for model with {window} maximum context length"
        ),
        ErrorStyle::Groq => "Please reduce the length of the messages or completion.".to_owned(),
        ErrorStyle::Bedrock => "Input is too long for requested model.".to_owned(),
    }
}

fn openai(dialect: Dialect, over: &OverflowFigures) -> String {
    let OverflowFigures { prompt, answer, window } = *over;
    if dialect == Dialect::Responses {
        return "Your input exceeds the context window of this model. Please adjust your input and try again.".into();
    }
    let most = format!("This model's maximum context length is {window} tokens.");
    match answer {
        Some(answer) => format!(
            "{most} However, you requested {} tokens ({prompt} in the messages, {answer} in the completion). Please \
             reduce the length of the messages or completion.",
            prompt.saturating_add(answer)
        ),
        None => format!(
            "{most} However, your messages resulted in {prompt} tokens. Please reduce the length of the messages."
        ),
    }
}

// The JSON around an error's words.

/// What is wrong with a request, before anyone's words are put around it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::scripted) struct RequestTrouble {
    pub(in crate::scripted) status: u16,
    pub(in crate::scripted) message: String,
    /// Which field is to blame, as OpenAI tells it.
    pub(in crate::scripted) param: Option<String>,
    /// A word for programs.
    pub(in crate::scripted) code: Option<&'static str>,
}

impl RequestTrouble {
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

impl ErrorStyle {
    /// The error as a client of `dialect` receives it.
    pub(in crate::scripted) fn refuse(self, dialect: Dialect, trouble: &RequestTrouble) -> HttpRefusal {
        let body = self.shape(dialect, trouble);
        HttpRefusal::new(trouble.status, body.to_string())
    }

    fn shape(self, dialect: Dialect, trouble: &RequestTrouble) -> Value {
        let RequestTrouble { status, message, param, code } = trouble;
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
fn kind(who: ErrorStyle, status: u16) -> &'static str {
    match (who, status) {
        (ErrorStyle::OpenAi | ErrorStyle::Groq | ErrorStyle::ByDialect, 401 | 403) => "authentication_error",
        (ErrorStyle::OpenAi | ErrorStyle::Groq | ErrorStyle::ByDialect, 429) => "requests",
        (ErrorStyle::OpenAi | ErrorStyle::Groq | ErrorStyle::ByDialect, 400..=499) => "invalid_request_error",
        (ErrorStyle::OpenAi | ErrorStyle::Groq | ErrorStyle::ByDialect, _) => "server_error",
        (ErrorStyle::Anthropic, 401) => "authentication_error",
        (ErrorStyle::Anthropic, 403) => "permission_error",
        (ErrorStyle::Anthropic, 404) => "not_found_error",
        (ErrorStyle::Anthropic, 413) => "request_too_large",
        (ErrorStyle::Anthropic, 429) => "rate_limit_error",
        (ErrorStyle::Anthropic, 400..=499) => "invalid_request_error",
        (ErrorStyle::Anthropic, 529) => "overloaded_error",
        (ErrorStyle::Anthropic, _) => "api_error",
        (ErrorStyle::LlamaCpp, 401) => "authentication_error",
        (ErrorStyle::LlamaCpp, 403) => "permission_error",
        (ErrorStyle::LlamaCpp, 404) => "not_found_error",
        (ErrorStyle::LlamaCpp, 400..=499) => "invalid_request_error",
        (ErrorStyle::LlamaCpp, 503) => "unavailable_error",
        (ErrorStyle::LlamaCpp, _) => "server_error",
        (ErrorStyle::Vllm, 401) => "AuthenticationError",
        (ErrorStyle::Vllm, 404) => "NotFoundError",
        (ErrorStyle::Vllm, 400..=499) => "BadRequestError",
        (ErrorStyle::Vllm, _) => "InternalServerError",
        (ErrorStyle::Gemini, 401) => "UNAUTHENTICATED",
        (ErrorStyle::Gemini, 403) => "PERMISSION_DENIED",
        (ErrorStyle::Gemini, 404) => "NOT_FOUND",
        (ErrorStyle::Gemini, 429) => "RESOURCE_EXHAUSTED",
        (ErrorStyle::Gemini, 400..=499) => "INVALID_ARGUMENT",
        (ErrorStyle::Gemini, 503) => "UNAVAILABLE",
        (ErrorStyle::Gemini, _) => "INTERNAL",
        (ErrorStyle::Mistral, 401 | 403) => "unauthorized",
        (ErrorStyle::Mistral, 429) => "rate_limited",
        (ErrorStyle::Mistral, 400..=499) => "invalid_request_error",
        (ErrorStyle::Mistral, _) => "internal_server_error",
        _ => "",
    }
}

// What a provider says to a status that has no story behind it.

impl ErrorStyle {
    /// An error of which only the status is known.
    pub(in crate::scripted) fn plain(self, dialect: Dialect, status: u16) -> HttpRefusal {
        let code = match status {
            401 => Some("invalid_api_key"),
            429 => Some("rate_limit_exceeded"),
            _ => None,
        };
        self.refuse(dialect, &RequestTrouble { status, message: message(status).into(), param: None, code })
    }

    /// There is nothing at this path, or not for this method.
    pub(in crate::scripted) fn nothing_here(self, dialect: Dialect, status: u16, asked: &str) -> HttpRefusal {
        let message = match (self.to(dialect), status) {
            (Self::Anthropic, 404) => "Not Found".to_owned(),
            (Self::Ollama, 404) => "404 page not found".to_owned(),
            (Self::LlamaCpp, 404) => "File Not Found".to_owned(),
            (_, 404) => format!("Invalid URL ({asked})"),
            _ => format!("Not allowed to {asked}"),
        };
        let code = (status == 404).then_some("unknown_url");
        self.refuse(dialect, &RequestTrouble { status, message, param: None, code })
    }

    /// The body is not JSON.
    pub(in crate::scripted) fn no_json(self, dialect: Dialect, why: &str) -> HttpRefusal {
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
        self.refuse(dialect, &RequestTrouble::bad(message))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_says_it_in_its_own_words_and_with_the_numbers_it_tells() {
        for (words, dialect, told) in [
            (
                ErrorStyle::ByDialect,
                Dialect::Chat,
                &["context_length_exceeded", "maximum context length is 100", "150 tokens (90"][..],
            ),
            (
                ErrorStyle::ByDialect,
                Dialect::Responses,
                &["context_length_exceeded", "exceeds the context window"],
            ),
            (ErrorStyle::ByDialect, Dialect::Messages, &["invalid_request_error", "90 + 60 > 100"]),
            (ErrorStyle::ByDialect, Dialect::Ollama, &[r#"{"error":"the prompt is longer"#]),
            (
                ErrorStyle::LlamaCpp,
                Dialect::Messages,
                &["exceed_context_size_error", "\"n_ctx\":100", "\"n_prompt_tokens\":90"],
            ),
            (ErrorStyle::Vllm, Dialect::Chat, &["BadRequestError", "60 output tokens", "\"code\":400"]),
            (ErrorStyle::LmStudio, Dialect::Chat, &[r#"{"error":"The number"#, "n_keep: 90>= n_ctx: 100"]),
            (ErrorStyle::OpenRouter, Dialect::Chat, &["about 150 tokens", "90 of text input"]),
            (ErrorStyle::Gemini, Dialect::Chat, &["[{", "INVALID_ARGUMENT", "(90)", "(100)"]),
            (ErrorStyle::Mistral, Dialect::Chat, &["3051", "90 tokens"]),
            (ErrorStyle::Groq, Dialect::Chat, &["context_length_exceeded"]),
            (ErrorStyle::Bedrock, Dialect::Messages, &["Input is too long"]),
        ] {
            let refusal =
                words.overflow(dialect, &OverflowFigures { prompt: 90, answer: Some(60), window: 100 });
            assert_eq!(refusal.status, 400);
            for part in told {
                assert!(refusal.body.contains(part), "{words:?} {dialect:?}: {part}: {}", refusal.body);
            }
        }
    }

    #[test]
    fn the_boundary_is_exact_and_the_answer_counts_where_it_does() {
        let fits = |words: ErrorStyle, dialect, prompt, answer| {
            words.too_large(dialect, prompt, answer, 100).is_none()
        };
        let chat = Dialect::Chat;
        assert!(fits(ErrorStyle::OpenAi, chat, 100, None) && !fits(ErrorStyle::OpenAi, chat, 101, None));
        assert!(
            fits(ErrorStyle::OpenAi, chat, 60, Some(40)) && !fits(ErrorStyle::OpenAi, chat, 60, Some(41))
        );
        assert!(fits(ErrorStyle::OpenAi, Dialect::Responses, 60, Some(41)));
        assert!(
            fits(ErrorStyle::LlamaCpp, chat, 99, Some(500)) && !fits(ErrorStyle::LlamaCpp, chat, 100, None)
        );
        assert!(
            fits(ErrorStyle::Ollama, Dialect::Ollama, 100, Some(500))
                && !fits(ErrorStyle::Ollama, Dialect::Ollama, 101, None)
        );
        assert!(!fits(ErrorStyle::ByDialect, Dialect::Messages, 1, Some(u64::MAX)), "no sum runs over");
    }
}
