//! A request that is too large, in the words of each provider.

use super::{Refusal, Trouble, Words};
use crate::dialect::Dialect;
use serde_json::json;

/// By how much a request is too large.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::scripted) struct Overflow {
    /// Tokens of the request.
    pub(in crate::scripted) prompt: u64,
    /// The longest answer asked for.
    pub(in crate::scripted) answer: Option<u64>,
    /// Tokens of the window.
    pub(in crate::scripted) window: u64,
}

impl Words {
    /// `None` when the request fits.
    pub(in crate::scripted) fn too_large(
        self,
        dialect: Dialect,
        prompt: u64,
        answer: Option<u64>,
        window: u64,
    ) -> Option<Overflow> {
        let answer = answer.filter(|_| self.counts_answer(dialect));
        let least = u64::from(self.wants_room(dialect));
        let over = prompt.saturating_add(answer.unwrap_or(0).max(least)) > window;
        over.then_some(Overflow { prompt, answer, window })
    }

    /// The error that says so.
    pub(in crate::scripted) fn overflow(self, dialect: Dialect, over: &Overflow) -> Refusal {
        let who = self.to(dialect);
        let message = said(who, dialect, over);
        if who == Self::LlamaCpp {
            let body = json!({ "error": {
                "code": 400, "message": message, "type": "exceed_context_size_error",
                "n_prompt_tokens": over.prompt, "n_ctx": over.window
            } });
            return Refusal::new(400, body.to_string());
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
        self.refuse(dialect, &Trouble { status: 400, message, param: param.map(str::to_owned), code })
    }
}

fn said(who: Words, dialect: Dialect, over: &Overflow) -> String {
    let Overflow { prompt, answer, window } = *over;
    let sum = prompt.saturating_add(answer.unwrap_or(0));
    match who {
        Words::OpenAi | Words::ByDialect => openai(dialect, over),
        Words::Anthropic => match answer {
            Some(answer) if prompt <= window => format!(
                "input length and `max_tokens` exceed context limit: {prompt} + {answer} > {window}, decrease input \
                 length or `max_tokens` and try again"
            ),
            _ => format!("prompt is too long: {prompt} tokens > {window} maximum"),
        },
        Words::Ollama => "the prompt is longer than the context length currently available to the model; shorten the \
                          prompt, adjust the context length in settings, or use a model with a longer context length"
            .to_owned(),
        Words::LlamaCpp => {
            format!("request ({prompt} tokens) exceeds the available context size ({window} tokens), try increasing it")
        }
        Words::Vllm => match answer {
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
        Words::LmStudio => format!(
            "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: {prompt}>= \
             n_ctx: {window}). Try to load the model with a larger context length, or provide a shorter input."
        ),
        Words::OpenRouter => format!(
            "This endpoint's maximum context length is {window} tokens. However, you requested about {sum} tokens \
             ({prompt} of text input, {} in the output). Please reduce the length of either one, or use the \
             \"middle-out\" transform to compress your prompt automatically.",
            answer.unwrap_or(0)
        ),
        Words::Gemini => format!(
            "The input token count ({prompt}) exceeds the maximum number of tokens allowed ({window})."
        ),
        Words::Mistral => format!(
            "Prompt contains {prompt} tokens and 0 draft tokens, too large for model with {window} maximum context length"
        ),
        Words::Groq => "Please reduce the length of the messages or completion.".to_owned(),
        Words::Bedrock => "Input is too long for requested model.".to_owned(),
    }
}

fn openai(dialect: Dialect, over: &Overflow) -> String {
    let Overflow { prompt, answer, window } = *over;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_says_it_in_its_own_words_and_with_the_numbers_it_tells() {
        for (words, dialect, told) in [
            (
                Words::ByDialect,
                Dialect::Chat,
                &["context_length_exceeded", "maximum context length is 100", "150 tokens (90"][..],
            ),
            (
                Words::ByDialect,
                Dialect::Responses,
                &["context_length_exceeded", "exceeds the context window"],
            ),
            (Words::ByDialect, Dialect::Messages, &["invalid_request_error", "90 + 60 > 100"]),
            (Words::ByDialect, Dialect::Ollama, &[r#"{"error":"the prompt is longer"#]),
            (
                Words::LlamaCpp,
                Dialect::Messages,
                &["exceed_context_size_error", "\"n_ctx\":100", "\"n_prompt_tokens\":90"],
            ),
            (Words::Vllm, Dialect::Chat, &["BadRequestError", "60 output tokens", "\"code\":400"]),
            (Words::LmStudio, Dialect::Chat, &[r#"{"error":"The number"#, "n_keep: 90>= n_ctx: 100"]),
            (Words::OpenRouter, Dialect::Chat, &["about 150 tokens", "90 of text input"]),
            (Words::Gemini, Dialect::Chat, &["[{", "INVALID_ARGUMENT", "(90)", "(100)"]),
            (Words::Mistral, Dialect::Chat, &["3051", "90 tokens"]),
            (Words::Groq, Dialect::Chat, &["context_length_exceeded"]),
            (Words::Bedrock, Dialect::Messages, &["Input is too long"]),
        ] {
            let refusal = words.overflow(dialect, &Overflow { prompt: 90, answer: Some(60), window: 100 });
            assert_eq!(refusal.status, 400);
            for part in told {
                assert!(refusal.body.contains(part), "{words:?} {dialect:?}: {part}: {}", refusal.body);
            }
        }
    }

    #[test]
    fn the_boundary_is_exact_and_the_answer_counts_where_it_does() {
        let fits =
            |words: Words, dialect, prompt, answer| words.too_large(dialect, prompt, answer, 100).is_none();
        let chat = Dialect::Chat;
        assert!(fits(Words::OpenAi, chat, 100, None) && !fits(Words::OpenAi, chat, 101, None));
        assert!(fits(Words::OpenAi, chat, 60, Some(40)) && !fits(Words::OpenAi, chat, 60, Some(41)));
        assert!(fits(Words::OpenAi, Dialect::Responses, 60, Some(41)));
        assert!(fits(Words::LlamaCpp, chat, 99, Some(500)) && !fits(Words::LlamaCpp, chat, 100, None));
        assert!(
            fits(Words::Ollama, Dialect::Ollama, 100, Some(500))
                && !fits(Words::Ollama, Dialect::Ollama, 101, None)
        );
        assert!(!fits(Words::ByDialect, Dialect::Messages, 1, Some(u64::MAX)), "no sum runs over");
    }
}
