//! The model that answers when the script has nothing to say: small, honest, the same every time.
//!
//! It knows nothing but the request. It says what it was asked, in English or Japanese, and obeys a few orders that make
//! a demonstration: `repeat: X`, `write N words`, `find: X`, `call TOOL with {…}`. A summary it writes is an extract of
//! what it was given. It invents nothing.

use super::reply::system;
use super::script::{NewMessages, ScriptedReply, ToolCall};
use crate::dialect::ParsedRequest;
use komado_core::message::{Call, CallKind, Message, MessagePart, Role, ToolOutcome};
use komado_core::raw::RawJson;
use komado_core::{Digest, Meter, Seq};
use serde_json::value::RawValue;
use std::collections::VecDeque;

/// The most words that are written at once.
const MOST_WORDS: u64 = 200_000;
/// Characters of a quotation.
const QUOTED: usize = 160;
/// Messages quoted when something was to be found.
const MOST_FOUND: usize = 5;

const WORDS: [&str; 12] = [
    "window", "river", "lantern", "garden", "letter", "morning", "harbour", "paper", "stone", "evening",
    "bridge", "cloud",
];

/// What the model answers to `asked`.
pub(super) fn reply(
    meter: Meter,
    asked: &ParsedRequest,
    news: &NewMessages<'_>,
    tokens: u64,
) -> ScriptedReply {
    if news.is_summary {
        return said(summary(meter, asked));
    }
    if let Some(last) = asked.messages.last().and_then(Message::outcome) {
        return said(after_tool(asked, last, is_japanese(&news.last)));
    }
    let text = news.last.trim();
    if let Some(rest) = order(text, &["repeat:", "繰り返して:", "繰り返して："]) {
        return said(rest.to_owned());
    }
    if let Some(rest) = order(text, &["find:", "探して:", "探して："]) {
        return said(find(asked, rest));
    }
    if let Some(calls) = calls(text) {
        return call(asked, calls);
    }
    match words(text) {
        Some(count) => said(written(count)),
        None => said(plain(text, asked, news, tokens)),
    }
}

fn said(text: String) -> ScriptedReply {
    ScriptedReply { text, ..ScriptedReply::default() }
}

/// True when a Japanese reader wrote it.
pub(super) fn is_japanese(text: &str) -> bool {
    text.chars().any(|c| matches!(c, '\u{3040}'..='\u{30ff}'))
}

fn plain(text: &str, asked: &ParsedRequest, news: &NewMessages<'_>, tokens: u64) -> String {
    let (quote, count) = (clip(text), asked.messages.len());
    let turn = news.turn;
    if is_japanese(text) {
        return format!(
            "「{quote}」と承りました。台本どおりに答えるモデルです。{turn}回目の応答で、メッセージは{count}件、プロンプトは\
             {tokens}トークンです。"
        );
    }
    let messages = if count == 1 { "1 message".to_owned() } else { format!("{count} messages") };
    format!(
        "You said: \"{quote}\". I am a scripted model; this is turn {turn}, and I was sent {messages} with {tokens} tokens."
    )
}

fn after_tool(asked: &ParsedRequest, last: &ToolOutcome, japanese: bool) -> String {
    let called = asked.messages.iter().rev().flat_map(Message::calls).find(|call| call.id == last.call_id);
    let name = last.name.as_deref().or(called.map(|call| call.name.as_str())).unwrap_or("tool");
    let words = asked.messages.last().map(Message::words).unwrap_or_default();
    let first = clip(words.trim().lines().next().unwrap_or_default());
    let size = words.chars().count();
    match (japanese, last.is_error) {
        (true, false) => format!("{name} は{size}文字を返しました。1行目: {first}"),
        (true, true) => format!("{name} はエラーを返しました: {first}"),
        (false, false) => format!("{name} answered {size} characters. The first line: {first}"),
        (false, true) => format!("{name} failed: {first}"),
    }
}

