//! Playbooks as a user meets them: checked, drawn, followed with the built-in model, killed and taken up.

use crate::run;

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
        {"id": "c", "type": "branch", "cases": [{"if": {"var": "n", "matches": "("}, "next": "a"}], "else": "無い"}
    ]});
    std::fs::write(place.path().join("悪い.json"), bad.to_string()).unwrap();
    let good = place.run(&["playbook", "check", "p.json"]);
    assert_eq!((good.code, good.out.trim()), (0, "p.json: ok, 試し has 2 nodes"));
    assert!(good.err.contains("\"誰\""), "{}", good.err);
    let said = fails(&place, &["playbook", "check", "悪い.json", "p.json"], 6);
    for told in ["\"llm\"", "\"prompt\"", "is not a regex", "not there: \"無い\"", "p.json: ok"] {
        assert!(said.out.contains(told), "{told}: {}", said.out);
    }
    assert!(said.err.contains("1 of 2 playbooks"), "{}", said.err);
    let said = fails(&place, &["playbook", "check", "悪い.json", "p.json", "--json"], 6);
    let lines: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines[0]["ok"].clone(), lines[1]["ok"].clone()), (json!(false), json!(true)));
    assert_eq!(lines[0]["problems"].as_array().unwrap().len(), 5, "{}", lines[0]);
    let way = json!({"place": "悪い.json, node \"c\"", "why": "\"else\" leads to a node that is not there: \"無い\": known are a, b, c"});
    assert_eq!(lines[0]["problems"][4], way);
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
    let said = fails(&place, &["playbook", "graph", "p.json", "--svg", "-", "--json"], 2);
    assert!(said.out.is_empty() && said.err.contains("both want standard output"), "{}", said.err);
    let chart = place.ok(&["playbook", "graph", "p.json", "--mermaid"]);
    assert!(chart.starts_with("flowchart TD\n") && chart.contains("別の終わり"), "{chart}");
    assert_eq!(place.json(&["playbook", "graph", "p.json", "--mermaid"])["mermaid"], chart.trim_end());
    fails(&place, &["playbook", "graph", "p.json", "--mermaid", "--svg", "-"], 2);
    assert!(place.ok(&["playbook", "graph"]).contains("↺ ask"));
}

#[test]
fn the_page_on_playbooks_shows_the_built_in_one_as_it_is() {
    let page = include_str!("../../../docs/playbooks.md");
    let shown = page.split_once("```mermaid\n").unwrap().1.split_once("\n```").unwrap().0;
    assert_eq!(Place::new().ok(&["playbook", "graph", "--mermaid"]).trim_end(), shown);
}

