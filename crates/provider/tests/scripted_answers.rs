//! What the scripted server answers: every dialect, in pieces and in one, with tools, thoughts and counts.
use crate::scripted_kit;

use komado_core::Meter;
use komado_core::message::MessagePart;
use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedSteps};
use komado_provider::{Dialect, ResponseForm};
use scripted_kit::{get, path, post, send, start, window};
use serde_json::{Value, json};

/// A request that says `texts` in turn, user first.
fn ask(dialect: Dialect, texts: &[&str], stream: bool) -> Value {
    let role = |at: usize| if at.is_multiple_of(2) { "user" } else { "assistant" };
    let messages: Vec<Value> =
        texts.iter().enumerate().map(|(at, text)| json!({ "role": role(at), "content": text })).collect();
    let mut body = json!({ "model": "m", "stream": stream });
    match dialect {
        Dialect::Responses => body["input"] = json!(messages),
        _ => body["messages"] = json!(messages),
    }
    if dialect == Dialect::Messages {
        body["max_tokens"] = json!(500);
    }
    if dialect == Dialect::Chat && stream {
        body["stream_options"] = json!({ "include_usage": true });
    }
    body
}

fn forms() -> impl Iterator<Item = (Dialect, ResponseForm)> {
    Dialect::ALL
        .into_iter()
        .flat_map(|dialect| [(dialect, ResponseForm::Whole), (dialect, ResponseForm::Stream)])
}

#[test]
fn every_dialect_answers_in_pieces_and_in_one_with_the_same_words_and_counts() {
    let text = "小さな窓が開いた。The window is open: 🪟 and \"quoted\".\n次の行。";
    let server = start(ScriptedOptions {
        script: vec![ScriptStep::say(text).always()].into(),
        ..ScriptedOptions::default()
    });
    for (dialect, form) in forms() {
        let got = post(&server, dialect, &ask(dialect, &["窓を開けて"], form == ResponseForm::Stream));
        assert_eq!(got.status, 200, "{dialect:?} {form:?}: {}", got.text());
        assert!(got.whole);
        let kind = got.header("content-type").unwrap();
        let expect = match (form, dialect) {
            (ResponseForm::Whole, _) => "application/json",
            (ResponseForm::Stream, Dialect::Ollama) => "application/x-ndjson",
            (ResponseForm::Stream, _) => "text/event-stream",
        };
        assert!(kind.starts_with(expect), "{dialect:?} {form:?}: {kind}");
        let heard = got.heard(dialect, form);
        assert_eq!(heard.message().unwrap().words(), text, "{dialect:?} {form:?}: {}", got.text());
        assert_eq!(heard.finish.as_deref(), Some("stop"), "{dialect:?} {form:?}: {}", got.text());
        let usage = heard.usage.unwrap();
        let read = usage.input_tokens + usage.cache_read_tokens + usage.cache_creation_tokens;
        assert_eq!(usage.output_tokens, Meter::O200k.text(text), "{dialect:?} {form:?}");
        assert_eq!(read, 3 + 1 + Meter::O200k.text("窓を開けて") + 3, "{dialect:?} {form:?}: {}", got.text());
        let seen = server.seen().pop().unwrap();
        assert_eq!((seen.dialect, seen.tokens, seen.stream), (dialect, read, form == ResponseForm::Stream));
    }
}

#[test]
fn a_stream_comes_in_pieces_of_the_size_that_the_script_wants() {
    let server = start(ScriptedOptions::default());
    for (size, at_least) in [(1, 9), (4, 3)] {
        server.add(ScriptStep { chunk: Some(size), ..ScriptStep::say("窓を開けて風を入れる") });
        let got = post(&server, Dialect::Chat, &ask(Dialect::Chat, &["a"], true));
        let pieces = got.text().matches("\"content\":\"").count();
        assert!(pieces >= at_least && pieces <= at_least + 3, "{size}: {pieces}");
    }
}

