//! Defects that a stranger found, each kept from coming back.
use crate::run;

use run::{Place, TALK};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

#[test]
fn an_import_that_was_killed_goes_on_when_it_is_run_again() {
    let (place, other) = (Place::new(), Place::new());
    let s = place.session();
    let talk: String =
        (0..6000).map(|n| format!("{{\"role\":\"user\",\"content\":\"message {n}\"}}\n")).collect();
    place.append(&s, &talk);
    let export = place.ok(&["export", &s]);
    std::fs::write(other.path().join("whole.export"), &export).unwrap();
    // A reader that stalls after half of it is killed: what had come in is there, and the rest follows.
    let mut command = other.command(&["import", "-"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, &export.as_bytes()[..export.len() * 3 / 4]).unwrap();
    let journal = other.base().join("running").join(&s).join("messages.jsonl");
    while std::fs::metadata(&journal).map_or(0, |m| m.len()) < 100_000 {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(other.ok(&["import", "whole.export"]).trim(), s);
    assert_eq!(other.ok(&["export", &s]), export);
    assert!(other.run(&["import", "whole.export"]).err.contains("exists already"));
    assert_eq!(other.json_lines(&["sessions"])[0]["llm_call_count"], 0);
}

#[test]
fn a_table_that_cannot_be_written_does_not_deny_what_is_durable() {
    let place = Place::new();
    let s = place.session();
    place.ok(&["append", &s, "one"]);
    let table = rusqlite::Connection::open(place.base().join("tasks.db")).unwrap();
    table
        .execute_batch("CREATE TRIGGER no BEFORE UPDATE ON tasks BEGIN SELECT RAISE(FAIL, 'no'); END")
        .unwrap();
    let said = place.run(&["append", &s, "two"]);
    assert_eq!((said.code, said.out.as_str()), (0, "2\n"), "{}", said.err);
    assert!(said.err.contains("what was said is safe"), "{}", said.err);
    table.execute_batch("DROP TRIGGER no").unwrap();
    place.ok(&["admin", "doctor"]);
    assert_eq!(place.json_lines(&["log", &s]).len(), 2);
}

#[test]
fn a_redaction_says_where_the_secret_still_is() {
    let place = Place::new();
    let s = place.session_with(&["--meter", "bytes4", "--user", "ann-s3cret"]);
    place.append(&s, &TALK.replace("Thanks", "my s3cret"));
    let said = place.run(&["edit", "redact", &s, "--text", "s3cret", "--reason", "x", "--yes"]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("the user's name"), "{}", said.err);
    assert!(!place.ok(&["log", &s, "--json"]).contains("s3cret"));
}

#[test]
fn a_removal_that_was_cut_short_is_finished_by_the_next() {
    let place = Place::new();
    let s = place.session();
    place.ok(&["session", "complete", &s]);
    let completed = place.base().join("completed");
    std::fs::rename(completed.join(&s), completed.join(format!(".gone-{s}.1"))).unwrap();
    place.ok(&["admin", "cleanup", "--days", "0"]);
    assert!(place.json_lines(&["sessions"]).is_empty());
    place.ok(&["admin", "doctor"]);
    assert_eq!(std::fs::read_dir(completed).unwrap().count(), 0);
}

#[test]
fn input_is_taken_in_whole_even_when_nobody_reads_the_numbers() {
    let place = Place::new();
    let s = place.session();
    let talk: String =
        (0..20_000).map(|n| format!("{{\"role\":\"user\",\"content\":\"message {n}\"}}\n")).collect();
    std::fs::write(place.path().join("talk.jsonl"), talk).unwrap();
    let script = format!("{} append {s} --jsonl talk.jsonl | head -1", env!("CARGO_BIN_EXE_komado"));
    let mut command = place.program("bash");
    command.args(["-c", &script]);
    assert_eq!(run::feed(command, b"").out, "1\n");
    assert_eq!(place.json_lines(&["log", &s]).len(), 20_000);
}

#[test]
fn the_undo_of_an_undo_of_an_undo_works() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, TALK);
    place.ok(&["edit", "condense", &s, "2..5", "--text", "short"]);
    let mut target = format!("{s}@7");
    let mut views = vec![place.ok(&["show", &s, "--json"])];
    for _ in 0..4 {
        let undo = place.json(&["revert", &target])["undo"].as_str().unwrap().to_owned();
        target = undo.rsplit(' ').next().unwrap().to_owned();
        views.push(place.ok(&["show", &s, "--json"]));
    }
    assert_eq!((&views[0], &views[1]), (&views[2], &views[3]));
    assert_ne!(views[0], views[1]);
    assert_eq!(views[4], views[0]);
}

