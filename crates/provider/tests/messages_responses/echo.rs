//! What is encoded is decoded as it was.

use crate::messages_responses::play::{decoded, encoded, fixtures, heard, recorded};
use komado_core::journal::Usage;
use komado_core::message::{CallKind, Opaque};
use komado_core::raw::RawJson;
use komado_provider::{Dialect, ModelEvent, ProviderFailure, ResponseForm};

const FORMS: [ResponseForm; 2] = [ResponseForm::Stream, ResponseForm::Whole];

fn begun() -> ModelEvent {
    ModelEvent::Begun { id: Some("id_1".into()), model: Some("窓-1".into()) }
}

fn call(index: usize, id: &str, kind: CallKind) -> ModelEvent {
    ModelEvent::Call { index, id: id.into(), name: "read".into(), kind }
}

fn arguments(index: usize, text: &str) -> ModelEvent {
    ModelEvent::Arguments { index, text: text.into() }
}

fn usage() -> ModelEvent {
    let (input_tokens, output_tokens) = (10, 20);
    ModelEvent::Usage(Usage { input_tokens, output_tokens, cache_creation_tokens: 30, cache_read_tokens: 40 })
}

fn part(dialect: Dialect, json: &str) -> Opaque {
    Opaque { dialect: dialect.name().into(), json: RawJson::parse(json).unwrap() }
}

fn text(words: &str) -> ModelEvent {
    ModelEvent::Text(words.into())
}

#[track_caller]
fn same(dialect: Dialect, form: ResponseForm, events: &[ModelEvent]) -> String {
    let bytes = encoded(dialect, form, events);
    let back = decoded(dialect, form, [bytes.as_bytes()]);
    let (said, told) = (heard(events), heard(&back));
    assert_eq!(told.message(), said.message(), "{bytes}");
    assert_eq!(
        (told.finish, told.usage, told.id, told.model),
        (said.finish, said.usage, said.id, said.model)
    );
    bytes
}

#[test]
fn recorded_answers_are_handed_on_as_they_were() {
    for fixture in fixtures() {
        let events = decoded(fixture.0, fixture.1, [recorded(fixture).as_bytes()]);
        let failed = events.iter().any(|event| matches!(event, ModelEvent::Failed(_)));
        for form in FORMS.into_iter().filter(|_| !failed) {
            // A refusal in a stream is words: that it is one is only known when they were said.
            if (fixture.2, form) != ("refusal", ResponseForm::Stream) {
                same(fixture.0, form, &events);
            }
        }
    }
}

#[test]
fn signed_thoughts_and_broken_arguments_come_through_byte_for_byte() {
    let events = [
        begun(),
        ModelEvent::Reasoning("考え\n\"る".into()),
        ModelEvent::Signature("EqQB".into()),
        ModelEvent::Signature("/+==".into()),
        ModelEvent::PartDone(None),
        ModelEvent::Signature("only a seal".into()),
        ModelEvent::PartDone(None),
        text("窓"),
        text("を\u{2028}"),
        ModelEvent::PartDone(None),
        text("二つ目"),
        call(0, "a", CallKind::Function),
        arguments(0, "{\"path\": \"窓"),
        arguments(0, ".rs\", \"n\": 1.0}"),
        call(1, "b", CallKind::Function),
        arguments(1, "{\"broken\":"),
        usage(),
        ModelEvent::Finished("tool_calls".into()),
    ];
    FORMS.into_iter().for_each(|form| _ = same(Dialect::Messages, form, &events));
}

#[test]
fn calls_written_at_once_are_told_apart() {
    let events = [
        begun(),
        call(0, "a", CallKind::Function),
        call(1, "b", CallKind::Function),
        arguments(1, "{\"p\":"),
        arguments(0, "{\"窓\":"),
        arguments(1, "1}"),
        text("between"),
        arguments(0, "2}"),
        ModelEvent::Finished("tool_calls".into()),
        usage(),
    ];
    for dialect in crate::messages_responses::play::BOTH {
        FORMS.into_iter().for_each(|form| _ = same(dialect, form, &events));
    }
}

