//! Sessions one can find: what a list of them says, at any width, and in JSON.
use crate::gateway::stage::{self, Fake, Gateway, Heard};
use crate::run;

use komado_core::notation::width;
use komado_provider::scripted::{ScriptedOptions, ScriptedServer};
use run::{Place, Said, feed};
use serde_json::{Value, json};
use std::io::{BufReader, Write};

fn server() -> ScriptedServer {
    ScriptedServer::start(ScriptedOptions { window: Some(100_000), ..ScriptedOptions::default() }).unwrap()
}

/// A place whose models answer from a scripted server: one that has a price, and one that has none.
fn priced(server: &ScriptedServer) -> Place {
    let place = Place::new();
    let url = server.url();
    place.settings(&format!(
        "llm:\n  provider: openai\n  openai: {{base_url: '{url}/v1', api_key: k, model: gpt-4o, context_length: 100000}}\n  \
         own: {{dialect: openai, base_url: '{url}/v1', model: tiny-one, context_length: 100000}}\n"
    ));
    place
}

/// The list at a width.
fn list(place: &Place, columns: usize, more: &[&str]) -> Said {
    let args: Vec<&str> = ["sessions"].iter().chain(more).copied().collect();
    let mut command = place.command(&args);
    command.env("COLUMNS", columns.to_string());
    let said = feed(command, b"");
    assert_eq!(said.code, 0, "{}", said.err);
    for line in said.out.lines() {
        assert!(width(line) <= columns, "{columns}: {line}");
    }
    said
}

/// The row of the only session.
fn only(place: &Place) -> Value {
    let rows = place.json_lines(&["sessions"]);
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0].clone()
}

