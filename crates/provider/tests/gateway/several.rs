//! One answer to the client, made of several of the model's.

use komado_core::journal::Usage;
use komado_core::message::{CallKind, MessagePart};
use komado_provider::dialect::ResponseStamp;
use komado_provider::{Dialect, ModelEvent, ModelResponse, ResponseForm};

fn call(index: usize, id: &str, name: &str) -> ModelEvent {
    ModelEvent::Call { index, id: id.into(), name: name.into(), kind: CallKind::Function }
}

fn arguments(index: usize, text: &str) -> ModelEvent {
    ModelEvent::Arguments { index, text: text.into() }
}

fn begun(id: &str) -> ModelEvent {
    ModelEvent::Begun { id: Some(id.into()), model: Some(format!("model of {id}")) }
}

/// Three answers; the second one's call has the index that the first one's had.
fn three() -> Vec<ModelEvent> {
    vec![
        begun("first_1"),
        ModelEvent::Reasoning("hm".into()),
        ModelEvent::Text("見てみる。".into()),
        call(0, "a", "read"),
        arguments(0, "{\"p\":1}"),
        begun("second_2"),
        call(0, "", "grep"),
        arguments(0, "{\"q\":"),
        arguments(0, "2}"),
        call(1, "", "grep"),
        arguments(1, "{}"),
        begun("third_3"),
        ModelEvent::Text("Done".into()),
        ModelEvent::Text(".".into()),
        ModelEvent::Usage(Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() }),
        ModelEvent::Finished("tool_calls".into()),
    ]
}

fn encoded(dialect: Dialect, form: ResponseForm, events: &[ModelEvent]) -> Vec<u8> {
    let stamp = ResponseStamp { created: 5, created_at: "2025-11-15T09:46:40Z".into(), usage: true };
    let (mut encoder, mut out) = (dialect.encoder(form, stamp), Vec::new());
    events.iter().for_each(|event| encoder.event(event, &mut out));
    encoder.end(&mut out);
    out
}

fn heard(dialect: Dialect, form: ResponseForm, bytes: &[u8]) -> (ModelResponse, usize) {
    let (mut decoder, mut heard, mut begun) = (dialect.decoder(form), ModelResponse::default(), 0);
    let mut take = |event: ModelEvent| {
        begun += usize::from(matches!(event, ModelEvent::Begun { .. }));
        heard.take(&event);
    };
    decoder.push(bytes, &mut take);
    decoder.end(&mut take);
    (heard, begun)
}

#[test]
fn several_answers_are_one_in_every_dialect_and_form() {
    for dialect in Dialect::ALL {
        for form in [ResponseForm::Stream, ResponseForm::Whole] {
            let bytes = encoded(dialect, form, &three());
            let (heard, begun) = heard(dialect, form, &bytes);
            let place = format!("{dialect:?} {form:?}: {}", String::from_utf8_lossy(&bytes));
            assert_eq!(begun, 1, "{place}");
            assert_eq!(heard.id.as_deref().unwrap_or("first_1"), "first_1", "{place}");
            assert_eq!(heard.model.as_deref(), Some("model of first_1"), "{place}");
            assert!(heard.failed.is_none() && heard.finish.as_deref() != Some("length"), "{place}");
            assert_eq!(heard.usage.map(|usage| usage.total()), Some(10), "{place}");
            let message = heard.message().unwrap();
            let words: String = message.words().split_whitespace().collect();
            assert_eq!(words, "見てみる。Done.", "{place}");
            let calls: Vec<(&str, &str)> =
                message.calls().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
            assert_eq!(calls, [("read", "{\"p\":1}"), ("grep", "{\"q\":2}"), ("grep", "{}")], "{place}");
            let mut ids: Vec<&str> = message.calls().map(|call| call.id.as_str()).collect();
            assert_eq!(ids[0], "a", "{place}");
            ids.retain(|id| !id.is_empty());
            ids.dedup();
            assert!(ids.len() == 3 || dialect == Dialect::Ollama, "{place}: no two calls have one id");
        }
    }
}

#[test]
fn words_of_two_answers_do_not_run_into_each_other() {
    let events = [
        begun("a_1"),
        ModelEvent::Text("One.".into()),
        begun("b_2"),
        ModelEvent::Text("Two.".into()),
        ModelEvent::Finished("stop".into()),
    ];
    for dialect in Dialect::ALL {
        for form in [ResponseForm::Stream, ResponseForm::Whole] {
            let message = heard(dialect, form, &encoded(dialect, form, &events)).0.message().unwrap();
            let texts: Vec<&MessagePart> = message.parts.iter().collect();
            match dialect {
                Dialect::Chat | Dialect::Ollama => assert_eq!(texts, [&MessagePart::text("One.\n\nTwo.")]),
                Dialect::Messages | Dialect::Responses => assert_eq!(message.words(), "One.\nTwo."),
            }
        }
    }
}

#[test]
fn blocks_and_items_are_numbered_on_and_closed_before_the_next_answer() {
    let messages = String::from_utf8(encoded(Dialect::Messages, ResponseForm::Stream, &three())).unwrap();
    let (mut open, mut next): (Vec<u64>, u64) = (Vec::new(), 0);
    for line in messages.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let index = event["index"].as_u64();
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!(index, Some(next), "{messages}");
                open.push(next);
                next += 1;
            }
            "content_block_stop" => open.retain(|at| Some(*at) != index),
            "content_block_delta" => assert!(open.contains(&index.unwrap()), "{messages}"),
            "message_delta" => assert!(open.is_empty(), "{messages}"),
            _ => {}
        }
    }
    assert_eq!(messages.matches("event: message_start").count(), 1);
    let responses = String::from_utf8(encoded(Dialect::Responses, ResponseForm::Stream, &three())).unwrap();
    assert_eq!(responses.matches("event: response.created").count(), 1);
    let last = responses.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let last: serde_json::Value = serde_json::from_str(last).unwrap();
    let kinds: Vec<&str> = last["response"]["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call", "function_call", "function_call", "message"]);
}

#[test]
fn an_answer_that_only_called_what_the_client_never_sees_leaves_no_trace() {
    let events = [
        begun("a_1"),
        begun("b_2"),
        begun("c_3"),
        ModelEvent::Text("窓".into()),
        ModelEvent::Finished("stop".into()),
    ];
    let alone = [begun("a_1"), ModelEvent::Text("窓".into()), ModelEvent::Finished("stop".into())];
    for dialect in Dialect::ALL {
        for form in [ResponseForm::Stream, ResponseForm::Whole] {
            assert_eq!(
                encoded(dialect, form, &events),
                encoded(dialect, form, &alone),
                "{dialect:?} {form:?}"
            );
        }
    }
}
