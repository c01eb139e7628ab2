//! A part of a transcript, read and written on its own.

use komado_core::journal::ElementGroup;
use komado_core::message::{Call, CallKind, Message, MessagePart, Role};
use komado_core::openai::BlobReader;
use komado_provider::Dialect;
use komado_provider::dialect::TranscriptTail;
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::{self, Write};

struct Names;

impl BlobReader for Names {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(id.as_bytes())
    }
}

fn read(dialect: Dialect, elements: &[String], open: &[Call]) -> TranscriptTail {
    let elements: Vec<&str> = elements.iter().map(String::as_str).collect();
    dialect.read_elements(&elements, open).unwrap()
}

fn written(dialect: Dialect, messages: &[Message]) -> Vec<String> {
    let text = String::from_utf8(dialect.write_elements(messages, &mut Names).unwrap()).unwrap();
    let list = format!("[{text}]");
    let list: Vec<&RawValue> = serde_json::from_str(&list).unwrap_or_else(|e| panic!("{e}: {list}"));
    list.into_iter().map(|raw| raw.get().to_owned()).collect()
}

fn groups(tail: &TranscriptTail) -> Vec<[u32; 3]> {
    tail.groups.iter().map(|group| <[u32; 3]>::from(*group)).collect()
}

/// Where a group ends: after so many elements and so many messages.
fn boundaries(groups: &[ElementGroup]) -> Vec<(usize, usize)> {
    let (mut elements, mut messages) = (0, 0);
    let mut ends = vec![(0, 0)];
    for group in groups {
        for _ in 0..group.times {
            elements += group.elements as usize;
            messages += group.entries as usize;
            ends.push((elements, messages));
        }
    }
    ends
}

/// The calls that wait for an answer after `messages`.
fn open(messages: &[Message]) -> Vec<Call> {
    let mut open: Vec<Call> = Vec::new();
    for message in messages {
        match message.outcome() {
            Some(outcome) => open.retain(|call| call.id != outcome.call_id),
            None => open = message.calls().cloned().collect(),
        }
    }
    open
}

/// One turn of a made-up conversation: what the user says, what the model says and calls, what the tools answer.
#[derive(Clone, Debug)]
struct Turn {
    user: String,
    words: Option<String>,
    thinks: bool,
    calls: Vec<(bool, String)>,
    then: Option<String>,
}

fn turn() -> impl Strategy<Value = Turn> {
    let words = "[a-z窓🪟][a-z窓🪟\n\"]{0,7}";
    let calls = prop::collection::vec((any::<bool>(), words), 0..3);
    (words, prop::option::of(words), any::<bool>(), calls, prop::option::of(words))
        .prop_map(|(user, words, thinks, calls, then)| Turn { user, words, thinks, calls, then })
}

fn elements(dialect: Dialect, turns: &[Turn]) -> Vec<String> {
    let mut made = Vec::new();
    for (t, turn) in turns.iter().enumerate() {
        match dialect {
            Dialect::Chat => chat(t, turn, &mut made),
            Dialect::Responses => responses(t, turn, &mut made),
            Dialect::Messages => messages(t, turn, &mut made),
            Dialect::Ollama => ollama(t, turn, &mut made),
        }
    }
    made.iter().map(Value::to_string).collect()
}

fn name(is_first: bool) -> &'static str {
    if is_first { "read" } else { "grep" }
}

fn chat(t: usize, turn: &Turn, made: &mut Vec<Value>) {
    made.push(json!({ "role": "user", "content": turn.user, "cache": t }));
    let calls: Vec<Value> = turn.calls.iter().enumerate().map(|(i, (first, word))| {
        json!({ "id": format!("c{t}_{i}"), "type": "function", "function": { "name": name(*first), "arguments": word } })
    }).collect();
    let mut said = json!({ "role": "assistant", "content": turn.words });
    if !calls.is_empty() {
        said["tool_calls"] = calls.into();
    }
    if turn.thinks {
        said["reasoning_content"] = "hm".into();
    }
    made.push(said);
    for (i, (_, word)) in turn.calls.iter().enumerate() {
        made.push(json!({ "role": "tool", "tool_call_id": format!("c{t}_{i}"), "content": word }));
    }
    if let Some(then) = &turn.then {
        made.push(json!({ "role": "assistant", "content": then }));
    }
}

