//! Requests as they are written, byte by byte where it matters.

use crate::messages_responses::play::{BOTH, Named, ask, call, opaque, request, result, written};
use komado_core::journal::Setup;
use komado_core::message::{CallKind, ImageSource, Message, MessagePart, Role};
use komado_core::raw::RawJson;
use komado_provider::dialect::{RequestOutput, WriteRequest};
use komado_provider::{Dialect, ModelRequest, ToolUse};

const TAIL: &str = r#","max_tokens":100,"stream":true,"cache_control":{"type":"ephemeral"}}"#;

fn messages(messages: &[Message]) -> String {
    let whole = request(Dialect::Messages, &Setup::default(), messages);
    whole.strip_prefix(r#"{"model":"m""#).unwrap().strip_suffix(TAIL).unwrap().to_owned()
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn model(parts: Vec<MessagePart>) -> Message {
    Message::of(Role::Assistant, parts)
}

fn talk() -> Vec<Message> {
    let seal = Some("EqQB/+==".to_owned());
    vec![
        Message::text(Role::System, "規則"),
        user("窓"),
        user("を開けて"),
        model(vec![
            MessagePart::Reasoning { text: "どれ\n?".into(), signature: seal },
            MessagePart::text("読む"),
            call("a", r#"{"p":1.0}"#),
            call("b", ""),
        ]),
        result("b", vec![MessagePart::text("二")]),
        result("a", vec![MessagePart::text("")]),
        user("次"),
        Message::text(Role::System, "急げ"),
        model(vec![MessagePart::text("はい")]),
        Message::text(Role::Developer, "終わり"),
    ]
}

#[test]
fn neighbours_are_joined_and_results_lead_the_users_message() {
    let expected = concat!(
        r#","system":"規則","messages":["#,
        r#"{"role":"user","content":[{"type":"text","text":"窓"},{"type":"text","text":"を開けて"}]},"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"どれ\n?","signature":"EqQB/+=="},"#,
        r#"{"type":"text","text":"読む"},{"type":"tool_use","id":"a","name":"read","input":{"p":1.0}},"#,
        r#"{"type":"tool_use","id":"b","name":"read","input":{}}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"二"},"#,
        r#"{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"次"},"#,
        r#"{"type":"text","text":"<system>急げ</system>"}]},"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"はい"}]},"#,
        r#"{"role":"user","content":[{"type":"text","text":"<system>終わり</system>"}]}]"#,
    );
    assert_eq!(messages(&talk()), expected);
}

#[test]
fn a_conversation_is_a_list_of_items() {
    let whole = request(Dialect::Responses, &Setup { system: Some("s".into()), ..Setup::default() }, &talk());
    let message = |role: &str, kind: &str, text: &str| {
        format!(r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}"#)
    };
    let items = [
        message("system", "input_text", "規則"),
        message("user", "input_text", "窓"),
        message("user", "input_text", "を開けて"),
        message("assistant", "output_text", "読む"),
        r#"{"type":"function_call","call_id":"a","name":"read","arguments":"{\"p\":1.0}"}"#.into(),
        r#"{"type":"function_call","call_id":"b","name":"read","arguments":""}"#.into(),
        r#"{"type":"function_call_output","call_id":"b","output":"二"}"#.into(),
        r#"{"type":"function_call_output","call_id":"a","output":""}"#.into(),
        message("user", "input_text", "次"),
        message("system", "input_text", "急げ"),
        message("assistant", "output_text", "はい"),
        message("developer", "input_text", "終わり"),
    ];
    let tail = r#""stream":true,"max_output_tokens":100,"store":false}"#;
    let expected = format!(r#"{{"model":"m","instructions":"s","input":[{}],{tail}"#, items.join(","));
    assert_eq!(whole, expected);
}

#[test]
fn what_was_sent_once_is_never_sent_otherwise() {
    for dialect in BOTH {
        let (setup, talk) = (Setup::default(), talk());
        let (_, longest) = written(dialect, &ask(&setup), &talk);
        for n in 1..=talk.len() {
            let (open, whole) = written(dialect, &ask(&setup), &talk[..n]);
            assert!(longest.starts_with(&open), "{dialect:?} {n}");
            let closing = whole.strip_prefix(open.as_str()).unwrap();
            let closers = if dialect == Dialect::Messages { "]}]," } else { "]," };
            assert!(n == 1 || closing.starts_with(closers), "{closing}");
        }
    }
}

#[test]
fn a_message_is_never_empty_and_no_text_is() {
    let silent = MessagePart::Reasoning { text: "unsigned".into(), signature: None };
    let talk = [
        user(" \n"),
        model(vec![silent]),
        user("　"),
        user("a"),
        model(vec![MessagePart::text(""), MessagePart::text("b")]),
    ];
    let expected = concat!(
        r#","messages":[{"role":"user","content":[{"type":"text","text":"(empty)"}]},"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"(empty)"}]},"#,
        r#"{"role":"user","content":[{"type":"text","text":"(empty)"},{"type":"text","text":"a"}]},"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"b"}]}]"#,
    );
    assert_eq!(messages(&talk), expected);
    let opener = r#","messages":[{"role":"user","content":[{"type":"text","text":"(continued)"}]}"#;
    assert_eq!(messages(&[]), format!("{opener}]"));
    let begins = format!(r#"{opener},{{"role":"assistant","content":[{{"type":"text","text":"x"}}]}}]"#);
    assert_eq!(messages(&[model(vec![MessagePart::text("x")])]), begins);
}

#[test]
fn a_failed_tool_says_something_and_pictures_travel_in_its_answer() {
    let image = |source| MessagePart::Image { source, detail: None };
    let blob =
        ImageSource::Blob { blob: "QUJD".into(), media_type: "image/png".into(), byte_size: 3, pixels: None };
    let url = |url: &str| ImageSource::Url { url: url.into() };
    let mut silent = result("a", vec![]);
    let MessagePart::Result(outcome) = &mut silent.parts[0] else { panic!() };
    outcome.is_error = true;
    let seen =
        result("b", vec![MessagePart::text("見よ"), image(blob), image(url("data:image/gif;base64,R0=="))]);
    let talk = [
        user("x"),
        model(vec![call("a", "{}"), call("b", "{}")]),
        silent,
        seen,
        Message::of(Role::User, vec![image(url("https://e.x/a.png"))]),
    ];
    let whole = messages(&talk);
    let expected = concat!(
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"(empty)","is_error":true},"#,
        r#"{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"見よ"},"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"R0=="}}]},"#,
        r#"{"type":"image","source":{"type":"url","url":"https://e.x/a.png"}}]}]"#,
    );
    assert!(whole.ends_with(expected), "{whole}");
    let whole = request(Dialect::Responses, &Setup::default(), &talk);
    let expected = concat!(
        r#"{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"見よ"},"#,
        r#"{"type":"input_image","image_url":"data:image/png;base64,QUJD"},"#,
    );
    assert!(whole.contains(expected), "{whole}");
}

#[test]
fn fields_of_a_dialect_are_given_back_to_it_alone() {
    let marked = |dialect: &str| MessagePart::Text {
        text: "x".into(),
        extra: Some(opaque(dialect, r#"{"cache_control":{"type":"ephemeral"}}"#)),
    };
    let own = Message::of(
        Role::User,
        vec![marked("anthropic"), MessagePart::Opaque(opaque("anthropic", r#"{"type":"document","n":1.0}"#))],
    );
    let foreign = Message::of(
        Role::User,
        vec![marked("openai"), MessagePart::Opaque(opaque("responses", r#"{"type":"input_file"}"#))],
    );
    let whole = request(Dialect::Messages, &Setup::default(), &[own, foreign]);
    let content = r#"[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},{"type":"document","n":1.0},{"type":"text","text":"x"}]"#;
    assert!(whole.contains(content), "{whole}");
    assert!(whole.ends_with(r#""stream":true}"#), "who marks by hand is not marked for: {whole}");
}

#[test]
fn what_the_answer_may_be_stands_after_the_messages() {
    let setup = Setup {
        system: Some("s".into()),
        tools: Some(RawJson::parse(r#"[{"name":"read","input_schema":{}}]"#).unwrap()),
        params: Some(RawJson::parse(r#"{"thinking":{"type":"enabled","budget_tokens":1024},"tool_choice":{"type":"any"},"top_p":1.0}"#).unwrap()),
        dialect: Some("anthropic".into()),
    };
    let asked = ModelRequest { tools: ToolUse::NamedOnly, stream: false, ..ask(&setup) };
    let (_, whole) = written(Dialect::Messages, &asked, &[user("a")]);
    let expected = concat!(
        r#"{"model":"m","tools":[{"name":"read","input_schema":{}}],"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"#,
        r#""max_tokens":1124,"stream":false,"tool_choice":{"type":"none"},"thinking":{"type":"enabled","budget_tokens":1024},"top_p":1.0,"cache_control":{"type":"ephemeral"}}"#,
    );
    assert_eq!(whole, expected);
    let bare = ModelRequest { max_tokens: None, ..ask(&setup) };
    assert!(written(Dialect::Messages, &bare, &[user("a")]).1.contains(r#","max_tokens":4096,"#));
    let no_tools = Setup::default();
    let asked = ModelRequest { tools: ToolUse::NamedOnly, ..ask(&no_tools) };
    BOTH.iter().for_each(|dialect| assert!(!written(*dialect, &asked, &[]).1.contains("tool_choice")));
}

#[test]
fn custom_calls_and_their_outputs_are_of_one_kind() {
    let MessagePart::Call(mut custom) = call("c", "*** 窓") else { panic!() };
    custom.kind = CallKind::Custom;
    let talk =
        [model(vec![MessagePart::Call(custom), call("d", "{}")]), result("c", vec![]), result("d", vec![])];
    let whole = request(Dialect::Responses, &Setup::default(), &talk);
    assert!(whole.contains(r#"{"type":"custom_tool_call","call_id":"c","name":"read","input":"*** 窓"}"#));
    assert!(whole.contains(r#"{"type":"custom_tool_call_output","call_id":"c""#));
    assert!(whole.contains(r#"{"type":"function_call_output","call_id":"d""#));
    assert!(messages(&talk).contains(r#""input":{"_raw":"*** 窓"}"#));
}

#[test]
fn a_thought_that_only_the_server_could_remember_is_not_sent_to_one_that_does_not() {
    let thought = |json: &str| model(vec![MessagePart::Opaque(opaque("responses", json))]);
    let hollow =
        thought(r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}]}"#);
    let sealed = thought(r#"{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"g=="}"#);
    let stores = Setup { params: Some(RawJson::parse(r#"{"store":true}"#).unwrap()), ..Setup::default() };
    let talk = [hollow, sealed];
    let (forgets, keeps) =
        (request(Dialect::Responses, &Setup::default(), &talk), request(Dialect::Responses, &stores, &talk));
    assert!(!forgets.contains("rs_1") && forgets.contains("rs_2"), "{forgets}");
    assert!(
        keeps.contains("rs_1") && keeps.contains("rs_2") && !keeps.contains(r#""store":false"#),
        "{keeps}"
    );
}

#[test]
fn a_writer_that_cannot_write_says_so() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let setup = Setup::default();
    for dialect in BOTH {
        let mut writer: Box<dyn WriteRequest> = dialect.writer(&ask(&setup), &mut Vec::new()).unwrap();
        assert!(
            writer.message(&user("a"), &mut RequestOutput { bytes: &mut Full, blobs: &mut Named }).is_err()
        );
        assert!(writer.end(&mut Full).is_err());
    }
}
