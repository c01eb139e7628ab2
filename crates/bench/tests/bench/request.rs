//! What a request takes must hold on any machine: its memory does not grow with it, and no byte is moved twice.

use crate::run::{Place, ended, python};
use serde_json::Value;

#[test]
fn a_request_takes_as_much_memory_as_a_small_one_and_far_less_than_a_list_in_python() {
    let place = Place::new();
    let mut command = place.command(&["request", "--mb", "30", "--json"]);
    command.env("KOMADO_PYTHON", python());
    let said = ended(command);
    assert_eq!(said.code, 0, "{} (`make setup` makes the Python)", said.err);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    let figure =
        |at: &str| report.pointer(at).and_then(Value::as_f64).unwrap_or_else(|| panic!("{at}: {report}"));
    assert!((28e6..32e6).contains(&figure("/request_bytes")), "{report}");
    assert!(figure("/growth_mb") < 8.0, "{report}");
    assert!(figure("/peak_rss_mb") < 96.0, "{report}");
    for request in ["", "/small"] {
        let copied = figure(&format!("{request}/bytes_copied_per_pass"));
        // Less than one pass would mean that something was moved and not counted.
        assert!((0.99..1.1).contains(&copied), "{report}");
        assert_eq!(report.pointer(&format!("{request}/digest_matches")).unwrap(), &Value::Bool(true));
    }
    // What is held at once is a message and a few buffers, whatever the size of the request.
    assert!(figure("/heap_peak_bytes") < 4e6, "{report}");
    assert_eq!(figure("/peer/messages"), figure("/entries"), "{report}");
    assert!(figure("/peer/request_bytes") > 28e6, "{report}");
    // A list of 30 MB is small enough that what every request takes still shows.
    assert!(figure("/saving_percent") > 90.0, "{report}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn without_a_python_the_bench_names_what_makes_one_and_can_do_without() {
    let place = Place::new();
    let mut command = place.command(&["request", "--mb", "1"]);
    command.env("KOMADO_PYTHON", "/nowhere/python");
    let said = ended(command);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(
        ["/nowhere/python", "make setup", "--no-peer"].iter().all(|w| said.err.contains(w)),
        "{}",
        said.err
    );
    let out = place.ok(&["request", "--mb", "1", "--no-peer"]);
    assert!(out.contains("no peer was measured"), "{out}");
    assert!(out.lines().skip(2).all(|line| line.chars().count() <= 100), "{out}");
    let report = place.json(&["request", "--mb", "1", "--no-peer"]);
    assert_eq!((&report["peer"], &report["saving_percent"]), (&Value::Null, &Value::Null));
    let said = place.run(&["request", "--mb", "0"]);
    assert_eq!(said.code, 2, "{}", said.err);
    let said = place.run(&["request", "--no-peer", "--dir", "/nowhere"]);
    assert!(said.code == 1 && said.err.contains("/nowhere"), "{}", said.err);
}
