//! The command line as its user meets it.
use crate::run;

use run::{Place, TALK};

#[test]
fn the_contract_for_scripts_holds() {
    let place = Place::new();
    let new = place.json(&["new", "--window", "8000", "--user", "小窓"]);
    let s = new["session"].as_str().unwrap();
    assert_eq!((new["window"].as_u64(), new["status"].as_str()), (Some(8000), Some("running")));
    let said = place.append(s, TALK);
    assert_eq!((said.code, said.out.as_str()), (0, "1\n2\n3\n4\n5\n6\n"), "{}", said.err);
    let log = place.json_lines(&["log", s]);
    assert_eq!(log.iter().map(|e| e["seq"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(log[0]["content"], "バグを直して main.py");
    let context = place.json(&["context", s]);
    let sum: u64 = log.iter().map(|e| e["tokens"].as_u64().unwrap()).sum();
    assert_eq!(context["context_tokens"].as_u64(), Some(sum));
    assert_eq!(context["free_tokens"].as_u64(), Some(8000 - sum));
    let current = std::fs::read_to_string(place.folder(s).join("current.jsonl")).unwrap();
    assert_eq!(current.trim_end().lines().collect::<Vec<_>>(), TALK.trim_end().lines().collect::<Vec<_>>());
}

#[test]
fn every_change_says_how_to_undo_it_and_the_undo_works() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, TALK);
    let view = |place: &Place| place.ok(&["show", &s, "--json"]);
    let full = view(&place);
    let changes: [&[&str]; 6] = [
        &["edit", "condense", &s, "2..5", "--text", "short"],
        &["edit", "truncate", &s, "2..4"],
        &["edit", "trim", &s, "3,4"],
        &["edit", "pin", &format!("{s}@1")],
        &["rewind", &format!("{s}@1")],
        &["append", &s, "more"],
    ];
    for change in changes {
        let done = place.json(change);
        let undo = done["undo"].as_str().unwrap().to_owned();
        if !change.contains(&"pin") {
            assert_ne!(view(&place), full, "{change:?} changes the view");
        }
        let undo: Vec<&str> = undo.split(' ').skip(1).collect();
        place.ok(&undo);
        assert_eq!(view(&place), full, "{undo:?} undoes {change:?}");
    }
    let log = place.json_lines(&["log", &s]);
    assert_eq!(log.len(), 6 + 2 * changes.len(), "nothing was removed on the way");
}

#[test]
fn a_session_ends_by_moving_and_goes_on_by_moving_back() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, TALK);
    let running = place.folder(&s);
    assert_eq!(place.json(&["session", "pause", &s])["status"], "paused");
    assert_eq!(place.run(&["append", &s, "x"]).code, 5);
    place.ok(&["session", "resume", &s]);
    for (verb, status) in [
        (&["session", "complete", &s, "fine"][..], "completed"),
        (&["session", "fail", &s, "boom"], "failed"),
        (&["session", "stop", &s], "stopped"),
    ] {
        let done = place.json(verb);
        assert_eq!(done["status"], status);
        assert!(!running.exists() && place.base().join("completed").join(&s).exists());
        let refused = place.run(&["append", &s, "x"]);
        assert!(refused.code == 5 && refused.err.contains("komado session resume"), "{}", refused.err);
        assert_eq!(place.json(&["session", "resume", &s])["status"], "running");
        assert!(running.exists());
    }
    place.ok(&["session", "fail", &s, "boom"]);
    let stats = place.json(&["admin", "stats"]);
    assert_eq!(stats["failed"][0]["error_message"], "boom");
    assert_eq!(stats["by_status"]["failed"], 1);
}