#[test]
fn the_nodes_of_the_design_run_as_they_are_written_and_the_session_is_completed() {
    let place = with(coding());
    let said =
        place.run(&["playbook", "run", "p.json", "--provider", "scripted", "窓を直す", "--window", "32000"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.err.contains("[stelis_1] coding_loop"), "{}", said.err);
    assert!(said.out.contains("実装: 窓を直す"), "{}", said.out);
    assert_eq!(status(&place, &session(&said.err)), "completed");
}

#[test]
fn a_child_that_has_no_room_is_told_with_the_option_that_makes_room_and_then_goes_on() {
    let place = with(coding());
    let said = fails(
        &place,
        &["playbook", "run", "p.json", "--provider", "scripted", "窓を直す", "--window", "4000"],
        5,
    );
    assert!(said.err.contains("or give more than 4,000 tokens with --window"), "{}", said.err);
    place.ok(&["playbook", "run", "p.json", "--session", &session(&said.err), "--window", "32000"]);
}

#[test]
fn variables_are_given_and_what_failed_is_a_failed_session() {
    let place = of(json!([
        {"id": "ask", "type": "llm", "prompt": "{{誰}} {{n}}", "next": "count"},
        {"id": "count", "type": "set", "vars": {"n": {"add": ["n", 2]}}, "next": "no"},
        {"id": "no", "type": "end", "status": "failed", "result": "だめ {{n}} {{誰}}"}
    ]));
    let run = [
        "playbook",
        "run",
        "p.json",
        "--provider",
        "scripted",
        "--var",
        "誰=窓口",
        "--var",
        "n=40",
        "--window",
        "32000",
    ];
    let said = fails(&place, &[&run[..], &["--json"]].concat(), 1);
    let told: Value = serde_json::from_str(said.out.lines().next().unwrap()).unwrap();
    assert_eq!((&told["status"], &told["result"]), (&json!("failed"), &json!("だめ 42 窓口")));
    assert_eq!(status(&place, told["session"].as_str().unwrap()), "failed");
    let said = fails(&place, &[&run[..], &["--keep-open"]].concat(), 1);
    assert_eq!(status(&place, &session(&said.err)), "running");
    fails(&place, &["playbook", "run", "p.json", "--var", "=1"], 2);
    let said = fails(&place, &["playbook", "run", "p.json", "--var", "last=何か"], 2);
    assert!(
        said.err.contains("--var last") && said.err.contains("last, calls, finish, output, error"),
        "{}",
        said.err
    );
    let said =
        fails(&place, &["playbook", "run", "p.json", "--provider", "scripted", "--window", "32000"], 6);
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
        {"id": "inside", "type": "llm", "prompt": "次に {{task.text}} {{誰}} {{n}}", "next": "mark"},
        {"id": "mark", "type": "tool", "tool": "shell", "args": {"command": "touch marked"}, "next": "leave"},
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
fn a_run_that_is_killed_goes_on_at_its_node_in_its_folder_with_all_that_was_given() {
    let place = all_nodes();
    let work = place.path().join("作業");
    std::fs::create_dir(&work).unwrap();
    let free = [
        "--set",
        "tools.sandbox=off",
        "--set",
        "tools.network=open",
        "--set",
        "tools.allow=*",
        "--window",
        "32000",
    ];
    let run = [
        "playbook",
        "run",
        "p.json",
        "--provider",
        "scripted",
        "窓を直す",
        "--var",
        "誰=窓口",
        "--folder",
        "作業",
    ];
    let mut command = place.command(&[&run[..], &free[..]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&work.join("started"), &mut child);
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
    assert_eq!(nodes(&said.err), ["wait", "inside", "mark", "leave", "look", "done"]);
    assert_eq!(said.out.lines().last(), Some("1 窓口 窓を直す"));
    assert!(work.join("marked").exists() && !place.base().join("work").exists(), "{}", said.err);
    assert_eq!(status(&place, &session), "completed");
    assert_eq!(
        place.json_lines(&["admin", "doctor"]).last().unwrap()["findings"],
        0,
        "its row does not say what it took"
    );
    let journal = place.ok(&["log", &session]);
    assert!(!journal.is_empty());
    let said = place.run(&again);
    assert_ne!(said.code, 0, "a session that ended went on: {}{}", said.out, said.err);
}

#[test]
fn a_folder_that_is_gone_is_told_and_another_one_is_taken_with_a_word_and_kept() {
    let place = of(json!([
        {"id": "mark", "type": "tool", "tool": "edit", "args": {"path": "{{file}}", "content": "x"}, "next": "ask"},
        {"id": "ask", "type": "llm", "prompt": "{{誰}}", "next": "more"},
        {"id": "more", "type": "tool", "tool": "edit", "args": {"path": "more", "content": "{{何}}"}, "next": "done"},
        {"id": "done", "type": "end"}
    ]));
    let (one, other) = (place.path().join("一"), place.path().join("二"));
    std::fs::create_dir(&one).unwrap();
    std::fs::create_dir(&other).unwrap();
    let first = [
        "playbook",
        "run",
        "p.json",
        "--provider",
        "scripted",
        "--var",
        "file=a",
        "--folder",
        "一",
        "--window",
        "32000",
    ];
    let session = session(&fails(&place, &first, 6).err);
    assert!(one.join("a").exists());
    std::fs::remove_dir_all(&one).unwrap();
    let again = ["playbook", "run", "p.json", "--session", &session];
    let said = fails(&place, &[&again[..], &["--var", "誰=私"]].concat(), 6);
    assert!(said.err.contains("一, and there is no such folder any more"), "{}", said.err);
    let said = fails(&place, &[&again[..], &["--var", "誰=私", "--folder", "二"]].concat(), 6);
    assert!(said.err.contains("\"何\" is not set"), "{}", said.err);
    let word =
        format!("from here on the playbook works in {}, no longer in {}", other.display(), one.display());
    assert!(said.err.contains(&word), "{}", said.err);
    let said = place.run(&[&again[..], &["--var", "何=窓"]].concat());
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(std::fs::read_to_string(other.join("more")).unwrap(), "窓");
}

#[test]
fn a_folder_that_holds_the_sessions_is_refused_before_a_session_is_made() {
    let place = with(coding());
    std::fs::create_dir(place.contexts()).unwrap();
    let said = fails(&place, &["playbook", "run", "p.json", "窓", "--folder", "."], 6);
    assert!(said.err.contains("lie in the working folder"), "{}", said.err);
    assert_eq!(place.json_lines(&["sessions"]), Vec::<Value>::new());
}

#[test]
fn a_playbook_that_is_too_deep_is_refused_before_anything_runs_or_waits() {
    let inner = json!({"id": "内", "type": "stelis_start", "next": "内の終わり"});
    let place = of(json!([
        {"id": "外", "type": "stelis_start", "next": "内"}, inner,
        {"id": "内の終わり", "type": "stelis_end", "next": "外の終わり"},
        {"id": "外の終わり", "type": "stelis_end", "next": "done"},
        {"id": "done", "type": "end", "result": "よし"}
    ]));
    let shallow = ["--set", "threads.max_depth=1"];
    place.ok(&["playbook", "check", "p.json"]);
    let told = fails(&place, &[&["playbook", "check", "p.json"][..], &shallow].concat(), 6).out;
    assert!(told.contains("p.json, node \"内\": its thread would be 2 deep, and at most 1 may be"), "{told}");
    for refused in [["playbook", "run", "p.json"], ["task", "add", "--playbook=p.json"]] {
        let said = fails(&place, &[&refused[..], &["窓"], &shallow].concat(), 6);
        assert!(said.err.contains("node \"内\": its thread would be 2 deep"), "{}", said.err);
    }
    assert_eq!(place.json_lines(&["sessions"]), Vec::<Value>::new());
    assert_eq!(place.json_lines(&["task", "list"]), Vec::<Value>::new());
    place.ok(&[&["playbook", "graph", "p.json"][..], &shallow].concat());
    let new = |id: &str, most: &str| place.ok(&["new", "--id", id, "--window", "100000", "--stelis", most]);
    new("deep", r#"{"max_depth": 2}"#);
    new("flat", r#"{"max_depth": 1}"#);
    let run = |id: &str, more: &[&str]| {
        place.run(
            &[
                &[
                    "playbook",
                    "run",
                    "p.json",
                    "--provider",
                    "scripted",
                    "--session",
                    id,
                    "--window",
                    "100000",
                ],
                more,
            ]
            .concat(),
        )
    };
    let said = run("deep", &shallow);
    assert_eq!((said.code, said.out.trim()), (0, "よし"), "{}", said.err);
    let said = run("flat", &[]);
    assert_eq!((said.code, nodes(&said.err).len()), (6, 0), "{}", said.err);
}
