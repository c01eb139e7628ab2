//! What an error body says, whatever it is wrapped in: JSON, JSON in a string, a list around it, a stream, a page.
//!
//! Only what speaks of an error is taken. An answer that went well may talk about windows as much as it likes, and what
//! a server echoes of the request (`input`, `messages`) is the user's text, not the server's.

use super::words::{self, ANSWER_CAP, FIELD, WordSense, sense};
use crate::listed;
use serde_json::Value;

/// What was found in a body.
#[derive(Debug, Default)]
pub(super) struct ErrorText {
    /// Sentences for people, in the order they stand.
    pub(super) texts: Vec<String>,
    /// Words for programs: codes, types, reasons.
    pub(super) codes: Vec<String>,
    /// Numbers for programs, written as `name: number.`
    pub(super) figures: String,
    /// Which field of the request is meant, when one is named.
    pub(super) field: Option<String>,
    /// True when the body says nothing at all.
    pub(super) empty: bool,
}

/// Whether what is being walked speaks of an error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Error,
    Answer,
}

/// JSON inside JSON inside JSON: as deep as anyone was seen to wrap, and some.
const DEEPEST: usize = 8;

/// The longest text judged; what matters stands at the beginning or at the end.
const LONGEST: usize = 16 << 10;

/// What of an answer is the model's own: nothing below it is an error of the server.
const ANSWER: &str = "choices content output candidates delta response data generated_text results text \
                      part item content_block";

/// What servers echo or add that says nothing about the error.
const ECHOES: &str = "input inputs prompt messages content request request_id requestid id url doc docs \
                      documentation_url help model headers stack traceback user org organization";

const CODES: &str = "code type reason status error_type errortype error_code errorcode __type kind \
                     finish_reason stop_reason done_reason native_finish_reason";

const REASONS: &str = "finish_reason stop_reason done_reason native_finish_reason reason";
const FIELDS: &str = "param parameter loc field path pointer";

/// Reads a body.
pub(super) fn read(status: u16, body: &str) -> ErrorText {
    let mut said = ErrorText::default();
    let body = body.trim_start_matches('\u{feff}').trim();
    said.empty = body.is_empty();
    let scope = if status >= 400 { Scope::Error } else { Scope::Answer };
    if let Ok(value) = serde_json::from_str::<Value>(body) {
        said.root(&value, scope, 0);
    } else if !said.lines(body, scope) {
        said.text(body);
    }
    said
}

impl ErrorText {
    /// A stream, or one JSON value on each line; false when it is neither.
    fn lines(&mut self, body: &str, scope: Scope) -> bool {
        let mut found = false;
        for line in body.lines().map(str::trim) {
            let payload = line.strip_prefix("data:").map(str::trim);
            let json = payload.unwrap_or(line);
            match serde_json::from_str::<Value>(json) {
                Ok(value) if value.is_object() || payload.is_some() => {
                    found = true;
                    self.root(&value, scope, 0);
                }
                _ if payload.is_some_and(|payload| payload != "[DONE]") => {
                    found = true;
                    self.text(json);
                }
                _ => {}
            }
        }
        found
    }

    fn root(&mut self, value: &Value, scope: Scope, depth: usize) {
        match value {
            Value::Object(fields) => {
                let answers = fields.keys().any(|key| listed(ANSWER, key))
                    || fields.get("message").is_some_and(Value::is_object);
                let scope = if answers { scope } else { Scope::Error };
                self.walk("", value, scope, depth);
            }
            Value::Array(items) => items.iter().for_each(|item| self.root(item, scope, depth)),
            other => self.walk("", other, Scope::Error, depth),
        }
    }

    fn walk(&mut self, key: &str, value: &Value, scope: Scope, depth: usize) {
        if depth > DEEPEST || listed(ECHOES, key) || (scope == Scope::Answer && key == "output") {
            return;
        }
        match value {
            Value::Object(fields) => {
                for (name, inner) in fields {
                    // Below `errors` a name is the field that is wrong, not an echo of it.
                    let wrong = key == "errors" && listed(ECHOES, name);
                    let name = if wrong { "msg".to_owned() } else { name.to_lowercase() };
                    let scope = if name.starts_with("error") { Scope::Error } else { scope };
                    self.walk(&name, inner, scope, depth + 1);
                }
            }
            Value::Array(items) if listed(FIELDS, key) => self.path(items),
            Value::Array(items) => items.iter().for_each(|item| self.walk(key, item, scope, depth + 1)),
            Value::String(text) => self.string(key, text, scope, depth),
            Value::Number(number) if scope == Scope::Error && !listed(CODES, key) => {
                self.figures.push_str(&format!("{key}: {number}. "));
            }
            _ => {}
        }
    }