fn responses(t: usize, turn: &Turn, made: &mut Vec<Value>) {
    made.push(json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": turn.user }] }));
    if turn.thinks {
        made.push(json!({ "type": "reasoning", "id": format!("rs_{t}"), "encrypted_content": "g==", "summary": [] }));
    }
    if let Some(words) = &turn.words {
        let part = json!({ "type": "output_text", "text": words });
        made.push(json!({ "type": "message", "role": "assistant", "content": [part] }));
    }
    for (i, (first, word)) in turn.calls.iter().enumerate() {
        let (kind, field) =
            if *first { ("function_call", "arguments") } else { ("custom_tool_call", "input") };
        made.push(json!({ "type": kind, "call_id": format!("c{t}_{i}"), "name": name(*first), field: word }));
    }
    for (i, (first, word)) in turn.calls.iter().enumerate().rev() {
        let kind = if *first { "function_call_output" } else { "custom_tool_call_output" };
        made.push(json!({ "type": kind, "call_id": format!("c{t}_{i}"), "output": word }));
    }
    if let Some(then) = &turn.then {
        made.push(json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": then }] }));
    }
}

fn messages(t: usize, turn: &Turn, made: &mut Vec<Value>) {
    let mut blocks: Vec<Value> = made
        .pop_if(|last| last["role"] == "user")
        .map_or_else(Vec::new, |last| last["content"].as_array().unwrap().clone());
    blocks.push(json!({ "type": "text", "text": turn.user }));
    made.push(json!({ "role": "user", "content": blocks }));
    let mut said = Vec::new();
    if turn.thinks {
        said.push(json!({ "type": "thinking", "thinking": "hm", "signature": "Eq==" }));
    }
    said.push(json!({ "type": "text", "text": turn.words.as_deref().unwrap_or("x") }));
    for (i, (first, word)) in turn.calls.iter().enumerate() {
        let input = json!({ "w": word });
        said.push(
            json!({ "type": "tool_use", "id": format!("c{t}_{i}"), "name": name(*first), "input": input }),
        );
    }
    made.push(json!({ "role": "assistant", "content": said }));
    if !turn.calls.is_empty() {
        let results: Vec<Value> = turn.calls.iter().enumerate().map(|(i, (_, word))| {
            json!({ "type": "tool_result", "tool_use_id": format!("c{t}_{i}"), "content": word })
        }).collect();
        made.push(json!({ "role": "user", "content": results }));
        if let Some(then) = &turn.then {
            made.push(json!({ "role": "assistant", "content": [{ "type": "text", "text": then }] }));
        }
    }
}

/// Half of the conversations have ids, half have none.
fn ollama(t: usize, turn: &Turn, made: &mut Vec<Value>) {
    made.push(json!({ "role": "user", "content": turn.user }));
    let calls: Vec<Value> = turn
        .calls
        .iter()
        .enumerate()
        .map(|(i, (first, word))| {
            let mut call = json!({ "function": { "name": name(*first), "arguments": { "w": word } } });
            if turn.thinks {
                call["id"] = format!("c{t}_{i}").into();
            }
            call
        })
        .collect();
    let mut said = json!({ "role": "assistant", "content": turn.words.as_deref().unwrap_or("x") });
    if !calls.is_empty() {
        said["tool_calls"] = calls.into();
    }
    made.push(said);
    for (first, word) in &turn.calls {
        made.push(json!({ "role": "tool", "tool_name": name(*first), "content": word }));
    }
}

/// The same messages, with calls named by their order: ids that nobody gave are made up where they are read.
fn renamed(messages: &[Message]) -> Vec<Message> {
    let mut messages = messages.to_vec();
    let (mut open, mut made): (Vec<(String, String)>, usize) = (Vec::new(), 0);
    for part in messages.iter_mut().flat_map(|message| &mut message.parts) {
        match part {
            MessagePart::Call(call) => {
                let new = format!("n{made}");
                made += 1;
                open.push((std::mem::replace(&mut call.id, new.clone()), new));
            }
            MessagePart::Result(outcome) => {
                let at = open.iter().position(|(old, _)| *old == outcome.call_id).unwrap();
                outcome.call_id = open.remove(at).1;
            }
            _ => {}
        }
    }
    messages
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_part_says_what_it_says_in_the_whole(turns in prop::collection::vec(turn(), 1..4)) {
        for dialect in Dialect::ALL {
            let elements = elements(dialect, &turns);
            let whole = read(dialect, &elements, &[]);
            let ends = boundaries(&whole.groups);
            prop_assert_eq!(ends.last(), Some(&(elements.len(), whole.messages.len())));
            let list = if dialect == Dialect::Responses { "input" } else { "messages" };
            let request = format!("{{\"model\":\"m\",\"{list}\":[{}]}}", elements.join(","));
            prop_assert_eq!(&dialect.read(&request).unwrap().messages, &whole.messages);
            for (elements_before, messages_before) in ends {
                let (known, new) = whole.messages.split_at(messages_before);
                let tail = read(dialect, &elements[elements_before..], &open(known));
                let both = [known, tail.messages.as_slice()].concat();
                prop_assert_eq!(tail.messages.len(), new.len());
                prop_assert_eq!(renamed(&both), renamed(&whole.messages), "{:?} from {}", dialect, elements_before);
            }
        }
    }

    #[test]
    fn what_is_written_is_read_again(turns in prop::collection::vec(turn(), 1..4)) {
        for dialect in Dialect::ALL {
            let elements = elements(dialect, &turns);
            let whole = read(dialect, &elements, &[]);
            let again = read(dialect, &written(dialect, &whole.messages), &[]);
            prop_assert_eq!(renamed(&again.messages), renamed(&whole.messages), "{:?}", dialect);
            // One group at a time: as when one element of many is shown otherwise.
            let ends = boundaries(&whole.groups);
            for pair in ends.windows(2) {
                let (known, part) = (&whole.messages[..pair[0].1], &whole.messages[pair[0].1..pair[1].1]);
                let again = read(dialect, &written(dialect, part), &open(known));
                let both = [known, again.messages.as_slice()].concat();
                prop_assert_eq!(renamed(&both), renamed(&whole.messages[..pair[1].1]), "{:?}", dialect);
            }
        }
    }
}

#[test]
fn groups_tell_which_elements_became_which_messages() {
    let of = |dialect: Dialect, elements: &[&str]| groups(&dialect.read_elements(elements, &[]).unwrap());
    let user = r#"{"role":"user","content":"x"}"#;
    let system = r#"{"role":"system","content":"決まり"}"#;
    for dialect in Dialect::ALL {
        assert_eq!(
            of(dialect, &[system, user, user]),
            [[1, 1, 3]],
            "{dialect:?}: a system prompt is a message"
        );
    }
    let results = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2"},{"type":"text","text":"go on"}]}"#;
    assert_eq!(of(Dialect::Messages, &[user, results, user]), [[1, 1, 1], [1, 3, 1], [1, 1, 1]]);
    let call =
        |id: &str| format!(r#"{{"type":"function_call","call_id":"{id}","name":"f","arguments":"{{}}"}}"#);
    let output = |id: &str| format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"1"}}"#);
    let (a, b) = (call("a"), call("b"));
    let (out_a, out_b) = (output("a"), output("b"));
    let thought = r#"{"type":"reasoning","id":"r","summary":[]}"#;
    assert_eq!(
        of(Dialect::Responses, &[user, thought, &a, &b, &out_b, &out_a, user]),
        [[1, 1, 1], [3, 1, 1], [1, 1, 3]]
    );
    // What the model says between an output and the next belongs to the message that called.
    assert_eq!(of(Dialect::Responses, &[&a, &b, &out_a, thought, &out_b, user]), [[4, 2, 1], [1, 1, 2]]);
    assert_eq!(of(Dialect::Responses, &["\"just words\""]), [[1, 1, 1]]);
    assert!(of(Dialect::Responses, &[]).is_empty());
}

#[test]
fn an_output_finds_the_call_that_was_read_before() {
    let call = |id: &str, name: &str| Call {
        id: id.into(),
        name: name.into(),
        arguments: "{}".into(),
        kind: CallKind::Function,
        extra: None,
    };
    let waiting = [call("call_7_0", "read"), call("call_7_1", "grep")];
    let answers = |dialect: Dialect, elements: &[&str]| -> Vec<String> {
        let tail = dialect.read_elements(elements, &waiting).unwrap();
        tail.messages
            .iter()
            .map(|message| message.outcome().map_or("-".into(), |o| o.call_id.clone()))
            .collect()
    };
    let ollama = [r#"{"role":"tool","tool_name":"grep","content":"1"}"#, r#"{"role":"tool","content":"2"}"#];
    assert_eq!(answers(Dialect::Ollama, &ollama), ["call_7_1", "call_7_0"]);
    let items = [r#"{"type":"function_call_output","call_id":"call_7_1","output":"1"}"#];
    assert_eq!(answers(Dialect::Responses, &items), ["call_7_1"]);
    assert_eq!(answers(Dialect::Chat, &[r#"{"role":"function","name":"grep","content":"1"}"#]), ["call_7_1"]);
    let orphan = Dialect::Responses.read_elements(&items, &[]).unwrap();
    assert!(orphan.messages[0].outcome().is_none(), "without its call it is not a result");
}

#[test]
fn no_one_speaks_between_a_call_that_was_read_before_and_its_output() {
    let waiting = [Call {
        id: "a".into(),
        name: "f".into(),
        arguments: "{}".into(),
        kind: CallKind::Function,
        extra: None,
    }];
    let items = [
        r#"{"type":"local_shell_call_output","call_id":"s","output":"ok"}"#,
        r#"{"type":"reasoning","id":"r","encrypted_content":"g","summary":[]}"#,
        r#"{"type":"function_call_output","call_id":"a","output":"1"}"#,
        r#"{"role":"user","content":"x"}"#,
    ];
    let tail = Dialect::Responses.read_elements(&items, &waiting).unwrap();
    let roles: Vec<Role> = tail.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::Tool, Role::User, Role::Assistant, Role::User]);
    assert_eq!(groups(&tail), [[3, 3, 1], [1, 1, 1]]);
}

#[test]
fn one_element_of_many_is_written_as_it_would_stand_there() {
    let one = |dialect: Dialect, element: &str| {
        let tail = dialect.read_elements(&[element], &[]).unwrap();
        written(dialect, &tail.messages)
    };
    let said =
        one(Dialect::Messages, r#"{"role":"assistant","content":[{"type":"text","text":"y","n":1.0}]}"#);
    assert_eq!(
        said,
        [r#"{"role":"assistant","content":[{"type":"text","text":"y","n":1.0}]}"#],
        "no one opens for it"
    );
    let system = r#"{"role":"system","content":[{"type":"text","text":"x"}]}"#;
    assert_eq!(one(Dialect::Messages, system), [system]);
    let system = r#"{"role":"system","content":"x"}"#;
    assert_eq!(one(Dialect::Chat, system), [system]);
    assert_eq!(one(Dialect::Ollama, system), [system]);
    let hollow = r#"{"type":"reasoning","id":"r","summary":[],"n":12345678901234567890}"#;
    assert_eq!(one(Dialect::Responses, hollow), [hollow], "whether the server keeps it is not known here");
    let call =
        Call { id: "a".into(), name: "f".into(), arguments: "x".into(), kind: CallKind::Custom, extra: None };
    let output = r#"{"type":"custom_tool_call_output","call_id":"a","output":"1","z":1.0}"#;
    let tail = Dialect::Responses.read_elements(&[output], &[call]).unwrap();
    assert_eq!(written(Dialect::Responses, &tail.messages), [output]);
    let other = written(Dialect::Responses, &[tail.messages[0].saying("cut")]);
    assert_eq!(other, [output.replace("\"1\"", "\"cut\"")]);
    assert!(Dialect::ALL.iter().all(|dialect| written(*dialect, &[]).is_empty()));
}

#[test]
fn what_cannot_be_read_is_named() {
    let why = |dialect: Dialect, element: &str| {
        dialect.read_elements(&[r#"{"role":"user","content":"x"}"#, element], &[]).unwrap_err().to_string()
    };
    for dialect in Dialect::ALL {
        assert!(why(dialect, r#"{"role":"wizard","content":"x"}"#).contains("[1]"), "{dialect:?}");
        assert!(
            why(dialect, r#"{"role":"user","content":"\ud800"}"#).starts_with("element 1:"),
            "{dialect:?}"
        );
        assert!(why(dialect, "7").contains("[1]"), "{dialect:?}");
    }
}
