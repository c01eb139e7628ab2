//! Bad input gets a clear error that names the value, the place and what to do; nothing is lost, nothing panics.
use crate::run;

use run::{Place, TALK};

/// Runs what must fail with `code`, and checks that the message says each of `words`.
fn fails(said: &run::Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, code, "{}{}", said.out, said.err);
    for word in words {
        assert!(said.err.contains(word), "{word:?} is not in: {}", said.err);
    }
    assert!(!said.err.contains("panicked"), "{}", said.err);
}

#[test]
fn a_malformed_line_is_named_and_what_came_before_is_kept() {
    let place = Place::new();
    let s = place.session();
    let said = place.append(&s, "{\"role\":\"user\",\"content\":\"one\"}\n\n{\"role\":\"user\",\"content\":}\n{\"role\":\"user\",\"content\":\"two\"}\n");
    fails(&said, 6, &["standard input line 3", "column"]);
    assert_eq!(said.out, "1\n");
    assert_eq!(place.json_lines(&["log", &s]).len(), 1);
}

#[test]
fn skip_bad_keeps_the_good_lines_and_names_the_others() {
    let place = Place::new();
    let s = place.session();
    let mut input = b"{\"role\":\"user\",\"content\":\"one\"}\nnonsense\n".to_vec();
    input.extend(b"{\"role\":\"user\",\"content\":\"\xff\"}\n{\"role\":\"wizard\"}\n{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"\"}\n");
    input.extend(b"{\"role\":\"user\",\"content\":\"two\"}");
    let said = place.feed(&["append", &s, "--jsonl", "-", "--skip-bad"], &input);
    assert_eq!((said.code, said.out.as_str()), (0, "1\n2\n"), "{}", said.err);
    for word in [
        "line 2",
        "line 3: not UTF-8",
        "line 4: unknown role: \"wizard\"",
        "line 5",
        "4 lines were passed over",
    ] {
        assert!(said.err.contains(word), "{word:?}: {}", said.err);
    }
}

#[test]
fn calls_and_results_that_do_not_fit_are_refused() {
    let place = Place::new();
    let s = place.session();
    let orphan = r#"{"role":"tool","tool_call_id":"nope","content":"x"}"#;
    fails(&place.append(&s, orphan), 6, &["line 1", "\"nope\"", "no call waits"]);
    let nameless = r#"{"role":"tool","content":"x"}"#;
    fails(&place.append(&s, nameless), 6, &["names no call", "tool_call_id"]);
    let twice = r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"a","type":"function","function":{"name":"g","arguments":"{}"}}]}"#;
    fails(&place.append(&s, twice), 6, &["\"a\"", "twice"]);
    let call = r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let user = r#"{"role":"user","content":"hello?"}"#;
    let both = format!("{call}\n{user}\n");
    let strict = place.feed(&["append", &s, "--jsonl", "-", "--strict"], both.as_bytes());
    fails(&strict, 6, &["line 2", "a (f)", "wait"]);
    assert_eq!(place.append(&s, user).code, 0);
    let log = place.json_lines(&["log", &s]);
    assert_eq!(log[1]["interrupted"], true, "{log:?}");
    assert_eq!(log[2]["role"], "user");
    let late = r#"{"role":"tool","tool_call_id":"a","content":"late"}"#;
    assert_eq!(place.append(&s, late).code, 0);
    let shown = place.json_lines(&["show", &s]);
    let messages = [1, 2].map(|i| &shown[i]["message"]);
    assert_eq!(
        (&messages[0]["content"], &messages[1]["role"]),
        (&"late".into(), &"user".into()),
        "{shown:?}"
    );
}

#[test]
fn invalid_utf8_on_standard_input_is_refused_whole() {
    let place = Place::new();
    let s = place.session();
    fails(&place.feed(&["append", &s], b"ok \xff\xfe"), 6, &["not UTF-8", "byte 3"]);
    assert!(place.json_lines(&["log", &s]).is_empty());
}