    fn string(&mut self, key: &str, text: &str, scope: Scope, depth: usize) {
        if scope == Scope::Answer {
            if listed(REASONS, key) {
                self.codes.push(text.to_owned());
            }
            return;
        }
        let trimmed = text.trim();
        if trimmed.starts_with(['{', '[', '"'])
            && let Ok(value) = serde_json::from_str::<Value>(trimmed)
        {
            return self.walk(key, &value, scope, depth + 1);
        }
        match key {
            _ if listed(CODES, key) => self.codes.push(text.to_owned()),
            _ if listed(FIELDS, key) => self.field = (!trimmed.is_empty()).then(|| trimmed.to_owned()),
            _ if !trimmed.is_empty() && trimmed.bytes().all(|b| b.is_ascii_digit()) => {
                self.figures.push_str(&format!("{key}: {trimmed}. "));
            }
            _ => self.text(text),
        }
    }

    fn path(&mut self, items: &[Value]) {
        let names: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
        self.field = (!names.is_empty()).then(|| names.join("."));
    }

    fn text(&mut self, text: &str) {
        let text = clipped(&untagged(text));
        if !text.trim().is_empty() && !self.texts.contains(&text) {
            self.texts.push(text);
        }
    }
}

/// The two ends of a text that is longer than anything a server says about itself.
fn clipped(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let head = (0..=LONGEST / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let tail = (text.len() - LONGEST / 2..=text.len()).find(|at| text.is_char_boundary(*at));
    format!("{}. {}", &text[..head], tail.map_or("", |at| &text[at..]))
}

/// The text without tags; each ends a sentence. `<400>` is one, `a < b` is none.
fn untagged(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let opens = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '!');
        match after.find(['<', '>']) {
            Some(end) if opens && after.as_bytes()[end] == b'>' => {
                out.push_str(". ");
                rest = &after[end + 1..];
            }
            _ => {
                out.push('<');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

// Which field of the request an answer is about, and whether that field holds the conversation.
//
// A schema complains about `messages[2].name` in the same words as about `messages[2].content`, and only the second is an
// overflow. Names are judged by their last word: `system_prompt` is a prompt, `prompt_cache_key` is a key.

/// What a field holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FieldContent {
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
pub(super) fn holds(path: &str) -> FieldContent {
    let names: Vec<&str> = path
        .split(['.', '[', ']', '/', '#', '$'])
        .filter(|name| !name.is_empty() && !name.bytes().all(|b| b.is_ascii_digit()))
        .collect();
    let Some((last, way)) = names.split_last() else { return FieldContent::Other };
    if way.iter().any(|name| listed(ASIDE, &name.to_lowercase())) {
        return FieldContent::Other;
    }
    let pieces = words::split(last);
    let end = pieces.last().map_or("", |piece| piece.word());
    let sized = |piece: &words::TextPiece| matches!(sense(piece), WordSense::Window | WordSense::Tokens);
    if listed(TEXTS, end) || *last == "input_ids" {
        FieldContent::Conversation
    } else if pieces.iter().any(|piece| piece.word() == ANSWER_CAP || sized(piece)) {
        FieldContent::Size
    } else {
        FieldContent::Other
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
        FieldContent::Conversation => "message",
        FieldContent::Other => FIELD,
        FieldContent::Size => return text.to_owned(),
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
    fn an_answer_that_went_well_says_nothing_about_an_error() {
        let said = read(200, r#"{"choices":[{"message":{"content":"too long"},"finish_reason":"stop"}]}"#);
        assert_eq!((said.texts.len(), said.codes), (0, vec!["stop".to_owned()]));
    }

    #[test]
    fn what_is_echoed_is_not_the_servers_word() {
        let said = read(422, r#"{"detail":[{"loc":["body","messages",0,"content"],"msg":"m","input":"i"}]}"#);
        assert_eq!(said.texts, ["m"]);
        assert_eq!(said.field.as_deref(), Some("body.messages.content"));
    }

    #[test]
    fn json_in_strings_is_unwrapped_and_tags_are_taken_off() {
        let said = read(400, r#"{"error":"{\"message\":\"{\\\"msg\\\":\\\"deep\\\",\\\"n_ctx\\\":7}\"}"}"#);
        assert_eq!((said.texts, said.figures.as_str()), (vec!["deep".to_owned()], "n_ctx: 7. "));
        assert_eq!(untagged("a < b <b>c</b> <400> d"), "a < b . c.  .  d");
    }
}

#[cfg(test)]
mod field_tests {
    use super::*;

    #[test]
    fn a_field_is_judged_by_the_last_word_of_its_name() {
        for path in ["messages[0].content", "system_prompt", "input", "#/inputText", "input[3].output"] {
            assert_eq!(holds(path), FieldContent::Conversation, "{path}");
        }
        for path in ["prompt_cache_key", "messages[2].name", "metadata.text", "tools", "prompt.id", ""] {
            assert_eq!(holds(path), FieldContent::Other, "{path}");
        }
        for path in ["max_tokens", "input_tokens", "n_ctx"] {
            assert_eq!(holds(path), FieldContent::Size, "{path}");
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
