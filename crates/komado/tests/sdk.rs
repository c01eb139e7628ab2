//! Do the official SDKs understand what the model server says? Each drives it as a program of its own, and asserts.
//!
//! The SDKs are what our users' agents are made of, so a codec that only understands itself would prove nothing. They
//! are compared at pinned versions, in a Python that `make setup` makes; without it these tests fail, and say so.
use crate::run;

use run::Place;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Tokens of the server's window; the programs know it.
const WINDOW: &str = "4000";

/// `komado dev model-server` as a process, until this is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(place: &Place) -> Self {
        let script = programs().join("script.jsonl");
        let script = script.to_str().unwrap();
        let mut command =
            place.command(&["dev", "model-server", "--window", WINDOW, "--script", script, "--json"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
        let url = ready["url"].as_str().unwrap().to_owned();
        // What it goes on to say must be read, or it would wait.
        std::thread::spawn(move || out.lines().for_each(drop));
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk")
}

fn python() -> PathBuf {
    let made = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    let python = std::env::var_os("KOMADO_PYTHON").map_or_else(made, PathBuf::from);
    let works = Command::new(&python).args(["-c", "import anthropic, ollama, openai"]).output();
    let works = works.is_ok_and(|out| out.status.success());
    assert!(works, "{} is no Python with the SDKs: run `make setup`, which makes it", python.display());
    python
}

/// Runs a program against a server of its own; each of its checks is a line.
fn drive(program: &str, checks: usize) {
    let python = python();
    let place = Place::new();
    let server = Server::start(&place);
    let mut command = Command::new(python);
    command.arg(programs().join(program)).arg(&server.url).current_dir(place.path()).env_clear();
    // Nothing of the machine may lead the SDK elsewhere; and nothing is written beside the programs.
    command.env("HOME", place.path()).env("NO_PROXY", "*").env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("PYTHONUTF8", "1");
    let out = command.output().unwrap();
    let (told, why) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{program}: {}\n{told}\n{why}", out.status);
    let passed = told.lines().filter(|line| line.starts_with("ok ")).count();
    assert_eq!(passed, checks, "{program} checked something else than it used to:\n{told}");
}

#[test]
fn the_openai_sdk_understands_chat_and_responses_with_tools_streams_and_errors() {
    drive("openai_sdk.py", 38);
}

#[test]
fn the_anthropic_sdk_understands_messages_with_tools_streams_thoughts_and_errors() {
    drive("anthropic_sdk.py", 32);
}

#[test]
fn the_ollama_package_understands_chat_with_tools_streams_thoughts_and_errors() {
    drive("ollama_sdk.py", 22);
}
