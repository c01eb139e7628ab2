//! `komado thread run`: a child held by a process, to its end or to the process's.

use super::{node, session, shown};
use crate::thread::run::Place;
use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn with(server: &ScriptedServer) -> Place {
    let place = Place::new();
    let yaml = format!(
        "llm: {{provider: gw, gw: {{base_url: '{}/v1', model: m, context_length: 100000}}}}\nretry: {{tries: 1}}\n",
        server.url()
    );
    place.settings(&yaml);
    place
}

fn server() -> ScriptedServer {
    ScriptedServer::start(ScriptedOptions { window: Some(100_000), ..ScriptedOptions::default() }).unwrap()
}

#[test]
fn a_task_is_done_in_a_child_and_its_answer_printed() {
    let server = server();
    let place = with(&server);
    let city = session(&place);
    server.add(ScriptStep::say("calculator_v2 ができました。"));
    let said = place.run(&["thread", "run", &city, "calculator_v2 を作って"]);
    assert_eq!((said.code, said.out.as_str()), (0, "calculator_v2 ができました。\n"), "{}", said.err);
    assert!(said.err.contains("thread: city/stelis_1") && said.err.contains("is completed"), "{}", said.err);
    let body = String::from_utf8(server.seen().last().unwrap().body.clone()).unwrap();
    for words in ["電卓を作って", "calculator_v2 を作って", "が開始しました", "recall"] {
        assert!(body.contains(words), "{words}: {body}");
    }
    let root = shown(&place, &city);
    assert!(root.contains("## Chronicle") && root.contains("calculator_v2 を作って"), "{root}");
    server.add(ScriptStep::say("two"));
    let row = place.json(&["thread", "run", &city, "again", "--label", "二つ目", "--ratio", "0.5"]);
    assert_eq!(
        (&row["text"], &row["thread"], &row["status"]),
        (&json!("two"), &json!("stelis_2"), &json!("completed"))
    );
    assert_eq!((&row["told"], &row["aborted"]), (&json!(true), &json!([])));
    let tree = place.json(&["thread", "tree", &city]);
    assert_eq!(
        (&node(&tree, "stelis_2")["label"], &node(&tree, "stelis_2")["ratio"]),
        (&json!("二つ目"), &json!(0.5))
    );
}

#[test]
fn an_error_aborts_the_child_and_the_parent_goes_on() {
    let server = server();
    let place = with(&server);
    let city = session(&place);
    server.add(ScriptStep::fail(500, None));
    let said = place.run(&["thread", "run", &city, "無理な仕事"]);
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    assert!(said.err.contains("aborted, with a partial chronicle"), "{}", said.err);
    assert!(said.err.contains("komado thread resume city/stelis_1"), "{}", said.err);
    let tree = place.json(&["thread", "tree", &city]);
    assert_eq!(node(&tree, "stelis_1")["status"], "aborted");
    server.add(ScriptStep::say("まだいます"));
    assert_eq!(place.ok(&["ask", &city, "いますか"]), "まだいます\n");
    place.ok(&["thread", "resume", "city/stelis_1"]);
    server.add(ScriptStep::say("できました"));
    assert_eq!(place.ok(&["ask", "--again", "city/stelis_1"]), "できました\n");
}

/// Starts a run whose model does not answer, and waits until its request is out.
fn stuck(place: &Place, server: &ScriptedServer, city: &str) -> Child {
    let before = server.seen().len();
    let mut command = place.command(&["thread", "run", city, "長い仕事"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while server.seen().len() == before && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn status(place: &Place, city: &str, thread: &str) -> Value {
    node(&place.json(&["thread", "tree", city]), thread)["status"].clone()
}

#[test]
fn a_killed_process_leaves_a_child_that_the_next_command_puts_right() {
    let server = server();
    let place = with(&server);
    let city = session(&place);
    server.add(ScriptStep { delay_ms: 120_000, ..ScriptStep::say("too late") });
    let mut child = stuck(&place, &server, &city);
    assert_eq!(status(&place, &city, "stelis_1"), "active");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.run(&["append", &city, "親は続ける"]).code, 0);
    let tree = place.json(&["thread", "tree", &city]);
    let node = node(&tree, "stelis_1");
    assert_eq!((&node["status"], &node["chronicle"]["partial"]), (&json!("aborted"), &json!(true)), "{tree}");
    let root = shown(&place, &city);
    assert!(root.contains("中断") && root.contains("親は続ける"), "{root}");
    place.ok(&["admin", "doctor"]);
    place.ok(&["thread", "resume", "city/stelis_1"]);
    place.ok(&["append", "city/stelis_1", "続き"]);
}

#[test]
fn ctrl_c_aborts_the_child_and_says_so() {
    let server = server();
    let place = with(&server);
    let city = session(&place);
    server.add(ScriptStep { delay_ms: 120_000, ..ScriptStep::say("too late") });
    let child = stuck(&place, &server, &city);
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("city/stelis_1 is aborted, with a partial chronicle"), "{said}");
    assert_eq!(status(&place, &city, "stelis_1"), "aborted");
}
