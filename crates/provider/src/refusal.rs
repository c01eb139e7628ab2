//! No, in the client's own words: an error as the API that it believes to speak to would write it.
//!
//! Clients act on a few words of an error and on nothing else. One that is told that its prompt is too long, in the words
//! it knows, shortens it; told the same in another API's words, it gives up. Nothing is made up here: a number that is
//! not known is not told.

use crate::dialect::Dialect;
use serde_json::{Value, json};

/// What OpenAI says of an overflow without numbers.
const EXCEEDS: &str =
    "Your input exceeds the context window of this model. Please adjust your input and try again.";

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RefusalKind {
    /// It does not fit the window.
    Overflow,
    /// We cannot do our part now.
    Unavailable,
    /// Too many requests, or too many at once.
    TooMany,
    /// No key, or an unknown one.
    Unauthorised,
    /// A key that may not.
    Forbidden,
    /// There is nothing here by that name.
    NotFound,
    /// Its body has more bytes than are taken.
    TooLong,
    /// It cannot be understood.
    BadRequest,
    /// The provider did not answer, or in a way that cannot be handed on.
    Upstream,
}

/// A refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiRefusal {
    /// The HTTP status; one that is not an error's is replaced by what is usual for its kind.
    pub status: u16,
    /// Why.
    pub kind: RefusalKind,
    /// What happened and what to do, for people. An overflow is told in the API's own words where it has some.
    pub message: String,
    /// For an overflow: the tokens that were sent.
    pub tokens: Option<u64>,
    /// For an overflow: the most that the model takes.
    pub limit: Option<u64>,
}

impl ApiRefusal {
    /// A refusal with a status, which says what kind it is.
    pub fn of(status: u16, message: impl Into<String>) -> Self {
        let kind = match status {
            401 => RefusalKind::Unauthorised,
            403 => RefusalKind::Forbidden,
            404 => RefusalKind::NotFound,
            413 => RefusalKind::TooLong,
            429 => RefusalKind::TooMany,
            400..500 => RefusalKind::BadRequest,
            503 | 507 => RefusalKind::Unavailable,
            _ => RefusalKind::Upstream,
        };
        Self { status, ..Self::new(kind, message) }
    }

    /// A refusal without numbers, with the status that is usual for it.
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { status: 0, kind, message: message.into(), tokens: None, limit: None }
    }

    /// The status it is sent with. A prompt that is too long is a bad request wherever it is one; some clients look at
    /// no other.
    fn status(&self, dialect: Dialect) -> u16 {
        match self.kind {
            RefusalKind::Overflow => 400,
            _ if (400..600).contains(&self.status) => self.status,
            RefusalKind::Unavailable if dialect == Dialect::Messages => 529,
            _ => self.usual().0,
        }
    }

    /// What OpenAI says, of which clients know one half or the other.
    fn openai_words(&self) -> String {
        match (self.kind, self.tokens, self.limit) {
            (RefusalKind::Overflow, Some(tokens), Some(limit)) => format!(
                "This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} \
                 tokens. Please reduce the length of the messages."
            ),
            (RefusalKind::Overflow, _, Some(limit)) => format!(
                "This model's maximum context length is {limit} tokens, and your input exceeds it. Please reduce the \
                 length of the messages."
            ),
            (RefusalKind::Overflow, ..) => EXCEEDS.into(),
            _ => self.message.clone(),
        }
    }

    /// What Anthropic says; clients read both numbers out of it.
    fn anthropic_words(&self) -> String {
        match (self.kind, self.tokens, self.limit) {
            (RefusalKind::Overflow, Some(tokens), Some(limit)) => {
                format!("prompt is too long: {tokens} tokens > {limit} maximum")
            }
            (RefusalKind::Overflow, _, Some(limit)) => {
                format!("prompt is too long: the maximum is {limit} tokens")
            }
            (RefusalKind::Overflow, ..) => "prompt is too long".into(),
            _ => self.message.clone(),
        }
    }

    fn ollama_words(&self) -> String {
        match self.kind {
            RefusalKind::Overflow => format!("input exceeds the context length: {}", self.anthropic_words()),
            _ => self.message.clone(),
        }
    }

    /// The status that is usual for it, its type and code as OpenAI names them, and its type as Anthropic names it.
    const fn usual(&self) -> (u16, &'static str, &'static str, &'static str) {
        let bad = "invalid_request_error";
        match self.kind {
            RefusalKind::Overflow => (400, bad, "context_length_exceeded", bad),
            RefusalKind::Unavailable => (503, "server_error", "service_unavailable", "overloaded_error"),
            RefusalKind::TooMany => (429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error"),
            RefusalKind::Unauthorised => (401, bad, "invalid_api_key", "authentication_error"),
            RefusalKind::Forbidden => (403, "permission_error", "permission_denied", "permission_error"),
            RefusalKind::NotFound => (404, "not_found_error", "not_found", "not_found_error"),
            RefusalKind::TooLong => (413, bad, "request_too_large", "request_too_large"),
            RefusalKind::BadRequest => (400, bad, "invalid_request", bad),
            RefusalKind::Upstream => (502, "server_error", "server_error", "api_error"),
        }
    }

    fn openai(&self, list: &str) -> Value {
        let (_, kind, code, _) = self.usual();
        let param = if self.kind == RefusalKind::Overflow { json!(list) } else { Value::Null };
        json!({ "error": { "message": self.openai_words(), "type": kind, "param": param, "code": code } })
    }

    fn anthropic(&self) -> Value {
        let error = json!({ "type": self.usual().3, "message": self.anthropic_words() });
        json!({ "type": "error", "error": error })
    }

    /// A response that failed. Its id is of no use.
    fn failed(&self) -> Value {
        let error = json!({ "code": self.usual().2, "message": self.openai_words() });
        let response = json!({
            "id": "resp_refused", "object": "response", "created_at": 0, "status": "failed", "error": error,
            "incomplete_details": null, "instructions": null, "metadata": {}, "model": "", "output": [],
            "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "usage": null,
        });
        json!({ "type": "response.failed", "sequence_number": 0, "response": response })
    }
}

