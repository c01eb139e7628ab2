//! How the scripted server fails: too large, malformed, by the script, in the middle; each as the real ones do.
use crate::scripted_kit;

use komado_provider::scripted::{ErrorStyle, OnOverflow, ScriptStep, ScriptedOptions, ScriptedSteps};
use komado_provider::{Dialect, ResponseForm};
use scripted_kit::{Got, connect, get, path, post, receive, send, start, window};
use serde_json::{Value, json};
use std::io::Write;

fn ask(dialect: Dialect, text: &str, stream: bool) -> Value {
    let messages = json!([{ "role": "user", "content": text }]);
    let mut body = json!({ "model": "m", "stream": stream });
    body[if dialect == Dialect::Responses { "input" } else { "messages" }] = messages;
    if dialect == Dialect::Messages {
        body["max_tokens"] = json!(10);
    }
    body
}

/// What an error says, whoever says it.
fn message(got: &Got) -> String {
    let body = got.json();
    let body = if body.is_array() { body[0].clone() } else { body };
    let error = body.get("error").unwrap_or(&body);
    error.get("message").unwrap_or(error).as_str().unwrap().to_owned()
}

#[test]
fn the_window_holds_to_the_token() {
    for dialect in Dialect::ALL {
        let body = ask(dialect, "窓を開けて、風を入れて。", false);
        let probe = start(ScriptedOptions::default());
        post(&probe, dialect, &body);
        let answer = if dialect == Dialect::Messages { 10 } else { 0 };
        let tokens = probe.seen()[0].tokens + answer;
        let fits = post(&window(tokens), dialect, &body);
        assert_eq!(fits.status, 200, "{dialect:?}: {}", fits.text());
        let server = window(tokens - 1);
        let refused = post(&server, dialect, &body);
        assert_eq!(refused.status, 400, "{dialect:?}: {}", refused.text());
        assert_eq!((server.seen()[0].status, server.seen()[0].tokens), (400, tokens - answer));
    }
}

#[test]
fn the_answer_asked_for_counts_where_the_provider_counts_it() {
    let mut body = ask(Dialect::Chat, "write 500 words", false);
    body["max_tokens"] = json!(200);
    for (words, told) in [
        (ErrorStyle::OpenAi, Some("(11 in the messages, 200 in the completion)")),
        (
            ErrorStyle::Vllm,
            Some("you requested 200 output tokens and your prompt contains at least 11 input tokens"),
        ),
        (ErrorStyle::OpenRouter, Some("about 211 tokens (11 of text input, 200 in the output)")),
        (ErrorStyle::LlamaCpp, None),
        (ErrorStyle::LmStudio, None),
        (ErrorStyle::Gemini, None),
    ] {
        let server = start(ScriptedOptions { window: Some(100), words, ..ScriptedOptions::default() });
        let got = post(&server, Dialect::Chat, &body);
        match told {
            Some(told) => {
                assert!(got.status == 400 && message(&got).contains(told), "{words:?}: {}", got.text())
            }
            None => {
                let heard = got.heard(Dialect::Chat, ResponseForm::Whole);
                assert_eq!(heard.finish.as_deref(), Some("length"), "{words:?}: {}", got.text());
                assert_eq!(heard.usage.unwrap().total(), 100, "{words:?}: writing stops at the window");
            }
        }
    }
}

#[test]
fn an_overflow_in_a_stream_has_status_200_and_says_so_in_an_event() {
    let overflow = OnOverflow::RefuseInStream;
    let server = start(ScriptedOptions { window: Some(5), overflow, ..ScriptedOptions::default() });
    for dialect in Dialect::ALL {
        let got = post(&server, dialect, &ask(dialect, "far too many words for this", true));
        assert_eq!((got.status, got.whole), (200, true), "{dialect:?}");
        let failed = got
            .heard(dialect, ResponseForm::Stream)
            .failed
            .unwrap_or_else(|| panic!("{dialect:?}: {}", got.text()));
        let told = match dialect {
            Dialect::Chat | Dialect::Responses => "context_length_exceeded",
            Dialect::Messages => "prompt is too long: ",
            Dialect::Ollama => "longer than the context length",
        };
        assert!(failed.body.contains(told), "{dialect:?}: {}", failed.body);
        assert!(got.heard(dialect, ResponseForm::Stream).finish.is_none(), "{dialect:?}");
        let plain = post(&server, dialect, &ask(dialect, "far too many words for this", false));
        assert_eq!(plain.status, 400, "{dialect:?}: an answer in one piece has nothing to hide in");
    }
}

