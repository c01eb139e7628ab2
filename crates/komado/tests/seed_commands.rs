//! The folder of a finished demo session under the commands people know: `cat`, `jq`, `sqlite3`.
//!
//! `make test` installs `jq` and `sqlite3` when they are missing; both are needed here.
use crate::run;

use run::Place;

/// Runs a shell command in the place; it must succeed. Gives its output.
fn shell(place: &Place, script: &str) -> String {
    let mut command = place.program("bash");
    command.args(["-o", "pipefail", "-c", script]);
    let said = run::feed(command, b"");
    assert_eq!(said.code, 0, "{script}: {}{}", said.out, said.err);
    said.out.trim().to_owned()
}

fn sql(place: &Place, query: &str) -> String {
    shell(place, &format!("sqlite3 {}/tasks.db \"{query}\"", place.base().display()))
}

/// A demo that has ended; gives its id.
fn demo(place: &Place) -> String {
    place.ok(&["dev", "demo", "--fast", "--json"]);
    let rows = place.json_lines(&["sessions"]);
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0]["session"].as_str().unwrap().to_owned()
}

#[test]
fn a_finished_demo_answers_the_known_jq_and_sqlite3_commands() {
    let place = Place::new();
    let uuid = demo(&place);
    let folder = format!("{}/completed/{uuid}", place.base().display());

    // The state of one session.
    let row = sql(&place, &format!("SELECT * FROM tasks WHERE uuid='{uuid}'"));
    assert!(row.contains(&uuid) && row.contains("|completed|") && row.contains("github"), "{row}");

    // The files, as JSON lines.
    for file in ["messages.jsonl", "current.jsonl", "summaries.jsonl", "tools.jsonl"] {
        let lines: usize = shell(&place, &format!("cat {folder}/{file} | jq -c . | wc -l")).parse().unwrap();
        assert!(lines > 0, "{file} is empty");
    }
    shell(&place, &format!("jq . {folder}/metadata.json"));
    shell(
        &place,
        &format!("cat {folder}/current.jsonl | jq '.tokens' | awk '{{sum+=$1}} END {{print sum}}'"),
    );
    let said = shell(
        &place,
        &format!("cat {folder}/messages.jsonl | jq '.tokens // 0' | awk '{{sum+=$1}} END {{print sum}}'"),
    );
    assert!(said.parse::<u64>().unwrap() > 0, "{said}");

    // Fields by name.
    let summary = "[.id, .start_seq, .end_seq, .summary, .original_tokens, .summary_tokens, .ratio, .timestamp] | all(. != null)";
    let tool = "[.seq, .tool, .status, .timestamp] | all(. != null)";
    let message = "select(.role) | [.seq, .timestamp, .tokens] | all(. != null)";
    for (file, filter) in [("summaries.jsonl", summary), ("tools.jsonl", tool), ("messages.jsonl", message)] {
        let told = shell(&place, &format!("jq -c '{filter}' {folder}/{file} | sort -u"));
        assert_eq!(told, "true", "{file}");
    }

    // Queries over all sessions.
    let running = "SELECT uuid, task_source, owner, repo, task_type, task_id, started_at FROM tasks WHERE status = 'running' ORDER BY started_at DESC;";
    assert_eq!(sql(&place, running), "");
    assert!(
        sql(&place, "SELECT user, status, COUNT(*) as count FROM tasks GROUP BY user, status;")
            .ends_with("|completed|1")
    );
    let failed = "SELECT uuid, error_message, created_at FROM tasks WHERE status = 'failed' ORDER BY created_at DESC LIMIT 10;";
    assert_eq!(sql(&place, failed), "");
    assert_eq!(sql(&place, "SELECT status, COUNT(*) FROM tasks GROUP BY status;"), "completed|1");
    let minutes = "SELECT AVG(julianday(completed_at) - julianday(started_at)) * 24 * 60 as avg_minutes FROM tasks WHERE status = 'completed';";
    assert!(sql(&place, minutes).parse::<f64>().unwrap() >= 0.0);
    let tokens = sql(
        &place,
        "SELECT SUM(total_tokens) as total, AVG(total_tokens) as average FROM tasks WHERE status = 'completed';",
    );
    let (sum, mean) = tokens.split_once('|').unwrap();
    assert!(sum.parse::<u64>().unwrap() > 0 && mean.parse::<f64>().unwrap() > 0.0, "{tokens}");
    let counts = sql(
        &place,
        "SELECT llm_call_count > 0 AND tool_call_count > 0 AND compression_count > 0 FROM tasks;",
    );
    assert_eq!(counts, "1");
}

#[test]
fn the_demo_tells_what_is_refused_without_it_and_its_advice_works() {
    let place = Place::new();
    let told = place.ok(&["dev", "demo", "--fast"]);
    let moments = told.lines().filter(|line| line.get(1..3) == Some("/6")).count();
    assert_eq!(moments, 6, "{told}");
    for word in
        ["refused", "answered", "clip", "trim", "condense", "recall", "revert", "child", "fork", "rewind"]
    {
        assert!(told.lines().any(|line| line.starts_with(&format!("  {word} "))), "{word}: {told}");
    }
    let (_, advice) = told.split_once("Look further\n").unwrap();
    assert_eq!(advice.lines().filter(|line| !shell(&place, line).is_empty()).count(), 6, "{advice}");
    assert!(place.base().join("running/demo").is_dir(), "the last command opened it again");

    // Another one has another name, and all of it fits.
    let second: serde_json::Value =
        serde_json::from_str(&place.ok(&["dev", "demo", "--fast", "--json"])).unwrap();
    assert_eq!(second["session"], "demo-2");
    let number = |key: &str| second[key].as_u64().unwrap();
    assert!((2..60).contains(&number("refused_without")), "{second}");
    assert!(number("peak_tokens") <= 16_000 && number("sent_tokens") < number("whole_tokens"), "{second}");
}

#[test]
fn current_jsonl_of_a_finished_demo_is_what_a_chat_api_takes() {
    let place = Place::new();
    let uuid = demo(&place);
    let path = place.folder(&uuid).join("current.jsonl");
    let mut open: Vec<String> = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let message: serde_json::Value = serde_json::from_str(line).unwrap();
        let fields: Vec<&str> = message.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(
            fields.iter().all(|f| ["role", "content", "name", "tool_calls", "tool_call_id"].contains(f)),
            "{fields:?}"
        );
        match message["role"].as_str().unwrap() {
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap();
                let at = open.iter().position(|call| call == id);
                open.remove(at.unwrap_or_else(|| panic!("{id} answers no call")));
            }
            _ => {
                assert!(open.is_empty(), "{open:?} wait for results");
                let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
                open.extend(calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()));
            }
        }
    }
    assert!(open.is_empty(), "{open:?} were never answered");
}

#[test]
fn an_end_that_the_table_did_not_hear_of_is_told_to_it_when_said_again() {
    let place = Place::new();
    let uuid = place.session();
    place.ok(&["session", "complete", &uuid, "done"]);
    // As whoever moved the folder left it when it was killed right then.
    sql(&place, &format!("UPDATE tasks SET status = 'running', completed_at = NULL WHERE uuid = '{uuid}'"));
    assert_ne!(place.run(&["session", "fail", &uuid, "no"]).code, 0, "the journal says otherwise");
    place.ok(&["session", "complete", &uuid, "done"]);
    assert_eq!(sql(&place, &format!("SELECT status FROM tasks WHERE uuid = '{uuid}'")), "completed");
    assert!(place.base().join("completed").join(&uuid).is_dir());
}
