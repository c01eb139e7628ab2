//! Tools and parameters, from each dialect to each other.

use super::*;
use komado_core::raw::RawJson;

fn setup(dialect: Dialect, tools: &str, params: &str) -> Setup {
    Setup {
        system: None,
        tools: Some(RawJson::parse(tools).unwrap()),
        params: Some(RawJson::parse(params).unwrap()),
        dialect: Some(dialect.name().into()),
    }
}

const CHAT: &str = r#"[{"type":"function","function":{"name":"read","description":"読む","parameters":{"type":"object","x":1.0}}}]"#;
const RESPONSES: &str = r#"[{"type":"function","name":"read","description":"読む","parameters":{"type":"object","x":1.0},"strict":false}]"#;
const MESSAGES: &str = r#"[{"name":"read","description":"読む","input_schema":{"type":"object","x":1.0}}]"#;

const FORMS: [(Dialect, &str); 4] = [
    (Dialect::Chat, CHAT),
    (Dialect::Responses, RESPONSES),
    (Dialect::Messages, MESSAGES),
    (Dialect::Ollama, CHAT),
];

#[test]
fn a_function_goes_from_every_dialect_to_every_other_with_its_schema_untouched() {
    for (from, tools_in) in FORMS {
        for (to, wanted) in FORMS {
            let found = tools(&setup(from, tools_in, "{}"), to).unwrap();
            // A function that said it is not strict goes on saying so.
            let wanted = match (from, to) {
                (Dialect::Responses, Dialect::Chat) => wanted.replace("1.0}}", "1.0},\"strict\":false}"),
                _ => wanted.to_owned(),
            };
            assert_eq!(found, wanted, "{from:?} to {to:?}");
        }
    }
}

#[test]
fn a_tool_that_only_one_dialect_knows_is_left_out_for_others_and_kept_for_itself() {
    let server = r#"[{"type":"web_search_20250305","name":"web_search"}]"#;
    let messages = setup(Dialect::Messages, server, "{}");
    assert_eq!(tools(&messages, Dialect::Messages).as_deref(), Some(server));
    assert_eq!(tools(&messages, Dialect::Chat), None);
    let codex = r#"[{"type":"local_shell"},{"type":"custom","name":"patch","format":{"type":"grammar","syntax":"lark","definition":"a"}}]"#;
    let responses = setup(Dialect::Responses, codex, "{}");
    let chat = r#"[{"type":"custom","custom":{"name":"patch","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"a"}}}}]"#;
    assert_eq!(tools(&responses, Dialect::Chat).as_deref(), Some(chat));
    assert_eq!(tools(&responses, Dialect::Ollama), None);
    let back =
        r#"[{"type":"custom","name":"patch","format":{"type":"grammar","syntax":"lark","definition":"a"}}]"#;
    assert_eq!(tools(&setup(Dialect::Chat, chat, "{}"), Dialect::Responses).as_deref(), Some(back));
}

#[test]
fn parameters_of_the_same_dialect_stay_byte_for_byte_except_the_writers_own() {
    let raw = r#"{"temperature":1.0,"seed":12345678901234567890,"stream":true,"x":{ "a":1e400}}"#;
    let mut same = setup(Dialect::Chat, "[]", raw);
    let wanted = [("temperature", "1.0"), ("seed", "12345678901234567890"), ("x", r#"{ "a":1e400}"#)];
    assert!(params(&same, Dialect::Chat, &["stream"]).iter().eq(wanted));
    same.dialect = None;
    assert!(params(&same, Dialect::Chat, &["stream"]).iter().eq(wanted));
    same.dialect = Some("morse".into());
    assert!(params(&same, Dialect::Chat, &[]).is_empty());
    assert_eq!(tools(&same, Dialect::Chat), None);
}

fn went(from: Dialect, raw: &str, to: Dialect) -> String {
    let tools_in = FORMS.iter().find(|(dialect, _)| *dialect == from).unwrap().1;
    let pairs = params(&setup(from, tools_in, raw), to, &[]);
    let fields: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    fields.join(" ")
}

#[test]
fn parameters_that_mean_the_same_are_put_in_the_other_dialects_words() {
    let chat = r#"{"temperature":1.5,"top_p":0.9,"stop":"終","seed":7,"reasoning_effort":"high","tool_choice":{"type":"function","function":{"name":"read"}},"parallel_tool_calls":false}"#;
    assert_eq!(
        went(Dialect::Chat, chat, Dialect::Messages),
        r#"temperature=1 stop_sequences=["終"] tool_choice={"type":"tool","name":"read","disable_parallel_tool_use":true}"#
    );
    assert_eq!(
        went(Dialect::Chat, chat, Dialect::Responses),
        r#"temperature=1.5 top_p=0.9 tool_choice={"type":"function","name":"read"} parallel_tool_calls=false"#
    );
    assert_eq!(
        went(Dialect::Chat, chat, Dialect::Ollama),
        r#"options={"temperature":1.5,"top_p":0.9,"seed":7,"stop":["終"]}"#
    );
    let messages = r#"{"top_k":5,"stop_sequences":["a"],"thinking":{"type":"adaptive"},"tool_choice":{"type":"any","disable_parallel_tool_use":true}}"#;
    assert_eq!(
        went(Dialect::Messages, messages, Dialect::Chat),
        r#"stop=["a"] tool_choice="required" parallel_tool_calls=false"#
    );
    assert_eq!(went(Dialect::Messages, messages, Dialect::Ollama), r#"options={"top_k":5,"stop":["a"]}"#);
    let ollama = r#"{"options":{"temperature":0.2,"num_ctx":8192,"stop":["x"]},"keep_alive":"5m"}"#;
    assert_eq!(went(Dialect::Ollama, ollama, Dialect::Chat), r#"temperature=0.2 stop=["x"]"#);
}

#[test]
fn a_choice_is_not_written_without_the_tool_it_names() {
    let raw = r#"{"tool_choice":{"type":"function","function":{"name":"gone"}}}"#;
    assert_eq!(went(Dialect::Chat, raw, Dialect::Responses), "");
    let none = setup(
        Dialect::Messages,
        r#"[{"type":"bash_20250124","name":"bash"}]"#,
        r#"{"tool_choice":{"type":"any"}}"#,
    );
    assert!(params(&none, Dialect::Chat, &[]).is_empty());
}
