//! `komado user`: a standing session, what was said, habits, and that nothing is left of one who is forgotten.
use crate::run;

use komado_core::{SessionId, ThreadId};
use komado_store::{FileStore, Holder, Job, JobOutcome, OpenMode, Queue, Store};
use run::{Place, TALK};
use std::path::{Path, PathBuf};
use std::time::Duration;

const USER: &str = "花子";

#[test]
fn a_standing_session_is_made_once_and_found_again() {
    let place = Place::new();
    let made = place.json(&["user", "session", "ann", "--window", "8000"]);
    assert_eq!((&made["session"], &made["made"]), (&"session_ann".into(), &true.into()));
    place.append("session_ann", TALK);
    let found = place.json(&["user", "session", "ann"]);
    assert_eq!((&found["session"], &found["made"]), (&"session_ann".into(), &false.into()));
    let other = place.json(&["user", "session", USER, "--window", "8000"]);
    assert_eq!((&other["session"], &other["user"]), (&"session_:e88ab1e5ad90".into(), &USER.into()));
    let users = place.json_lines(&["user", "list"]);
    assert_eq!((users.len(), &users[1]["user"]), (2, &USER.into()));
    let after = place.json_lines(&["user", "list", "--after", "ann", "-n", "1"]);
    assert_eq!(after[0]["user"], USER);
    assert_eq!(place.run(&["user", "session", ""]).code, 3);
}

#[test]
fn what_was_said_lately_and_habits_are_told() {
    let place = Place::new();
    for _ in 0..2 {
        let session = place.session_with(&["--meter", "bytes4", "--window", "8000", "--user", USER]);
        place.append(&session, TALK);
    }
    let recent = place.json_lines(&["user", "recent", USER, "-n", "3"]);
    assert_eq!((&recent[0]["text"], &recent[1]["text"]), (&"Thanks".into(), &"Done.".into()));
    let cursor = recent[2]["cursor"].as_str().unwrap();
    let more = place.json_lines(&["user", "recent", USER, "-n", "99", "--before", cursor]);
    assert_eq!(more.len(), 5, "{more:?}");
    let shown = place.json(&["user", "show", USER]);
    assert_eq!(
        (&shown["sessions"], &shown["turns"], &shown["tool_calls"]),
        (&2.into(), &4.into(), &4.into())
    );
    assert_eq!(shown["tools"][0]["count"], 2);
    let text = place.ok(&["user", "show", USER]);
    assert!(text.contains("2 running") && text.contains("バグ"), "{text}");
    assert!(place.ok(&["user", "recent", USER]).contains("Thanks"));
    for args in [["user", "show", "eve"], ["user", "recent", "eve"], ["user", "forget", "eve"]] {
        let said = place.run(&args);
        assert!(said.code == 3 && said.err.contains("eve"), "{args:?}: {}", said.err);
    }
    let said = place.run(&["user", "recent", USER, "--before", "x"]);
    assert!(said.code == 2 && said.err.contains("cursor"), "{}", said.err);
}

/// Files below a folder whose name or bytes hold `word`.
fn holding(folder: &Path, word: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holding(&path, word, found);
        } else if std::fs::read(&path).unwrap().windows(word.len()).any(|part| part == word.as_bytes()) {
            found.push(path.clone());
        }
        if path.file_name().unwrap().to_string_lossy().contains(word) {
            found.push(path);
        }
    }
}

fn traces(place: &Place, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    holding(&place.base(), word, &mut found);
    found
}

