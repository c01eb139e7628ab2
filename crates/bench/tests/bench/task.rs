//! What the process of a task holds must not grow with what it has done, on any machine.

use crate::run::{Place, ended, python};
use serde_json::Value;

fn figure(report: &Value, at: &str) -> f64 {
    report.pointer(at).and_then(Value::as_f64).unwrap_or_else(|| panic!("{at}: {report}"))
}

#[test]
fn a_long_task_holds_no_more_at_its_last_call_than_at_an_early_one() {
    let place = Place::new();
    let report = place.json(&["task", "--calls", "200"]);
    assert_eq!((figure(&report, "/at/0/call"), figure(&report, "/at/4/call")), (10.0, 200.0), "{report}");
    assert!(figure(&report, "/growth_mb") < 8.0, "{report}");
    assert!(figure(&report, "/at/4/rss_mb") < 96.0, "{report}");
    // A window of 16,000 tokens is about 64 KB: nothing larger was ever asked.
    assert!(figure(&report, "/request_bytes") < 100_000.0, "{report}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_context_that_grows_takes_far_less_than_in_a_list_in_python() {
    let place = Place::new();
    let mut command = place.command(&["task", "--mb", "20", "--json"]);
    command.env("KOMADO_PYTHON", python());
    let said = ended(command);
    assert_eq!(said.code, 0, "{} (`make setup` makes the Python)", said.err);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    for whose in ["task", "peer"] {
        assert!(figure(&report, &format!("/sizes/0/{whose}/request_bytes")) > 20e6, "{report}");
    }
    assert!(figure(&report, "/sizes/0/saving_percent") > 80.0, "{report}");
}

#[test]
fn without_a_peer_the_report_says_so() {
    let place = Place::new();
    let out = place.ok(&["task", "--mb", "1", "--no-peer"]);
    assert!(out.contains("no peer was measured"), "{out}");
    assert!(out.lines().skip(2).all(|line| line.chars().count() <= 100), "{out}");
    let said = place.run(&["task", "--calls", "10", "--mb", "1"]);
    assert_eq!(said.code, 2, "{}", said.err);
}