#[test]
fn a_server_that_truncates_says_nothing_but_the_smaller_count() {
    let overflow = OnOverflow::Truncate;
    let server = start(ScriptedOptions { window: Some(60), overflow, ..ScriptedOptions::default() });
    let long = "The secret is 4711. ".repeat(20);
    let body = json!({ "model": "m", "stream": false, "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": long },
        { "role": "assistant", "content": "ok" },
        { "role": "user", "content": "find: 4711" }
    ] });
    for dialect in [Dialect::Ollama, Dialect::Chat] {
        let heard = post(&server, dialect, &body).heard(dialect, ResponseForm::Whole);
        let (usage, seen) = (heard.usage.unwrap(), server.seen().pop().unwrap());
        assert!(
            seen.tokens > 100 && usage.total() - usage.output_tokens <= 60,
            "{dialect:?}: {usage:?} {seen:?}"
        );
        assert!(heard.message().unwrap().words().contains("do not see"), "{dialect:?}: it is gone");
    }
}

#[test]
fn a_window_that_an_ollama_client_asks_for_holds() {
    let server = start(ScriptedOptions::default());
    let mut body = ask(Dialect::Ollama, "one two three four five six seven", false);
    body["options"] = json!({ "num_ctx": 8 });
    assert_eq!(post(&server, Dialect::Ollama, &body).status, 400);
    body["options"] = json!({ "num_ctx": 80 });
    assert_eq!(post(&server, Dialect::Ollama, &body).status, 200);
}

#[test]
fn a_malformed_chat_is_refused_in_the_words_of_its_provider() {
    let call = json!({ "role": "assistant", "tool_calls": [
        { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } },
        { "id": "b", "type": "function", "function": { "name": "f", "arguments": "{}" } }
    ] });
    let (user, done) = (
        json!({ "role": "user", "content": "x" }),
        |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "y" }),
    );
    let server = start(ScriptedOptions::default());
    for (messages, told, param) in [
        (
            json!([user, done("a")]),
            "must be a response to a preceeding message with 'tool_calls'",
            "messages.[1].role",
        ),
        (json!([user, call, done("a"), user]), "did not have response messages: b", "messages.[3].role"),
        (
            json!([{ "role": "system", "content": "s" }, user, call]),
            "did not have response messages: a, b",
            "messages.[3].role",
        ),
        (json!([user, call, done("a"), done("b"), done("a")]), "must be a response", "messages.[4].role"),
        (json!([]), "empty array", "messages"),
    ] {
        let got = post(&server, Dialect::Chat, &json!({ "model": "m", "messages": messages }));
        assert_eq!(got.status, 400, "{messages}");
        assert!(message(&got).contains(told), "{told}: {}", got.text());
        assert_eq!(got.json()["error"]["param"], param, "{}", got.text());
    }
    let orphan = json!({ "model": "m", "messages": [user, done("a")] });
    for (words, told) in [
        (ErrorStyle::Gemini, "function call turn"),
        (ErrorStyle::Mistral, "Not the same number of function calls"),
    ] {
        let got =
            post(&start(ScriptedOptions { words, ..ScriptedOptions::default() }), Dialect::Chat, &orphan);
        assert!(message(&got).contains(told), "{}", got.text());
    }
}