#[test]
fn tools_are_called_in_every_dialect_and_their_results_are_taken() {
    let line = r#"{"reply":{"text":"I look.","calls":[{"name":"read","arguments":{"path":"窓.txt","n":1.0}},{"name":"ls"}]}}"#;
    let script = || ScriptedSteps { steps: vec![ScriptStep::read(line).unwrap()] };
    for (dialect, form) in forms() {
        let server = start(ScriptedOptions { script: script(), ..ScriptedOptions::default() });
        let got = post(&server, dialect, &ask(dialect, &["look"], form == ResponseForm::Stream));
        let heard = got.heard(dialect, form);
        let message = heard.message().unwrap();
        let calls: Vec<_> = message.calls().collect();
        assert_eq!(heard.finish.as_deref(), Some("tool_calls"), "{dialect:?} {form:?}: {}", got.text());
        assert_eq!(message.words(), "I look.", "{dialect:?} {form:?}");
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["read", "ls"], "{dialect:?} {form:?}: {}", got.text());
        assert_eq!(calls[0].arguments, r#"{"path":"窓.txt","n":1.0}"#, "{dialect:?} {form:?}");
        assert!(calls[0].id != calls[1].id && !calls[0].id.is_empty(), "{dialect:?} {form:?}");
        let again = post(&server, dialect, &results(dialect, &calls[0].id, &calls[1].id));
        assert_eq!(again.status, 200, "{dialect:?}: {}", again.text());
        let said = again.heard(dialect, ResponseForm::Whole).message().unwrap().words();
        assert!(said.contains("ls answered 5 characters"), "{dialect:?}: {said}");
    }
}

/// The conversation with both results.
fn results(dialect: Dialect, read: &str, ls: &str) -> Value {
    let mut body = ask(dialect, &["look"], false);
    let call = |id: &str, name: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": "{}" } });
    let more = match dialect {
        Dialect::Chat => json!([
            { "role": "assistant", "content": null, "tool_calls": [call(read, "read"), call(ls, "ls")] },
            { "role": "tool", "tool_call_id": read, "content": "text" },
            { "role": "tool", "tool_call_id": ls, "content": "a.txt" }
        ]),
        Dialect::Ollama => json!([
            { "role": "assistant", "content": "", "tool_calls": [
                { "function": { "name": "read", "arguments": {} } }, { "function": { "name": "ls", "arguments": {} } }
            ] },
            { "role": "tool", "tool_name": "read", "content": "text" },
            { "role": "tool", "tool_name": "ls", "content": "a.txt" }
        ]),
        Dialect::Messages => json!([
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": read, "name": "read", "input": {} },
                { "type": "tool_use", "id": ls, "name": "ls", "input": {} }
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": read, "content": "text" },
                { "type": "tool_result", "tool_use_id": ls, "content": [{ "type": "text", "text": "a.txt" }] }
            ] }
        ]),
        Dialect::Responses => json!([
            { "type": "function_call", "call_id": read, "name": "read", "arguments": "{}" },
            { "type": "function_call", "call_id": ls, "name": "ls", "arguments": "{}" },
            { "type": "function_call_output", "call_id": read, "output": "text" },
            { "type": "function_call_output", "call_id": ls, "output": "a.txt" }
        ]),
    };
    let key = if dialect == Dialect::Responses { "input" } else { "messages" };
    body[key].as_array_mut().unwrap().extend(more.as_array().unwrap().iter().cloned());
    body
}