/// What follows one of the words of command at the beginning of `text`.
fn order<'a>(text: &'a str, commands: &[&str]) -> Option<&'a str> {
    commands.iter().find_map(|command| {
        let head = text.get(..command.len())?;
        head.eq_ignore_ascii_case(command).then(|| text[command.len()..].trim())
    })
}

/// The messages before the last that contain `what`.
fn find(asked: &ParsedRequest, what: &str) -> String {
    let before = &asked.messages[..asked.messages.len().saturating_sub(1)];
    let found = before.iter().enumerate().filter(|(_, message)| message.words().contains(what));
    let lines: Vec<String> = found.map(|(at, message)| quoted(at, message, what)).collect();
    match (lines.is_empty(), is_japanese(what)) {
        (true, true) => format!("「{what}」は渡された{}件のメッセージにありません。", before.len()),
        (true, false) => format!("I do not see \"{what}\" in the {} messages I was given.", before.len()),
        (false, _) => lines[lines.len().saturating_sub(MOST_FOUND)..].join("\n"),
    }
}

/// The line of a message that contains `what`.
fn quoted(at: usize, message: &Message, what: &str) -> String {
    let words = message.words();
    let line = words.lines().find(|line| line.contains(what)).unwrap_or(&words);
    format!("{} {}: {}", at + 1, message.role.name(), clip(line.trim()))
}

/// `write N words`, anywhere.
fn words(text: &str) -> Option<u64> {
    let all: Vec<&str> = text.split_whitespace().collect();
    all.windows(3).find_map(|three| {
        let [write, count, words] = three else { return None };
        let is_order = write.eq_ignore_ascii_case("write") && words.to_ascii_lowercase().starts_with("word");
        count.replace(',', "").parse().ok().filter(|_| is_order)
    })
}

fn written(count: u64) -> String {
    let count = usize::try_from(count.min(MOST_WORDS)).unwrap_or(0);
    WORDS.iter().cycle().take(count).copied().collect::<Vec<_>>().join(" ")
}

/// `call TOOL with {…}`, one or more of them, each on its own line or behind the other.
fn calls(text: &str) -> Option<Vec<ToolCall>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(call) = rest.get(..5).filter(|head| head.eq_ignore_ascii_case("call ")).and(rest.get(5..))
    {
        let (name, after) = call.split_once(" with ")?;
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<&RawValue>();
        let value = values.next()?.ok().filter(|value| value.get().starts_with('{'))?;
        let arguments = RawJson::from_value(value).get().to_owned();
        found.push(ToolCall { id: None, name: name.trim().to_owned(), arguments });
        rest = after[values.byte_offset()..].trim_start();
    }
    (!found.is_empty()).then_some(found)
}