#[test]
fn a_malformed_conversation_is_refused_in_anthropics_words() {
    let server = start(ScriptedOptions::default());
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "f", "input": {} });
    let done = |id: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": "y" });
    let text = json!({ "type": "text", "text": "t" });
    let (user, model) = (
        |c: Value| json!({ "role": "user", "content": c }),
        |c: Value| json!({ "role": "assistant", "content": c }),
    );
    for (messages, told) in [
        (
            json!([user(json!("x")), model(json!([call("a")])), user(json!("y"))]),
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a.",
        ),
        (json!([user(json!("x")), model(json!([call("a")]))]), "immediately after: a."),
        (
            json!([user(json!("x")), model(json!([call("a")])), user(json!([text, done("a")]))]),
            "immediately after: a.",
        ),
        (
            json!([user(json!("x")), model(json!([call("a"), call("b")])), user(json!([done("b")]))]),
            "immediately after: a.",
        ),
        (
            json!([user(json!("x")), user(json!([done("z")]))]),
            "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: z.",
        ),
        (
            json!([user(json!("x")), model(json!([call("a")])), user(json!([done("a"), done("a")]))]),
            "each tool_use must have a single result",
        ),
        (
            json!([user(json!("x")), model(json!([call("a"), call("a")])), user(json!([done("a")]))]),
            "ids must be unique",
        ),
        (json!([model(json!("x"))]), "first message must use the \"user\" role"),
        (json!([]), "at least one message is required"),
        (json!([user(json!(""))]), "messages.0: all messages must have non-empty content"),
        (json!([user(json!([{ "type": "text", "text": "" }]))]), "text content blocks must be non-empty"),
    ] {
        let got =
            post(&server, Dialect::Messages, &json!({ "model": "m", "max_tokens": 9, "messages": messages }));
        assert_eq!(got.status, 400, "{messages}");
        assert_eq!(got.json()["type"], "error", "{}", got.text());
        assert!(message(&got).contains(told), "{told}: {}", got.text());
    }
    let fine = json!([
        user(json!("x")), model(json!([text, call("a")])), model(json!([call("b")])),
        user(json!([done("b")])), { "role": "system", "content": "note" }, user(json!([done("a"), text])), model(json!("ok")), user(json!("y"))
    ]);
    let got = post(&server, Dialect::Messages, &json!({ "model": "m", "max_tokens": 9, "messages": fine }));
    assert_eq!(got.status, 200, "{}", got.text());
    let got = post(&server, Dialect::Messages, &json!({ "model": "m", "messages": [user(json!("x"))] }));
    assert!(got.status == 400 && message(&got).contains("max_tokens"), "{}", got.text());
    let mark = json!({ "type": "text", "text": "t", "cache_control": { "type": "ephemeral" } });
    let marked = json!([user(json!([mark, mark, mark, mark, mark]))]);
    let got = post(&server, Dialect::Messages, &json!({ "model": "m", "max_tokens": 9, "messages": marked }));
    assert!(message(&got).contains("Found 5"), "{}", got.text());
}

#[test]
fn outputs_without_a_call_are_refused_by_responses_in_their_words() {
    let server = start(ScriptedOptions::default());
    let call = json!({ "type": "function_call", "call_id": "a", "name": "f", "arguments": "{}" });
    let done = json!({ "type": "function_call_output", "call_id": "a", "output": "y" });
    let user = json!({ "role": "user", "content": "x" });
    let shell = json!({ "type": "local_shell_call", "call_id": "s", "status": "completed", "action": {} });
    for (input, told) in [
        (json!([user, shell]), "No tool output found for local shell call s."),
        (json!([user, done]), "No tool call found for function call output with call_id a."),
        (json!([user, call, user]), "No tool output found for function call a."),
    ] {
        let got = post(&server, Dialect::Responses, &json!({ "model": "m", "input": input }));
        assert!(got.status == 400 && message(&got).contains(told), "{}", got.text());
    }
}

#[test]
fn what_is_no_json_or_no_request_is_refused_in_the_dialects_form() {
    let server = start(ScriptedOptions::default());
    for dialect in Dialect::ALL {
        for body in ["", "{", "[1]", "{}", "{\"model\":\"m\",\"messages\":7,\"input\":7,\"max_tokens\":1}"] {
            let got = send(&server, "POST", path(dialect), body);
            assert_eq!(got.status, 400, "{dialect:?} {body:?}: {}", got.text());
            assert!(!message(&got).is_empty());
            assert_eq!(got.json()["type"] == "error", dialect == Dialect::Messages);
            assert_eq!(got.json()["error"].is_string(), dialect == Dialect::Ollama);
        }
        let mut socket = connect(&server);
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 3\r\n\r\n",
            path(dialect)
        );
        socket.write_all(&[head.as_bytes(), b"\"\xff\""].concat()).unwrap();
        assert_eq!(receive(socket, "POST").status, 400, "{dialect:?}: not UTF-8");
    }
    for (path, told) in [
        ("/v1/nothing", "invalid_request_error"),
        ("/v1/messages/x", "not_found_error"),
        ("/api/x", "404 page not found"),
    ] {
        let got = get(&server, path);
        assert!(got.status == 404 && got.text().contains(told), "{path}: {}", got.text());
    }
    assert_eq!(get(&server, "/v1/messages").status, 405);
}