#[test]
fn a_thought_comes_before_the_words_and_keeps_its_seal_where_there_is_one() {
    let line =
        r#"{"reply":{"reasoning":"窓は北向き","signature":"c2VhbA==","text":"No."},"repeat":"always"}"#;
    let server =
        start(ScriptedOptions { script: ScriptedSteps::read(line).unwrap(), ..ScriptedOptions::default() });
    for form in [ResponseForm::Whole, ResponseForm::Stream] {
        let got =
            post(&server, Dialect::Messages, &ask(Dialect::Messages, &["why"], form == ResponseForm::Stream));
        let message = got.heard(Dialect::Messages, form).message().unwrap();
        let thought =
            MessagePart::Reasoning { text: "窓は北向き".into(), signature: Some("c2VhbA==".into()) };
        assert_eq!(message.parts, [thought, MessagePart::text("No.")], "{}", got.text());
        for dialect in [Dialect::Chat, Dialect::Ollama] {
            let got = post(&server, dialect, &ask(dialect, &["why"], form == ResponseForm::Stream));
            let message = got.heard(dialect, form).message().unwrap();
            let thinks = |part: &MessagePart| matches!(part, MessagePart::Reasoning { text, .. } if text == "窓は北向き");
            assert!(message.parts.iter().any(thinks), "{dialect:?}: {}", got.text());
            assert_eq!(message.words(), "No.");
        }
    }
}

#[test]
fn an_answer_is_cut_by_the_tokens_asked_for_in_every_dialect() {
    let server = start(ScriptedOptions::default());
    for (dialect, form) in forms() {
        let mut body = ask(dialect, &["write 50 words"], form == ResponseForm::Stream);
        match dialect {
            Dialect::Chat => body["max_completion_tokens"] = json!(7),
            Dialect::Responses => body["max_output_tokens"] = json!(7),
            Dialect::Messages => body["max_tokens"] = json!(7),
            Dialect::Ollama => body["options"] = json!({ "num_predict": 7 }),
        }
        let heard = post(&server, dialect, &body).heard(dialect, form);
        assert_eq!(heard.finish.as_deref(), Some("length"), "{dialect:?} {form:?}");
        assert_eq!(heard.usage.unwrap().output_tokens, 7, "{dialect:?} {form:?}");
        assert_eq!(Meter::O200k.text(&heard.message().unwrap().words()), 7, "{dialect:?} {form:?}");
    }
}

#[test]
fn two_requests_that_begin_alike_report_what_the_cache_spared() {
    let server = start(ScriptedOptions {
        script: vec![ScriptStep::say("fine").always()].into(),
        ..ScriptedOptions::default()
    });
    for dialect in Dialect::ALL {
        let mut first = ask(dialect, &["one is longer than nothing"], false);
        let mut second = ask(dialect, &["one is longer than nothing", "fine", "two"], false);
        // Each dialect a conversation of its own.
        [&mut first, &mut second].into_iter().for_each(|body| body["model"] = json!(dialect.name()));
        if dialect == Dialect::Messages {
            second["system"] = json!([]);
            let mark = |body: &mut Value| body["cache_control"] = json!({ "type": "ephemeral" });
            [&mut first, &mut second].into_iter().for_each(mark);
        }
        post(&server, dialect, &first);
        let spared = 3 + 1 + Meter::O200k.text("one is longer than nothing");
        let heard = post(&server, dialect, &second).heard(dialect, ResponseForm::Whole);
        let seen = server.seen().pop().unwrap();
        assert_eq!(seen.cached, spared, "{dialect:?}");
        let told = heard.usage.unwrap();
        let expect = if dialect == Dialect::Ollama { 0 } else { spared };
        assert_eq!(told.cache_read_tokens, expect, "{dialect:?}");
        assert_eq!(told.total(), seen.tokens + 1, "{dialect:?}: the four add up");
        let mut other = ask(dialect, &["One is longer than nothing", "fine", "two"], false);
        other["model"] = json!(dialect.name());
        post(&server, dialect, &other);
        assert_eq!(server.seen().pop().unwrap().cached, 0, "{dialect:?}: another beginning spares nothing");
    }
}

