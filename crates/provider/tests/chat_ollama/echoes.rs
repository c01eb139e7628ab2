//! What we send is heard as it was said: the encoder and the decoder are each other's reverse.

use super::answers::{ALL, OLLAMA_WHOLE};
use super::kit::{decoded, encoded, heard, shown};
use komado_core::journal::Usage;
use komado_core::message::CallKind;
use komado_provider::dialect::ResponseStamp;
use komado_provider::{Dialect, ModelEvent, ProviderFailure, ResponseForm};

const FORMS: [ResponseForm; 2] = [ResponseForm::Stream, ResponseForm::Whole];

#[test]
fn every_answer_of_a_server_is_heard_again_when_we_send_it_on() {
    for fixture in &ALL {
        let events = decoded(fixture.dialect, fixture.form, &[fixture.text.as_bytes()]);
        let wanted = heard(&events);
        // One that failed is not sent on as an answer.
        if wanted.failed.is_some() {
            continue;
        }
        for form in FORMS {
            let bytes = encoded(fixture.dialect, form, &events);
            let again = heard(&decoded(fixture.dialect, form, &[&bytes]));
            // Other servers' names for thoughts become ours, and then they are wanted back under that name.
            let shown_again = shown(&again).replace("extra {\"reasoning_content\":null}\n", "");
            let shown_again = shown_again.replace("\"reasoning_content\":null,", "");
            let wanted = shown(&wanted).replace("extra {\"reasoning_content\":null}\n", "");
            // A client must be able to name a call; one that came without an id gets one on its way out.
            let made =
                |text: String| (0..9).fold(text, |t, n| t.replace(&format!("call call_{n} "), "call - "));
            let (shown_again, wanted) = (made(shown_again), made(wanted));
            assert_eq!(shown_again, wanted, "{} {form:?}", fixture.name);
        }
    }
}

fn talk(id: Option<&str>) -> Vec<ModelEvent> {
    let call = |index, id: &str| ModelEvent::Call {
        index,
        id: id.into(),
        name: "読む".into(),
        kind: CallKind::Function,
    };
    let arguments = |index, text: &str| ModelEvent::Arguments { index, text: text.into() };
    vec![
        ModelEvent::Begun { id: id.map(Into::into), model: Some("m-1".into()) },
        ModelEvent::Reasoning("窓を".into()),
        ModelEvent::Reasoning("見る\n".into()),
        ModelEvent::Text("はい、".into()),
        ModelEvent::Text("\"二つ\" 読みます 🪟".into()),
        // Indexes as a dialect counts them that counts texts as well.
        call(2, "a"),
        call(3, "b"),
        arguments(3, "{\"p\":"),
        arguments(2, "{\"q\":1.0}"),
        arguments(3, "12345678901234567890}"),
        ModelEvent::Usage(Usage { input_tokens: 7, output_tokens: 5, ..Usage::default() }),
        ModelEvent::Finished("tool_calls".into()),
    ]
}

#[test]
fn thoughts_words_and_parallel_calls_are_heard_as_they_were_said() {
    for dialect in [Dialect::Chat, Dialect::Ollama] {
        for form in FORMS {
            let id = (dialect == Dialect::Chat).then_some("x-1");
            let events = talk(id);
            let bytes = encoded(dialect, form, &events);
            let again = heard(&decoded(dialect, form, &[&bytes]));
            let wanted = heard(&events);
            assert_eq!(
                again.message().unwrap().parts,
                wanted.message().unwrap().parts,
                "{dialect:?} {form:?}"
            );
            assert_eq!((&again.id, &again.model), (&wanted.id, &wanted.model));
            assert_eq!((again.usage, &again.finish), (wanted.usage, &wanted.finish));
        }
    }
}

