//! The model that answers when the script has nothing to say: small, honest, the same every time.
//!
//! It knows nothing but the request. It says what it was asked, in English or Japanese, and obeys a few orders that make
//! a demonstration: `repeat: X`, `write N words`, `find: X`, `call TOOL with {…}`. A summary it writes is an extract of
//! what it was given. It invents nothing.

use super::material;
use super::script::{News, Reply, ToolCall};
use crate::ask::Asked;
use komado_core::Meter;
use komado_core::message::{Message, Outcome};
use komado_core::raw::Raw;
use serde_json::value::RawValue;

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
pub(super) fn reply(meter: Meter, asked: &Asked, news: &News<'_>, tokens: u64) -> Reply {
    if news.is_summary {
        return said(material::summary(meter, asked));
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

fn said(text: String) -> Reply {
    Reply { text, ..Reply::default() }
}

/// True when a Japanese reader wrote it.
pub(super) fn is_japanese(text: &str) -> bool {
    text.chars().any(|c| matches!(c, '\u{3040}'..='\u{30ff}'))
}

fn plain(text: &str, asked: &Asked, news: &News<'_>, tokens: u64) -> String {
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

fn after_tool(asked: &Asked, last: &Outcome, japanese: bool) -> String {
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
fn find(asked: &Asked, what: &str) -> String {
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
        let arguments = Raw::from_value(value).get().to_owned();
        found.push(ToolCall { id: None, name: name.trim().to_owned(), arguments });
        rest = after[values.byte_offset()..].trim_start();
    }
    (!found.is_empty()).then_some(found)
}

fn call(asked: &Asked, calls: Vec<ToolCall>) -> Reply {
    let offered = asked.setup.tools.as_ref().map(Raw::get).unwrap_or_default();
    let names = |name: &str| {
        offered.contains(&format!("\"name\":{}", serde_json::Value::from(name)))
            || offered.contains(&format!("\"name\": {}", serde_json::Value::from(name)))
    };
    match calls.iter().find(|call| !names(&call.name)) {
        Some(call) => said(format!("I was offered no tool called {:?}.", call.name)),
        None => Reply { calls, ..Reply::default() },
    }
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::journal::Setup;
    use komado_core::message::Role;

    fn ask(text: &str) -> Reply {
        let tools =
            Raw::parse(r#"[{"type":"function","function":{"name":"read","parameters":{}}}]"#).unwrap();
        let setup = Setup { tools: Some(tools), ..Setup::default() };
        let messages = vec![
            Message::text(Role::User, "The port is 8443.\nRemember it."),
            Message::text(Role::Assistant, "ok"),
            Message::text(Role::User, text),
        ];
        let asked = Asked { model: "m".into(), setup, messages, max_tokens: None, stream: false };
        let news = News::of(&asked.messages, false);
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
