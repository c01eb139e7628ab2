//! Any conversation that can be admitted is one that the API takes.

use crate::messages_responses::play::{BOTH, again, ask, call, request, result, written};
use komado_core::journal::Setup;
use komado_core::message::{Message, MessagePart, Role};
use komado_provider::Dialect;
use proptest::prelude::*;
use serde_json::Value;

fn words() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", " ", "\n", "窓", "a\"b\\", "<system>", "日本語の文。\n二行目", "　"])
        .prop_map(str::to_owned)
}

fn spoken() -> impl Strategy<Value = Vec<Message>> {
    let role = prop::sample::select(vec![Role::User, Role::User, Role::System, Role::Developer]);
    (role, prop::collection::vec(words(), 1..3))
        .prop_map(|(role, texts)| vec![Message::of(role, texts.into_iter().map(MessagePart::text).collect())])
}

fn arguments() -> impl Strategy<Value = String> {
    let some = [
        "",
        "{}",
        "{\"p\":1.0}",
        "{\"窓\":[1,{\"a\":null}]}",
        "{\"broken\":",
        "free 文",
        "[]",
        "{\"_raw\":\"x\"}",
    ];
    prop::sample::select(some.to_vec()).prop_map(str::to_owned)
}

/// A turn of the model: thoughts, words, calls, and each call's result, in an order of its own.
fn turn() -> impl Strategy<Value = Vec<Message>> {
    let thought = prop::option::of((words(), prop::option::of(Just("EqQB/+==".to_owned()))));
    let calls = prop::collection::vec((arguments(), prop::collection::vec(words(), 0..3)), 0..4);
    (thought, prop::option::of(words()), calls, any::<bool>()).prop_map(
        |(thought, said, calls, backwards)| {
            let mut parts = Vec::new();
            parts.extend(thought.map(|(text, signature)| MessagePart::Reasoning { text, signature }));
            parts.extend(said.map(MessagePart::text));
            let ids = (0..calls.len()).map(|i| format!("call_{i}"));
            parts.extend(ids.clone().zip(&calls).map(|(id, (arguments, _))| call(&id, arguments)));
            if parts.is_empty() {
                parts.push(MessagePart::text("…"));
            }
            let answers = ids.zip(&calls).map(|(id, (_, said))| {
                result(&id, said.iter().map(|text| MessagePart::text(text.as_str())).collect())
            });
            let mut answers: Vec<Message> = answers.collect();
            if backwards {
                answers.reverse();
            }
            let mut messages = vec![Message::of(Role::Assistant, parts)];
            messages.extend(answers);
            messages
        },
    )
}

fn talk() -> impl Strategy<Value = Vec<Message>> {
    let turn = prop_oneof![spoken(), turn()];
    prop::collection::vec(turn, 0..8).prop_map(|turns| turns.into_iter().flatten().collect())
}

fn blocks(message: &Value) -> &Vec<Value> {
    message["content"].as_array().unwrap()
}

fn ids<'a>(message: &'a Value, kind: &str, field: &str) -> Vec<&'a str> {
    let of_kind = blocks(message).iter().filter(|block| block["type"] == kind);
    let mut ids: Vec<&str> = of_kind.map(|block| block[field].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids
}

fn assert_anthropic_takes(body: &str) {
    let body: Value = serde_json::from_str(body).unwrap();
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[0]["role"], "user");
    let mut asked: Vec<&str> = Vec::new();
    for (i, message) in messages.iter().enumerate() {
        assert_eq!(message["role"], if i % 2 == 0 { "user" } else { "assistant" });
        assert!(!blocks(message).is_empty());
        let texts = blocks(message).iter().filter(|block| block["type"] == "text");
        texts.for_each(|block| assert!(!block["text"].as_str().unwrap().trim().is_empty()));
        assert_eq!(
            ids(message, "tool_result", "tool_use_id"),
            asked,
            "results right after their calls, all of them"
        );
        let first_other = blocks(message).iter().position(|block| block["type"] != "tool_result");
        let late =
            blocks(message).iter().skip(first_other.unwrap_or(0)).filter(|b| b["type"] == "tool_result");
        assert!(first_other.is_none() || late.count() == 0, "results first");
        blocks(message)
            .iter()
            .filter(|b| b["type"] == "tool_use")
            .for_each(|b| assert!(b["input"].is_object()));
        asked = ids(message, "tool_use", "id");
    }
    assert!(asked.is_empty());
    assert!(body["max_tokens"].is_u64());
    assert!(body["system"].as_str().is_none_or(|system| !system.trim().is_empty()));
}

fn assert_openai_takes(body: &str) {
    let body: Value = serde_json::from_str(body).unwrap();
    let mut open: Vec<&str> = Vec::new();
    for item in body["input"].as_array().unwrap() {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str().unwrap() {
            "function_call" => open.push(id),
            "function_call_output" => {
                let at = open.iter().position(|call| *call == id).unwrap();
                open.remove(at);
            }
            _ => assert!(open.is_empty()),
        }
    }
    assert!(open.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_conversation_is_one_that_anthropic_takes(talk in talk()) {
        assert_anthropic_takes(&request(Dialect::Messages, &Setup::default(), &talk));
    }

    #[test]
    fn every_conversation_is_one_that_openai_takes(talk in talk()) {
        assert_openai_takes(&request(Dialect::Responses, &Setup::default(), &talk));
    }

    #[test]
    fn a_longer_conversation_begins_with_the_shorter_ones_bytes(talk in talk(), at in any::<prop::sample::Index>()) {
        let (setup, n) = (Setup { system: Some("決まり".into()), ..Setup::default() }, at.index(talk.len() + 1));
        for dialect in BOTH {
            let (open, whole) = written(dialect, &ask(&setup), &talk[..n]);
            let (_, longer) = written(dialect, &ask(&setup), &talk);
            prop_assert!(longer.starts_with(&open));
            prop_assert!(whole.starts_with(&open));
        }
    }

    #[test]
    fn what_was_written_is_read_and_written_as_it_was(talk in talk()) {
        let setup = Setup { system: Some("決まり".into()), ..Setup::default() };
        for dialect in BOTH {
            let once = request(dialect, &setup, &talk);
            let asked = dialect.read(&once).unwrap();
            prop_assert_eq!(again(dialect, &asked), once);
        }
    }

    #[test]
    fn what_is_read_of_our_own_can_be_admitted(talk in talk()) {
        for dialect in BOTH {
            let asked = dialect.read(&request(dialect, &Setup::default(), &talk)).unwrap();
            let shapes: Vec<_> = asked.messages.iter().map(komado_core::grammar::MessageShape::of).collect();
            prop_assert_eq!(komado_core::grammar::openai(&shapes), Ok(()));
        }
    }
}