#[test]
fn a_script_answers_in_order_and_waits_for_what_it_waits_for() {
    let script = r#"
        {"when":{"contains":"窓"},"reply":"window {{turn}} {{n}}"}
        {"when":{"regex":"^\\d+$"},"reply":"number {{last}}","repeat":2}
        {"when":{"has_tool_result":true},"reply":"a result"}
        {"when":{"is_summary":true},"reply":"<summary>s</summary>"}
        {"when":{"turn":2},"reply":"second turn"}
        {"reply":"first"}
        {"reply":"second {{tokens}}"}
    "#;
    let server =
        start(ScriptedOptions { script: ScriptedSteps::read(script).unwrap(), ..ScriptedOptions::default() });
    let say = |text: &str| {
        let got = post(&server, Dialect::Chat, &ask(Dialect::Chat, text, false));
        got.heard(Dialect::Chat, ResponseForm::Whole).message().unwrap().words()
    };
    assert_eq!(say("hello"), "first");
    assert_eq!(say("12"), "number 12");
    assert_eq!(say("窓だ"), "window 1 3");
    assert_eq!(say("13"), "number 13");
    assert_eq!(say("14"), "second 8");
    assert_eq!(server.left(), 3);
    assert_eq!(say("Write it inside <summary></summary> tags."), "<summary>s</summary>");
    assert!(say("hello").contains("scripted model"), "then the model speaks for itself");
    let turns = json!({ "model": "m", "messages": [
        { "role": "user", "content": "a" }, { "role": "assistant", "content": "b" }, { "role": "user", "content": "c" }
    ] });
    let got = post(&server, Dialect::Chat, &turns);
    assert!(got.text().contains("second turn"));
    server.add(ScriptStep::say("added"));
    assert_eq!(say("x"), "added");
}

#[test]
fn a_step_may_fail_as_it_likes() {
    let script = r#"
        {"fail":{"status":429,"body":"slow {down}","retry_after":7}}
        {"fail":{"status":529}}
        {"fail":{"overflow":true}}
        {"fail":{"status":413,"overflow":true}}
        {"fail":{"status":500,"in_stream":true}}
    "#;
    let server =
        start(ScriptedOptions { script: ScriptedSteps::read(script).unwrap(), ..ScriptedOptions::default() });
    let next = || post(&server, Dialect::Messages, &ask(Dialect::Messages, "hello", true));
    let got = next();
    assert_eq!((got.status, got.text().as_str(), got.header("retry-after")), (429, "slow {down}", Some("7")));
    let got = next();
    assert_eq!((got.status, got.json()["error"]["type"].as_str()), (529, Some("overloaded_error")));
    let got = next();
    assert!(
        got.status == 400 && message(&got) == "prompt is too long: 8 tokens > 7 maximum",
        "{}",
        got.text()
    );
    assert_eq!(next().status, 413);
    let got = next();
    assert_eq!(got.status, 200);
    assert!(
        got.text().contains("event: error") && got.text().starts_with("event: message_start"),
        "{}",
        got.text()
    );
    assert_eq!(server.seen().iter().map(|seen| seen.status).collect::<Vec<_>>(), [429, 529, 400, 413, 200]);
}

#[test]
fn a_connection_is_cut_where_the_script_says() {
    let text = "小さな窓から見える景色は、季節ごとに変わる。";
    let server = start(ScriptedOptions::default());
    for (dialect, form) in
        Dialect::ALL.into_iter().flat_map(|d| [(d, ResponseForm::Whole), (d, ResponseForm::Stream)])
    {
        let body = ask(dialect, "x", form == ResponseForm::Stream);
        // Twice, because the first one finds nothing in the cache and says so.
        (0..2).for_each(|_| server.add(ScriptStep::say(text)));
        post(&server, dialect, &body);
        let whole = post(&server, dialect, &body);
        assert!(whole.whole);
        for cut in [0, 1, 40, whole.body.len() as u64 - 1] {
            server.add(ScriptStep { break_after: Some(cut), ..ScriptStep::say(text) });
            let got = post(&server, dialect, &body);
            assert_eq!((got.status, got.whole), (200, false), "{dialect:?} {form:?} {cut}");
            assert_eq!(got.body, whole.body[..usize::try_from(cut).unwrap()], "{dialect:?} {form:?}");
        }
        server.add(ScriptStep { break_after: Some(1 << 40), ..ScriptStep::say(text) });
        assert!(post(&server, dialect, &body).whole, "an answer that is shorter is whole");
    }
}