#[test]
fn the_undo_of_a_message_takes_back_what_was_answered_for_it() {
    let place = Place::new();
    let s = place.session();
    let call: String = TALK.lines().take(2).map(|line| format!("{line}\n")).collect();
    place.append(&s, &call);
    let undo = place.json(&["append", &s, "never mind"])["undo"].as_str().unwrap().to_owned();
    place.ok(&undo.split(' ').skip(1).collect::<Vec<_>>());
    place.ok(&["append", &s, "--role", "tool", "--call", "c1", "here it is"]);
}

#[test]
fn arguments_that_are_no_text_are_a_mistake_and_no_crash() {
    let place = Place::new();
    let s = place.session();
    let odd = std::ffi::OsStr::from_bytes(b"\xff");
    for args in [&["append", s.as_str()][..], &["show"], &["sessions", "--base-dir"]] {
        let mut command = place.command(args);
        command.arg(odd);
        let said = run::feed(command, b"");
        assert_eq!(said.code, 2, "{args:?}: {}", said.err);
    }
}

#[test]
fn what_other_programs_cannot_read_is_refused() {
    let place = Place::new();
    let s = place.session();
    let half = r#"{"role":"user","content":"x","m":"\ud800"}"#;
    let deep = format!(r#"{{"role":"user","content":"x","m":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    for (line, word) in [(half, "surrogate"), (deep.as_str(), "128 deep")] {
        let said = place.append(&s, line);
        assert!(said.code == 6 && said.err.contains(word), "{}", said.err);
    }
}

#[test]
fn doctor_makes_derived_files_again_even_when_only_their_words_changed() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, TALK);
    for name in ["current.jsonl", "tools.jsonl"] {
        let path = place.folder(&s).join(name);
        let right = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, right.replace("main", "MAIN")).unwrap();
        place.ok(&["admin", "doctor"]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), right, "{name}");
    }
}

#[test]
fn a_flipped_bit_in_the_index_is_healed_by_doctor() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, TALK);
    let want = place.ok(&["show", &s, "--json"]);
    let path = place.folder(&s).join("index");
    let right = std::fs::read(&path).unwrap();
    for at in (0..right.len()).step_by(37) {
        let mut bytes = right.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        place.ok(&["admin", "doctor"]);
        assert_eq!(place.ok(&["show", &s, "--json"]), want, "byte {at}");
    }
}

#[test]
fn a_folder_given_for_a_file_is_named() {
    let place = Place::new();
    let s = place.session();
    let said = place.run(&["append", &s, "--jsonl", "."]);
    assert!(said.code != 0 && said.err.contains("cannot read ."), "{}", said.err);
}

#[test]
fn thousands_of_parallel_calls_are_answered() {
    let place = Place::new();
    let s = place.session();
    let call =
        |n| format!(r#"{{"id":"c{n}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#);
    let calls: Vec<String> = (0..5000).map(call).collect();
    let mut talk =
        format!("{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{}]}}\n", calls.join(","));
    for n in (0..5000).rev() {
        talk.push_str(&format!("{{\"role\":\"tool\",\"tool_call_id\":\"c{n}\",\"content\":\"x\"}}\n"));
    }
    assert_eq!(place.append(&s, &talk).code, 0);
    assert_eq!(place.json(&["context", &s])["open_calls"].as_array().unwrap().len(), 0);
    let tools = std::fs::read_to_string(place.folder(&s).join("tools.jsonl")).unwrap();
    assert_eq!(tools.lines().count(), 5000);
}
