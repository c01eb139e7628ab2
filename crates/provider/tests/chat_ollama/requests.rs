//! Requests, written and read.

use super::kit::{Names, ask, setup, written};
use komado_core::message::{Call, CallKind, ImageSource, Message, MessagePart, Opaque, Role, ToolOutcome};
use komado_core::raw::RawJson;
use komado_provider::dialect::RequestOutput;
use komado_provider::{Dialect, ToolUse};

const TOOLS: &str =
    r#"[ {"type":"function","function":{"name":"read","parameters":{"type":"object","n":1.0}}} ]"#;

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> MessagePart {
    MessagePart::Call(Call {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
        kind: CallKind::Function,
        extra: None,
    })
}

pub(crate) fn result(id: &str, name: &str, text: &str) -> Message {
    Message::of(
        Role::Tool,
        vec![MessagePart::Result(ToolOutcome {
            call_id: id.into(),
            name: Some(name.into()),
            content: vec![MessagePart::text(text)],
            is_error: false,
            output_ref: None,
            duration_ms: None,
            interrupted: false,
            replaces: None,
        })],
    )
}

fn talk() -> Vec<Message> {
    vec![
        Message::text(Role::User, "窓を開けて"),
        Message::of(
            Role::Assistant,
            vec![
                MessagePart::text("はい"),
                call("c1", "read", "{\"p\":\"a\"}"),
                call("c2", "read", "{\"p\": 1.0}"),
            ],
        ),
        result("c1", "read", "one"),
        result("c2", "read", "二"),
        Message::text(Role::Assistant, "done"),
        Message::text(Role::User, "ありがとう"),
    ]
}

/// Chat has no place for a tool's name beside its result.
fn nameless(messages: &[Message]) -> Vec<Message> {
    let mut messages = messages.to_vec();
    for part in messages.iter_mut().flat_map(|message| &mut message.parts) {
        if let MessagePart::Result(outcome) = part {
            outcome.name = None;
        }
    }
    messages
}