#[test]
fn what_is_not_there_is_named() {
    let place = Place::new();
    let s = place.session();
    fails(&place.run(&["show", "nothing"]), 3, &["\"nothing\"", "komado sessions"]);
    fails(&place.run(&["show", &format!("{s}@99")]), 3, &["@99", "has no entries yet"]);
    fails(&place.run(&["log", &format!("{s}/nowhere")]), 3, &["nowhere"]);
    fails(&place.run(&["append", &s, "--jsonl", "missing.jsonl"]), 3, &["missing.jsonl"]);
    fails(&place.run(&["show", "../../etc"]), 2, &["../../etc", "letter or digit"]);
    fails(&place.run(&["new", "--id", "../x"]), 6, &["../x"]);
    fails(&place.run(&["rewind", &s]), 2, &["@SEQ"]);
    fails(&place.run(&["append", &s, "--role", "wizard", "x"]), 2, &["wizard"]);
    fails(&place.run(&["new", "--id", &s]), 5, &["exists already"]);
    fails(&place.run(&["nonsense"]), 2, &["nonsense"]);
}

#[test]
fn an_unknown_window_is_an_error_that_names_the_flag() {
    let place = Place::new();
    fails(&place.run(&["new", "--model", "mystery-7b"]), 2, &["mystery-7b", "--window"]);
    assert_eq!(place.run(&["new", "--model", "mystery-7b", "--window", "4096"]).code, 0);
    place.settings("llm:\n  openai:\n    model: m\n    context_length: 9000\n");
    assert_eq!(place.json(&["new"])["window"], 9000);
}

#[test]
fn a_misspelt_setting_is_an_error_with_a_hint() {
    let place = Place::new();
    std::fs::write(place.path().join("komado.yaml"), "context_storage:\n  cleanup_day: 3\n").unwrap();
    fails(&place.run(&["admin", "config"]), 2, &["komado.yaml:2", "cleanup_day", "cleanup_days"]);
    fails(&place.run(&["admin", "config", "--set", "nonsense"]), 2, &["KEY=VALUE"]);
}

#[test]
fn a_misspelt_variable_is_noted_and_those_of_a_kubernetes_service_are_passed_over() {
    let place = Place::new();
    for verb in [&["sessions"][..], &["admin", "config"]] {
        let mut command = place.command(verb);
        command.env("KOMADO_BASEDIR", "x").env("KOMADO_PORT", "tcp://10.0.0.1:8080");
        command.env("KOMADO_SERVICE_HOST", "10.0.0.1").env("KOMADO_PORT_8080_TCP_ADDR", "10.0.0.1");
        let said = run::feed(command, b"");
        assert_eq!(said.code, 0, "{verb:?}: {}", said.err);
        let notes: Vec<&str> = said.err.lines().filter(|line| line.contains("sets nothing")).collect();
        assert_eq!(
            notes,
            ["komado: the environment variable KOMADO_BASEDIR sets nothing; did you mean KOMADO_BASE_DIR?"],
            "{verb:?}"
        );
    }
}

#[test]
fn the_address_of_a_store_that_cannot_be_right_is_named_with_its_place_and_without_its_password() {
    let place = Place::new();
    let yaml = place.path().join("komado.yaml");
    for (url, shown, why) in [
        ("redis://ann:geheim@", "redis://***@", "names no host; write redis://host:port"),
        ("redis://ann:geheim@h:port", "redis://***@h:port", "its port is not a number; write"),
        ("postgres://ann:geheim@h:port/d", "postgres://***@h:port/d", "`port`; write postgres://"),
        ("postgres:///d", "postgres:///d", "names no host; write postgres://"),
        ("ftp://ann:geheim@x", "ftp://***@x", "must be an address that begins with file:"),
    ] {
        let flag = place.run(&["sessions", "--set", &format!("store.url={url}")]);
        fails(&flag, 2, &["--set: store.url", shown, why]);
        let mut command = place.command(&["sessions"]);
        command.env("KOMADO_STORE_URL", url);
        let variable = run::feed(command, b"");
        fails(&variable, 2, &["env KOMADO_STORE_URL: store.url", shown, why]);
        place.settings(&format!("store:\n  url: {url}\n"));
        let file = place.run(&["sessions"]);
        fails(&file, 2, &["komado.yaml:2", "store.url", shown, why]);
        std::fs::remove_file(&yaml).unwrap();
        for said in [flag, variable, file] {
            assert!(!said.err.contains("geheim"), "{}", said.err);
        }
    }
    // Nobody listens there; the address is as good as any.
    for verb in ["sessions", "serve"] {
        let away = place.run(&[verb, "--set", "store.url=redis://127.0.0.1:1"]);
        fails(&away, 7, &["127.0.0.1:1", "does not answer", "try again"]);
    }
}

