//! Recorded answers, cut at every byte.

use crate::messages_responses::play::{decoded, fixtures, heard, recorded};
use komado_core::journal::Usage;
use komado_core::message::{CallKind, MessagePart, Opaque};
use komado_provider::{Dialect, ModelEvent, ResponseForm};

fn events(fixture: (Dialect, ResponseForm, &str)) -> Vec<ModelEvent> {
    decoded(fixture.0, fixture.1, [recorded(fixture).as_bytes()])
}

#[test]
fn an_answer_is_the_same_however_its_bytes_are_cut() {
    for fixture in fixtures() {
        let text = recorded(fixture);
        let whole = events(fixture);
        assert!(!whole.is_empty(), "{fixture:?}");
        for at in 0..text.len() {
            let (a, b) = text.as_bytes().split_at(at);
            assert_eq!(decoded(fixture.0, fixture.1, [a, b]), whole, "{fixture:?} at {at}");
        }
        assert_eq!(decoded(fixture.0, fixture.1, text.as_bytes().chunks(1)), whole, "{fixture:?}");
    }
}

#[test]
fn an_answer_that_breaks_off_is_told_wherever_it_does() {
    for fixture in fixtures() {
        let text = recorded(fixture);
        let all = heard(&events(fixture));
        let mut finished = None;
        for at in 0..=text.len() {
            let part = heard(&decoded(fixture.0, fixture.1, [&text.as_bytes()[..at]]));
            if part.finish.is_some() {
                assert_eq!(part, all, "{fixture:?}: finished at {at}, but not as it was");
                finished = finished.or(Some(at));
            }
        }
        let goodbye = "event: message_stop".len() + 40;
        assert!(finished.is_none_or(|at| at + goodbye > text.len()), "{fixture:?}: finished at {finished:?}");
    }
}