#[test]
fn a_message_is_counted_before_it_is_asked() {
    let server = start(ScriptedOptions::default());
    let mut body = ask(Dialect::Messages, &["窓を開けて"], false);
    body["system"] = json!([{ "type": "text", "text": "Be brief." }]);
    body.as_object_mut().unwrap().remove("max_tokens");
    let got = send(&server, "POST", "/v1/messages/count_tokens", &body.to_string());
    body["max_tokens"] = json!(9);
    post(&server, Dialect::Messages, &body);
    let seen = server.seen();
    assert_eq!(seen.len(), 1, "counting is not asking");
    assert_eq!(got.json(), json!({ "input_tokens": seen[0].tokens }));
}

#[test]
fn a_summary_is_a_true_extract_in_the_tags_that_were_asked_for() {
    let server = start(ScriptedOptions::default());
    let question = "Summarise.\n<conversation>\n@1 user: Fix src/main.rs, port 8443.\n\n@2 assistant: Done.\n</conversation>\n\
                    Write the summary inside <summary></summary> tags.";
    for dialect in Dialect::ALL {
        let heard =
            post(&server, dialect, &ask(dialect, &[question], false)).heard(dialect, ResponseForm::Whole);
        let words = heard.message().unwrap().words();
        assert!(words.starts_with("<summary>") && words.contains("Fix src/main.rs, port 8443."), "{words}");
    }
}

#[test]
fn the_server_tells_of_its_window_where_each_kind_of_server_does() {
    use komado_provider::scripted::ErrorStyle;
    let told = |words, path: &str| {
        let server = start(ScriptedOptions { window: Some(5000), words, ..ScriptedOptions::default() });
        get(&server, path)
    };
    assert_eq!(told(ErrorStyle::Vllm, "/v1/models").json()["data"][0]["max_model_len"], 5000);
    assert_eq!(told(ErrorStyle::LlamaCpp, "/v1/models").json()["data"][0]["meta"]["n_ctx"], 5000);
    assert_eq!(told(ErrorStyle::LlamaCpp, "/props").json()["default_generation_settings"]["n_ctx"], 5000);
    assert_eq!(told(ErrorStyle::OpenRouter, "/v1/models").json()["data"][0]["context_length"], 5000);
    assert_eq!(told(ErrorStyle::LmStudio, "/api/v0/models").json()["data"][0]["loaded_context_length"], 5000);
    assert_eq!(told(ErrorStyle::Ollama, "/api/ps").json()["models"][0]["context_length"], 5000);
    assert_eq!(told(ErrorStyle::OpenAi, "/v1/models").json()["data"][0]["object"], "model");
    for (words, path) in [
        (ErrorStyle::Vllm, "/props"),
        (ErrorStyle::OpenAi, "/api/ps"),
        (ErrorStyle::LlamaCpp, "/api/v0/models"),
    ] {
        assert_eq!(told(words, path).status, 404, "{words:?} has no {path}");
    }
    let server = window(5000);
    assert_eq!(
        send(&server, "POST", "/api/show", "{\"model\":\"m\"}").json()["model_info"]["scripted.context_length"],
        5000
    );
    for path in ["/healthz", "/api/tags", "/api/version", "/"] {
        assert_eq!(get(&server, path).status, 200, "{path}");
    }
    assert_eq!(send(&server, "HEAD", "/", "").status, 200);
    assert!(server.seen().is_empty(), "nobody asked a model");
}

#[test]
fn a_client_without_a_version_in_its_path_is_answered() {
    let server = start(ScriptedOptions::default());
    let body = ask(Dialect::Chat, &["hello"], false).to_string();
    let got = send(&server, "POST", "/chat/completions", &body);
    assert_eq!((got.status, server.seen()[0].path.as_str()), (200, "/chat/completions"));
    let again = send(&server, "POST", path(Dialect::Chat), &body);
    assert_eq!(again.json()["choices"], got.json()["choices"], "the same request has the same answer");
    assert_eq!(again.json()["id"], got.json()["id"]);
}
