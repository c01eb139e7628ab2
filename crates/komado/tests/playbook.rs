//! Playbooks as a user meets them: checked, drawn, followed with the built-in model, killed and taken up.

#![allow(clippy::unwrap_used)]

mod run;

use run::{Place, Said};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// The first of the two nodes of the design of Stelis threads, as it is written there.
const START: &str = r#"{
  "id": "start_coding_session",
  "type": "STELIS_START",
  "label": "コーディングセッション開始",
  "stelis_config": {
    "window_ratio": 0.8,
    "max_depth": 3,
    "chronicle_prompt": "このセッションで行った作業を要約してください"
  },
  "next": "coding_loop"
}"#;

/// And the second one.
const END: &str = r#"{
  "id": "end_coding_session",
  "type": "STELIS_END",
  "label": "コーディングセッション終了",
  "generate_chronicle": true,
  "next": "report_result"
}"#;

/// A small graph around them.
fn coding() -> String {
    let ask = json!({"id": "coding_loop", "type": "llm", "prompt": "実装: {{task.title}}", "next": "end_coding_session"});
    let report = json!({"id": "report_result", "type": "llm", "prompt": "報告してください", "next": "done"});
    let done = json!({"id": "done", "type": "end"});
    format!("{{\"name\": \"coding\", \"nodes\": [{START}, {ask}, {END}, {report}, {done}]}}")
}

/// A place with a playbook in `p.json`.
fn with(text: impl AsRef<str>) -> Place {
    let place = Place::new();
    std::fs::write(place.path().join("p.json"), text.as_ref()).unwrap();
    place
}

fn of(nodes: Value) -> Place {
    with(json!({"name": "試し", "vars": {"n": 0}, "nodes": nodes}).to_string())
}

/// The session that a run says it made.
fn session(err: &str) -> String {
    err.lines().find_map(|line| line.strip_prefix("session: ")).unwrap().to_owned()
}

/// The nodes that a run says it entered.
fn nodes(err: &str) -> Vec<&str> {
    let entered = err.lines().filter(|line| line.starts_with('['));
    entered.filter_map(|line| line.split_whitespace().nth(1)).collect()
}

fn status(place: &Place, session: &str) -> Value {
    let sessions = place.json_lines(&["sessions"]);
    let row = sessions.iter().find(|row| row["session"] == session).unwrap();
    row["status"].clone()
}

fn fails(place: &Place, args: &[&str], code: i32) -> Said {
    let said = place.run(args);
    assert_eq!(said.code, code, "{args:?}: {}{}", said.out, said.err);
    said
}

#[test]
fn check_lists_everything_that_is_wrong_and_warns_of_variables_that_have_to_be_given() {
    let place = of(json!([
        {"id": "ask", "type": "llm", "prompt": "{{誰}}", "next": "done"},
        {"id": "done", "type": "end"}
    ]));
    let bad = json!({"nodes": [
        {"id": "a", "type": "lmm", "next": "b"},
        {"id": "b", "type": "llm", "promt": "x", "next": "c"},
        {"id": "c", "type": "branch", "cases": [{"if": {"var": "n", "matches": "("}, "next": "a"}], "else": "a"}
    ]});
    std::fs::write(place.path().join("悪い.json"), bad.to_string()).unwrap();
    let good = place.run(&["playbook", "check", "p.json"]);
    assert_eq!((good.code, good.out.trim()), (0, "p.json: ok, 試し has 2 nodes"));
    assert!(good.err.contains("\"誰\""), "{}", good.err);
    let said = fails(&place, &["playbook", "check", "悪い.json", "p.json"], 6);
    for told in ["\"llm\"", "\"prompt\"", "is no regex", "p.json: ok"] {
        assert!(said.out.contains(told), "{told}: {}", said.out);
    }
    assert!(said.err.contains("1 of 2 playbooks"), "{}", said.err);
    let said = fails(&place, &["playbook", "check", "悪い.json", "p.json", "--json"], 6);
    let lines: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines[0]["ok"].clone(), lines[1]["ok"].clone()), (json!(false), json!(true)));
    assert!(lines[0]["problems"].as_array().unwrap().len() >= 3, "{}", lines[0]);
    let said = fails(&place, &["playbook", "check", "none.json", "p.json"], 6);
    assert!(said.out.contains("none.json") && said.out.contains("p.json"), "{}", said.out);
    fails(&place, &["playbook", "run", "悪い.json"], 6);
    assert!(!place.base().join("running").exists(), "a playbook that cannot be followed made a session");
}