#[test]
fn export_and_import_are_one_another_s_inverse() {
    let (place, other) = (Place::new(), Place::new());
    let s = place.session();
    place.append(&s, TALK);
    place.ok(&["edit", "condense", &s, "2..5", "--text", "短く"]);
    place.ok(&["fork", &format!("{s}@5"), "side"]);
    place.ok(&["append", &format!("{s}/side"), "another way"]);
    place.ok(&["session", "complete", &s]);
    let export = place.ok(&["export", &s]);
    let said = other.feed(&["import"], export.as_bytes());
    assert_eq!((said.code, said.out.trim()), (0, s.as_str()), "{}", said.err);
    assert_eq!(other.ok(&["export", &s]), export);
    assert_eq!(other.json_lines(&["sessions"])[0]["status"], "completed");
    let cut = &export[..export.len() - 40];
    let third = Place::new();
    let said = third.feed(&["import"], cut.as_bytes());
    assert!(said.code == 6 && said.err.contains("nothing was imported"), "{}", said.err);
    assert!(third.json_lines(&["sessions"]).is_empty());
    let again = other.feed(&["import"], export.as_bytes());
    assert!(again.code == 5 && again.err.contains("exists already"), "{}", again.err);
    assert_eq!(other.feed(&["import", "--as", "copy"], export.as_bytes()).out, "copy\n");
}

#[test]
fn diff_shows_what_the_model_no_longer_sees() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, TALK);
    place.ok(&["edit", "condense", &s, "2..5", "--text", "short"]);
    let out = place.ok(&["session", "diff", &format!("{s}@6"), &format!("{s}@7")]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.iter().filter(|line| line.starts_with("- ")).count(), 4, "{out}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("+ 2..5 condense@7")).count(), 1, "{out}");
    let rows = place.json_lines(&["session", "diff", &format!("{s}@6")]);
    assert_eq!(rows.len(), 5);
}

#[test]
fn a_secret_can_be_taken_out_for_good_and_only_with_consent() {
    let place = Place::new();
    let s = place.session();
    place.append(&s, &TALK.replace("main.py\\\"", "sk-12345\\\""));
    let refused = place.run(&["edit", "redact", &s, "--text", "sk-12345", "--reason", "key"]);
    assert!(refused.code == 5 && refused.err.contains("--yes"), "{}", refused.err);
    place.ok(&["edit", "redact", &s, "--text", "sk-12345", "--reason", "key", "--yes"]);
    for file in ["messages.jsonl", "current.jsonl", "tools.jsonl"] {
        let text = std::fs::read_to_string(place.folder(&s).join(file)).unwrap();
        assert!(!text.contains("sk-12345"), "{file}: {text}");
    }
    let log = place.json_lines(&["log", &s]);
    assert_eq!(log[1]["redacted"][0]["reason"], "key", "{log:?}");
    assert_eq!(log.len(), 6);
}

#[test]
fn cleanup_says_first_and_then_takes_only_what_ended() {
    let place = Place::new();
    let (done, failed, running) = (place.session(), place.session(), place.session());
    place.ok(&["session", "complete", &done]);
    place.ok(&["session", "fail", &failed, "x"]);
    assert_eq!(place.json_lines(&["admin", "cleanup", "--days", "1"]).len(), 0);
    let dry = place.json_lines(&["admin", "cleanup", "--days", "0", "--dry-run"]);
    assert_eq!(dry.len(), 2);
    assert_eq!(place.json_lines(&["sessions"]).len(), 3);
    assert_eq!(place.json_lines(&["admin", "cleanup", "--days", "0"]).len(), 2);
    let left = place.json_lines(&["sessions"]);
    assert_eq!((left.len(), left[0]["session"].as_str()), (1, Some(running.as_str())));
    assert!(!place.base().join("completed").join(&done).exists());
}

#[test]
fn addresses_may_be_short_as_long_as_they_are_unique() {
    let place = Place::new();
    for id in ["abc-1", "abc-2", "xyz"] {
        place.ok(&["new", "--id", id, "--meter", "bytes4"]);
    }
    place.ok(&["append", "x", "hello"]);
    let said = place.run(&["show", "abc"]);
    assert!(said.code == 3 && said.err.contains("abc-2 (just now), abc-1 (just now)"), "{}", said.err);
    place.ok(&["fork", "x@1", "other"]);
    assert_eq!(place.ok(&["show", "x/o", "--json"]), place.ok(&["show", "xyz", "--json"]));
}