#[test]
fn what_is_written_is_read_again() {
    for dialect in [Dialect::Chat, Dialect::Ollama] {
        let setup = setup(dialect, Some("決まり"), Some(TOOLS), Some(r#"{"keep_alive":"5m"}"#));
        let mut ask = ask(&setup);
        (ask.max_tokens, ask.stream) = (Some(100), true);
        let asked = dialect.read(&written(dialect, &ask, &talk()).0).unwrap();
        assert_eq!(nameless(&asked.messages), nameless(&talk()), "{dialect:?}");
        assert_eq!(asked.setup.system.as_deref(), Some("決まり"));
        assert_eq!(asked.setup.tools.unwrap().get(), TOOLS.trim());
        assert_eq!((asked.model.as_str(), asked.max_tokens, asked.stream), ("m", Some(100), true));
        assert!(asked.setup.params.unwrap().get().contains(r#""keep_alive":"5m""#));
    }
}

#[test]
fn the_next_request_begins_with_the_bytes_of_this_one() {
    for dialect in [Dialect::Chat, Dialect::Ollama] {
        let setup = setup(dialect, Some("s"), Some(TOOLS), None);
        let talk = talk();
        let mut now = ask(&setup);
        now.max_tokens = Some(10);
        let mut then = ask(&setup);
        (then.stream, then.tools, then.window) = (true, ToolUse::NamedOnly, Some(4096));
        for n in 1..talk.len() {
            let (short, ends) = written(dialect, &now, &talk[..n]);
            let (long, _) = written(dialect, &then, &talk);
            let end = ends[n - 1];
            assert_eq!(short.as_bytes()[..end], long.as_bytes()[..end], "{dialect:?} {n}");
        }
    }
}

#[test]
fn a_chat_request_has_its_fields_behind_the_messages() {
    let params =
        r#"{"temperature":1.0,"max_completion_tokens":5,"stream_options":{"x":1},"tool_choice":"auto"}"#;
    let setup = setup(Dialect::Chat, None, Some("[{}]"), Some(params));
    let mut ask = ask(&setup);
    let hi = [Message::text(Role::User, "hi")];
    let head = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{}],"temperature":1.0,"#;
    let found = |ask: &komado_provider::ModelRequest<'_>| written(Dialect::Chat, ask, &hi).0;
    assert_eq!(found(&ask), format!(r#"{head}"tool_choice":"auto","max_completion_tokens":5}}"#));
    (ask.max_tokens, ask.stream, ask.tools) = (Some(9), true, ToolUse::NamedOnly);
    let tail = r#""max_completion_tokens":9,"tool_choice":"none","stream":true,"stream_options":{"x":1,"include_usage":true}}"#;
    assert_eq!(found(&ask), format!("{head}{tail}"));
}

#[test]
fn a_strict_server_gets_no_field_that_is_not_its_own() {
    let setup = setup(Dialect::Chat, None, None, None);
    let ask = komado_provider::ModelRequest { stream: true, is_strict: true, ..ask(&setup) };
    let mut thinker = Message::text(Role::Assistant, "ok");
    thinker.parts.insert(0, MessagePart::Reasoning { text: "hm".into(), signature: None });
    let json = komado_core::raw::RawJson::parse(r#"{"reasoning_content":null,"own":1}"#).unwrap();
    thinker.extra = Some(komado_core::message::Opaque { dialect: "openai".into(), json });
    let text = written(Dialect::Chat, &ask, &[Message::text(Role::User, "hi"), thinker]).0;
    assert!(!text.contains("stream_options") && !text.contains("reasoning_content"), "{text}");
    assert!(text.contains("\"own\":1"));
}

#[test]
fn neighbouring_texts_of_the_user_are_one_message_where_templates_want_it() {
    let setup = setup(Dialect::Chat, Some("s"), None, None);
    let ask = komado_provider::ModelRequest { joins: true, ..ask(&setup) };
    let user = |text: &str| Message::text(Role::User, text);
    let talk = [user("一\n\"a\""), user("b"), Message::text(Role::Assistant, "c"), user("d"), user("e")];
    let text = written(Dialect::Chat, &ask, &talk).0;
    let joined = r#"[{"role":"system","content":"s"},{"role":"user","content":"一\n\"a\"\n\nb"},{"role":"assistant","content":"c"},{"role":"user","content":"d\n\ne"}]"#;
    assert!(text.contains(joined), "{text}");
    // What was written before is only gone on with.
    for n in 1..talk.len() {
        let short = written(Dialect::Chat, &ask, &talk[..n]).0;
        let end = short.rfind("]}").unwrap_or(short.len()).saturating_sub(2);
        assert_eq!(short.as_bytes()[..end], text.as_bytes()[..end], "{n}");
    }
}

#[test]
fn a_choice_of_no_tool_is_only_written_beside_tools() {
    for tools in [None, Some("[ ]")] {
        let setup = setup(Dialect::Chat, None, tools, None);
        let mut ask = ask(&setup);
        ask.tools = ToolUse::NamedOnly;
        assert!(!written(Dialect::Chat, &ask, &[]).0.contains("tool_choice"));
    }
}

#[test]
fn ollama_is_asked_for_a_window_and_told_to_drop_nothing() {
    let params = r#"{"options":{"temperature":0.5,"num_ctx":1},"think":"high","shift":true}"#;
    let setup = setup(Dialect::Ollama, None, Some("[{}]"), Some(params));
    let mut ask = ask(&setup);
    (ask.window, ask.max_tokens) = (Some(8192), Some(50));
    let found = written(Dialect::Ollama, &ask, &[Message::text(Role::User, "hi")]).0;
    assert_eq!(
        found,
        r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{}],"think":"high","shift":true,"truncate":false,"options":{"temperature":0.5,"num_ctx":8192,"num_predict":50},"stream":false}"#
    );
    ask.tools = ToolUse::NamedOnly;
    assert!(!written(Dialect::Ollama, &ask, &[]).0.contains("tools"));
}

#[test]
fn ollama_messages_carry_pictures_thoughts_and_arguments_in_its_own_form() {
    let image = |source| MessagePart::Image { source, detail: None };
    let blob =
        ImageSource::Blob { blob: "b1".into(), media_type: "image/png".into(), byte_size: 3, pixels: None };
    let url = |url: &str| image(ImageSource::Url { url: url.into() });
    let seen = vec![
        MessagePart::text("見て"),
        image(blob.clone()),
        url("data:image/jpeg;base64,/9j/AA=="),
        url("http://x/y.png"),
    ];
    let thought = MessagePart::Reasoning { text: "hm".into(), signature: Some("seal".into()) };
    let mut shot = result("c9", "shot", "ok");
    if let MessagePart::Result(outcome) = &mut shot.parts[0] {
        outcome.content.push(image(blob));
        outcome.name = None;
    }
    let messages = [
        Message::of(Role::User, seen),
        Message::of(Role::Assistant, vec![thought, call("c9", "shot", "not json")]),
        shot,
        Message::text(Role::Developer, "短く"),
    ];
    let setup = setup(Dialect::Ollama, None, None, None);
    let (text, _) = written(Dialect::Ollama, &ask(&setup), &messages);
    let wanted = [
        r#"{"role":"user","content":"見て\n[image: http://x/y.png]","images":["b1","/9j/AA=="]}"#,
        r#"{"role":"assistant","content":"","thinking":"hm","tool_calls":[{"id":"c9","function":{"name":"shot","arguments":{"_raw":"not json"}}}]}"#,
        r#"{"role":"tool","content":"ok\n[image: image/png, 3 bytes, ref=b1]","tool_name":"shot","tool_call_id":"c9"}"#,
        r#"{"role":"system","content":"短く"}"#,
    ];
    let head = format!(r#"{{"model":"m","messages":[{}],"#, wanted.join(","));
    assert!(text.starts_with(&head), "{text}\n{head}");
    let again = Dialect::Ollama.read(&text).unwrap().messages;
    assert_eq!(again[1].calls().next().unwrap().arguments, "not json");
    assert_eq!(again[0].parts[2], url("data:image/jpeg;base64,/9j/AA=="));
}

#[test]
fn thoughts_go_back_in_the_field_they_came_in_and_nowhere_else() {
    let text = r#"{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning_content":"考","reasoning_details":[1.0]},{"role":"tool","tool_call_id":"a","content":"r"}]}"#;
    let asked = Dialect::Chat.read(text).unwrap();
    assert_eq!(asked.messages[1].parts[0], MessagePart::Reasoning { text: "考".into(), signature: None });
    assert_eq!(written(Dialect::Chat, &ask(&asked.setup), &asked.messages).0, text);
    let mut other = asked.messages[1].clone();
    other.extra = None;
    assert!(!written(Dialect::Chat, &ask(&asked.setup), &[other]).0.contains("考"));
}

#[test]
fn what_a_client_sends_goes_out_again_as_it_came() {
    for text in [
        r#"{"model":"gpt-5.1","messages":[{"role":"developer","content":"短く"},{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"temperature":0.20,"logit_bias":{"5":-100},"reasoning_effort":"low","max_completion_tokens":32000}"#,
        r#"{"model":"m","messages":[{"role":"system","content":"a"},{"role":"system","content":"b"},{"role":"user","name":"ann","content":"c"}],"n":1,"max_tokens":-1}"#,
        r#"{"model":"m","messages":[{"role":"user","content":"c"},{"role":"assistant","content":"","refusal":"no"}],"seed":12345678901234567890}"#,
    ] {
        let asked = Dialect::Chat.read(text).unwrap();
        assert_eq!(asked.setup.system, None);
        let mut ask = ask(&asked.setup);
        ask.model = &asked.model;
        assert_eq!(written(Dialect::Chat, &ask, &asked.messages).0, text);
    }
}

#[test]
fn only_one_leading_system_message_of_plain_words_becomes_the_system_prompt() {
    let read =
        |messages: &str| Dialect::Chat.read(&format!(r#"{{"model":"m","messages":{messages}}}"#)).unwrap();
    let plain =
        read(r#"[{"role":"system","content":[{"type":"text","text":"s"}]},{"role":"user","content":"u"}]"#);
    assert_eq!((plain.setup.system.as_deref(), plain.messages.len()), (Some("s"), 1));
    for kept in [
        r#"[{"role":"system","content":"s"},{"role":"developer","content":"d"}]"#,
        r#"[{"role":"system","name":"n","content":"s"}]"#,
        r#"[{"role":"system","content":[{"type":"text","text":"s","cache_control":{}}]}]"#,
        r#"[{"role":"user","content":"u"},{"role":"system","content":"s"}]"#,
    ] {
        assert_eq!(read(kept).setup.system, None, "{kept}");
    }
}

#[test]
fn functions_of_old_are_read_as_tools() {
    let asked = Dialect::Chat
        .read(r#"{"model":"m","functions":[{"name":"f","parameters":{}}],"function_call":{"name":"f"},"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"r"}]}"#)
        .unwrap();
    assert_eq!(asked.messages[1].parts, [call("call_0", "f", "{}")]);
    assert_eq!(asked.messages[2], result("call_0", "f", "r"));
    let tools = r#"[{"type":"function","function":{"name":"f","parameters":{}}}]"#;
    assert_eq!(asked.setup.tools.unwrap().get(), tools);
    let choice = r#"{"tool_choice":{"type":"function","function":{"name":"f"}}}"#;
    assert_eq!(asked.setup.params.unwrap().get(), choice);
}

#[test]
fn calls_without_ids_are_paired_with_their_results() {
    let asked = Dialect::Ollama
        .read(r#"{"model":"m","messages":[{"role":"user","content":"q","images":["iVBORw0KGgo="]},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"a":1.0}}},{"function":{"name":"g","arguments":{}}}]},{"role":"tool","tool_name":"g","content":"G"},{"role":"tool","content":"F"},{"role":"assistant","content":"x","tool_calls":[{"function":{"name":"f","arguments":{}}}]},{"role":"tool","tool_name":"f","content":"F2","odd":[1.0]}]}"#)
        .unwrap();
    assert!(asked.stream);
    let paired: Vec<_> = asked
        .messages
        .iter()
        .filter_map(Message::outcome)
        .map(|outcome| (outcome.call_id.as_str(), outcome.name.as_deref().unwrap()))
        .collect();
    assert_eq!(paired, [("call_1", "g"), ("call_0", "f"), ("call_2", "f")]);
    assert_eq!(asked.messages[1].parts[0], call("call_0", "f", "{\"a\":1.0}"));
    let odd = Opaque { dialect: "ollama".into(), json: RawJson::parse(r#"{"odd":[1.0]}"#).unwrap() };
    assert_eq!(asked.messages[5].extra, Some(odd));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let wrapped = |messages: &str| format!(r#"{{"model":"m","messages":{messages}}}"#);
    let chat = [
        ("[]", "body"),
        ("{", "body"),
        (r#"{"messages":[]}"#, "model"),
        (r#"{"model":"m"}"#, "messages"),
        (r#"{"model":"m","messages":{}}"#, "messages"),
        (r#"{"model":"m","messages":[],"tools":{}}"#, "tools"),
        (r#"{"model":"m","messages":[],"max_tokens":"many"}"#, "max_tokens"),
        (r#"{"model":"m","messages":[],"stream":"yes"}"#, "stream"),
        (r#"{"model":"m","messages":[],"user":"\ud800"}"#, "body"),
        (&wrapped(r#"[{"role":"wizard"}]"#), "messages[0]"),
        (
            &wrapped(
                r#"[{"role":"user","content":"a"},{"role":"user","content":[{"type":"text"},{"t":1}]}]"#,
            ),
            "messages[1].content[1]",
        ),
        (
            &wrapped(
                r#"[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"b"}]}]"#,
            ),
            "messages[0].tool_calls[1]",
        ),
    ];
    for (text, place) in chat {
        let bad = Dialect::Chat.read(text).unwrap_err();
        assert_eq!(bad.place, place, "{text}: {bad}");
    }
    let ollama = [
        ("[]", "body"),
        ("{}", "model"),
        (r#"{"model":"m","options":{"num_predict":"x"}}"#, "options.num_predict"),
        (&wrapped("[1]"), "messages[0]"),
        (&wrapped(r#"[{"role":"bard"}]"#), "messages[0].role"),
        (&wrapped(r#"[{"role":"user","content":[]}]"#), "messages[0].content"),
        (&wrapped(r#"[{"role":"user","images":[1]}]"#), "messages[0].images"),
        (
            &wrapped(r#"[{"role":"assistant","tool_calls":[{"function":{"name":"f"}},{}]}]"#),
            "messages[0].tool_calls[1]",
        ),
        (
            &wrapped(r#"[{"role":"assistant","tool_calls":[{"function":{}}]}]"#),
            "messages[0].tool_calls[0].function",
        ),
    ];
    for (text, place) in ollama {
        let bad = Dialect::Ollama.read(text).unwrap_err();
        assert_eq!(bad.place, place, "{text}: {bad}");
    }
}

#[test]
fn a_blob_that_cannot_be_read_is_an_error_of_the_writer() {
    struct Broken;
    impl komado_core::openai::BlobReader for Broken {
        fn base64(&mut self, _: &str, _: &mut dyn std::io::Write) -> std::io::Result<()> {
            Err(std::io::Error::other("gone"))
        }
    }
    let source =
        ImageSource::Blob { blob: "b".into(), media_type: "image/png".into(), byte_size: 1, pixels: None };
    let message = Message::of(Role::User, vec![MessagePart::Image { source, detail: None }]);
    for dialect in [Dialect::Chat, Dialect::Ollama] {
        let setup = setup(dialect, None, None, None);
        let mut out = Vec::new();
        let mut writer = dialect.writer(&ask(&setup), &mut out).unwrap();
        assert!(
            writer.message(&message, &mut RequestOutput { bytes: &mut out, blobs: &mut Broken }).is_err()
        );
        assert!(writer.message(&message, &mut RequestOutput { bytes: &mut out, blobs: &mut Names }).is_ok());
    }
}
