//! What arrives is what leaves, and what comes back is what the client gets.

use crate::gateway::stage::{ASKS, Fake, Gateway, answer, reply};
use std::io::{BufReader, Write};

/// The same request, written in ways that a parser would not write it.
fn odd(body: &str) -> Vec<String> {
    let inner = body.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
    vec![
        body.to_owned(),
        format!("  {{ \"unknown\" :\t[1.0, 1e2, null], {inner}\n}}\n"),
        format!(
            "{{\"z\":\"\\u7a93\\/\\\"\",{inner},\"a\":{{\"cache_control\":{{\"type\":\"ephemeral\"}}}}}}"
        ),
        body.replace("\"窓\"", "\"\\u7a93 \\ud83e\\ude9f 🪟\""),
        body.replace("\"m\"", "\"モデル-1.0\""),
        format!("{{{inner},\"metadata\":{{\"user_id\":\"{}\"}}}}", "x".repeat(200_000)),
    ]
}

#[test]
fn under_budget_the_bytes_that_arrive_are_the_bytes_that_leave_in_every_api() {
    for (dialect, path, body) in ASKS {
        let fake = Fake::saying("はい");
        // A window that is given is asked for of Ollama, which is a change; one that nobody knows changes nothing.
        let window = ["--set", "llm.test.context_length=1000000"];
        let gateway = Gateway::before(&fake, dialect, if dialect == "ollama" { &[] } else { &window });
        let sent = odd(body);
        for (n, body) in sent.iter().enumerate() {
            let query = if dialect == "anthropic" { "?beta=true" } else { "" };
            let headers = [
                ("content-type", "application/json"),
                ("anthropic-beta", "b,a"),
                ("x-odd", "Ünïcode"),
                ("user-agent", &format!("agent/{n}")),
            ];
            let answer = gateway.ask(&format!("POST {path}{query}"), &headers, body.as_bytes());
            assert_eq!((answer.status(), answer.text()), (200, reply(path, "はい")), "{dialect} {n}");
            assert!(answer.is_whole && answer.header("x-request-id") == "r1", "{answer:?}");
            assert_eq!(answer.header("x-komado-fault"), "", "{dialect} {n}");
            let seen = fake.seen();
            let heard = seen.last().unwrap();
            assert!(heard.body == body.as_bytes(), "{dialect} {n}: {}", heard.text());
            assert_eq!(heard.line, format!("POST {path}{query} HTTP/1.1"));
            assert_eq!((heard.header("anthropic-beta"), heard.header("x-odd")), ("b,a", "Ünïcode"));
            assert_eq!(heard.header("accept-encoding"), "identity");
        }
        assert_eq!(fake.seen().len(), sent.len(), "nothing is asked twice");
    }
}

#[test]
fn other_paths_and_methods_go_through_as_they_come() {
    let fake = Fake::saying("x");
    let gateway = Gateway::before(&fake, "openai", &[]);
    gateway.ask("POST /v1/embeddings?a=b", &[("content-type", "text/odd")], "窓\0".as_bytes());
    gateway.ask("DELETE /test/v1/files/f-1", &[], b"");
    let seen = fake.seen();
    assert_eq!(seen[0].line, "POST /v1/embeddings?a=b HTTP/1.1");
    assert_eq!((seen[0].text().as_str(), seen[0].header("content-type")), ("窓\0", "text/odd"));
    assert_eq!(seen[1].line, "DELETE /v1/files/f-1 HTTP/1.1");

    let closed = Gateway::before(&fake, "openai", &["--set", "server.forward_other=false"]);
    let answer = closed.ask("POST /v1/embeddings", &[], b"{}");
    assert_eq!(answer.status(), 404);
    assert!(answer.text().contains("forward_other"), "{}", answer.text());
    assert_eq!(fake.seen().len(), 2);
}

