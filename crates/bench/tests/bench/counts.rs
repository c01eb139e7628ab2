//! What the benches count must hold on any machine; what they time is for people to read.

use crate::run::Place;
use serde_json::Value;

/// A figure of a deed in a session.
fn figure(report: &Value, deed: &str, session: &str, key: &str) -> f64 {
    report[deed][session][key].as_f64().unwrap_or_else(|| panic!("{deed}.{session}.{key}: {report}"))
}

#[test]
fn planning_and_rendering_count_the_same_in_a_session_fifty_times_as_long() {
    let place = Place::new();
    let report = place.json(&["plan", "--entries", "50000", "--sample", "1"]);
    let [short, long, wide] = [0, 1, 2].map(|i| &report["sessions"][i]);
    assert!(short["entries"].as_u64().unwrap() < 1100, "{report}");
    assert!((49_900..50_100).contains(&long["entries"].as_u64().unwrap()), "{report}");
    for session in [short, long] {
        let tokens = session["view_tokens"].as_u64().unwrap();
        assert!((190_000..215_000).contains(&tokens), "{session}");
    }
    // A trim is worked out first, and is not enough.
    assert_eq!(report["rungs"], serde_json::json!(["condense"]));
    // A number of an entry may have two digits more, and one thing more is shown: a marker. Longer numbers leave the digest less
    // room, so that it may read a few messages more: as many in a session of ten thousand entries as in one of a million.
    for deed in ["plan", "render"] {
        for key in ["lookups", "reads", "bytes_read", "allocations", "allocated_bytes", "peak_bytes"] {
            let (a, b) = (figure(&report, deed, "short", key), figure(&report, deed, "long", key));
            let most = if deed == "plan" && key == "bytes_read" { 1.1 } else { 1.05 };
            assert!(a > 0.0 && b < a * most, "{deed} {key}: {a} and {b}");
        }
    }
    for key in ["lookups", "bytes_read", "allocations", "peak_bytes"] {
        let (a, b) = (figure(&report, "open", "short", key), figure(&report, "open", "long", key));
        assert!(a > 0.0 && b < a * 1.25, "open {key}: {a} and {b}");
    }
    // Where the view may be too full, the task and the latest instruction are looked up: each item once, and few are read.
    for session in [short, long, wide] {
        let judged = |key| figure(&report, "judge", session["name"].as_str().unwrap(), key);
        assert!(judged("lookups") <= session["view_items"].as_f64().unwrap() + 8.0, "{session}");
        assert!(judged("reads") < 50.0 && judged("allocations") < 100.0, "{session}");
        assert!(judged("peak_bytes") < 100_000.0, "{session}");
    }
    // The peer is what it would be to read everything.
    assert!(
        figure(&report, "peer", "long", "bytes_read") > 40.0 * figure(&report, "peer", "short", "bytes_read")
    );

    // Messages ten times as long: a few of them are held at once, never the view.
    assert!(wide["longest_line"].as_u64().unwrap() > 8 * short["longest_line"].as_u64().unwrap());
    for deed in ["plan", "render"] {
        let held = report[deed]["messages_held"].as_f64().unwrap();
        assert!(held < 8.0, "{deed} holds {held} messages");
        let more = figure(&report, deed, "wide", "peak_bytes") - figure(&report, deed, "short", "peak_bytes");
        assert!(more < wide["view_bytes"].as_f64().unwrap() / 20.0, "{deed}: {more} bytes more");
    }
}

#[test]
fn a_store_is_measured_beside_its_driver_and_leaves_nothing_behind() {
    let place = Place::new();
    let dir = place.path().join("disk");
    std::fs::create_dir(&dir).unwrap();
    let dir_name = dir.to_str().unwrap();
    let report = place.json(&["store", "--entries", "1000", "--sample", "20", "--dir", dir_name]);
    let store = &report["stores"][0];
    assert_eq!(store["kind"], "file");
    let steps = store["steps"].as_array().unwrap();
    assert_eq!(
        steps.iter().map(|step| step["entries"].as_u64().unwrap()).collect::<Vec<_>>(),
        [10, 100, 1000]
    );
    for step in steps {
        assert_eq!(
            (step["writes_per_append"].as_f64(), step["syncs_per_append"].as_f64()),
            (Some(1.0), Some(1.0))
        );
        for key in ["append_ratio", "open_ratio", "us_per_append", "us_per_raw_append"] {
            assert!(step[key].as_f64().unwrap() > 0.0, "{key}: {step}");
        }
    }
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
    let args = ["store", "--entries", "100", "--sample", "10", "--dir", dir_name];
    let said = place.ok(&args);
    assert!(said.contains("growth from first to last") && said.contains("fdatasync"), "{said}");
}

#[test]
fn a_store_that_cannot_be_measured_is_named_without_its_password() {
    let place = Place::new();
    for url in ["mysql://ann:hidden@127.0.0.1/x", "redis://:hidden@127.0.0.1:1", "file:/somewhere"] {
        let said = place.run(&["store", "--entries", "100", "--url", url]);
        assert_ne!(said.code, 0);
        assert!(!format!("{}{}", said.out, said.err).contains("hidden"), "{}{}", said.out, said.err);
    }
    let said = place.run(&["store", "--servers"]);
    assert!(said.code == 2 && said.err.contains("scripts/server"), "{}", said.err);
}

#[test]
fn the_benches_count_one_write_and_one_sync_and_open_without_reading() {
    let place = Place::new();
    let append = place.json(&["append", "--entries", "3000", "--sample", "50"]);
    assert_eq!(
        (append["writes_per_append"].as_f64(), append["syncs_per_append"].as_f64()),
        (Some(1.0), Some(1.0))
    );
    assert!(append["growth"].is_number() && append["rss_growth_mb"].is_number(), "{append}");
    let open = place.json(&["open", "--entries", "20000", "--gb", "0.1"]);
    assert_eq!(open["entries"].as_u64(), Some(20000));
    let (bytes, read) = (open["bytes"].as_f64().unwrap(), open["bytes_read"].as_f64().unwrap());
    assert!(read < bytes / 10.0, "{open}");
    assert!(open["rss_growth_mb"].is_number(), "{open}");
}

#[test]
fn without_a_komado_the_error_says_what_makes_one() {
    let place = Place::new();
    let said = place.run(&["open", "--entries", "100", "--gb", "0", "--komado", "nowhere/komado"]);
    assert_eq!(said.code, 2, "{}", said.err);
    for word in ["nowhere/komado", "cargo build -p komado", "--komado PATH"] {
        assert!(said.err.contains(word), "{word} in {}", said.err);
    }
}