#[test]
fn bodies_are_remembered_as_long_as_was_asked_for() {
    let server = start(ScriptedOptions { keep: 2, ..ScriptedOptions::default() });
    for text in ["one", "two", "three"] {
        post(&server, Dialect::Chat, &ask(Dialect::Chat, text, false));
    }
    let seen = server.seen();
    let kept: Vec<bool> = seen.iter().map(|seen| !seen.body.is_empty()).collect();
    assert_eq!(kept, [false, true, true]);
    assert_eq!(serde_json::from_slice::<Value>(&seen[2].body).unwrap()["messages"][0]["content"], "three");
    assert!(seen[0].bytes > 0 && seen[0].digest != seen[1].digest);
    assert!(seen[2].headers.contains(&("content-type".into(), "application/json".into())));
}

#[test]
fn a_server_that_discards_reads_a_large_body_and_keeps_nothing() {
    let server = start(ScriptedOptions { discard: true, ..ScriptedOptions::default() });
    for (dialect, form) in
        Dialect::ALL.into_iter().flat_map(|d| [(d, ResponseForm::Whole), (d, ResponseForm::Stream)])
    {
        let body = format!(
            "{{\"messages\":\"{}\",\"stream\":{}}}",
            "x".repeat(3 << 20),
            form == ResponseForm::Stream
        );
        let got = send(&server, "POST", path(dialect), &body);
        let heard = got.heard(dialect, form);
        assert_eq!(heard.message().unwrap().words(), "ok", "{dialect:?} {form:?}: {}", got.text());
        let seen = server.seen().pop().unwrap();
        assert_eq!(
            (seen.bytes, seen.body.len(), seen.stream),
            (body.len() as u64, 0, form == ResponseForm::Stream)
        );
    }
    let digests: Vec<u64> = server.seen().iter().map(|seen| seen.digest).collect();
    assert!(digests[0] == digests[2] && digests[0] != digests[1], "the digest tells bodies apart");
}

#[test]
fn a_server_that_discards_says_what_its_script_says_as_far_as_it_needs_no_look_at_the_request() {
    let server = start(ScriptedOptions { discard: true, ..ScriptedOptions::default() });
    server.add(ScriptStep::say("never").when_contains("x"));
    server.add(ScriptStep::call("read", r#"{"path":"{{n}}.txt"}"#));
    let said = |stream: bool| {
        let form = if stream { ResponseForm::Stream } else { ResponseForm::Whole };
        post(&server, Dialect::Chat, &ask(Dialect::Chat, "x", stream))
            .heard(Dialect::Chat, form)
            .message()
            .unwrap()
    };
    let called = said(true);
    let call = called.calls().next().unwrap();
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("read", r#"{"path":"{{n}}.txt"}"#));
    assert!(!call.id.is_empty());
    assert_eq!(said(false).words(), "ok");
    assert_eq!(server.left(), 1);
}

#[test]
fn a_body_of_many_megabytes_is_read_counted_and_answered() {
    let server = start(ScriptedOptions { keep: 0, ..ScriptedOptions::default() });
    let text = "小さな窓 and a long text. ".repeat(200_000);
    let got = post(&server, Dialect::Chat, &ask(Dialect::Chat, &text, false));
    let seen = server.seen().pop().unwrap();
    assert_eq!((got.status, seen.body.len()), (200, 0));
    assert!(seen.bytes > 4 << 20 && seen.tokens > 1_000_000, "{} bytes, {} tokens", seen.bytes, seen.tokens);
}

#[test]
fn a_server_that_is_dropped_cuts_its_streams_and_frees_its_port() {
    let server = start(ScriptedOptions::default());
    server.add(ScriptStep { chunk: Some(1), chunk_delay_ms: 60_000, ..ScriptStep::say("slow words") });
    let mut socket = connect(&server);
    let body = ask(Dialect::Chat, "x", true).to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).unwrap();
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    // The answer has begun once the request is written down.
    while server.seen().is_empty() {
        std::thread::yield_now();
    }
    drop(server);
    let _ = std::io::Read::read_to_end(&mut socket, &mut Vec::new());
    assert!(std::net::TcpStream::connect(&address).is_err(), "nobody listens any more");
    assert!(start_at(&address).is_ok(), "the port is free");
    assert!(start_at("256.0.0.1:1").is_err());
}

fn start_at(address: &str) -> std::io::Result<komado_provider::scripted::ScriptedServer> {
    komado_provider::scripted::ScriptedServer::start(ScriptedOptions {
        address: address.into(),
        ..ScriptedOptions::default()
    })
}
