//! Which field of the request an answer is about, and whether that field holds the conversation.
//!
//! A schema complains about `messages[2].name` in the same words as about `messages[2].content`, and only the second is an
//! overflow. Names are judged by their last word: `system_prompt` is a prompt, `prompt_cache_key` is a key.

use super::sense::{Sense, sense};
use super::words::{self, ANSWER_CAP, FIELD, listed};

/// What a field holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Holds {
    /// The conversation's text.
    Conversation,
    /// A size of its own: a count of tokens, the window, the room for an answer.
    Size,
    /// Anything else.
    Other,
}

/// What the last word of a field's name must be.
const TEXTS: &str = "content contents text texts input inputs prompt prompts message messages instruction \
                     instructions system parts output arguments conversation history query document \
                     documents body";

/// What none of the names on the way may be.
const ASIDE: &str = "tools functions metadata user format schema stop image image_url file audio source \
                     variables headers cache tool_choice";

/// Words that stand before a field's name.
const BEFORE: &str = "invalid parameter param field property argument attribute key";

/// Words that stand behind it.
const BEHIND: &str = "string array str list parameter param field property argument";

/// What the field at a path holds.
pub(super) fn holds(path: &str) -> Holds {
    let names: Vec<&str> = path
        .split(['.', '[', ']', '/', '#', '$'])
        .filter(|name| !name.is_empty() && !name.bytes().all(|b| b.is_ascii_digit()))
        .collect();
    let Some((last, way)) = names.split_last() else { return Holds::Other };
    if way.iter().any(|name| listed(ASIDE, &name.to_lowercase())) {
        return Holds::Other;
    }
    let pieces = words::split(last);
    let end = pieces.last().map_or("", |piece| piece.word());
    let sized = |piece: &words::Piece| matches!(sense(piece), Sense::Window | Sense::Tokens);
    if listed(TEXTS, end) || *last == "input_ids" {
        Holds::Conversation
    } else if pieces.iter().any(|piece| piece.word() == ANSWER_CAP || sized(piece)) {
        Holds::Size
    } else {
        Holds::Other
    }
}

/// The path a text complains about, and where it stands: `Invalid 'messages[2].name': …`, `user: string too long`,
/// `#/inputText: expected …`.
pub(super) fn named(text: &str) -> Option<(usize, &str)> {
    let mut start = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let (at, end) = (start, start + word.len());
        start = end;
        let path = word.trim_matches(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '#' | ']')));
        if !is_path(path) {
            continue;
        }
        let quoted = word.starts_with(['\'', '`', '"']);
        let colon = word.trim_end().ends_with(':');
        let behind = first_word(&text[end..]);
        let complained = listed(BEHIND, &behind) && (quoted || colon);
        let called = quoted && listed(BEFORE, &last_word(&text[..at]));
        if called || complained || (path.starts_with("#/") && colon) {
            return Some((at + word.find(path)?, path));
        }
    }
    None
}

/// The text with the field's name put as one plain word, so that no part of it is read as a thing of size.
pub(super) fn veiled(text: &str) -> String {
    let Some((at, path)) = named(text) else { return text.to_owned() };
    let word = match holds(path) {
        Holds::Conversation => "message",
        Holds::Other => FIELD,
        Holds::Size => return text.to_owned(),
    };
    format!("{}{word}{}", &text[..at], &text[at + path.len()..])
}

fn is_path(path: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']' | '/' | '#' | '-');
    path.starts_with(|c: char| c.is_ascii_alphabetic() || c == '#' || c == '_') && path.chars().all(inner)
}

fn first_word(text: &str) -> String {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    text.chars().take_while(char::is_ascii_alphabetic).collect::<String>().to_lowercase()
}

fn last_word(text: &str) -> String {
    text.split_whitespace().next_back().unwrap_or("").trim_matches(':').to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_judged_by_the_last_word_of_its_name() {
        for path in ["messages[0].content", "system_prompt", "input", "#/inputText", "input[3].output"] {
            assert_eq!(holds(path), Holds::Conversation, "{path}");
        }
        for path in ["prompt_cache_key", "messages[2].name", "metadata.text", "tools", "prompt.id", ""] {
            assert_eq!(holds(path), Holds::Other, "{path}");
        }
        for path in ["max_tokens", "input_tokens", "n_ctx"] {
            assert_eq!(holds(path), Holds::Size, "{path}");
        }
    }

    #[test]
    fn a_field_is_found_where_a_text_complains_about_it() {
        let path = |text| named(text).map(|(_, path)| path);
        assert_eq!(path("Invalid 'messages[2].name': string too long."), Some("messages[2].name"));
        assert_eq!(path("user: string too long"), Some("user"));
        assert_eq!(path("Malformed request: #/a/0: expected maxLength: 2"), Some("#/a/0"));
        assert_eq!(path("{'message': 'the prompt is too long', 'type': 'x'}"), None);
        assert_eq!(path("prompt too long for model 'long-8k'"), None);
    }
}