#[test]
fn nothing_is_left_of_a_user_who_was_forgotten_but_what_was_exported() {
    let place = Place::new();
    let standing =
        place.json(&["user", "session", USER, "--window", "8000"])["session"].as_str().unwrap().to_owned();
    let ended =
        place.session_with(&["--id", "ended", "--meter", "bytes4", "--window", "8000", "--user", USER]);
    let other =
        place.session_with(&["--id", "other", "--meter", "bytes4", "--window", "8000", "--user", "ann"]);
    for session in [&standing, &ended, &other] {
        place.append(session, TALK);
        place.append(session, &format!("{{\"role\":\"user\",\"content\":\"秘密の鍵 of {session}\"}}\n"));
    }
    place.ok(&["recall", &ended, "秘密の鍵"]);
    place.ok(&["session", "complete", &ended]);
    let kept = place.ok(&["export", &ended]);
    let would = place.json(&["user", "forget", USER, "--dry-run"]);
    assert_eq!((&would["would_erase"], &would["erased"]), (&2.into(), &0.into()));
    let said = place.run(&["user", "forget", USER]);
    assert!(said.code == 5 && said.err.contains("--yes"), "{}", said.err);
    assert!(!traces(&place, USER).is_empty());
    let inside = place.base().join("kept");
    let said = place.run(&["user", "forget", USER, "--yes", "--export", inside.to_str().unwrap()]);
    assert!(said.code == 2 && said.err.contains("inside"), "{}", said.err);
    std::fs::remove_dir(&inside).unwrap();

    let done = place.json(&["user", "forget", USER, "--yes", "--export", "kept"]);
    assert_eq!(
        (&done["exported"], &done["erased"], done["left"].as_array().unwrap().len()),
        (&2.into(), &2.into(), 0)
    );
    for word in [USER, standing.as_str(), "of ended"] {
        assert_eq!(traces(&place, word), Vec::<PathBuf>::new(), "{word}");
    }
    assert!(!traces(&place, "of other").is_empty(), "another user's session stays");
    assert_eq!(std::fs::read_to_string(place.path().join("kept/ended.jsonl")).unwrap(), kept);
    let erasures = std::fs::read_to_string(place.base().join("erasures.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        erasures.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let digest = blake3::hash(kept.as_bytes()).to_hex().to_string();
    assert!(lines.iter().any(|line| line["export"] == digest), "{erasures}");
    assert_eq!((lines.len(), &lines[2]["erasing"]), (4, &2.into()));
    assert_eq!((&lines[3]["erased"], &lines[3]["left"]), (&2.into(), &0.into()));
    assert!(lines.iter().all(|line| line["user_digest"] == lines[0]["user_digest"]), "{erasures}");
    let plain = blake3::hash(USER.as_bytes()).to_hex();
    assert!(!erasures.contains(plain.as_str()), "who tries names finds none: {erasures}");
    place.ok(&["import", "kept/ended.jsonl"]);
    assert_eq!(place.ok(&["export", "ended"]), kept);
    place.ok(&["session", "resume", "ended"]);
    let said = place.run(&["user", "forget", USER, "--yes", "--export", "kept"]);
    assert!(said.code == 2 && said.err.contains("kept is not empty"), "{}", said.err);
    assert_eq!(std::fs::read_to_string(place.path().join("kept/ended.jsonl")).unwrap(), kept);
}

fn queue(store: &FileStore, session: &str) {
    let id = SessionId::new(session).unwrap();
    let (key, user, at) = (format!("key of {id}"), Some(USER.into()), "2024-01-15T12:00:00Z".into());
    assert!(store.enqueue(&Job { session: id, key, user, body: "{}".into(), at }).unwrap());
}

#[test]
fn one_who_has_only_jobs_is_a_user_and_a_job_that_is_worked_on_stays() {
    let place = Place::new();
    let holder = Holder { pid: 7, host: "h".into(), program: "test".into(), since: "now".into() };
    let store = FileStore::new(&place.base(), holder.clone());
    queue(&store, "held");
    queue(&store, "waits");
    let taken = store.take(&holder, Duration::from_secs(3600)).unwrap().unwrap();
    let would = place.json(&["user", "forget", USER, "--dry-run"]);
    assert_eq!((&would["jobs"], &would["live"][0]), (&2.into(), &"held".into()));
    let said = place.run(&["user", "forget", USER, "--yes"]);
    assert!(said.code == 4 && said.err.contains("held by process 7"), "{}", said.err);
    assert_eq!(store.jobs(None, 0).unwrap().len(), 2);
    let said = place.run(&["user", "forget", USER, "--yes", "--force"]);
    assert!(said.code == 4 && said.err.contains("session held stays"), "{}", said.err);
    assert_eq!(store.jobs(None, 0).unwrap().len(), 1);
    store.finish(&taken, &JobOutcome::Done).unwrap();
    assert_eq!(place.run(&["user", "forget", USER, "--yes"]).code, 3);
}

#[test]
fn what_was_erased_is_not_said_to_stay() {
    let place = Place::new();
    place.session_with(&["--id", "a", "--meter", "bytes4", "--window", "8000", "--user", USER]);
    // The answers that were given to calls cannot be opened.
    std::fs::create_dir(place.base().join("answers.db")).unwrap();
    let said = place.run(&["user", "forget", USER, "--yes"]);
    assert!(said.code == 1 && said.err.contains("session a was erased, but"), "{}", said.err);
    assert!(!said.err.contains("stays") && said.out.contains("erased 1 session"), "{}{}", said.out, said.err);
    assert!(place.json_lines(&["sessions"]).is_empty());
}

#[test]
fn nothing_that_was_said_acts_on_the_terminal() {
    let place = Place::new();
    let wild = "\u{1b}]0;mine\u{7}ann";
    place.session_with(&["--id", "a", "--meter", "bytes4", "--window", "8000", "--user", wild]);
    let line = serde_json::json!({ "role": "user", "content": "look \u{1b}[2J\u{9b}31m here" });
    let answer = "{\"role\":\"assistant\",\"content\":\"ok\"}";
    assert_eq!(place.append("a", &format!("{line}\n{answer}\n{line}\n")).code, 0);
    for args in [&["user", "recent", wild][..], &["user", "show", wild], &["user", "list"]] {
        let text = place.ok(args);
        assert!(text.contains("look") || text.contains("mine"), "{text:?}");
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{args:?}: {text:?}");
    }
}

#[test]
fn a_session_that_is_being_written_is_never_pulled_from_under_its_writer() {
    let place = Place::new();
    for id in ["a", "b"] {
        place.session_with(&["--id", id, "--meter", "bytes4", "--window", "8000", "--user", USER]);
        place.append(id, TALK);
    }
    let holder = Holder { pid: 7, host: "h".into(), program: "test".into(), since: "now".into() };
    let store = FileStore::new(&place.base(), holder);
    let held = store.open(&SessionId::new("b").unwrap(), &ThreadId::root(), OpenMode::Write).unwrap();
    let said = place.run(&["user", "forget", USER, "--yes"]);
    assert!(said.code == 4 && said.err.contains("b by process 7"), "{}", said.err);
    assert_eq!(place.json_lines(&["sessions"]).len(), 2);
    let said = place.run(&["user", "forget", USER, "--yes", "--force"]);
    assert!(said.code == 4 && said.err.contains("session b stays"), "{}", said.err);
    assert_eq!(place.json_lines(&["sessions"])[0]["session"], "b");
    drop(held);
    place.ok(&["user", "forget", USER, "--yes"]);
    assert!(place.json_lines(&["sessions"]).is_empty());
}

#[test]
fn the_record_of_erasures_tells_no_name_and_closes_lines_of_earlier_versions() {
    let place = Place::new();
    let record = place.base().join("erasures.jsonl");
    let plain = |user: &str| blake3::hash(user.as_bytes()).to_hex().to_string();
    std::fs::create_dir_all(place.base()).unwrap();
    let old = format!(
        "{{\"at\":\"2026-01-01\",\"by\":\"x\",\"user_digest\":\"{}\",\"erased\":3}}\nno JSON\n",
        plain("ann")
    );
    std::fs::write(&record, old).unwrap();
    let forget = |user: &str, session: &str| {
        place.ok(&["new", "--id", session, "--user", user, "--window", "1000", "--meter", "bytes4"]);
        place.ok(&["user", "forget", user, "--yes", "--export", &format!("kept-{session}")]);
        std::fs::read_to_string(&record).unwrap()
    };
    let text = forget("bob", "s1");
    for user in ["ann", "bob"] {
        assert!(!text.contains(&plain(user)), "{text}");
    }
    let text = text + &forget("ann", "s2");
    let digests: Vec<String> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|line| line["user_digest"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(digests.first(), digests.last(), "the same user stands for the same: {text}");
    assert_ne!(digests[0], digests[1], "{text}");
    assert!(text.contains("no JSON"), "what is not ours stays: {text}");
    // Another store has another key, so the digest cannot be worked out elsewhere.
    let other = Place::new();
    other.ok(&["new", "--id", "s", "--user", "ann", "--window", "1000", "--meter", "bytes4"]);
    other.ok(&["user", "forget", "ann", "--yes", "--export", "kept"]);
    assert!(!std::fs::read_to_string(other.base().join("erasures.jsonl")).unwrap().contains(&digests[0]));
    std::fs::write(place.base().join("erasures.key"), "nonsense").unwrap();
    place.ok(&["new", "--id", "s3", "--user", "cleo", "--window", "1000", "--meter", "bytes4"]);
    let said = place.run(&["user", "forget", "cleo", "--yes", "--export", "kept-s3"]);
    assert!(said.code == 6 && said.err.contains("erasures.key"), "{}", said.err);
    place.ok(&["show", "s3"]);
}
