//! A request, skimmed: the same however it is cut, and by what it says, not by how it is written.

use komado_provider::{BadRequest, Dialect, ElementAuthor, RequestScanner, ScannedRequest};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn skim_in(dialect: Dialect, body: &[u8], size: usize) -> Result<ScannedRequest, BadRequest> {
    let mut skimmer = RequestScanner::new(dialect, b"salt");
    body.chunks(size.max(1)).try_for_each(|piece| skimmer.push(piece))?;
    skimmer.end()
}

fn skim(dialect: Dialect, body: &str) -> ScannedRequest {
    skim_in(dialect, body.as_bytes(), body.len()).unwrap()
}

fn why(dialect: Dialect, body: &[u8]) -> String {
    skim_in(dialect, body, 3).unwrap_err().to_string()
}

/// The running digests over `elements`, as they stand in a request.
fn digests(dialect: Dialect, elements: &str) -> Vec<[u8; 16]> {
    let list = if dialect == Dialect::Responses { "input" } else { "messages" };
    let skim = skim(dialect, &format!("{{\"model\":\"m\",\"{list}\":[{elements}]}}"));
    skim.elements.iter().map(|element| element.digest).collect()
}

const CLAUDE: &str = r#" {"model":"claude-\u7a93", "max_tokens" : 100,"system":[{"type":"text","text":"決まり"}],
 "messages": [{"role":"user","content":"窓を \"開けて\" \\ \n"} , {"role":"assistant","content":[{"type":"thinking",
 "thinking":"hm","signature":"s=="},{"type":"tool_use","id":"t1","name":"f","input":{"a":[1.5e-3,-0,true,null]}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"🪟"}]},{"role":"system","content":"x"}],
 "tools":[{"name":"f"}],"stream":true,"metadata":{"messages":["no"]}} "#;

#[test]
fn a_request_is_skimmed_alike_however_it_is_cut() {
    let whole = skim(Dialect::Messages, CLAUDE);
    let bys: Vec<ElementAuthor> = whole.elements.iter().map(|element| element.by).collect();
    assert_eq!(bys, [ElementAuthor::User, ElementAuthor::Model, ElementAuthor::Tool, ElementAuthor::System]);
    assert_eq!(
        (whole.model.as_deref(), whole.stream, whole.len),
        (Some("claude-窓"), true, CLAUDE.len() as u64)
    );
    for size in 1..CLAUDE.len() {
        assert_eq!(skim_in(Dialect::Messages, CLAUDE.as_bytes(), size).unwrap(), whole, "{size}");
    }
    for at in 0..CLAUDE.len() {
        let mut skimmer = RequestScanner::new(Dialect::Messages, b"salt");
        skimmer.push(&CLAUDE.as_bytes()[..at]).unwrap();
        skimmer.push(&CLAUDE.as_bytes()[at..]).unwrap();
        assert_eq!(skimmer.end().unwrap(), whole, "cut at {at}");
    }
}

#[test]
fn spans_are_the_values_and_elements_themselves() {
    let skim = skim(Dialect::Messages, CLAUDE);
    let at = |span: std::ops::Range<u64>| &CLAUDE[span.start as usize..span.end as usize];
    let list: Vec<&serde_json::value::RawValue> = serde_json::from_str(at(skim.list().unwrap())).unwrap();
    let elements: Vec<&str> = skim.elements.iter().map(|element| at(element.span.clone())).collect();
    assert_eq!(elements, list.iter().map(|raw| raw.get()).collect::<Vec<_>>());
    let value: Value = serde_json::from_str(CLAUDE).unwrap();
    assert_eq!(skim.fields.len(), value.as_object().unwrap().len());
    for field in &skim.fields {
        assert_eq!(serde_json::from_str::<Value>(at(field.span.clone())).unwrap(), value[&field.key]);
    }
}

