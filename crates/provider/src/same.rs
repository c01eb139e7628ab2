//! Is what a client tells of a reply the reply that was given?
//!
//! A client sends back what the model said as it remembers it: without thoughts, in other parts, with other spaces, its
//! arguments read and written again. All of that is the same reply. Another word, another call or another order is not.

use komado_core::message::{Call, Message, MessagePart, Role};
use serde_json::Value;

/// True when `returned`, as a client tells it, says what `told` said: the model's words and calls, those for which `own`
/// says so left out because the client never saw them. A reply that says nothing is the same as none.
pub fn same_words(told: &[&Message], own: &dyn Fn(&str) -> bool, returned: &[&Message]) -> bool {
    let calls = |messages: &[&Message]| -> Vec<Call> {
        let spoken = messages.iter().filter(|message| message.role == Role::Assistant);
        spoken.flat_map(|message| message.calls()).filter(|call| !own(&call.name)).cloned().collect()
    };
    let (said, retold) = (words(told), words(returned));
    if !letters(&said).eq(letters(&retold)) {
        return false;
    }
    let (made, remade) = (calls(told), calls(returned));
    made.len() == remade.len() && made.iter().zip(&remade).all(|(one, other)| same_call(one, other))
}

/// All texts, without the thoughts that stand in them.
fn words(messages: &[&Message]) -> String {
    let mut words = String::new();
    for message in messages.iter().filter(|message| message.role == Role::Assistant) {
        for part in &message.parts {
            if let MessagePart::Text { text, .. } = part {
                words.push_str(text);
            }
        }
    }
    unthought(&words)
}

/// A text without what stands in `<think>` tags. Some models open no tag and only close one; one that is never closed
/// reaches to the end.
fn unthought(text: &str) -> String {
    const OPEN: &str = "<think>";
    const CLOSE: &str = "</think>";
    let (mut out, mut rest) = (String::new(), text);
    while let Some(end) = rest.find(CLOSE) {
        match rest[..end].rfind(OPEN) {
            Some(_) => out.push_str(&rest[..rest.find(OPEN).unwrap_or(end)]),
            None => out.clear(),
        }
        rest = &rest[end + CLOSE.len()..];
    }
    out.push_str(rest.find(OPEN).map_or(rest, |at| &rest[..at]));
    out
}

/// What is not space.
fn letters(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|letter| !letter.is_whitespace())
}

fn same_call(one: &Call, other: &Call) -> bool {
    one.name == other.name && same_arguments(&one.arguments, &other.arguments)
}

fn same_arguments(one: &str, other: &str) -> bool {
    let bare = |text: &str| if text.trim().is_empty() { "{}".to_owned() } else { text.trim().to_owned() };
    let (one, other) = (bare(one), bare(other));
    if one == other {
        return true;
    }
    match (serde_json::from_str::<Value>(&one), serde_json::from_str::<Value>(&other)) {
        (Ok(one), Ok(other)) => same_value(&one, &other),
        _ => false,
    }
}

/// Numbers are the same when they are as near as the clients' own can tell them apart: most know only floats.
fn same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_value(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(key, value)| other.get(key).is_some_and(|other| same_value(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::message::CallKind;

    fn call(id: &str, name: &str, arguments: &str) -> MessagePart {
        let (id, name, arguments) = (id.into(), name.into(), arguments.into());
        MessagePart::Call(Call { id, name, arguments, kind: CallKind::Function, extra: None })
    }

    fn model(parts: Vec<MessagePart>) -> Message {
        Message::of(Role::Assistant, parts)
    }

    fn same(told: &[Message], returned: &[Message]) -> bool {
        let own = |name: &str| name == "recall";
        let told: Vec<&Message> = told.iter().collect();
        let returned: Vec<&Message> = returned.iter().collect();
        same_words(&told, &own, &returned)
    }

    #[test]
    fn a_reply_told_in_other_clothes_is_the_same() {
        let thought = MessagePart::Reasoning { text: "hm".into(), signature: Some("s".into()) };
        let told = [
            model(vec![thought, MessagePart::text("窓を\n"), call("a", "recall", "{}")]),
            model(vec![
                MessagePart::text("<think>no</think>開ける。"),
                call("b", "read", r#"{"p": 1.0, "q":"x"}"#),
            ]),
        ];
        let returned = [
            model(vec![MessagePart::text("窓を開ける。 ")]),
            model(vec![call("z", "read", r#"{"q":"x","p":1}"#)]),
        ];
        assert!(same(&told, &returned));
        assert!(same(&told[..1], &[model(vec![MessagePart::text("窓を")])]));
    }

    #[test]
    fn another_word_another_call_or_another_order_is_not() {
        let told =
            [model(vec![MessagePart::text("yes"), call("a", "read", "{\"p\":1}"), call("b", "grep", "")])];
        let but = |parts: Vec<MessagePart>| same(&told, &[model(parts)]);
        let (read, grep) = (call("a", "read", "{\"p\":1}"), call("b", "grep", "{}"));
        assert!(but(vec![MessagePart::text(" yes"), read.clone(), grep.clone()]));
        assert!(!but(vec![MessagePart::text("no"), read.clone(), grep.clone()]));
        assert!(!but(vec![MessagePart::text("yes"), grep.clone(), read.clone()]));
        assert!(!but(vec![MessagePart::text("yes"), read.clone()]));
        assert!(!but(vec![MessagePart::text("yes"), call("a", "read", "{\"p\":2}"), grep.clone()]));
        assert!(!but(vec![MessagePart::text("yes"), call("a", "write", "{\"p\":1}"), grep]));
        assert!(!same(&told, &[]));
    }

    #[test]
    fn nothing_said_is_the_same_as_no_reply() {
        let empty = [model(vec![MessagePart::text(" \n")])];
        let only_own = [model(vec![call("a", "recall", "{\"q\":\"x\"}")])];
        let thought = [model(vec![MessagePart::text("<think>only this")])];
        for silent in [&empty[..], &only_own, &thought, &[]] {
            assert!(same(silent, &[]) && same(&[], silent) && same(silent, &empty));
        }
    }

    #[test]
    fn arguments_that_are_no_json_are_compared_as_text() {
        assert!(same_arguments(" *** Begin 窓", "*** Begin 窓\n"));
        assert!(!same_arguments("*** Begin", "*** End"));
        assert!(same_arguments("12345678901234567890", "12345678901234567000"));
        assert!(!same_arguments("{\"a\":[1,2]}", "{\"a\":[2,1]}"));
    }

    #[test]
    fn thoughts_in_tags_are_left_out_however_they_are_closed() {
        assert_eq!(unthought("a<think>b</think>c<think>d</think>e"), "ace");
        assert_eq!(unthought("b</think>c"), "c");
        assert_eq!(unthought("a<think>b"), "a");
        assert_eq!(unthought("窓"), "窓");
    }
}
