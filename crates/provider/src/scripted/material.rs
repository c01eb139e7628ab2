//! What a request for a summary gives to summarise, and a short true extract of it.
//!
//! Two forms are understood: the conversation as text between `<conversation>` tags, each message headed by its number
//! and role, and the conversation as messages, with the request for a summary as the last of them.

use super::count::system;
use crate::ask::Asked;
use komado_core::message::{Call, CallKind, Message, Outcome, Part, Role};
use komado_core::{Digest, Meter, Seq};
use std::collections::VecDeque;

/// The longest extract, in tokens.
const LONGEST: u64 = 600;
/// Below this there is nothing worth reading.
const SHORTEST: u64 = 64;

/// What stands before texts that are summaries already.
const EARLIER: [&str; 4] =
    ["[Earlier summary]", "[Kept from an earlier summary]", "[Earlier marker]", "[Summary so far]"];

/// True when the request asks for a summary.
pub(super) fn is_asked(asked: &Asked) -> bool {
    let user = asked.messages.iter().rfind(|message| message.role == Role::User);
    let text = user.map(Message::words).unwrap_or_default();
    let tags = ["<summary></summary>", "<summary> tag", "in <summary>", "inside <summary>"];
    let system = system(&asked.setup).unwrap_or_default();
    tags.iter().any(|tag| text.contains(tag))
        || system.contains("condense conversations")
        || system.contains("要約するアシスタント")
}

/// The summary, in the tags that were asked for.
pub(super) fn summary(meter: Meter, asked: &Asked) -> String {
    let question = asked.messages.iter().rfind(|message| message.role == Role::User);
    let question = question.map(Message::words).unwrap_or_default();
    let most = asked.max_tokens.map_or(LONGEST, |most| (most.saturating_mul(3) / 4).clamp(SHORTEST, LONGEST));
    let digest = match between(&question, "<conversation>", "</conversation>") {
        Some(text) => from_text(meter, text),
        None => from_messages(meter, asked),
    };
    let mut out = String::new();
    if question.contains("<retain></retain>") {
        let facts = digest.facts();
        let kept: Vec<&str> = facts.iter().take(3).map(|fact| fact.text.as_str()).collect();
        out.push_str(&format!("<retain>\n{}\n</retain>\n", kept.join("\n")));
    }
    out.push_str(&format!("<summary>\n{}\n</summary>", digest.text(most).trim_end()));
    out
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let from = text.find(begin)? + begin.len();
    let to = text.rfind(end).filter(|to| *to >= from)?;
    Some(&text[from..to])
}

fn from_messages(meter: Meter, asked: &Asked) -> Digest {
    let mut digest = Digest::new(meter);
    let all = &asked.messages[..asked.messages.len().saturating_sub(1)];
    for (seq, message) in (1..).zip(all) {
        digest.take(seq, message);
    }
    digest
}

fn from_text(meter: Meter, text: &str) -> Digest {
    let mut digest = Digest::new(meter);
    let mut calls = VecDeque::new();
    for block in blocks(text) {
        match block {
            Block::Earlier(text) => digest.earlier(text.trim()),
            Block::Said { seq, role, text } => digest.take(seq, &message(seq, role, text.trim(), &mut calls)),
        }
    }
    digest
}

enum Block {
    Earlier(String),
    Said { seq: Seq, role: Role, text: String },
}