#[test]
fn settings_come_from_flag_environment_file_and_default_in_that_order() {
    let place = Place::new();
    place.settings("context_storage:\n  cleanup_days: 5\n");
    let days = |command: std::process::Command| {
        let said = run::feed(command, b"");
        let rows = said.out.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
        rows.into_iter()
            .find(|r| r["key"] == "context_storage.cleanup_days")
            .map(|r| (r["value"].clone(), r["origin"].clone()))
    };
    let (value, origin) = days(place.command(&["admin", "config", "--json"])).unwrap();
    assert_eq!((value.as_str(), origin.as_str()), (Some("5"), Some("komado.yaml:2")));
    let mut command = place.command(&["admin", "config", "--json"]);
    command.env("CLEANUP_DAYS", "6");
    assert_eq!(days(command).unwrap(), ("6".into(), "env CLEANUP_DAYS".into()));
    let mut command =
        place.command(&["admin", "config", "--json", "--set", "context_storage.cleanup_days=7"]);
    command.env("CLEANUP_DAYS", "6");
    assert_eq!(days(command).unwrap(), ("7".into(), "--set".into()));
}

#[test]
fn every_shell_gets_completions_and_a_closed_pipe_is_no_failure() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(place.ok(&["admin", "completions", shell]).contains("komado"), "{shell}");
    }
    let s = place.session();
    for _ in 0..3 {
        place.append(&s, &format!("{{\"role\":\"user\",\"content\":\"{}\"}}\n", "x".repeat(100_000)));
    }
    let script = format!("{} log {s} --json | head -c 10", env!("CARGO_BIN_EXE_komado"));
    let mut command = place.program("bash");
    command.args(["-o", "pipefail", "-c", &script]);
    let said = run::feed(command, b"");
    assert_eq!((said.code, said.err.as_str()), (0, ""));
}

#[test]
fn what_a_new_state_is_undone_by_makes_the_session_what_it_was() {
    let place = Place::new();
    let s = place.session();
    place.ok(&["append", &s, "one"]);
    for (verb, more, was) in [
        ("complete", "all is done", "completed"),
        ("stop", "it's enough", "stopped"),
        ("fail", "no way", "failed"),
        ("pause", "for lunch", "paused"),
    ] {
        place.ok(&["session", verb, &s, more]);
        let resumed = place.json(&["session", "resume", &s]);
        let undo = resumed["undo"].as_str().unwrap();
        let line = undo.replacen("komado", env!("CARGO_BIN_EXE_komado"), 1);
        let done = place.program("sh").args(["-c", &format!("{line} --json")]).output().unwrap();
        let done: serde_json::Value = serde_json::from_slice(&done.stdout).expect(undo);
        assert_eq!(done["status"], was, "{undo}");
        assert!(place.ok(&["log", &s]).lines().last().unwrap().contains(more), "{undo}");
        place.ok(&["session", "resume", &s]);
    }
}

#[test]
fn a_session_that_takes_no_words_is_named_with_its_state_and_the_command_that_lets_it_go_on() {
    let place = Place::new();
    place.ok(&["new", "--id", "a", "--window", "4000"]);
    place.ok(&["append", "a", "one"]);
    let paused = "session a is paused; `komado session resume a` lets it go on";
    for (verb, told) in [("pause", paused), ("complete", "session a has ended")] {
        place.ok(&["session", verb, "a"]);
        for args in [&["ask", "a", "two", "--provider", "scripted"][..], &["append", "a", "two"]] {
            let said = place.run(args);
            assert_eq!(said.code, 5, "{args:?}: {}", said.err);
            assert!(said.err.contains(told), "{args:?}: {}", said.err);
            assert!(said.err.contains("`komado session resume a`"), "{args:?}: {}", said.err);
        }
        let chat = place.feed(&["chat", "a", "--provider", "scripted"], b"two\n");
        assert!(chat.err.contains(told), "{}", chat.err);
    }
}

#[test]
fn a_session_without_a_window_names_the_option_that_gives_one() {
    let place = Place::new();
    let said = place.run(&["new", "--id", "会話"]);
    assert!(said.err.contains("`komado fit 会話 --window 8000`"), "{}", said.err);
    place.ok(&["append", "会話", "one"]);
    place.ok(&["fit", "会話", "--window", "8000"]);
}