fn call(asked: &ParsedRequest, calls: Vec<ToolCall>) -> ScriptedReply {
    let offered = asked.setup.tools.as_ref().map(RawJson::get).unwrap_or_default();
    let names = |name: &str| {
        offered.contains(&format!("\"name\":{}", serde_json::Value::from(name)))
            || offered.contains(&format!("\"name\": {}", serde_json::Value::from(name)))
    };
    match calls.iter().find(|call| !names(&call.name)) {
        Some(call) => said(format!("I was offered no tool called {:?}.", call.name)),
        None => ScriptedReply { calls, ..ScriptedReply::default() },
    }
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

// What a request for a summary gives to summarise, and a short true extract of it.
//
// Two forms are understood: the conversation as text between `<conversation>` tags, each message headed by its number
// and role, and the conversation as messages, with the request for a summary as the last of them.

/// The longest extract, in tokens.
const LONGEST: u64 = 600;
/// Below this there is nothing worth reading.
const SHORTEST: u64 = 64;

/// What stands before texts that are summaries already.
const EARLIER: [&str; 4] =
    ["[Earlier summary]", "[Kept from an earlier summary]", "[Earlier marker]", "[Summary so far]"];

/// True when the request asks for a summary.
pub(super) fn is_asked(asked: &ParsedRequest) -> bool {
    let user = asked.messages.iter().rfind(|message| message.role == Role::User);
    let text = user.map(Message::words).unwrap_or_default();
    let tags = ["<summary></summary>", "<summary> tag", "in <summary>", "inside <summary>"];
    let system = system(&asked.setup).unwrap_or_default();
    tags.iter().any(|tag| text.contains(tag))
        || system.contains("condense conversations")
        || system.contains("要約するアシスタント")
}

/// The summary, in the tags that were asked for.
pub(super) fn summary(meter: Meter, asked: &ParsedRequest) -> String {
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

fn from_messages(meter: Meter, asked: &ParsedRequest) -> Digest {
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
            vec![MessagePart::Result(ToolOutcome {
                call_id: calls.pop_front().unwrap_or_default(),
                content: vec![MessagePart::text(content)],
                is_error,
                ..ToolOutcome::default()
            })],
        );
    }
    let mut parts = vec![MessagePart::text("")];
    for line in text.lines() {
        let tool = line.strip_prefix("[Tool Use: ").and_then(|rest| rest.strip_suffix(']'));
        match (tool.filter(|_| role == Role::Assistant), parts.last_mut()) {
            (Some(name), _) => {
                let id = format!("{seq}.{}", parts.len());
                calls.push_back(id.clone());
                let (name, arguments) = (name.to_owned(), String::new());
                parts.push(MessagePart::Call(Call {
                    id,
                    name,
                    arguments,
                    kind: CallKind::Function,
                    extra: None,
                }));
            }
            (
                None,
                Some(MessagePart::Text { text, .. } | MessagePart::Call(Call { arguments: text, .. })),
            ) => {
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
    use komado_core::message::Role;

    fn ask(text: &str) -> ScriptedReply {
        let tools =
            RawJson::parse(r#"[{"type":"function","function":{"name":"read","parameters":{}}}]"#).unwrap();
        let setup = Setup { tools: Some(tools), ..Setup::default() };
        let messages = vec![
            Message::text(Role::User, "The port is 8443.\nRemember it."),
            Message::text(Role::Assistant, "ok"),
            Message::text(Role::User, text),
        ];
        let asked = ParsedRequest { model: "m".into(), setup, messages, max_tokens: None, stream: false };
        let news = NewMessages::of(&asked.messages, false);
        reply(Meter::O200k, &asked, &news, 40)
    }

    #[test]
    fn orders_are_obeyed() {
        assert_eq!(ask("Repeat: 小窓 x ").text, "小窓 x");
        assert_eq!(ask("please write 3 words about it").text, "window river lantern");
        assert_eq!(ask("find: 8443").text, "1 user: The port is 8443.");
        assert!(ask("find: 9999").text.contains("do not see"));
        let calls = ask("call read with {\"path\":\"a\",\"n\":1.0}\ncall read with {}").calls;
        assert_eq!(
            calls.iter().map(|call| call.arguments.as_str()).collect::<Vec<_>>(),
            [r#"{"path":"a","n":1.0}"#, "{}"]
        );
        assert!(ask("call rm with {}").text.contains("no tool called \"rm\""));
        assert!(ask("call me maybe").text.contains("call me maybe"));
    }

    #[test]
    fn it_says_what_it_was_asked_in_the_language_of_the_question() {
        let english = ask("Open the window").text;
        assert!(
            english.contains("Open the window")
                && english.contains("turn 2")
                && english.contains("40 tokens")
        );
        let japanese = ask("窓を開けて").text;
        assert!(japanese.contains("「窓を開けて」") && japanese.contains("2回目"), "{japanese}");
    }
}

#[cfg(test)]
mod material_tests {
    use super::*;
    use komado_core::journal::Setup;

    fn asked(messages: Vec<Message>) -> ParsedRequest {
        ParsedRequest {
            model: "m".into(),
            setup: Setup::default(),
            messages,
            max_tokens: Some(400),
            stream: false,
        }
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
