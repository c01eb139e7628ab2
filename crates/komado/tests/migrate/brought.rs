//! `komado import` that is killed: what it leaves says that it is not whole, until the same import is run again.

use crate::migrate::run::Place;
use serde_json::json;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// What is said of it.
const TOLD: &str = "session s: its import is not finished";

/// The export of a session of which each message is written by itself, being longer than what is written at once.
fn export() -> String {
    let place = Place::new();
    place.session_with(&["--id", "s", "--meter", "bytes4", "--window", "9000000"]);
    for role in ["user", "assistant", "user"] {
        let line = json!({ "role": role, "content": "窓".repeat(400_000) });
        assert_eq!(place.append("s", &format!("{line}\n")).code, 0);
    }
    place.ok(&["export", "s"])
}

/// Feeds an import all but the last two lines of `export`, and kills it once it has written what it can.
fn kill_half_way(place: &Place, export: &str) {
    let lines: Vec<&str> = export.split_inclusive('\n').collect();
    let half = lines[..lines.len() - 2].concat();
    let mut child = place.command(&["import"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(half.as_bytes()).unwrap();
    stdin.flush().unwrap();
    let journal = place.base().join("running/s/messages.jsonl");
    let until = Instant::now() + Duration::from_secs(300);
    while std::fs::metadata(&journal).map_or(0, |file| file.len()) < 2_400_000 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        assert!(Instant::now() < until, "it does not write what it was given");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_import_that_was_killed_is_told_of_until_it_is_run_again() {
    let export = export();
    let place = Place::new();
    kill_half_way(&place, &export);
    for args in [&["sessions"][..], &["admin", "doctor"], &["admin", "doctor", "--rebuild"], &["sessions"]] {
        let said = place.run(args);
        assert!(
            said.err.contains(TOLD) && said.err.contains("`komado import` again"),
            "{args:?}: {}",
            said.err
        );
    }
    let row = &place.json_lines(&["sessions"])[0];
    assert!(row["error_message"].as_str().unwrap().contains("not finished"), "{row}");
    assert_eq!(place.feed(&["import"], export.as_bytes()).code, 0);
    assert!(place.ok(&["export", "s"]) == export, "it is not what was exported");
    for args in [&["sessions"][..], &["admin", "doctor"]] {
        let said = place.run(args);
        assert!(said.code == 0 && !said.err.contains("import"), "{args:?}: {}", said.err);
    }
    let again = place.feed(&["import"], export.as_bytes());
    assert!(again.code == 5 && again.err.contains("exists already"), "{}", again.err);
}