#[test]
fn how_it_is_written_does_not_matter() {
    let same = |dialect, one: &str, other: &str| {
        assert_eq!(digests(dialect, one).last(), digests(dialect, other).last(), "{one}\n{other}");
    };
    let said = r#"{"role":"user","content":"x"}"#;
    for dialect in Dialect::ALL {
        same(dialect, said, "{ \"role\" : \"user\",\n\t\"content\":\"x\" }");
        same(dialect, said, r#"{"role":"user","content":[{"type":"text","text":"x"}]}"#);
        same(dialect, said, r#"{"role":"user","content":[{"text":"x","type":"text"}]}"#);
        same(dialect, said, r#"{"role":"user","content":"x","cache_control":{"type":"ephemeral"}}"#);
        let marked = r#"{"cache_control":{"a":[1]},"role":"user","content":[{"type":"text","text":"x","cache\u005fcontrol":null}]}"#;
        same(dialect, said, marked);
    }
    let thought = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"data":"d","type":"redacted_thinking"},{"type":"text","text":"y"}]}"#;
    same(Dialect::Messages, thought, r#"{"role":"assistant","content":"y"}"#);
    let result = |mark: &str| {
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"text","text":"r"{mark}}}]{mark}}}]}}"#
        )
    };
    same(Dialect::Messages, &result(""), &result(r#","cache_control":{"type":"ephemeral"}"#));
    for field in [r#""reasoning_content":"t""#, r#""reasoning":"t""#, r#""reasoning_details":[{"a":1}]"#] {
        let with = format!(r#"{{"role":"assistant",{field},"content":"y"}}"#);
        same(Dialect::Chat, &with, r#"{"role":"assistant","content":"y"}"#);
    }
    same(
        Dialect::Ollama,
        r#"{"role":"assistant","content":"y","thinking":"t"}"#,
        r#"{"role":"assistant","content":"y"}"#,
    );
}

#[test]
fn what_a_server_says_of_an_item_does_not_matter() {
    let same = |one: &str, other: &str| {
        let (one, other) = (digests(Dialect::Responses, one), digests(Dialect::Responses, other));
        assert_eq!(one.last(), other.last());
    };
    let message = r#"{"role":"user","content":"x"}"#;
    same(message, r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}"#);
    same(message, r#"{"type":"message","id":"msg_1","status":"completed","role":"user","content":"x"}"#);
    let text = skim(Dialect::Responses, r#"{"input":"x"}"#);
    assert_eq!(text.elements[0].digest, digests(Dialect::Responses, message)[0]);
    assert_eq!((text.elements[0].by, text.elements[0].span.clone()), (ElementAuthor::User, 9..12));
    let call = r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#;
    let told = r#"{"id":"fc_1","type":"function_call","status":"completed","call_id":"c","name":"f","arguments":"{}"}"#;
    same(call, told);
    let thought = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}"#;
    same(message, &format!("{message},{thought}"));
    same(&format!("{message},{call}"), &format!("{message},{thought},{told}"));
    let by: Vec<ElementAuthor> = skim(Dialect::Responses, &format!(r#"{{"input":[{thought},{call},{{"type":"local_shell_call_output","call_id":"l"}},{{"type":"web_search_call","id":"w"}},7]}}"#))
        .elements
        .iter()
        .map(|element| element.by)
        .collect();
    assert_eq!(
        by,
        [
            ElementAuthor::Model,
            ElementAuthor::Model,
            ElementAuthor::Tool,
            ElementAuthor::Model,
            ElementAuthor::Other
        ]
    );
    let refers =
        |id: &str| digests(Dialect::Responses, &format!(r#"{{"type":"item_reference","id":"{id}"}}"#));
    assert_ne!(refers("a"), refers("b"));
}

#[test]
fn what_it_says_does_matter() {
    let dialect = Dialect::Messages;
    let all = [
        r#"{"role":"user","content":"x"}"#,
        r#"{"role":"assistant","content":"x"}"#,
        r#"{"role":"user","content":"x "}"#,
        r#"{"role":"user","content":["x"]}"#,
        r#"{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":""}]}"#,
        r#"{"role":"user","content":[{"type":"image","text":"x"}]}"#,
        r#"{"role":"user","content":[{"text":"x"}]}"#,
        r#"{"role":"user","content":[[{"text":"x"}]]}"#,
        r#"{"role":"user","content":{"type":"text","text":"x"}}"#,
        r#"{"role":"user","content":null}"#,
        r#"{"role":"user","content":[]}"#,
        r#"{"role":"user"}"#,
        r#"{"role":"user","content":[],"x":1}"#,
        r#"{"role":"user","content":[],"x":[1]}"#,
        r#"{"role":"user","content":[],"x":[12]}"#,
        r#"{"role":"user","content":[],"x":[1,2]}"#,
        r#"{"role":"user","content":[],"x":["1,2"]}"#,
        r#"{"role":"user","content":[],"x":{"y":1}}"#,
        r#"{"role":"user","content":[],"x":{},"y":1}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"cache_control":"no"}}]}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"cache_control":"yes"}}]}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}"#,
        r#""x""#,
        r#"["x"]"#,
    ];
    for (i, one) in all.iter().enumerate() {
        for other in &all[i + 1..] {
            assert_ne!(digests(dialect, one), digests(dialect, other), "{one}\n{other}");
        }
    }
    let both = |a: &str, b: &str| digests(dialect, &format!("{a},{b}"))[1];
    assert_ne!(both(all[0], all[1]), both(all[1], all[0]), "order");
    let mut other = RequestScanner::new(dialect, b"pepper");
    other.push(CLAUDE.as_bytes()).unwrap();
    assert_ne!(other.end().unwrap().elements[0].digest, skim(dialect, CLAUDE).elements[0].digest, "salt");
}

#[test]
fn long_types_keys_and_odd_values_are_words_like_any_other() {
    let long = "窓".repeat(200);
    let with = |rest: &str| digests(Dialect::Chat, &format!(r#"{{"role":"user",{rest}}}"#));
    let all = [
        with(&format!(r#""type":"{long}""#)),
        with(&format!(r#""type":"{long}x""#)),
        with(&format!(r#""{long}":1"#)),
        with(&format!(r#""{long}x":1"#)),
        with(r#""type":7"#),
        with(r#""type":[7]"#),
        with(r#""type":"7""#),
        with(r#""content":[{"type":7}]"#),
        with(r#""content":[{"type":{"a":"text"}}]"#),
        with(&format!(r#""content":[{{"type":"{long}"}}]"#)),
    ];
    for (i, one) in all.iter().enumerate() {
        assert!(all[i + 1..].iter().all(|other| one != other), "{i}");
    }
}

#[test]
fn keys_are_understood_with_escapes_and_the_last_of_two_wins() {
    let body = r#"{"mess\u0061ges":[{"role":"user","content":"a"}],"str\u0065am":true,"model":"m",
        "messages":[{"role":"assistant","content":"b"},{"role":"user","content":"c"}],"model":"n","stream":false}"#;
    let skim = skim(Dialect::Chat, body);
    assert_eq!((skim.model.as_deref(), skim.stream), (Some("n"), false));
    let list = r#"{"role":"assistant","content":"b"},{"role":"user","content":"c"}"#;
    let found: Vec<[u8; 16]> = skim.elements.iter().map(|element| element.digest).collect();
    assert_eq!(found, digests(Dialect::Chat, list));
    assert!(body[skim.list().unwrap().start as usize..].starts_with("[{\"role\":\"assistant\""));
}

#[test]
fn what_may_be_missing_may_be() {
    assert!(skim(Dialect::Ollama, r#"{"model":"m"}"#).stream);
    let response = skim(Dialect::Responses, r#"{"previous_response_id":"resp_1","input":null}"#);
    assert_eq!((response.previous.as_deref(), response.elements.len()), (Some("resp_1"), 0));
    assert!(!skim(Dialect::Chat, r#"{"messages":[],"stream":"yes"}"#).stream);
    assert!(why(Dialect::Chat, br#"{"model":"m"}"#).contains("messages: is missing"));
    assert!(why(Dialect::Messages, br#"{"messages":null}"#).contains("is missing"));
}

#[test]
fn what_is_no_request_is_refused_at_the_byte_where_it_ceases_to_be_one() {
    let at = |body: &[u8]| why(Dialect::Chat, body);
    assert_eq!(at(b""), "body, byte 0: the body is empty; send a JSON object");
    assert_eq!(at(b"[]"), "body, byte 0: not a JSON object");
    assert_eq!(at(b" \"x\""), "body, byte 1: not a JSON object");
    assert_eq!(at(b"{\"messages\":[]} x"), "body, byte 16: something follows the JSON object");
    assert!(at(b"{\"messages\":[]").starts_with("body, byte 14: the body ends before"));
    assert!(at(b"{\"messages\":\"x\"}").contains("messages: it must be a list"));
    assert!(at(b"{\"messages\":{}}").contains("messages: it must be a list"));
    assert!(at(b"{\"messages\":7}").contains("messages: it must be a list"));
    assert!(at("{\"a\":\"窓".as_bytes()).contains("ends before"));
    for wrong in [
        &b"{\"a\":01}"[..],
        b"{\"a\":1.}",
        b"{\"a\":-}",
        b"{\"a\":1e}",
        b"{\"a\":+1}",
        b"{\"a\":tru}",
        b"{\"a\":nulL}",
        b"{\"a\":\"\x01\"}",
        b"{\"a\":\"\\x\"}",
        b"{\"a\":\"\\u12g4\"}",
        b"{\"a\":\"\xff\"}",
        b"{\"a\":1,}",
        b"{,}",
        b"{\"a\" 1}",
        b"{a:1}",
        b"{\"a\":[1,]}",
        b"{\"a\":[1}",
        b"{\"a\":1]",
        b"{\"a\":[}]",
        b"\xef\xbb\xbf{}",
    ] {
        let why = at(wrong);
        assert!(why.starts_with("body, byte "), "{why}");
    }
    let deep = |n: usize| format!("{{\"messages\":[],\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
    assert!(skim_in(Dialect::Chat, deep(127).as_bytes(), 9).is_ok());
    assert!(at(deep(128).as_bytes()).contains("nested more than 128 deep"));
    assert!(at(format!("{{\"{}\":1}}", "k".repeat(300)).as_bytes()).contains("at most 256 bytes"));
    assert!(at(format!("{{\"model\":\"{}\"}}", "k".repeat(1025)).as_bytes()).contains("longer than 1024"));
    let many: Vec<String> = (0..5000).map(|i| format!("\"k{i}\":0")).collect();
    assert!(at(format!("{{{}}}", many.join(",")).as_bytes()).contains("more than 4096 fields"));
}

/// Any JSON value, a few levels deep, with the words that mean something here among its keys.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f32>().prop_map(|f| json!(f)),
        "(user|assistant|text|thinking|窓\"\\\\\n|[a-z ]{0,12})".prop_map(Value::from),
    ];
    let key = "(role|content|type|text|id|status|call_id|input|cache_control|[a-z]{1,3})";
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn dialect() -> impl Strategy<Value = Dialect> {
    prop::sample::select(Dialect::ALL.to_vec())
}

/// The same value with cache marks at every object that is not a tool's.
fn marked(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(marked).collect(),
        Value::Object(fields) => {
            let mut fields: Map<String, Value> = fields
                .iter()
                .filter(|(key, _)| *key != "cache_control")
                .map(|(key, value)| {
                    let is_tools = matches!(key.as_str(), "input" | "arguments");
                    (key.clone(), if is_tools { value.clone() } else { marked(value) })
                })
                .collect();
            fields.insert("cache_control".into(), json!({ "type": "ephemeral" }));
            Value::Object(fields)
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_is_taken_alike_at_any_cut_and_in_any_layout(
        dialect in dialect(), list in prop::collection::vec(value(), 0..4), size in 1usize..40,
    ) {
        let key = if dialect == Dialect::Responses { "input" } else { "messages" };
        let body = json!({ "model": "m", key: list });
        let (tight, loose) = (body.to_string(), serde_json::to_string_pretty(&body).unwrap());
        let whole = skim(dialect, &tight);
        prop_assert_eq!(&skim_in(dialect, tight.as_bytes(), size).unwrap(), &whole);
        let other = skim_in(dialect, loose.as_bytes(), size).unwrap();
        prop_assert_eq!(whole.elements.len(), list.len());
        for (one, other) in whole.elements.iter().zip(&other.elements) {
            prop_assert_eq!((one.by, one.digest), (other.by, other.digest));
        }
    }

    #[test]
    fn cache_marks_anywhere_change_no_digest(dialect in dialect(), list in prop::collection::vec(value(), 1..4)) {
        let text = |list: &[Value]| list.iter().map(Value::to_string).collect::<Vec<_>>().join(",");
        let bare: Vec<Value> = list.iter().map(|value| unmarked(&marked(value))).collect();
        let marks: Vec<Value> = list.iter().map(marked).collect();
        prop_assert_eq!(digests(dialect, &text(&bare)), digests(dialect, &text(&marks)));
    }

    #[test]
    fn another_letter_in_a_text_is_another_digest(
        role in "(user|assistant|system)", words in "[a-z窓]{1,20}", at in 0usize..20,
    ) {
        let mut other: Vec<char> = words.chars().collect();
        let at = at % other.len();
        other[at] = if other[at] == 'q' { 'Q' } else { 'q' };
        let other: String = other.into_iter().collect();
        let told = |words: &str| digests(Dialect::Chat, &json!({ "role": role, "content": words }).to_string());
        prop_assume!(words != other);
        prop_assert_ne!(told(&words), told(&other));
    }

    #[test]
    fn no_bytes_can_make_it_panic(dialect in dialect(), bytes in prop::collection::vec(any::<u8>(), 0..200), size in 1usize..9) {
        let _ = skim_in(dialect, &bytes, size);
        let mut body = CLAUDE.as_bytes().to_vec();
        for (i, byte) in bytes.iter().enumerate().take(4) {
            let at = (usize::from(*byte) * 7 + i * 131) % body.len();
            body[at] = bytes[bytes.len() - 1 - i];
        }
        let skimmed = skim_in(dialect, &body, size);
        let is_json = serde_json::from_slice::<Map<String, Value>>(&body).is_ok();
        prop_assert!(is_json || skimmed.is_err(), "taken, and no JSON: {}", String::from_utf8_lossy(&body));
    }
}

/// The same value without cache marks, where [`marked`] puts them.
fn unmarked(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(unmarked).collect(),
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| *key != "cache_control")
            .map(|(key, value)| {
                let is_tools = matches!(key.as_str(), "input" | "arguments");
                (key.clone(), if is_tools { value.clone() } else { unmarked(value) })
            })
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}