#[test]
fn a_graph_fits_a_terminal_and_tells_where_every_way_leads() {
    let long = "とても長い条件".repeat(20);
    let place = of(json!([
        {"id": "見る", "type": "branch", "cases": [{"if": {"var": "n", "eq": long}, "next": "終わり"}], "else": "別の終わり"},
        {"id": "終わり", "type": "end"},
        {"id": "別の終わり", "type": "end", "status": "failed"}
    ]));
    let drawn = place.ok(&["playbook", "graph", "p.json"]);
    let columns = |line: &str| line.chars().map(|c| if c > '\u{2e7f}' { 2 } else { 1 }).sum::<usize>();
    assert!(drawn.lines().all(|line| columns(line) <= 80), "{drawn}");
    assert!(drawn.contains("… → 終わり") && drawn.contains("else → 別の終わり"), "{drawn}");
    place.ok(&["playbook", "graph", "p.json", "--svg", "絵.svg"]);
    let svg = std::fs::read_to_string(place.path().join("絵.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("別の終わり"), "{svg}");
    assert_eq!(place.ok(&["playbook", "graph", "p.json", "--svg", "-"]), svg);
    assert!(place.ok(&["playbook", "graph"]).contains("↺ ask"));
}

#[test]
fn the_nodes_of_the_design_run_as_they_are_written_and_the_session_is_completed() {
    let place = with(coding());
    let said = place.run(&["playbook", "run", "p.json", "窓を直す", "--window", "32000"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.err.contains("[stelis_1] coding_loop"), "{}", said.err);
    assert!(said.out.contains("実装: 窓を直す"), "{}", said.out);
    assert_eq!(status(&place, &session(&said.err)), "completed");
}

#[test]
fn variables_are_given_and_what_failed_is_a_failed_session() {
    let place = of(json!([
        {"id": "ask", "type": "llm", "prompt": "{{誰}} {{n}}", "next": "count"},
        {"id": "count", "type": "set", "vars": {"n": {"add": ["n", 2]}}, "next": "no"},
        {"id": "no", "type": "end", "status": "failed", "result": "だめ {{n}} {{誰}}"}
    ]));
    let run = ["playbook", "run", "p.json", "--var", "誰=窓口", "--var", "n=40", "--window", "32000"];
    let said = fails(&place, &[&run[..], &["--json"]].concat(), 1);
    let told: Value = serde_json::from_str(said.out.lines().next().unwrap()).unwrap();
    assert_eq!((&told["status"], &told["result"]), (&json!("failed"), &json!("だめ 42 窓口")));
    assert_eq!(status(&place, told["session"].as_str().unwrap()), "failed");
    let said = fails(&place, &[&run[..], &["--keep-open"]].concat(), 1);
    assert_eq!(status(&place, &session(&said.err)), "running");
    fails(&place, &["playbook", "run", "p.json", "--var", "=1"], 2);
    let said = fails(&place, &["playbook", "run", "p.json", "--window", "32000"], 6);
    assert!(said.err.contains("\"誰\" is not set"), "{}", said.err);
    let again = ["playbook", "run", "p.json", "--session", &session(&said.err), "--var", "誰=私"];
    assert!(fails(&place, &again, 1).out.contains("だめ 2 私"));
}

/// Every type of node; it waits in the `wait` node until somebody kills it.
fn all_nodes() -> Place {
    of(json!([
        {"id": "ask", "type": "llm", "prompt": "はじめに {{task.text}} {{誰}}", "next": "enter"},
        {"id": "enter", "type": "stelis_start", "label": "子", "next": "list"},
        {"id": "list", "type": "tool", "tool": "list", "args": {"path": "."}, "save_as": "files", "next": "count"},
        {"id": "count", "type": "set", "vars": {"n": {"add": ["n", 1]}}, "next": "wait"},
        {"id": "wait", "type": "tool", "tool": "shell", "args": {"command": "touch started && sleep 4"},
         "next": "inside", "on_error": "inside"},
        {"id": "inside", "type": "llm", "prompt": "次に {{task.text}} {{誰}} {{n}}", "next": "leave"},
        {"id": "leave", "type": "stelis_end", "next": "look"},
        {"id": "look", "type": "branch", "cases": [{"if": {"var": "n", "eq": 1}, "next": "done"}], "else": "bad"},
        {"id": "done", "type": "end", "result": "{{n}} {{誰}} {{task.text}}"},
        {"id": "bad", "type": "end", "status": "failed"}
    ]))
}

fn wait_for(path: &Path, child: &mut Child) {
    for _ in 0..1200 {
        if path.exists() {
            return;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended before {}", path.display());
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{} was never there", path.display());
}

#[test]
fn a_run_that_is_killed_goes_on_at_its_node_with_all_that_was_given() {
    let place = all_nodes();
    let free = ["--set", "tools.sandbox=off", "--set", "tools.allow=*", "--window", "32000", "--folder", "."];
    let run = ["playbook", "run", "p.json", "窓を直す", "--var", "誰=窓口"];
    let mut command = place.command(&[&run[..], &free[..]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&place.path().join("started"), &mut child);
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    let session = session(&err);
    assert_eq!(nodes(&err), ["ask", "enter", "list", "count", "wait"]);
    assert_eq!(status(&place, &session), "running");
    let again = ["playbook", "run", "p.json", "--session", &session];
    let said = fails(&place, &[&again[..], &["もう一度"]].concat(), 2);
    assert!(said.err.contains("leave the text out"), "{}", said.err);
    let said = place.run(&[&again[..], &free[..]].concat());
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(nodes(&said.err), ["wait", "inside", "leave", "look", "done"]);
    assert_eq!(said.out.lines().last(), Some("1 窓口 窓を直す"));
    assert_eq!(status(&place, &session), "completed");
    let journal = place.ok(&["log", &session]);
    assert!(!journal.is_empty());
    let said = place.run(&again);
    assert_ne!(said.code, 0, "a session that ended went on: {}{}", said.out, said.err);
}