#[test]
fn a_row_says_what_the_session_is_about_where_it_works_and_what_it_cost() {
    let server = server();
    let place = priced(&server);
    let question = "<system-reminder>\nbe brief\n</system-reminder>\nFix the flaky login test\nplease";
    place.ok(&["ask", question]);
    let row = only(&place);
    assert_eq!(row["title"], "Fix the flaky login test");
    assert_eq!((&row["agent"], &row["config"]["agent"]), (&json!("komado"), &json!("komado")));
    let project = place.path().canonicalize().unwrap();
    assert_eq!(row["project"], project.to_str().unwrap());
    let id = row["session"].as_str().unwrap();
    assert_eq!(row["short"], id[..4], "one session needs no more");
    place.ok(&["log", &id[..4]]);
    // The price table's prices, for the tokens that the provider counted.
    let price = &place.json_lines(&["models", "gpt-4o"])[0]["price"];
    let tokens = |name: &str| row[name].as_u64().unwrap() as f64;
    let sum = tokens("input_tokens") * price["input"].as_f64().unwrap()
        + tokens("output_tokens") * price["output"].as_f64().unwrap()
        + tokens("cached_tokens") * price["cache_read"].as_f64().unwrap();
    assert!(sum > 0.0 && row["cache_write_tokens"] == 0, "{row}");
    assert!((row["cost"]["usd"].as_f64().unwrap() - sum / 1e6).abs() < 1e-12, "{row}");
    assert_eq!(row["cost"]["prices_of"], "2026-11-15");
    let said = list(&place, 120, &[]);
    for word in ["Fix the flaky login test", "komado", "gpt-4o", "now", "$0.00"] {
        assert!(
            said.out.contains(word) || word == "$0.00" && said.out.contains("<$0.001"),
            "{word}: {}",
            said.out
        );
    }
    assert!(!said.out.contains("running") && !said.out.contains("status"), "{}", said.out);
    assert!(
        said.err.contains("folder: ~/.local/share/komado/contexts · prices of 2026-11-15"),
        "{}",
        said.err
    );
    let told = place.ok(&["context", id]);
    for word in ["Fix the flaky login test", "komado · ", "gpt-4o", "(prices of 2026-11-15)"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let told = place.json(&["context", id]);
    assert_eq!((&told["title"], &told["cost"]), (&row["title"], &row["cost"]));
}

#[test]
fn a_model_without_a_price_costs_nobody_knows_what_and_never_nothing() {
    let server = server();
    let place = priced(&server);
    place.ok(&["ask", "hello", "--provider", "own"]);
    let row = only(&place);
    assert!(row["total_tokens"].as_u64().unwrap() > 0);
    assert_eq!(row["cost"], Value::Null);
    let said = list(&place, 120, &[]);
    assert!(said.out.contains('?') && !said.out.contains('$'), "{}", said.out);
    assert!(said.err.contains("?: price not known") && !said.err.contains("prices of"), "{}", said.err);
    assert!(place.ok(&["context", row["session"].as_str().unwrap()]).contains("price not known"));
    // A price of the user's own makes it known, and says of which day it is.
    let row = r#"{"id":"tiny-one","provider":"own","context":100000,"price":{"input":1.0,"output":2.0}}"#;
    std::fs::write(place.path().join("prices.jsonl"), row).unwrap();
    place.ok(&["models", "update", "prices.jsonl"]);
    let row = only(&place);
    assert!(row["cost"]["usd"].as_f64().unwrap() > 0.0, "{row}");
    assert!(row["cost"]["prices_of"].as_str().unwrap() != "2026-11-15", "{row}");
}

#[test]
fn a_session_whose_tokens_have_no_kinds_has_no_cost_until_the_table_is_made_again() {
    let server = server();
    let place = priced(&server);
    place.ok(&["ask", "hello"]);
    let before = only(&place);
    let table = rusqlite::Connection::open(place.base().join("tasks.db")).unwrap();
    let dropped =
        ["agent", "project", "input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens"]
            .map(|column| format!("ALTER TABLE tasks DROP COLUMN {column};"));
    table.execute_batch(&dropped.concat()).unwrap();
    drop(table);
    let old = only(&place);
    assert_eq!((&old["cost"], &old["agent"]), (&Value::Null, &Value::Null), "{old}");
    assert_eq!((&old["title"], &old["total_tokens"]), (&before["title"], &before["total_tokens"]));
    place.ok(&["admin", "doctor", "--rebuild"]);
    assert_eq!(only(&place)["cost"], before["cost"]);
    assert_eq!(only(&place)["agent"], "komado");
}

#[test]
fn the_list_fits_eighty_columns_and_uses_the_room_of_more() {
    let server = server();
    let place = priced(&server);
    let long = "日本語の題名はとても長いので、八十桁の端末では最後まで表示できません。だから短く切ります。";
    place.ok(&["new", "--id", "a-name-that-a-person-gave-it", "--model", "gpt-4o", "--window", "8000"]);
    place.ok(&["append", "a-name-that-a-person-gave-it", long]);
    place.ok(&["ask", "Why is the sky blue, and why does nobody tell me in less than a hundred words?"]);
    let other = place.session();
    place.ok(&["session", "fail", &other, "no"]);
    let narrow = list(&place, 80, &[]).out;
    let heading = narrow.lines().next().unwrap();
    for word in ["session", "title", "used"] {
        assert!(heading.contains(word), "{word}: {narrow}");
    }
    assert!(!heading.contains("project"), "the least important goes first: {narrow}");
    assert!(narrow.contains("a-name-that-a-perso…") && narrow.contains("failed"), "{narrow}");
    let wide = list(&place, 140, &[]).out;
    for word in ["project", "agent", "model", "tokens", "cost", "status"] {
        assert!(wide.lines().next().unwrap().contains(word), "{word}: {wide}");
    }
    let title = |text: &str| text.lines().find(|line| line.contains("Why is")).unwrap().to_owned();
    assert!(title(&wide).contains("Why is the sky blue, and"), "{wide}");
    for columns in [20, 40, 60, 80, 100, 120, 200] {
        list(&place, columns, &[]);
    }
}

#[test]
fn people_see_what_was_used_last_and_how_many_more_there_are() {
    let place = Place::new();
    for name in ["one", "two", "three"] {
        place.ok(&["new", "--id", name, "--meter", "bytes4"]);
    }
    place.ok(&["append", "one", "again"]);
    let names = |said: &Said| -> Vec<String> {
        said.out.lines().skip(1).map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let said = list(&place, 80, &["-n", "2"]);
    assert_eq!(names(&said), ["one", "three"]);
    assert!(said.err.starts_with("2 of 3 · --all shows the rest · folder: "), "{}", said.err);
    let all = list(&place, 80, &["--all"]);
    assert_eq!(names(&all), ["one", "three", "two"]);
    assert!(all.err.starts_with("folder: "), "{}", all.err);
    let rows = place.json_lines(&["sessions", "-n", "2"]);
    let made: Vec<&Value> = rows.iter().map(|row| &row["session"]).collect();
    assert_eq!(made, ["two", "three"], "programs get the newest in the order they were made, as ever");
    assert_eq!(rows[0]["short"], "two");
    assert_eq!(place.json_lines(&["sessions", "--all"]).len(), 3);
}

#[test]
fn sessions_are_found_by_agent_and_by_project() {
    let place = Place::new();
    let inner = place.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    place.ok(&["new", "--id", "outside"]);
    let mut command = place.command(&["new", "--id", "inside"]);
    command.current_dir(&inner);
    assert_eq!(feed(command, b"").code, 0);
    let found = |args: &[&str]| -> Vec<String> {
        let args: Vec<&str> = ["sessions"].iter().chain(args).copied().collect();
        place.json_lines(&args).iter().map(|row| row["session"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(found(&["--project", "."]), ["outside", "inside"]);
    assert_eq!(found(&["--project", "inner"]), ["inside"]);
    assert_eq!(found(&["--project", "inn"]), [""; 0], "the beginning of a name is no folder");
    assert_eq!(found(&["--agent", "komado", "--project", "inner/"]), ["inside"]);
    assert_eq!(found(&["--agent", "codex"]), [""; 0]);
    assert!(list(&place, 80, &["--agent", "codex"]).out.contains("no sessions"));
}

/// What the API answers a program on this machine.
fn api(gateway: &Gateway, path: &str) -> Heard {
    requested(gateway, &format!("GET /api/v1{path}"), "")
}

/// The same for any request.
fn requested(gateway: &Gateway, line: &str, body: &str) -> Heard {
    let mut stream = gateway.connect();
    let about = "host: localhost\r\nconnection: close\r\ncontent-type: application/json";
    let request = format!("{line} HTTP/1.1\r\n{about}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).unwrap();
    stage::answer(&mut BufReader::new(stream))
}

#[test]
fn a_session_of_the_gateway_has_the_agents_name_its_folder_and_a_title() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::before(&fake, "openai", &["--set", "llm.test.context_length=100000"]);
    let cases = [
        (
            "claude-cli/1.0.60 (external, cli)",
            json!([
                {"role": "system", "content": "You are an agent.\n<env>\nWorking directory: /home/ann/app\n</env>"},
                {"role": "user", "content": [
                    {"type": "text", "text": "<system-reminder>\nbe brief\n</system-reminder>"},
                    {"type": "text", "text": "小窓を開けて"},
                ]},
            ]),
            json!(["claude-code", "/home/ann/app", "小窓を開けて"]),
        ),
        (
            "codex_cli_rs/0.46.0 (Ubuntu)",
            json!([
                {"role": "user", "content": "<environment_context>\n  <cwd>/home/bob/site</cwd>\n</environment_context>"},
                {"role": "user", "content": "Write the page"},
            ]),
            json!(["codex", "/home/bob/site", "Write the page"]),
        ),
        (
            "my-agent/2",
            json!([{"role": "user", "content": "What is <cwd>?"}]),
            json!(["my-agent", null, "What is <cwd>?"]),
        ),
    ];
    for (agent, messages, told) in cases {
        let body = json!({ "model": "m", "messages": messages }).to_string();
        let answer = gateway.ask("POST /v1/chat/completions", &[("user-agent", agent)], body.as_bytes());
        let session = answer.header("x-komado-session").to_owned();
        let rows = gateway.place.json_lines(&["sessions"]);
        let row = rows.iter().find(|row| row["session"] == session.as_str()).unwrap();
        assert_eq!(json!([row["agent"], row["project"], row["title"]]), told, "{agent}");
        // The same over HTTP.
        let served = api(&gateway, &format!("/sessions/{session}")).json();
        assert_eq!(json!([served["agent"], served["project"], served["title"]]), told, "{agent}");
    }
    let listed = api(&gateway, "/sessions?order=activity&agent=codex").json();
    assert_eq!((&listed["total"], listed["items"].as_array().unwrap().len()), (&json!(1), 1), "{listed}");
    assert_eq!(listed["items"][0]["title"], "Write the page");
    assert!(listed["items"][0].get("short").is_none(), "over HTTP a session is named in full: {listed}");
    assert!(listed.get("kept_in").is_none(), "{listed}");
    let paged = api(&gateway, "/sessions?order=activity&cursor=x");
    assert_eq!(paged.status(), 400, "{}", paged.text());
}

#[test]
fn a_named_folder_that_is_not_there_is_told_and_what_begins_a_session_makes_it() {
    let place = Place::new();
    place.ok(&["new", "--id", "kept"]);
    let nowhere = place.path().canonicalize().unwrap().join("nowhere").display().to_string();
    for args in [
        &["sessions"][..],
        &["show", "kept"],
        &["log", "kept"],
        &["context", "kept"],
        &["recall", "kept", "word"],
        &["recall", "--all", "word"],
        &["export", "kept"],
        &["append", "kept", "word"],
        &["task", "list"],
        &["user", "list"],
        &["models", "learned"],
        &["admin", "stats"],
        &["admin", "doctor"],
        &["admin", "key", "list"],
    ] {
        let said = place.run(&[args, &["--base-dir", &nowhere]].concat());
        let why = format!("there is no folder {nowhere}, which --base-dir names for the sessions: ");
        assert_eq!((said.code, said.out.as_str()), (3, ""), "{args:?}: {}", said.err);
        assert!(
            said.err.contains(&why) && said.err.contains("`komado new --base-dir "),
            "{args:?}: {}",
            said.err
        );
    }
    let said = place.run(&["sessions", "--json", "--base-dir", &nowhere]);
    let told: Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!((said.code, &told["error"]["kind"]), (3, &json!("not_found")));
    let mut named = place.command(&["sessions"]);
    named.env("KOMADO_BASE_DIR", &nowhere);
    assert!(feed(named, b"").err.contains("KOMADO_BASE_DIR names"));
    let said = place.run(&["sessions", "--set", "store.url=file:elsewhere"]);
    assert!(said.code == 3 && said.err.contains("no folder elsewhere"), "{}", said.err);
    // These need none.
    for args in [&["models", "gpt-4o"][..], &["admin", "config"], &["playbook", "graph"]] {
        place.ok(&[args, &["--base-dir", &nowhere]].concat());
    }
    assert!(!place.path().join("nowhere").exists(), "looking makes nothing");
    let new = ["new", "--id", "first", "--base-dir", &nowhere];
    let said = place.run(&new);
    assert!(said.code == 0 && said.err.contains(&format!("no folder {nowhere} yet")), "{}", said.err);
    assert!(!place.run(&["new", "--base-dir", &nowhere]).err.contains(" yet"), "it is said once");
    assert!(place.ok(&["sessions", "--base-dir", &nowhere]).contains("first"));
}

#[test]
fn an_empty_message_is_refused_in_the_same_words_everywhere() {
    let fake = Fake::saying("はい");
    let gateway = Gateway::before(&fake, "openai", &["--set", "llm.test.context_length=100000"]);
    let place = &gateway.place;
    place.ok(&["new", "--id", "s", "--window", "8000"]);
    let why = "the message of role user is empty: write what it says";
    let line = "POST /api/v1/sessions/s/threads/root/entries";
    for body in [
        json!({ "text": "" }),
        json!({ "text": " \n" }),
        json!({ "messages": [{ "role": "user", "content": "" }] }),
        json!({ "messages": [{ "role": "user", "content": [{ "type": "text", "text": "" }] }] }),
    ] {
        let answer = requested(&gateway, line, &body.to_string());
        assert!((400..500).contains(&answer.status()), "{body}: {}", answer.text());
        assert!(answer.text().contains(why), "{body}: {}", answer.text());
    }
    let said = place.run(&["append", "s", " "]);
    assert!(said.code == 2 && said.err.contains(why), "{}", said.err);
    let said = place.feed(&["append", "s", "--jsonl", "-"], br#"{"role":"user","content":null}"#);
    assert!(said.code == 6 && said.err.contains(&format!("line 1: {why}")), "{}", said.err);
    assert!(place.json_lines(&["log", "s"]).is_empty(), "nothing was appended");
    // These may say nothing.
    let call = r#"{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"run","arguments":"{}"}}]}"#;
    assert_eq!(place.append("s", call).code, 0);
    assert_eq!(place.feed(&["append", "s", "--role", "tool"], b"").code, 0);
}