#[test]
fn a_stream_of_ours_is_byte_for_byte_what_openai_would_send() {
    let events = [
        ModelEvent::Begun { id: Some("c1".into()), model: Some("m".into()) },
        ModelEvent::Text("窓".into()),
        ModelEvent::Usage(Usage {
            input_tokens: 2,
            output_tokens: 3,
            cache_creation_tokens: 0,
            cache_read_tokens: 4,
        }),
        ModelEvent::Finished("stop".into()),
    ];
    let head =
        r#"data: {"id":"c1","object":"chat.completion.chunk","created":1763200000,"model":"m","choices":["#;
    let choice = |delta: &str, finish: &str| {
        format!(
            "{head}{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}],\"usage\":null}}\n\n"
        )
    };
    let wanted = [
        choice(r#"{"role":"assistant","content":""}"#, "null"),
        choice(r#"{"content":"窓"}"#, "null"),
        choice("{}", "\"stop\""),
        format!(
            "{head}],\"usage\":{{\"prompt_tokens\":6,\"completion_tokens\":3,\"total_tokens\":9,\"prompt_tokens_details\":{{\"cached_tokens\":4}}}}}}\n\n"
        ),
        "data: [DONE]\n\n".to_owned(),
    ];
    let found = String::from_utf8(encoded(Dialect::Chat, ResponseForm::Stream, &events)).unwrap();
    assert_eq!(found, wanted.concat());
}

#[test]
fn usage_is_streamed_only_to_clients_that_asked_for_it() {
    let stamp = ResponseStamp { created: 1, created_at: String::new(), usage: false };
    let (mut encoder, mut out) = (Dialect::Chat.encoder(ResponseForm::Stream, stamp), Vec::new());
    talk(Some("x")).iter().for_each(|event| encoder.event(event, &mut out));
    encoder.end(&mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(!text.contains("usage"), "{text}");
    assert!(text.ends_with("data: [DONE]\n\n"));
}

#[test]
fn a_failure_is_told_in_the_clients_own_form_and_nothing_follows() {
    let failed =
        ModelEvent::Failed(ProviderFailure { status: 529, body: "{\"error\":\n\"長すぎる\"}".into() });
    for form in FORMS {
        let chat = String::from_utf8(encoded(Dialect::Chat, form, std::slice::from_ref(&failed))).unwrap();
        let json = r#"{"error":{"message":"長すぎる","type":"upstream_error","param":null,"code":529}}"#;
        assert_eq!(chat.trim().trim_start_matches("data: "), json);
        let ollama =
            String::from_utf8(encoded(Dialect::Ollama, form, std::slice::from_ref(&failed))).unwrap();
        assert_eq!(ollama.trim(), r#"{"error":"長すぎる"}"#);
    }
}

#[test]
fn what_only_another_dialect_knows_is_not_said() {
    use komado_core::message::Opaque;
    use komado_core::raw::RawJson;
    let foreign = |json: &str| Opaque { dialect: "anthropic".into(), json: RawJson::parse(json).unwrap() };
    let mut events = talk(Some("x-1"));
    events.insert(3, ModelEvent::Signature("seal".into()));
    events.insert(3, ModelEvent::Part(foreign(r#"{"type":"server_tool_use"}"#)));
    events.insert(3, ModelEvent::Extra(foreign(r#"{"container":1}"#)));
    for dialect in [Dialect::Chat, Dialect::Ollama] {
        for form in FORMS {
            let text = String::from_utf8(encoded(dialect, form, &events)).unwrap();
            for word in ["seal", "server_tool_use", "container"] {
                assert!(!text.contains(word), "{dialect:?} {form:?}: {text}");
            }
        }
    }
}

#[test]
fn an_answer_of_ollama_is_sent_on_as_it_came() {
    let events = decoded(Dialect::Ollama, ResponseForm::Whole, &[OLLAMA_WHOLE.as_bytes()]);
    for form in FORMS {
        let bytes = encoded(Dialect::Ollama, form, &events);
        assert_eq!(heard(&decoded(Dialect::Ollama, form, &[&bytes])), heard(&events));
    }
}
