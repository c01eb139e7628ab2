//! Requests of real clients, read and written again.

use crate::messages_responses::play::{BOTH, again, fixture};
use komado_core::message::{CallKind, ImageSource, MessagePart, Role};
use komado_provider::{Dialect, ParsedRequest};

fn messages(body: &str) -> ParsedRequest {
    Dialect::Messages.read(body).unwrap()
}

fn roles(asked: &ParsedRequest) -> Vec<Role> {
    asked.messages.iter().map(|message| message.role).collect()
}

#[test]
fn a_users_message_with_results_becomes_one_for_each_tool_and_then_the_users() {
    let asked = messages(&fixture("messages/request.json"));
    use Role::{Assistant, System, Tool, User};
    assert_eq!(roles(&asked), [User, System, Assistant, Tool, Tool, User, Assistant, User]);
    assert_eq!(
        (asked.model.as_str(), asked.max_tokens, asked.stream),
        ("claude-sonnet-4-5", Some(32000), true)
    );
    assert_eq!(asked.setup.system.as_deref(), Some("x-billing: cli\n\nあなたは窓です。"));
    let thought = MessagePart::Reasoning { text: "どれ?\n".into(), signature: Some("EqQB==".into()) };
    assert_eq!(asked.messages[2].parts[0], thought);
    assert!(
        matches!(&asked.messages[2].parts[1], MessagePart::Opaque(o) if o.json.get().contains("redacted_thinking"))
    );
    let calls: Vec<_> = asked.messages[2].calls().map(|call| call.arguments.as_str()).collect();
    assert_eq!(calls, [r#"{"file_path":"a.rs","n":1.0}"#, r#"{"file_path":"b.rs"}"#]);
    let failed = asked.messages[4].outcome().unwrap();
    assert!(failed.is_error && failed.call_id == "toolu_2");
    let url = |part: &MessagePart| match part {
        MessagePart::Image { source: ImageSource::Url { url }, .. } => url.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(url(&failed.content[1]), "data:image/png;base64,iVBORw0KGgo=");
    assert_eq!(url(&asked.messages[5].parts[1]), "https://example.com/a.png");
    let params = asked.setup.params.as_ref().unwrap().get();
    assert!(params.contains(r#""temperature":1.0"#) && params.contains("clear_thinking"), "{params}");
}

#[test]
fn a_request_that_went_through_us_says_what_it_said() {
    let body = fixture("messages/request.json");
    let whole = again(Dialect::Messages, &messages(&body));
    for kept in [
        r#""system":[{"type":"text","text":"x-billing: cli"},{"type":"text","text":"あなたは窓です。","cache_control":{"type":"ephemeral","ttl":"1h"}}]"#,
        r#""thinking":{"type":"adaptive"},"metadata":{"user_id":"u_1"},"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"temperature":1.0}"#,
        r#"]},{"role":"system","content":[{"type":"text","text":"Be brief from here."}]},{"role":"assistant","#,
        r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"},"title":"doc"}"#,
        r#"{"type":"text","text":"ありがとう","cache_control":{"type":"ephemeral"}}]}],"max_tokens":32000"#,
    ] {
        assert!(whole.contains(kept), "{kept}\n{whole}");
    }
    assert_eq!(whole.matches("cache_control").count(), body.matches("cache_control").count());
}

#[test]
fn reading_what_was_written_and_writing_it_again_changes_nothing() {
    for (dialect, path) in [(Dialect::Messages, "messages"), (Dialect::Responses, "responses")] {
        let asked = dialect.read(&fixture(&format!("{path}/request.json"))).unwrap();
        let once = again(dialect, &asked);
        let back = dialect.read(&once).unwrap();
        assert_eq!(back, asked, "{dialect:?}");
        assert_eq!(again(dialect, &back), once, "{dialect:?}");
    }
}

#[test]
fn marks_on_results_calls_and_pictures_survive() {
    let mark = r#""cache_control":{"type":"ephemeral"}"#;
    let body = format!(
        r#"{{"model":"m","max_tokens":5,"messages":[{{"role":"user","content":[{{"type":"image","source":{{"type":"url","url":"u"}},{mark}}}]}},{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"f","input":{{}},{mark}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"x",{mark}}}]}}],"stream":false}}"#
    );
    let whole = again(Dialect::Messages, &messages(&body));
    assert_eq!(whole.matches(mark).count(), 3, "{whole}");
    assert!(whole.contains(&format!(r#"{{"type":"tool_result","tool_use_id":"a","content":"x",{mark}}}"#)));
}

#[test]
fn a_system_prompt_changed_since_is_not_hidden_by_the_blocks_it_came_in() {
    let mut asked = messages(&fixture("messages/request.json"));
    asked.setup.system = Some("another".into());
    let whole = again(Dialect::Messages, &asked);
    assert!(whole.contains(r#""system":"another""#) && !whole.contains("x-billing"), "{whole}");
}

#[test]
fn items_become_messages_that_can_be_admitted() {
    let asked = Dialect::Responses.read(&fixture("responses/request.json")).unwrap();
    use Role::{Assistant, Developer, Tool, User};
    assert_eq!(
        roles(&asked),
        [Developer, User, Assistant, Tool, Tool, Assistant, Assistant, Assistant, User]
    );
    assert_eq!(asked.setup.system.as_deref(), Some("You are Codex."));
    let calls: Vec<_> = asked.messages[2].calls().map(|call| (call.id.as_str(), call.kind)).collect();
    assert_eq!(calls, [("call_1", CallKind::Function), ("call_2", CallKind::Custom)]);
    let kinds = |at: usize| -> Vec<String> {
        let opaque = |part: &MessagePart| match part {
            MessagePart::Opaque(opaque) => opaque.json.get().split('"').nth(3).unwrap().to_owned(),
            other => format!("{other:?}"),
        };
        asked.messages[at].parts.iter().map(opaque).collect()
    };
    assert_eq!(kinds(5), ["reasoning", "local_shell_call", "function_call_output"]);
    assert_eq!(kinds(6), ["local_shell_call", "local_shell_call_output"]);
    assert_eq!(kinds(7), ["item_reference", "compaction", "thing_of_tomorrow"]);
    let shapes: Vec<_> = asked.messages.iter().map(komado_core::grammar::MessageShape::of).collect();
    assert_eq!(komado_core::grammar::openai(&shapes), Ok(()));
}

#[test]
fn items_keep_their_order_and_their_bytes() {
    let body = fixture("responses/request.json");
    let whole = again(Dialect::Responses, &Dialect::Responses.read(&body).unwrap());
    let input = |body: &str| -> Vec<serde_json::Value> {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        body["input"].as_array().unwrap().clone()
    };
    let (mut before, after) = (input(&body), input(&whole));
    // A message that did not say so now says that it is one.
    *before.last_mut().unwrap() = after.last().unwrap().clone();
    assert_eq!(before, after);
    for kept in [r#""n":12345678901234567890"#, r#""timeout_ms":1.0"#, r#""prompt_cache_key":"0198""#] {
        assert!(whole.contains(kept), "{kept}");
    }
}

#[test]
fn whatever_comes_while_calls_wait_belongs_to_them() {
    let body = r#"{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"local_shell_call","call_id":"s","action":{}},{"type":"function_call","call_id":"b","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"1"},{"type":"reasoning","id":"r","summary":[],"encrypted_content":"g"},{"type":"local_shell_call_output","call_id":"s","output":"o"},{"type":"function_call_output","call_id":"b","output":"2"},{"type":"function_call_output","call_id":"elsewhere","output":"3"}]}"#;
    let asked = Dialect::Responses.read(body).unwrap();
    assert_eq!(roles(&asked), [Role::Assistant, Role::Tool, Role::Tool, Role::User]);
    assert_eq!(asked.messages[0].parts.len(), 5);
    let whole = again(Dialect::Responses, &asked);
    let at = |text: &str| whole.find(text).unwrap();
    assert!(at("local_shell_call\"") < at("local_shell_call_output") && at("\"b\"") < at("\"2\""));
    assert!(whole.contains(r#"{"type":"function_call_output","call_id":"elsewhere","output":"3"}"#));
}

#[test]
fn a_bare_text_is_a_users_message_and_the_servers_memory_stays_a_parameter() {
    let asked =
        Dialect::Responses.read(r#"{"model":"m","input":"窓","previous_response_id":"resp_1"}"#).unwrap();
    assert_eq!((roles(&asked), asked.messages[0].words()), (vec![Role::User], "窓".to_owned()));
    assert_eq!(asked.setup.params.unwrap().get(), r#"{"previous_response_id":"resp_1"}"#);
}

#[test]
fn what_cannot_be_read_is_named_with_its_place() {
    let why = |dialect: Dialect, body: &str| dialect.read(body).unwrap_err().to_string();
    for dialect in BOTH {
        assert!(why(dialect, "[]").starts_with("request: not a JSON object"));
        assert!(why(dialect, r#"{"messages":[],"input":[]}"#).starts_with("model: "));
        assert!(why(dialect, r#"{"model":"m","messages":[],"tools":{}}"#).starts_with("tools: "));
        assert!(why(dialect, r#"{"model":"m","messages":[],"x":"\ud800"}"#).starts_with("request: "));
    }
    let why_messages =
        |messages: &str| why(Dialect::Messages, &format!(r#"{{"model":"m","messages":{messages}}}"#));
    assert!(why_messages(r#"[{"role":"wizard"}]"#).starts_with("messages[0]: unknown role: \"wizard\""));
    assert!(why_messages(r#"[{"role":"user","content":5}]"#).starts_with("messages[0].content: "));
    assert!(why_messages(r#"[{"role":"user","content":[{}]}]"#).starts_with("messages[0].content[0]: "));
    let lost = r#"[{"role":"user","content":[{"type":"tool_result"}]}]"#;
    assert!(why_messages(lost).contains("`tool_use_id`"));
    let why_input = |input: &str| why(Dialect::Responses, &format!(r#"{{"model":"m","input":{input}}}"#));
    assert!(why_input("5").starts_with("input: "));
    assert!(why_input(r#"[{"role":"wizard","content":""}]"#).starts_with("input[0]: unknown role"));
    assert!(
        why_input(r#"[{"type":"function_call","name":"f"}]"#)
            .starts_with("input[0]: a call has no `call_id`")
    );
}