#[test]
fn items_of_every_kind_come_through() {
    let reasoning = r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAA/+=="}"#;
    let events = [
        begun(),
        ModelEvent::Part(part(Dialect::Responses, reasoning)),
        text("窓"),
        ModelEvent::PartDone(Some(part(
            Dialect::Responses,
            r#"{"annotations":[{"n":1.0}],"item":{"phase":"commentary"}}"#,
        ))),
        text("。"),
        ModelEvent::PartDone(None),
        call(0, "c", CallKind::Custom),
        arguments(0, "*** Begin\n窓"),
        call(1, "d", CallKind::Function),
        arguments(1, "{}"),
        ModelEvent::CallExtra {
            index: 1,
            json: RawJson::parse(r#"{"responses":{"namespace":"mcp"}}"#).unwrap(),
        },
        usage(),
        ModelEvent::Finished("tool_calls".into()),
    ];
    FORMS.into_iter().for_each(|form| _ = same(Dialect::Responses, form, &events));
    let cut = [begun(), text("途中"), usage(), ModelEvent::Finished("length".into())];
    for dialect in crate::messages_responses::play::BOTH {
        FORMS.into_iter().for_each(|form| _ = same(dialect, form, &cut));
    }
}

#[test]
fn free_text_reaches_a_client_that_reads_every_piece_as_json() {
    let free = [
        begun(),
        call(0, "c", CallKind::Custom),
        arguments(0, "*** Begin\n"),
        arguments(0, "窓"),
        call(1, "d", CallKind::Function),
        arguments(1, " "),
        arguments(1, "{\"a\":1.0}"),
        ModelEvent::Finished("tool_calls".into()),
    ];
    let bytes = encoded(Dialect::Messages, ResponseForm::Stream, &free);
    let pieces: Vec<String> = bytes
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line.strip_prefix("data: ")?).ok())
        .filter_map(|event| event["delta"]["partial_json"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(pieces, [" {\"a\":1.0}", "{\"_raw\":\"*** Begin\\n窓\"}"]);
}

fn names(bytes: &str) -> Vec<&str> {
    bytes.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
}

#[test]
fn events_come_in_the_order_clients_know() {
    let events = [
        begun(),
        usage(),
        text("窓"),
        ModelEvent::PartDone(None),
        call(0, "a", CallKind::Function),
        arguments(0, "{}"),
        ModelEvent::Finished("tool_calls".into()),
    ];
    let bytes = same(Dialect::Messages, ResponseForm::Stream, &events);
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let expected = [&["message_start"], &block[..], &block[..], &["message_delta", "message_stop"]].concat();
    assert_eq!(names(&bytes), expected);
    assert!(
        bytes.contains(r#""cache_read_input_tokens":40,"output_tokens":20}}}"#),
        "usage known early is told early"
    );
    let bytes = same(Dialect::Responses, ResponseForm::Stream, &events);
    let expected = [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ];
    let expected: Vec<String> = expected.iter().map(|name| format!("response.{name}")).collect();
    assert_eq!(names(&bytes), expected);
    let numbers: Vec<u64> = bytes
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line.strip_prefix("data: ")?).ok())
        .map(|event| event["sequence_number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..expected.len() as u64).collect::<Vec<_>>());
}

#[test]
fn thoughts_of_other_providers_are_shown_to_both_kinds_of_clients() {
    let events = [
        begun(),
        ModelEvent::Reasoning("考え".into()),
        ModelEvent::PartDone(None),
        text("答え"),
        usage(),
        ModelEvent::Finished("stop".into()),
    ];
    let bytes = encoded(Dialect::Responses, ResponseForm::Stream, &events);
    assert!(bytes.contains("event: response.reasoning_summary_text.delta"), "{bytes}");
    assert!(
        bytes.contains(r#""type":"reasoning","summary":[{"type":"summary_text","text":"考え"}]"#),
        "{bytes}"
    );
    // Unsigned, it comes back unsigned, and is not sent to the API that signs.
    let bytes = same(Dialect::Messages, ResponseForm::Whole, &events);
    assert!(bytes.contains(r#"{"type":"thinking","thinking":"考え","signature":""}"#), "{bytes}");
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}},{bytes}]}}"#);
    let asked = Dialect::Messages.read(&body).unwrap();
    let thought = &asked.messages[1].parts[0];
    assert!(
        matches!(thought, komado_core::message::MessagePart::Reasoning { signature: None, .. }),
        "{thought:?}"
    );
}

#[test]
fn an_error_is_told_in_the_clients_own_words() {
    let fail = |body: &str| [begun(), ModelEvent::Failed(ProviderFailure { status: 200, body: body.into() })];
    let streamed = |dialect: Dialect, body: &str| {
        let stamp = komado_provider::dialect::ResponseStamp::default();
        let (mut encoder, mut out) = (dialect.encoder(ResponseForm::Stream, stamp), Vec::new());
        fail(body).iter().for_each(|event| encoder.event(event, &mut out));
        String::from_utf8(out).unwrap()
    };
    let chat = "{\"error\":{\"code\":\"context_length_exceeded\",\n\"message\":\"長すぎる\"}}";
    let bytes = streamed(Dialect::Messages, chat);
    assert_eq!(names(&bytes), ["error"]);
    assert!(
        bytes.contains(r#"{"type":"error","error":{"type":"api_error","message":"長すぎる"}}"#),
        "{bytes}"
    );
    let bytes = streamed(Dialect::Responses, chat);
    assert_eq!(names(&bytes).last(), Some(&"response.failed"));
    assert!(bytes.contains(r#""error":{"code":"context_length_exceeded","message":"長すぎる"}"#), "{bytes}");
    let own =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}"#;
    assert!(streamed(Dialect::Messages, own).contains(own));
    let whole = encoded(Dialect::Responses, ResponseForm::Whole, &fail(chat));
    assert_eq!(
        heard(&decoded(Dialect::Responses, ResponseForm::Whole, [whole.as_bytes()])).failed.unwrap().body,
        whole
    );
}