impl Dialect {
    /// Status and body of a refusal.
    pub fn refusal(self, refusal: &ApiRefusal) -> (u16, Vec<u8>) {
        let body = match self {
            Self::Chat => refusal.openai("messages"),
            Self::Responses => refusal.openai("input"),
            Self::Messages => refusal.anthropic(),
            Self::Ollama => json!({ "error": refusal.ollama_words() }),
        };
        (refusal.status(self), body.to_string().into_bytes())
    }

    /// The same inside a stream, where the status is said already: the last thing that is said in it.
    pub fn refusal_event(self, refusal: &ApiRefusal) -> Vec<u8> {
        match self {
            Self::Chat => format!("data: {}\n\n", refusal.openai("messages")),
            Self::Responses => format!("event: response.failed\ndata: {}\n\n", refusal.failed()),
            Self::Messages => format!("event: error\ndata: {}\n\n", refusal.anthropic()),
            Self::Ollama => format!("{}\n", json!({ "error": refusal.ollama_words() })),
        }
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::ResponseForm;
    use crate::event::ModelEvent;
    use crate::overflow;

    fn overflowing() -> ApiRefusal {
        let (tokens, limit) = (Some(210_000), Some(200_000));
        ApiRefusal { tokens, limit, ..ApiRefusal::new(RefusalKind::Overflow, "長すぎる") }
    }

    #[test]
    fn an_overflow_is_told_in_the_words_that_clients_know() {
        let body = |dialect: Dialect| String::from_utf8(dialect.refusal(&overflowing()).1).unwrap();
        for dialect in [Dialect::Chat, Dialect::Responses] {
            let value: Value = serde_json::from_str(&body(dialect)).unwrap();
            assert_eq!(value["error"]["code"], "context_length_exceeded");
        }
        assert!(body(Dialect::Messages).contains("prompt is too long: 210000 tokens > 200000 maximum"));
        let event = String::from_utf8(Dialect::Responses.refusal_event(&overflowing())).unwrap();
        let data = event.strip_prefix("event: response.failed\ndata: ").unwrap();
        let value: Value = serde_json::from_str(data).unwrap();
        assert_eq!(value["response"]["error"]["code"], "context_length_exceeded");
    }

    #[test]
    fn what_we_say_we_would_understand_with_and_without_numbers() {
        for dialect in Dialect::ALL {
            let (status, body) = dialect.refusal(&overflowing());
            let verdict = overflow::classify(status, &String::from_utf8(body).unwrap());
            assert!(verdict.overflow, "{dialect:?}: {}", verdict.why);
            assert_eq!((verdict.actual, verdict.limit), (Some(210_000), Some(200_000)), "{dialect:?}");
            for limit in [None, Some(8192)] {
                let bare = ApiRefusal { tokens: None, limit, ..overflowing() };
                let (status, body) = dialect.refusal(&bare);
                let verdict = overflow::classify(status, &String::from_utf8(body).unwrap());
                assert!(verdict.overflow && verdict.limit == limit, "{dialect:?}: {verdict:?}");
            }
        }
    }

    #[test]
    fn a_refusal_inside_a_stream_is_heard_as_one_by_each_dialect() {
        for dialect in Dialect::ALL {
            let (mut decoder, mut events) = (dialect.decoder(ResponseForm::Stream), Vec::new());
            decoder.push(&dialect.refusal_event(&overflowing()), &mut |event| events.push(event));
            decoder.end(&mut |event| events.push(event));
            let failed = events.iter().find_map(|event| match event {
                ModelEvent::Failed(failed) => Some(failed),
                _ => None,
            });
            let failed = failed.unwrap_or_else(|| panic!("{dialect:?}: {events:?}"));
            assert!(overflow::classify(failed.status, &failed.body).overflow, "{dialect:?}");
        }
    }

    #[test]
    fn no_other_refusal_is_taken_for_an_overflow_and_each_has_its_status() {
        let kinds = [
            (RefusalKind::Unavailable, 503),
            (RefusalKind::TooMany, 429),
            (RefusalKind::Unauthorised, 401),
            (RefusalKind::BadRequest, 400),
            (RefusalKind::Upstream, 502),
        ];
        for dialect in Dialect::ALL {
            for (kind, usual) in kinds {
                let refusal = ApiRefusal::new(kind, "the journal cannot be written; free some room: /x");
                let (status, body) = dialect.refusal(&refusal);
                let usual = if dialect == Dialect::Messages && usual == 503 { 529 } else { usual };
                assert_eq!(status, usual, "{dialect:?} {kind:?}");
                let body = String::from_utf8(body).unwrap();
                assert!(
                    body.contains("free some room") && !overflow::classify(status, &body).overflow,
                    "{body}"
                );
                assert_eq!(dialect.refusal(&ApiRefusal { status: 418, ..refusal }).0, 418);
            }
        }
    }
}