/// Chance that is the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn gap(&mut self) -> &'static str {
        ["", "", " ", "\n  ", "\t", "\r\n"][self.below(6)]
    }

    /// An object with its fields in any order and odd room between them.
    fn object(&mut self, mut fields: Vec<(&str, String)>) -> String {
        let mut parts = Vec::new();
        while !fields.is_empty() {
            let at = self.below(fields.len());
            let (name, value) = fields.swap_remove(at);
            parts.push(format!("{}\"{name}\"{}:{}{value}{}", self.gap(), self.gap(), self.gap(), self.gap()));
        }
        format!("{{{}}}", parts.join(","))
    }

    fn list(&mut self, items: &[String]) -> String {
        let parts: Vec<String> =
            items.iter().map(|item| format!("{}{item}{}", self.gap(), self.gap())).collect();
        format!("[{}]", parts.join(","))
    }

    /// Words as JSON, written as few programs write them.
    fn words(&mut self) -> String {
        let odd = [
            r"窓を開けて",
            r#"\u7a93 \uD83E\uDE9F \/ \" \\"#,
            "🪟👩\u{200d}👩\u{200d}👧 ﾊﾝｶｸ",
            r"a\r\n\tb\u0000\u001f",
            "Ünïcode \u{2028} \u{feff}",
        ];
        format!("\"{} {}\"", odd[self.below(odd.len())], self.below(1_000_000))
    }

    fn more(&mut self) -> Vec<(&'static str, String)> {
        let all = [
            ("unknown", "[1.0, 1e2, -0.0, 123456789012345678901234567890]"),
            ("x_null", "null"),
            ("x_deep", r#"{"a" : {"b":[ {"c":1.50} ]}, "a":2}"#),
        ];
        all.into_iter().filter(|_| self.below(4) == 0).map(|(name, value)| (name, value.to_owned())).collect()
    }
}

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// What a user says, as text or in parts with an image.
fn user(dialect: &str, dice: &mut Dice) -> String {
    let words = dice.words();
    let mut fields = vec![("role", quoted("user"))];
    fields.extend(dice.more());
    if dialect == "ollama" {
        fields.push(("content", words));
        fields.push(("images", format!("[ \"{PNG}\"]")));
        return dice.object(fields);
    }
    if dice.below(2) == 0 {
        fields.push(("content", words));
        return dice.object(fields);
    }
    let mark = ("cache_control", r#"{"type" : "ephemeral","ttl":"1h"}"#.to_owned());
    let parts = match dialect {
        "anthropic" => [
            dice.object(vec![("type", quoted("text")), ("text", words), mark]),
            dice.object(vec![
                ("type", quoted("image")),
                ("source", format!(r#"{{"type":"base64", "media_type":"image/png","data":"{PNG}"}}"#)),
            ]),
        ],
        "responses" => [
            dice.object(vec![("type", quoted("input_text")), ("text", words)]),
            dice.object(vec![
                ("type", quoted("input_image")),
                ("image_url", format!("\"data:image/png;base64,{PNG}\"")),
            ]),
        ],
        _ => [
            dice.object(vec![("type", quoted("text")), ("text", words)]),
            dice.object(vec![
                ("type", quoted("image_url")),
                ("image_url", format!(r#"{{ "url":"data:image/png;base64,{PNG}","detail":"low"}}"#)),
            ]),
        ],
    };
    fields.push(("content", dice.list(&parts)));
    dice.object(fields)
}

/// What a client keeps of an answer: what was said, or thoughts, a call and what it gave.
fn kept(dialect: &str, dice: &mut Dice) -> Vec<String> {
    let (words, id) = (dice.words(), format!("\"call_{}\"", dice.below(1_000_000)));
    let called = dice.below(2) == 0;
    let role = ("role", quoted("assistant"));
    match (dialect, called) {
        ("anthropic", false) => vec![dice.object(vec![
            role,
            ("content", format!(r#"[{{"type":"thinking","thinking":{words}, "signature":"EqQB/+8=="}},{{"text":"はい","type":"text"}}]"#)),
        ])],
        ("anthropic", true) => vec![
            dice.object(vec![
                role,
                ("content", format!(r#"[ {{"type":"tool_use","id":{id},"name":"look","input":{{"at": 1.0}}}}]"#)),
            ]),
            dice.object(vec![
                ("role", quoted("user")),
                ("content", format!(r#"[{{"type":"tool_result","tool_use_id":{id},"content":{words},"cache_control":{{"type":"ephemeral"}}}}]"#)),
            ]),
        ],
        ("responses", false) => vec![
            format!(r#"{{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":{words}}}"#),
            r#"{"type":"message", "id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"はい","annotations":[]}]}"#.to_owned(),
        ],
        ("responses", true) => vec![
            dice.object(vec![
                ("type", quoted("function_call")),
                ("call_id", id.clone()),
                ("name", quoted("look")),
                ("arguments", r#""{\"at\": 1.0}""#.to_owned()),
            ]),
            dice.object(vec![("type", quoted("function_call_output")), ("call_id", id), ("output", words)]),
        ],
        ("ollama", true) => vec![
            dice.object(vec![
                role,
                ("content", quoted("")),
                ("tool_calls", r#"[{"function":{"name":"look","arguments":{"at" :1.0}}}]"#.to_owned()),
            ]),
            dice.object(vec![("role", quoted("tool")), ("tool_name", quoted("look")), ("content", words)]),
        ],
        (_, true) => vec![
            dice.object(vec![
                role,
                ("content", "null".to_owned()),
                ("tool_calls", format!(r#"[{{"id":{id}, "type":"function","function":{{"name":"look","arguments":"{{\"at\": 1.0}}"}}}}]"#)),
            ]),
            dice.object(vec![("role", quoted("tool")), ("tool_call_id", id), ("content", words)]),
        ],
        (_, false) => vec![dice.object(vec![role, ("content", quoted("はい"))])],
    }
}

/// A whole request.
fn request(dialect: &str, dice: &mut Dice, elements: &[String]) -> String {
    let mut fields = vec![("model", quoted("モデル-1.0"))];
    fields.push((if dialect == "responses" { "input" } else { "messages" }, dice.list(elements)));
    fields.extend(dice.more());
    match dialect {
        "anthropic" => {
            fields.push(("max_tokens", "64".to_owned()));
            let system = r#"[{"type":"text","text":"簡潔に。","cache_control":{"type":"ephemeral"}}]"#;
            fields.push(("system", system.to_owned()));
        }
        "ollama" => fields.push(("stream", "false".to_owned())),
        _ => fields.push(("temperature", "1.0".to_owned())),
    }
    format!("{}{}{}", dice.gap(), dice.object(fields), dice.gap())
}

const SESSIONS: usize = 25;
const TURNS: usize = 10;

/// Talks of one API, turn after turn, each growing: who speaks, and the request.
fn talks(dialect: &str) -> Vec<(usize, String)> {
    let mut dice = Dice(dialect.len() as u64);
    let mut threads = vec![Vec::new(); SESSIONS];
    let mut all = Vec::new();
    for _ in 0..TURNS {
        for (n, elements) in threads.iter_mut().enumerate() {
            elements.push(user(dialect, &mut dice));
            all.push((n, request(dialect, &mut dice, elements)));
            elements.extend(kept(dialect, &mut dice));
        }
    }
    all
}

/// Conversations of a folder that is not part of the project, where somebody names one: `transcripts/*.jsonl`, a message
/// of chat completions a line.
fn recorded() -> Vec<(usize, String)> {
    let Some(folder) = std::env::var_os("KOMADO_DATA") else { return Vec::new() };
    let folder = std::path::Path::new(&folder).join("transcripts");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let body = |text: String| {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        format!("{{\"model\":\"m\",\"messages\":[{}]}}", lines.join(",\n"))
    };
    files.take(200).map(|text| (0, body(text))).collect()
}

/// Sends everything, each session over a connection of its own, and compares what arrived by digest.
fn send_all(dialect: &str, path: &str, requests: &[(usize, String)]) {
    let fake = Fake::saying("はい");
    let window = ["--set", "llm.test.context_length=1000000000"];
    let gateway = Gateway::before(&fake, dialect, if dialect == "ollama" { &[] } else { &window });
    let mut lines: Vec<_> = (0..SESSIONS).map(|_| BufReader::new(gateway.connect())).collect();
    for (nth, (n, body)) in requests.iter().enumerate() {
        let named = if n % 5 == 0 { format!("x-session-id: s{n}\r\n") } else { String::new() };
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nuser-agent: agent/{n}\r\n{named}content-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        lines[*n].get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
        let said = answer(&mut lines[*n]);
        assert_eq!((said.status(), said.text()), (200, reply(path, "はい")), "{dialect} {nth}: {body}");
        assert_eq!(said.header("x-komado-fault"), "", "{dialect} {nth}: {body}");
    }
    let digest = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    let came: Vec<String> = fake.seen().iter().map(|heard| digest(&heard.body)).collect();
    let sent: Vec<String> = requests.iter().map(|(_, body)| digest(body.as_bytes())).collect();
    assert_eq!(came.len(), sent.len(), "{dialect}: nothing is asked twice");
    for (nth, (came, sent)) in came.iter().zip(&sent).enumerate() {
        assert_eq!(came, sent, "{dialect} {nth}: {}", requests[nth].1);
    }
}

#[test]
fn a_thousand_requests_leave_byte_for_byte() {
    std::thread::scope(|scope| {
        for (dialect, path, _) in ASKS {
            scope.spawn(move || {
                let requests = talks(dialect);
                assert_eq!(requests.len(), 250);
                send_all(dialect, path, &requests);
            });
        }
    });
    let recorded = recorded();
    if !recorded.is_empty() {
        send_all(ASKS[0].0, ASKS[0].1, &recorded);
    }
}
