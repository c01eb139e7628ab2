//! Whatever is said: requests come back as they were, answers too, and rubbish is not a reason to panic.

use super::kit::{ask, decoded, encoded, heard, setup, written};
use super::requests::{call, result};
use komado_core::journal::Usage;
use komado_core::message::{CallKind, Message, MessagePart, Opaque, Role};
use komado_core::raw::RawJson;
use komado_provider::{Dialect, ModelEvent, ResponseForm};
use proptest::prelude::*;

const OURS: [Dialect; 2] = [Dialect::Chat, Dialect::Ollama];

fn words() -> impl Strategy<Value = String> {
    prop_oneof![".{1,12}", "[ぁ-ん漢字窓🪟\"\\\\\n]{1,8}", Just("data: [DONE]\n\n".to_owned())]
}

fn arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        words().prop_map(|text| format!("{{\"k\":{}}}", serde_json::Value::from(text))),
        Just("{\"n\": 1.0, \"big\": 12345678901234567890}".to_owned()),
        Just("{\"_raw\":\"x\"}".to_owned()),
        words().prop_filter("says something", |text| !text.trim().is_empty()
            && RawJson::parse(text.clone()).is_err()),
    ]
}

fn extra(dialect: Dialect) -> impl Strategy<Value = Option<Opaque>> {
    let json = prop_oneof![Just(r#"{"odd":[1.0]}"#), Just(r#"{"odd":{"a":1e400},"b":"窓"}"#)];
    let opaque = json
        .prop_map(move |json| Opaque { dialect: dialect.name().into(), json: RawJson::parse(json).unwrap() });
    proptest::option::weighted(0.2, opaque)
}

/// A turn: what a user says, and what the model does about it, results and all.
fn turn(dialect: Dialect) -> impl Strategy<Value = Vec<Message>> {
    let calls = proptest::collection::vec(("[a-z]{1,5}", arguments(), words()), 0..3);
    (words(), proptest::option::of(words()), calls, extra(dialect)).prop_map(|(asked, said, calls, extra)| {
        let mut turn = vec![Message::text(Role::User, asked)];
        let mut parts: Vec<MessagePart> = said.map(MessagePart::text).into_iter().collect();
        let ids = (0..calls.len()).map(|n| format!("c{n}"));
        parts.extend(ids.clone().zip(&calls).map(|(id, (name, arguments, _))| call(&id, name, arguments)));
        if parts.is_empty() {
            parts.push(MessagePart::text(""));
        }
        turn.push(Message { extra, ..Message::of(Role::Assistant, parts) });
        turn.extend(ids.zip(&calls).map(|(id, (name, _, text))| result(&id, name, text)));
        turn
    })
}

fn talk(dialect: Dialect) -> impl Strategy<Value = Vec<Message>> {
    proptest::collection::vec(turn(dialect), 1..4).prop_map(|turns| turns.concat())
}

fn either() -> impl Strategy<Value = (Dialect, Vec<Message>)> {
    prop_oneof![Just(Dialect::Chat), Just(Dialect::Ollama)]
        .prop_flat_map(|dialect| (Just(dialect), talk(dialect)))
}

/// Chat has no place for a tool's name beside its result.
fn comparable(dialect: Dialect, mut messages: Vec<Message>) -> Vec<Message> {
    if dialect == Dialect::Chat {
        for part in messages.iter_mut().flat_map(|message| &mut message.parts) {
            if let MessagePart::Result(outcome) = part {
                outcome.name = None;
            }
        }
    }
    messages
}

fn answer() -> impl Strategy<Value = Vec<ModelEvent>> {
    let pieces = || proptest::collection::vec(words(), 0..4);
    let calls = proptest::collection::vec(("[a-z]{1,5}", arguments()), 0..4);
    (pieces(), pieces(), calls, 0..9u64).prop_map(|(thoughts, texts, calls, tokens)| {
        let mut events = vec![ModelEvent::Begun { id: None, model: Some("m".into()) }];
        events.extend(thoughts.into_iter().map(ModelEvent::Reasoning));
        events.extend(texts.into_iter().map(ModelEvent::Text));
        for (index, (name, _)) in calls.iter().enumerate() {
            let (id, name, kind) = (format!("c{index}"), name.clone(), CallKind::Function);
            events.push(ModelEvent::Call { index: index * 2, id, name, kind });
        }
        for (index, (_, arguments)) in calls.iter().enumerate() {
            let half = arguments.chars().count() / 2;
            for text in [arguments.chars().take(half).collect(), arguments.chars().skip(half).collect()] {
                events.push(ModelEvent::Arguments { index: index * 2, text });
            }
        }
        events.push(ModelEvent::Usage(Usage { input_tokens: tokens, output_tokens: 1, ..Usage::default() }));
        let why = if calls.is_empty() { "stop" } else { "tool_calls" };
        events.push(ModelEvent::Finished(why.into()));
        events
    })
}

proptest! {
    #[test]
    fn any_request_comes_back_and_its_beginning_does_not_depend_on_its_end((dialect, messages) in either(), cut in 0.0..1.0) {
        let setup = setup(dialect, Some("s"), None, None);
        let (text, ends) = written(dialect, &ask(&setup), &messages);
        let asked = dialect.read(&text).unwrap();
        prop_assert_eq!(
            comparable(dialect, asked.messages),
            comparable(dialect, messages.clone())
        );
        let n = (cut * messages.len() as f64) as usize;
        let (short, short_ends) = written(dialect, &ask(&setup), &messages[..n]);
        let end = short_ends.last().copied().unwrap_or(0);
        prop_assert_eq!(&short.as_bytes()[..end], &text.as_bytes()[..end]);
        prop_assert_eq!(short_ends, &ends[..n]);
    }

    #[test]
    fn any_answer_is_heard_as_it_was_said_however_it_is_cut(events in answer(), size in 1..40usize) {
        let wanted = heard(&events);
        for dialect in OURS {
            for form in [ResponseForm::Stream, ResponseForm::Whole] {
                let bytes = encoded(dialect, form, &events);
                let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
                let again = heard(&decoded(dialect, form, &pieces));
                let parts = |message: Option<Message>| message.map(|message| message.parts);
                prop_assert_eq!(parts(again.message()), parts(wanted.message()));
                prop_assert_eq!((again.usage, again.finish), (wanted.usage, wanted.finish.clone()));
            }
        }
    }

    #[test]
    fn rubbish_does_not_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        text in r#"(data: )?[\[{]("?(choices|delta|message|tool_calls|index|error|done)"?[:,\[{]?){0,8}[\]}]*\n{0,2}"#,
    ) {
        for dialect in OURS {
            for form in [ResponseForm::Stream, ResponseForm::Whole] {
                prop_assert!(heard(&decoded(dialect, form, &[&bytes])).finish.is_none());
                decoded(dialect, form, &[text.as_bytes()]);
            }
            let _ = dialect.read(&text);
            let _ = dialect.read(&String::from_utf8_lossy(&bytes));
        }
    }
}