impl Block {
    fn add(&mut self, line: &str) {
        let (Self::Earlier(text) | Self::Said { text, .. }) = self;
        text.push_str(line);
        text.push('\n');
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in text.lines() {
        if EARLIER.contains(&line) {
            blocks.push(Block::Earlier(String::new()));
        } else if let Some((seq, role, rest)) = heading(line) {
            blocks.push(Block::Said { seq, role, text: format!("{rest}\n") });
        } else if let Some(last) = blocks.last_mut() {
            last.add(line);
        } else if !line.trim().is_empty() {
            blocks.push(Block::Earlier(format!("{line}\n")));
        }
    }
    blocks
}

/// `@12 user: text`, also with a name or `(continued)` behind the role.
fn heading(line: &str) -> Option<(Seq, Role, &str)> {
    let (number, rest) = line.strip_prefix('@')?.split_once(' ')?;
    let (who, text) = rest.split_once(": ").or_else(|| Some((rest.strip_suffix(':')?, "")))?;
    let role = Role::named(who.split(' ').next()?)?;
    Some((number.parse().ok()?, role, text))
}

/// The message again, its calls and results included as far as they can be told.
fn message(seq: Seq, role: Role, text: &str, calls: &mut VecDeque<String>) -> Message {
    if role == Role::Tool {
        let is_error = text.starts_with("[Tool Result (Error)]");
        let content = text
            .split_once('\n')
            .filter(|(first, _)| first.starts_with("[Tool Result"))
            .map_or(text, |(_, rest)| rest);
        return Message::of(
            role,
            vec![Part::Result(Outcome {
                call_id: calls.pop_front().unwrap_or_default(),
                content: vec![Part::text(content)],
                is_error,
                ..Outcome::default()
            })],
        );
    }
    let mut parts = vec![Part::text("")];
    for line in text.lines() {
        let tool = line.strip_prefix("[Tool Use: ").and_then(|rest| rest.strip_suffix(']'));
        match (tool.filter(|_| role == Role::Assistant), parts.last_mut()) {
            (Some(name), _) => {
                let id = format!("{seq}.{}", parts.len());
                calls.push_back(id.clone());
                let (name, arguments) = (name.to_owned(), String::new());
                parts.push(Part::Call(Call { id, name, arguments, kind: CallKind::Function, extra: None }));
            }
            (None, Some(Part::Text { text, .. } | Part::Call(Call { arguments: text, .. }))) => {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(line);
            }
            _ => {}
        }
    }
    Message::of(role, parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::journal::Setup;

    fn asked(messages: Vec<Message>) -> Asked {
        Asked { model: "m".into(), setup: Setup::default(), messages, max_tokens: Some(400), stream: false }
    }

    #[test]
    fn a_conversation_as_text_is_taken_apart_and_extracted() {
        let text = "Summarise.\n<conversation>\n[Earlier summary]\nThe port is 8443.\n\n@3 user: Fix src/main.rs. Never touch \
            the database.\n\n@4 assistant: I look\n[Tool Use: bash]\n{\"command\":\"cargo test\"}\n\n@5 tool: [Tool Result (Error)]\n\
            error[E0308]: mismatched types\n\n@6 assistant (continued): done\n</conversation>\nWrite it inside <summary></summary> tags.";
        let asked = asked(vec![Message::text(Role::User, text)]);
        assert!(is_asked(&asked));
        let summary = summary(Meter::O200k, &asked);
        assert!(summary.starts_with("<summary>\n") && summary.ends_with("\n</summary>"), "{summary}");
        for fact in ["8443", "src/main.rs", "Never touch the database", "cargo test", "E0308"] {
            assert!(summary.contains(fact), "{fact}: {summary}");
        }
        assert!(!summary.contains("retain"));
    }

    #[test]
    fn messages_before_the_question_are_extracted_and_what_is_to_be_kept_comes_first() {
        let asked = asked(vec![
            Message::text(Role::User, "ポートは8443です。src/main.rs を直してください。"),
            Message::text(Role::Assistant, "直しました。"),
            Message::text(Role::User, "<retain></retain> と <summary></summary> に要約してください。"),
        ]);
        let summary = summary(Meter::O200k, &asked);
        assert!(
            summary.starts_with("<retain>\n") && summary.contains("\n</retain>\n<summary>\n"),
            "{summary}"
        );
        assert!(summary.contains("src/main.rs を直してください"), "{summary}");
    }

    #[test]
    fn a_text_that_only_holds_the_tag_asks_for_nothing() {
        let page = "Why does <details><summary>More</summary></details> not open?";
        assert!(!is_asked(&asked(vec![Message::text(Role::User, page)])));
    }
}
