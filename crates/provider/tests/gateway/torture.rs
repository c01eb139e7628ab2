//! Streams that are cut, split and garbled: what was said before stays said, in every dialect it is handed on in.

use komado_core::message::{CallKind, Opaque};
use komado_core::raw::RawJson;
use komado_provider::dialect::ResponseStamp;
use komado_provider::{Dialect, ModelEvent, ModelResponse, ResponseForm};
use proptest::prelude::*;

fn stamp() -> ResponseStamp {
    ResponseStamp { created: 5, created_at: "2025-11-15T09:46:40Z".into(), usage: true }
}

/// An answer with everything: thoughts and their seal, words of every width, calls in fragments that take turns.
fn story(dialect: Dialect) -> Vec<ModelEvent> {
    let call = |index: usize, id: &str| ModelEvent::Call {
        index,
        id: id.into(),
        name: "read_窓".into(),
        kind: CallKind::Function,
    };
    let arguments = |index: usize, text: &str| ModelEvent::Arguments { index, text: text.into() };
    let mut events = vec![
        ModelEvent::Begun { id: Some("id_1".into()), model: Some("m".into()) },
        ModelEvent::Reasoning("考え".into()),
        ModelEvent::Signature("EqQB+/".into()),
        ModelEvent::Signature("==".into()),
        ModelEvent::PartDone(None),
        ModelEvent::Text("窓🪟é".into()),
        ModelEvent::Text(" \"\\\n\u{2028}".into()),
        ModelEvent::PartDone(None),
        call(0, "a"),
        arguments(0, "{\"p\":\"窓"),
        call(1, "b"),
        arguments(1, "{\"q\""),
        arguments(0, "🪟\"}"),
        arguments(1, ":[1.0,\"\\u7a93\"]}"),
    ];
    if dialect == Dialect::Messages {
        let json = RawJson::parse(r#"{"type":"redacted_thinking","data":"Em+/="}"#).unwrap();
        events.insert(5, ModelEvent::Part(Opaque { dialect: dialect.name().into(), json }));
    }
    events.push(ModelEvent::Usage(komado_core::journal::Usage {
        input_tokens: 9,
        output_tokens: 4,
        ..Default::default()
    }));
    events.push(ModelEvent::Finished("tool_calls".into()));
    events
}

fn encoded(dialect: Dialect, events: &[ModelEvent]) -> Vec<u8> {
    let (mut encoder, mut out) = (dialect.encoder(ResponseForm::Stream, stamp()), Vec::new());
    events.iter().for_each(|event| encoder.event(event, &mut out));
    out
}

fn whole(dialect: Dialect, events: &[ModelEvent]) -> Vec<u8> {
    let (mut encoder, mut out) = (dialect.encoder(ResponseForm::Stream, stamp()), Vec::new());
    events.iter().for_each(|event| encoder.event(event, &mut out));
    encoder.end(&mut out);
    out
}

/// The events of what came so far, without an end.
fn pushed(dialect: Dialect, pieces: &[&[u8]]) -> Vec<ModelEvent> {
    let (mut decoder, mut events) = (dialect.decoder(ResponseForm::Stream), Vec::new());
    pieces.iter().for_each(|piece| decoder.push(piece, &mut |event| events.push(event)));
    events
}

#[test]
fn split_at_every_byte_an_answer_says_the_same() {
    for dialect in Dialect::ALL {
        let bytes = whole(dialect, &story(dialect));
        let said = pushed(dialect, &[&bytes]);
        assert!(said.iter().any(|event| matches!(event, ModelEvent::Finished(_))), "{dialect:?}");
        for at in 0..=bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(pushed(dialect, &[a, b]), said, "{dialect:?} at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(pushed(dialect, &single), said, "{dialect:?}");
    }
}

#[test]
fn an_upstream_that_dies_at_any_byte_has_said_a_part_of_what_it_would_have_said() {
    for from in Dialect::ALL {
        let bytes = whole(from, &story(from));
        let said = pushed(from, &[&bytes]);
        let handed_on: Vec<(Dialect, Vec<u8>)> =
            Dialect::ALL.into_iter().map(|to| (to, encoded(to, &said))).collect();
        let (mut decoder, mut events) = (from.decoder(ResponseForm::Stream), Vec::new());
        let mut before = usize::MAX;
        for at in 0..bytes.len() {
            decoder.push(&bytes[at..=at], &mut |event| events.push(event));
            assert_eq!(events, said[..events.len()], "{from:?} at {at}");
            if std::mem::replace(&mut before, events.len()) == events.len() {
                continue;
            }
            for (to, whole) in &handed_on {
                assert!(whole.starts_with(&encoded(*to, &events)), "{from:?} to {to:?} at {at}");
            }
        }
    }
}

#[test]
fn an_answer_that_ends_at_any_byte_is_not_whole_unless_all_of_it_came() {
    for dialect in Dialect::ALL {
        let bytes = whole(dialect, &story(dialect));
        let add = |events: &[ModelEvent]| {
            let mut heard = ModelResponse::default();
            events.iter().for_each(|event| heard.take(event));
            heard
        };
        let all = add(&pushed(dialect, &[&bytes]));
        for at in 0..bytes.len() {
            let (mut decoder, mut events) = (dialect.decoder(ResponseForm::Stream), Vec::new());
            decoder.push(&bytes[..at], &mut |event| events.push(event));
            decoder.end(&mut |event| events.push(event));
            let part = add(&events);
            if part.finish.is_some() {
                assert_eq!(
                    (part.finish.clone(), part.message()),
                    (all.finish.clone(), all.message()),
                    "{at}"
                );
            }
        }
    }
}

#[test]
fn seals_and_fragments_arrive_as_they_were_sent() {
    for dialect in Dialect::ALL {
        let bytes = whole(dialect, &story(dialect));
        let mut heard = ModelResponse::default();
        pushed(dialect, &bytes.chunks(1).collect::<Vec<_>>()).iter().for_each(|event| heard.take(event));
        let message = heard.message().unwrap();
        assert_eq!(message.words(), "窓🪟é \"\\\n\u{2028}", "{dialect:?}");
        let calls: Vec<&str> = message.calls().map(|call| call.arguments.as_str()).collect();
        assert_eq!(calls, ["{\"p\":\"窓🪟\"}", "{\"q\":[1.0,\"\\u7a93\"]}"], "{dialect:?}");
        if dialect == Dialect::Messages {
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains("\"signature\":\"EqQB+/==\"") && text.contains("Em+/="), "{text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbled_streams_make_nothing_panic(
        from in prop::sample::select(Dialect::ALL.to_vec()), noise in prop::collection::vec((any::<usize>(), any::<u8>()), 1..12), cut in any::<usize>(),
    ) {
        let mut bytes = whole(from, &story(from));
        let len = bytes.len();
        noise.iter().for_each(|(at, byte)| bytes[at % len] = *byte);
        bytes.truncate(cut % (len + 1));
        let (mut decoder, mut events) = (from.decoder(ResponseForm::Stream), Vec::new());
        bytes.chunks(7).for_each(|piece| decoder.push(piece, &mut |event| events.push(event)));
        decoder.end(&mut |event| events.push(event));
        for to in Dialect::ALL {
            for form in [ResponseForm::Stream, ResponseForm::Whole] {
                let (mut encoder, mut out) = (to.encoder(form, stamp()), Vec::new());
                events.iter().for_each(|event| encoder.event(event, &mut out));
                encoder.end(&mut out);
                prop_assert!(std::str::from_utf8(&out).is_ok());
            }
        }
    }
}
