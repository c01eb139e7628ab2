//! What of an entry can be found, as one text, and how a long text is cut into passages.
//!
//! The words of a message, what its calls are given, and what the model thought; what was told of a thread at its end,
//! and what one thread told another. Not what an edit shows in place of
//! others: that was said by nobody, and what it stands for is here in full. Arguments are read out of their JSON, so
//! that a line break in them is one, and a Japanese word is no row of escapes.

use komado_core::Role;
use komado_core::journal::Entry;
use komado_core::message::{Call, Message, Part};
use serde_json::Value;

/// A passage is not cut before it has so many bytes.
const TARGET: usize = 1400;
/// It ends at the next good place within so many more.
const SLACK: usize = 400;
/// The most files that one entry is about.
const MOST_FILES: usize = 32;
/// The longest argument that is looked through for paths.
const LONGEST_ARGUMENT: usize = 2000;

/// What an entry says to somebody, as a message; `None` for what says nothing. A chronicle, and words for another
/// thread, are said by whoever works in the thread.
pub(crate) fn said_by(entry: Entry) -> Option<Message> {
    match entry {
        Entry::Message(message, _) => Some(message),
        Entry::Chronicle(chronicle) => Some(Message::text(Role::Assistant, chronicle.text)),
        Entry::Tell { text, .. } => Some(Message::text(Role::Assistant, text)),
        _ => None,
    }
}

/// The text of a message.
pub(crate) fn text_of(message: &Message) -> String {
    let mut text = String::new();
    write_parts(&message.parts, &mut text);
    text
}

fn write_parts(parts: &[Part], out: &mut String) {
    for part in parts {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        match part {
            Part::Text { text, .. } | Part::Reasoning { text, .. } => out.push_str(text),
            Part::Result(outcome) => write_parts(&outcome.content, out),
            Part::Call(call) => {
                out.push_str(&call.name);
                out.push('\n');
                write_arguments(&call.arguments, out);
            }
            Part::Image { .. } | Part::Opaque(_) => {}
        }
    }
}

/// Arguments as lines of `key: value`; as they are when they are no JSON.
fn write_arguments(arguments: &str, out: &mut String) {
    match serde_json::from_str::<Value>(arguments) {
        Ok(value) => write_value(&value, out),
        Err(_) => out.push_str(arguments),
    }
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => out.push_str(text),
        Value::Array(values) => values.iter().for_each(|value| {
            write_value(value, out);
            out.push('\n');
        }),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            out.push_str(key);
            out.push_str(": ");
            write_value(value, out);
            out.push('\n');
        }),
        Value::Null => {}
        other => out.push_str(&other.to_string()),
    }
}

/// The files that a call names: whatever looks like a path in its shorter arguments.
pub(crate) fn files_of(call: &Call) -> Vec<String> {
    let mut files = Vec::new();
    match serde_json::from_str::<Value>(&call.arguments) {
        Ok(value) => gather(&value, &mut files),
        Err(_) => look_through(&call.arguments, &mut files),
    }
    files.truncate(MOST_FILES);
    files
}

fn gather(value: &Value, files: &mut Vec<String>) {
    match value {
        Value::String(text) => look_through(text, files),
        Value::Array(values) => values.iter().for_each(|value| gather(value, files)),
        Value::Object(fields) => fields.values().for_each(|value| gather(value, files)),
        _ => {}
    }
}

fn look_through(text: &str, files: &mut Vec<String>) {
    if text.len() > LONGEST_ARGUMENT {
        return;
    }
    let ends = |c: char| c.is_whitespace() || "\"'`()[]{}<>|;,=".contains(c);
    for word in text.split(ends).filter(|word| is_path(word)) {
        // A place in a file is about the file.
        let path = word.split(':').next().unwrap_or(word).trim_end_matches('.');
        if is_path(path) && files.len() < MOST_FILES && !files.iter().any(|known| known == path) {
            files.push(path.to_owned());
        }
    }
}

