//! `komado dev model-server` as its user meets it: an address to paste, a line per request, an end when it is told to.
use crate::run;

use run::Place;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};

/// A running server, and what it prints.
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    fn start(place: &Place, args: &[&str]) -> Self {
        let all: Vec<&str> = ["dev", "model-server"].iter().chain(args).copied().collect();
        let mut child = place.command(&all).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn json(&mut self) -> serde_json::Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Asks it to stop as a system does; gives its exit code.
    fn stop(mut self, signal: rustix::process::Signal) -> Option<i32> {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

fn post(url: &str, path: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let length = body.len();
    write!(
        socket,
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_prints_what_to_paste_and_a_line_for_each_request() {
    let place = Place::new();
    let mut server = Running::start(&place, &["--window", "4096"]);
    let url = server.line().strip_prefix("listening at ").unwrap().to_owned();
    assert_eq!(server.line(), "window 4,096 tokens, counted by o200k");
    let mut lines: Vec<String> = (0..8).map(|_| server.line()).collect();
    for expect in [
        format!("export OPENAI_BASE_URL={url}/v1"),
        format!("export ANTHROPIC_BASE_URL={url}"),
        format!("export OLLAMA_HOST={url}"),
        format!("the gateway in front of it: komado serve --upstream {url}"),
    ] {
        assert!(lines.contains(&expect), "{expect}: {lines:?}");
    }
    assert!(lines.pop().unwrap().starts_with("Ctrl-C stops it"));
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hello"}]}"#;
    assert!(post(&url, "/v1/chat/completions", body).contains("You said"));
    assert_eq!(server.line(), "1 openai 8 tokens -> 200");
    assert!(post(&url, "/api/chat", body).contains("\"done\":true"));
    assert_eq!(server.line(), "2 ollama 8 tokens (5 cached) -> 200, in pieces");
    assert_eq!(server.stop(rustix::process::Signal::INT), Some(0));
}

#[test]
fn it_follows_its_script_and_tells_programs_in_json() {
    let place = Place::new();
    let script = "# 台本\n{\"reply\":\"窓 {{n}}\"}\n{\"fail\":{\"status\":429,\"retry_after\":3}}\n";
    std::fs::write(place.path().join("s.jsonl"), script).unwrap();
    let mut server = Running::start(&place, &["--script", "s.jsonl", "--words", "groq", "--json"]);
    let ready = server.json();
    let url = ready["url"].as_str().unwrap().to_owned();
    assert_eq!((ready["kind"].as_str(), ready["words"].as_str()), (Some("ready"), Some("groq")));
    assert_eq!(ready["env"]["OPENAI_BASE_URL"], format!("{url}/v1"));
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hello"}]}"#;
    assert!(post(&url, "/v1/chat/completions", body).contains("窓 1"));
    let told = server.json();
    assert_eq!(
        (told["n"].as_u64(), told["dialect"].as_str(), told["status"].as_u64()),
        (Some(1), Some("openai"), Some(200))
    );
    assert_eq!((told["tokens"].as_u64(), told["bytes"].as_u64()), (Some(8), Some(body.len() as u64)));
    let refused = post(&url, "/v1/chat/completions", body);
    assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("retry-after: 3"), "{refused}");
    assert_eq!(server.json()["status"], 429);
    assert_eq!(server.stop(rustix::process::Signal::TERM), Some(0));
}

#[test]
fn a_bad_script_or_a_bad_flag_is_named_before_anything_starts() {
    let place = Place::new();
    std::fs::write(
        place.path().join("bad.jsonl"),
        "{\"reply\":\"a\"}\n\n{\"reply\":\"a\",\"when\":{\"turns\":1}}\n",
    )
    .unwrap();
    std::fs::write(place.path().join("bytes.jsonl"), b"\xff").unwrap();
    for (args, code, words) in [
        (&["--script", "bad.jsonl"][..], 6, &["bad.jsonl", "line 3", "`when.turns`", "known are"][..]),
        (&["--script", "bytes.jsonl"], 6, &["bytes.jsonl", "not UTF-8"]),
        (&["--script", "none.jsonl"], 3, &["none.jsonl"]),
        (&["--words", "acme"], 2, &["acme", "llamacpp"]),
        (&["--meter", "x"], 2, &["cl100k"]),
        (&["--on-overflow", "x"], 2, &["truncate"]),
        (&["--window", "0"], 2, &["window"]),
        (&["--host", "256.1.1.1"], 1, &["256.1.1.1", "--port"]),
    ] {
        let all: Vec<&str> = ["dev", "model-server"].iter().chain(args).copied().collect();
        let said = place.run(&all);
        assert_eq!(said.code, code, "{args:?}: {}", said.err);
        for word in words {
            assert!(said.err.contains(word), "{args:?}: {word}: {}", said.err);
        }
    }
    assert!(!place.base().exists(), "nothing is kept on disk");
}