#[test]
fn thoughts_words_and_calls_are_heard_byte_for_byte() {
    let heard = heard(&events((Dialect::Messages, ResponseForm::Stream, "tools")));
    let message = heard.message().unwrap();
    let seal = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/=";
    let thought = "窓を開ける前に、設定を\n読もう。";
    assert_eq!(
        message.parts[0],
        MessagePart::Reasoning { text: thought.into(), signature: Some(seal.into()) }
    );
    assert_eq!(message.parts[1], MessagePart::text("I will read both files: 「設定」 と emoji 🪟."));
    let calls: Vec<_> = message.calls().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
    assert_eq!(calls, [("toolu_01A", r#"{"path": "設定.toml", "limit": 1.0}"#), ("toolu_01B", "{}")]);
    let extra = message.calls().next().unwrap().extra.as_ref().unwrap();
    assert_eq!(extra.get(), r#"{"anthropic":{"caller":{"type":"direct"}}}"#);
    let usage =
        Usage { input_tokens: 12, output_tokens: 189, cache_creation_tokens: 2048, cache_read_tokens: 31000 };
    assert_eq!((heard.usage, heard.finish.as_deref()), (Some(usage), Some("tool_calls")));
    assert_eq!(heard.id.as_deref(), Some("msg_01Xy9Zk3vQ"));
}

#[test]
fn blocks_only_this_api_has_are_put_together_whole() {
    let message = heard(&events((Dialect::Messages, ResponseForm::Stream, "search"))).message().unwrap();
    let opaque: Vec<&str> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            MessagePart::Opaque(opaque) => Some(opaque.json.get()),
            _ => None,
        })
        .collect();
    assert!(opaque[0].starts_with(r#"{"type":"redacted_thinking","data":"EmwKAhgB"#));
    assert!(
        opaque[1].ends_with(r#""input":{"query": "東京 天気", "n": 12345678901234567890}}"#),
        "{}",
        opaque[1]
    );
    assert!(opaque[2].contains(r#""page_age":null"#));
    let MessagePart::Text { text, extra: Some(extra) } = &message.parts[4] else { panic!("{message:?}") };
    assert_eq!(text, "今日は晴れです。");
    assert!(extra.json.get().starts_with(r#"{"citations":[{"type":"web_search_result_location""#));
    assert!(extra.json.get().ends_with(r#""end_char_index":5.0}]}"#));
    assert_eq!(message.parts[5], MessagePart::text("Bring no umbrella."));
}

#[test]
fn what_the_model_ran_into_is_told() {
    let finish = |fixture| heard(&events(fixture)).finish;
    assert_eq!(finish((Dialect::Messages, ResponseForm::Stream, "cut")).as_deref(), Some("length"));
    assert_eq!(finish((Dialect::Messages, ResponseForm::Stream, "llama")).as_deref(), Some("stop"));
    assert_eq!(finish((Dialect::Responses, ResponseForm::Stream, "incomplete")).as_deref(), Some("length"));
    assert_eq!(finish((Dialect::Responses, ResponseForm::Stream, "refusal")).as_deref(), Some("refusal"));
}

#[test]
fn what_was_counted_first_stands_unless_it_is_counted_again() {
    let count = |name| heard(&events((Dialect::Messages, ResponseForm::Stream, name))).usage.unwrap();
    let cut =
        Usage { input_tokens: 12, output_tokens: 16, cache_creation_tokens: 2048, cache_read_tokens: 31000 };
    assert_eq!(count("cut"), cut);
    assert_eq!(count("search").input_tokens, 10682);
}

#[test]
fn errors_are_told_with_all_they_say() {
    for (fixture, words) in [
        ((Dialect::Messages, ResponseForm::Stream, "overloaded"), "Overloaded"),
        (
            (Dialect::Messages, ResponseForm::Whole, "error"),
            "prompt is too long: 208310 tokens > 200000 maximum",
        ),
        ((Dialect::Messages, ResponseForm::Whole, "llama_error"), "exceed_context_size_error"),
        ((Dialect::Responses, ResponseForm::Stream, "failed"), "context_length_exceeded"),
        ((Dialect::Responses, ResponseForm::Stream, "error"), "rate_limit_exceeded"),
        ((Dialect::Responses, ResponseForm::Whole, "error"), "Unknown parameter"),
    ] {
        let heard = heard(&events(fixture));
        let failed = heard.failed.unwrap();
        assert!(failed.body.contains(words) && failed.status == 200, "{failed:?}");
        assert_eq!(heard.finish, None, "{fixture:?}");
        serde_json::from_str::<serde_json::Value>(&failed.body).unwrap();
    }
    // Another API's error inside a stream.
    let body = "data: {\"error\":{\"code\":500,\"message\":\"窓\"}}\n\n";
    for dialect in crate::messages_responses::play::BOTH {
        let heard = heard(&decoded(dialect, ResponseForm::Stream, [body.as_bytes()]));
        assert_eq!(heard.failed.unwrap().body, r#"{"error":{"code":500,"message":"窓"}}"#);
    }
}

#[test]
fn items_are_heard_in_their_order_and_thoughts_once() {
    let heard = heard(&events((Dialect::Responses, ResponseForm::Stream, "tools")));
    let message = heard.message().unwrap();
    let MessagePart::Opaque(thought) = &message.parts[0] else { panic!("{message:?}") };
    assert!(thought.json.get().contains(r#""encrypted_content":"gAAAAABo/+==""#));
    let MessagePart::Text { text, extra: Some(extra) } = &message.parts[1] else { panic!("{message:?}") };
    assert_eq!(text, "二つ読みます 🪟");
    assert!(extra.json.get().ends_with(r#""item":{"phase":"commentary"}}"#), "{extra:?}");
    let calls: Vec<_> = message.calls().map(|c| (c.id.as_str(), c.arguments.as_str(), c.kind)).collect();
    let patch = "*** Begin Patch\n窓\n*** End Patch";
    assert_eq!(
        calls,
        [
            ("call_a", r#"{"path":"設定.toml","n":1.0}"#, CallKind::Function),
            ("call_b", "{}", CallKind::Function),
            ("call_c", patch, CallKind::Custom),
        ]
    );
    assert!(matches!(&message.parts[5], MessagePart::Opaque(o) if o.json.get().contains("web_search_call")));
    assert_eq!(message.parts.len(), 6);
    let usage =
        Usage { input_tokens: 1000, output_tokens: 200, cache_creation_tokens: 52, cache_read_tokens: 2048 };
    assert_eq!((heard.usage, usage.total()), (Some(usage), 3300));
    assert_eq!(heard.finish.as_deref(), Some("tool_calls"));
}

#[test]
fn both_forms_of_one_answer_say_the_same() {
    // One is laid out over many lines; what it says is the same.
    let said = |name, form| {
        let heard = heard(&events((Dialect::Responses, form, name)));
        let json = |opaque: &Opaque| serde_json::from_str::<serde_json::Value>(opaque.json.get()).unwrap();
        let parts = heard.message().unwrap().parts.into_iter().map(|part| match part {
            MessagePart::Opaque(opaque) => json(&opaque).to_string(),
            MessagePart::Text { text, extra: Some(extra) } => text + &json(&extra).to_string(),
            other => format!("{other:?}"),
        });
        (parts.collect::<Vec<_>>(), heard.usage, heard.finish)
    };
    assert_eq!(said("whole", ResponseForm::Whole), said("tools", ResponseForm::Stream));
    let message = heard(&events((Dialect::Messages, ResponseForm::Whole, "whole"))).message().unwrap();
    let seal = Some("EqQB/+==".to_owned());
    assert_eq!(message.parts[0], MessagePart::Reasoning { text: "考え".into(), signature: seal });
    assert_eq!(message.parts[1], MessagePart::text("読みます。"));
    let calls: Vec<_> = message.calls().map(|call| call.arguments.as_str()).collect();
    assert_eq!(calls, [r#"{"path":"窓.rs","n":1.0}"#, "{}"]);
}

#[test]
fn a_server_that_numbers_nothing_is_understood() {
    let heard = heard(&events((Dialect::Responses, ResponseForm::Stream, "llama")));
    let message = heard.message().unwrap();
    assert_eq!(message.parts[0], MessagePart::text("Paris."));
    let calls: Vec<_> = message.calls().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
    assert_eq!(calls, [("fc_k1", r#"{"q":"窓"}"#), ("fc_k2", "{}")]);
    assert_eq!(message.parts.len(), 3);
    assert_eq!((heard.id.as_deref(), heard.model.as_deref()), (Some("resp_Yx"), Some("smollm2")));
}

#[test]
fn calls_written_at_once_by_a_server_that_numbers_nothing_are_told_apart() {
    let added = |id: &str| {
        format!(
            r#"{{"type":"response.output_item.added","item":{{"type":"function_call","call_id":"{id}","name":"f"}}}}"#
        )
    };
    let delta = |id: &str, text: &str| {
        format!(r#"{{"type":"response.function_call_arguments.delta","item_id":"{id}","delta":"{text}"}}"#)
    };
    let events =
        [added("a"), added("b"), delta("a", "{"), delta("b", "[1"), delta("a", "}"), delta("b", "]")];
    let stream: String = events.iter().map(|json| format!("data: {json}\n\n")).collect();
    let message =
        heard(&decoded(Dialect::Responses, ResponseForm::Stream, [stream.as_bytes()])).message().unwrap();
    let calls: Vec<_> = message.calls().map(|call| call.arguments.as_str()).collect();
    assert_eq!(calls, ["{}", "[1]"]);
}

#[test]
fn an_answer_told_only_at_its_end_is_heard_whole() {
    let whole = recorded((Dialect::Responses, ResponseForm::Whole, "whole")).replace('\n', " ");
    let stream = format!("data: {{\"type\":\"response.completed\",\"response\":{whole}}}\n\n");
    let late = heard(&decoded(Dialect::Responses, ResponseForm::Stream, [stream.as_bytes()]));
    assert_eq!(late, heard(&events((Dialect::Responses, ResponseForm::Whole, "whole"))));
}

#[test]
fn noise_is_no_answer() {
    for dialect in crate::messages_responses::play::BOTH {
        for form in [ResponseForm::Stream, ResponseForm::Whole] {
            for noise in [
                "",
                "null",
                "[1]",
                "{}",
                "data: [DONE]\n\n",
                "data: 5\n\nevent: ping\ndata: {}\n\n",
                "<html>",
            ] {
                let heard = heard(&decoded(dialect, form, [noise.as_bytes()]));
                assert_eq!((heard.finish, heard.failed), (None, None), "{dialect:?} {form:?} {noise}");
            }
        }
    }
}