#[test]
fn a_journal_from_a_newer_version_is_left_alone() {
    let place = Place::new();
    let s = place.session();
    place.ok(&["append", &s, "hello"]);
    let path = place.folder(&s).join("messages.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"version\":1", "\"version\":7")).unwrap();
    fails(&place.run(&["show", &s]), 1, &["version 7", "newer komado"]);
    fails(&place.run(&["append", &s, "more"]), 1, &["version 7"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
}

#[test]
fn missing_or_broken_indexes_are_made_again() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, TALK);
    let want = place.ok(&["show", &s, "--json"]);
    let folder = place.folder(&s);
    for broken in [None, Some(&b"garbage"[..]), Some(&b""[..])] {
        for name in ["index", "current.jsonl", "tools.jsonl", "summaries.jsonl"] {
            let path = folder.join(name);
            match broken {
                Some(bytes) => std::fs::write(&path, bytes).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
        }
        for suffix in ["", "-wal", "-shm"] {
            let path = place.base().join(format!("tasks.db{suffix}"));
            let _ = std::fs::remove_file(&path);
            if let (Some(bytes), "") = (broken, suffix) {
                std::fs::write(&path, [b"not a database, at all".repeat(100), bytes.to_vec()].concat())
                    .unwrap();
            }
        }
        assert_eq!(place.ok(&["show", &s, "--json"]), want);
        place.ok(&["admin", "doctor"]);
        assert_eq!(std::fs::read_to_string(folder.join("current.jsonl")).unwrap().lines().count(), 6);
        assert_eq!(std::fs::read_to_string(folder.join("tools.jsonl")).unwrap().lines().count(), 2);
        let rows = place.json_lines(&["sessions"]);
        assert_eq!((rows.len(), rows[0]["tool_call_count"].as_u64()), (1, Some(2)), "{rows:?}");
    }
}

#[test]
fn a_torn_last_line_is_cut_off_and_reported() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, TALK);
    let path = place.folder(&s).join("messages.jsonl");
    let mut text = std::fs::read(&path).unwrap();
    text.extend(b"{\"seq\":7,\"role\":\"user\",\"content\":\"never fin");
    std::fs::write(&path, text).unwrap();
    let said = place.run(&["append", &s, "next"]);
    assert_eq!((said.code, said.out.as_str()), (0, "7\n"), "{}", said.err);
    assert!(said.err.contains("cut 43 bytes"), "{}", said.err);
}

#[test]
fn a_second_writer_is_told_who_holds_the_session() {
    use std::io::{BufRead, BufReader, Write};
    let place = Place::new();
    let s = place.session();
    let mut command = place.command(&["append", &s, "--jsonl", "-"]);
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, r#"{{"role":"user","content":"mine"}}"#).unwrap();
    let mut seq = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut seq).unwrap();
    assert_eq!(seq, "1\n", "the number comes as soon as the entry is durable");
    let pid = format!("process {}", child.id());
    fails(&place.run(&["append", &s, "yours"]), 4, &[&pid, "komado append", "wait"]);
    fails(&place.run(&["session", "complete", &s]), 4, &[&pid]);
    assert_eq!(place.json_lines(&["log", &s]).len(), 1, "readers are let in");
    drop(stdin);
    assert!(child.wait().unwrap().success());
    place.ok(&["append", &s, "yours"]);
}

#[test]
fn an_edit_that_frees_nothing_is_refused_with_its_numbers() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, TALK);
    let longer = "x".repeat(2000);
    fails(&place.run(&["edit", "condense", &s, "5..5", "--text", &longer]), 5, &["free nothing", "tokens"]);
    fails(&place.run(&["edit", "trim", &s, "5", "--text", &longer]), 5, &["free nothing"]);
    assert_eq!(place.json_lines(&["log", &s]).len(), 6);
}

#[test]
fn errors_are_json_where_json_is_asked_for() {
    let place = Place::new();
    let said = place.run(&["show", "nothing", "--json"]);
    let error: serde_json::Value = serde_json::from_str(said.err.trim()).unwrap();
    assert_eq!(error["error"]["kind"], "not_found");
    assert_eq!(said.code, 3);
}