/// True for a word with a slash among letters, or with an ending such as `.rs`.
fn is_path(word: &str) -> bool {
    let ending = word.rsplit_once('.').is_some_and(|(stem, ending)| {
        stem.ends_with(char::is_alphanumeric)
            && (1..=5).contains(&ending.len())
            && ending.bytes().all(|b| b.is_ascii_alphanumeric())
            && ending.bytes().any(|b| b.is_ascii_alphabetic())
    });
    word.len() <= 300 && (ending || (word.contains('/') && word.contains(char::is_alphanumeric)))
}

/// Where the passage at the beginning of `bytes` ends, and whether that may part two characters of one word. `None` when
/// more bytes are needed to tell, which come unless this `is_all`.
pub(crate) fn cut(bytes: &[u8], is_all: bool) -> Option<(usize, bool)> {
    if bytes.len() <= TARGET + SLACK {
        return is_all.then_some((bytes.len(), false));
    }
    let window = &bytes[TARGET..TARGET + SLACK];
    let after = |mark: &[u8]| window.windows(mark.len()).position(|w| w == mark).map(|at| at + mark.len());
    let clean = after(b"\n").or_else(|| after("。".as_bytes())).or_else(|| after(b" "));
    if let Some(at) = clean {
        return Some((TARGET + at, false));
    }
    let boundary = (0..4).map(|back| TARGET + SLACK - back).find(|at| bytes[*at] & 0xc0 != 0x80);
    Some((boundary.unwrap_or(TARGET + SLACK), true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::message::CallKind;

    fn call(arguments: &str) -> Call {
        let (id, name) = ("c".into(), "read_file".into());
        Call { id, name, arguments: arguments.into(), kind: CallKind::Function, extra: None }
    }

    #[test]
    fn a_call_is_told_by_its_name_and_what_it_is_given() {
        let escaped = call(r#"{"path":"\u7a93.rs","n":1.0,"lines":["a\nb",null]}"#);
        let thought = Part::Reasoning { text: "hm".into(), signature: None };
        let message = Message::of(Role::Assistant, vec![thought, Part::text("now"), Part::Call(escaped)]);
        let text = text_of(&message);
        assert!(text.starts_with("hm\nnow\nread_file\n"), "{text}");
        assert!(text.contains("path: 窓.rs") && text.contains("a\nb") && text.contains("n: 1.0"), "{text}");
        let free = Message::of(Role::Assistant, vec![Part::Call(call("not {json"))]);
        assert_eq!(text_of(&free), "read_file\nnot {json");
    }

    #[test]
    fn what_looks_like_a_path_is_a_file() {
        let files = |arguments: &str| files_of(&call(arguments));
        assert_eq!(files(r#"{"path":"src/設計.md","mode":"r"}"#), ["src/設計.md"]);
        let shell = r#"{"command":"cat ./a/b.rs:12 | grep 'x' > out.txt; ls /tmp/x"}"#;
        assert_eq!(files(shell), ["./a/b.rs", "out.txt", "/tmp/x"]);
        assert!(files(r#"{"query":"what is 3.5 and so on."}"#).is_empty());
        let long = format!("{{\"content\":{:?}}}", "a/b ".repeat(1000));
        assert!(files(&long).is_empty());
    }

    #[test]
    fn passages_join_to_the_text_they_were_cut_from() {
        let prose = "Some words, and then some more of them. ".repeat(200);
        let japanese = "窓を開けて風を入れる".repeat(300);
        for text in [prose.as_str(), &japanese, &"x".repeat(9000), "short", ""] {
            let (mut rest, mut joined) = (text.as_bytes(), Vec::new());
            while let Some((end, _)) = cut(rest, true).filter(|(end, _)| *end > 0) {
                assert!(std::str::from_utf8(&rest[..end]).is_ok(), "cut inside a character");
                assert!(end <= TARGET + SLACK);
                joined.extend_from_slice(&rest[..end]);
                rest = &rest[end..];
            }
            assert_eq!(joined, text.as_bytes());
        }
        assert_eq!(cut(b"maybe more", false), None);
    }
}
