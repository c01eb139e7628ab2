//! The ladder as a user meets it: fit, condense, replay.

use crate::run;

use run::Place;
use std::fmt::Write;

/// A conversation of reads, one line per message.
fn talk(turns: usize) -> String {
    let mut lines = String::from(
        "{\"role\":\"system\",\"content\":\"You are careful.\"}\n{\"role\":\"user\",\"content\":\"Fix the parser. Never touch main.\"}\n",
    );
    for n in 0..turns {
        let output = format!("line {n} of the parser\\n").repeat(60);
        writeln!(
            lines,
            "{{\"role\":\"assistant\",\"content\":\"Reading {n}.\",\"tool_calls\":[{{\"id\":\"c{n}\",\"type\":\"function\",\
             \"function\":{{\"name\":\"read\",\"arguments\":\"{{\\\"path\\\":\\\"src/p{n}.rs\\\"}}\"}}}}]}}"
        )
        .unwrap();
        writeln!(lines, "{{\"role\":\"tool\",\"tool_call_id\":\"c{n}\",\"content\":\"{output}\"}}").unwrap();
    }
    lines.push_str("{\"role\":\"assistant\",\"content\":\"Done.\"}\n");
    lines
}

/// What a run says that must fail with `code`.
fn fails(place: &Place, args: &[&str], code: i32) -> String {
    let said = place.run(args);
    assert_eq!(said.code, code, "{args:?}: {}{}", said.out, said.err);
    said.err
}

fn place_with_talk(window: &str) -> Place {
    let place = Place::new();
    place.ok(&["new", "--id", "a", "--window", window]);
    assert_eq!(place.append("a", &talk(30)).code, 0);
    place
}

#[test]
fn a_dry_run_says_what_fit_then_does_and_writes_nothing() {
    let place = place_with_talk("8000");
    let before = place.ok(&["export", "a"]);
    let plan = place.json(&["fit", "a", "--dry-run"]);
    assert_eq!(place.ok(&["export", "a"]), before, "a dry run wrote something");
    let done = place.json(&["fit", "a"]);
    assert_eq!(plan["edits"], done["edits"]);
    assert_eq!(done["verdict"]["rule"], "hard_gate");
    let after = done["tokens_after"].as_u64().unwrap();
    assert!(after <= done["verdict"]["usable"].as_u64().unwrap(), "{done}");
    assert_eq!(place.json(&["context", "a"])["context_tokens"], after);
    let again = place.json(&["fit", "a"]);
    assert_eq!(again["edits"], serde_json::json!([]), "{again}");
}

#[test]
fn every_edit_of_the_ladder_names_its_undo_and_what_it_hid_is_one_call_away() {
    let place = place_with_talk("8000");
    let full = place.ok(&["show", "a", "--json"]);
    let done = place.json(&["fit", "a"]);
    assert!(!done["edits"].as_array().unwrap().is_empty());
    let hidden = place.ok(&["session", "output", "a", "@4"]);
    assert!(hidden.contains("line 0 of the parser"), "{hidden}");
    for edit in done["edits"].as_array().unwrap().iter().rev() {
        let undo = edit["undo"].as_str().unwrap();
        let words: Vec<&str> = undo.split_whitespace().skip(1).collect();
        place.ok(&words);
    }
    assert_eq!(place.ok(&["show", "a", "--json"]), full);
}

#[test]
fn condense_without_a_span_writes_a_summary_that_cites_entries() {
    let place = place_with_talk("200000");
    place.ok(&["edit", "condense", "a"]);
    let shown = place.ok(&["show", "a", "--json"]);
    assert!(shown.contains("Fix the parser. Never touch main."), "{shown}");
    assert!(shown.contains("tool_output_cache") && shown.contains("src/p"), "{shown}");
    let summaries = std::fs::read_to_string(place.base().join("running/a/summaries.jsonl")).unwrap();
    assert!(summaries.contains("\"start_seq\":3"), "{summaries}");
}

#[test]
fn a_larger_window_takes_edits_back() {
    let place = place_with_talk("8000");
    let full = place.ok(&["show", "a", "--json"]);
    place.ok(&["fit", "a"]);
    let relaxed = place.json(&["fit", "a", "--relax", "--window", "200000"]);
    assert!(!relaxed["reverted"].as_array().unwrap().is_empty(), "{relaxed}");
    assert_eq!(place.ok(&["show", "a", "--json"]), full);
}

#[test]
fn a_session_without_a_window_is_not_fitted_to_a_guess() {
    let place = Place::new();
    place.ok(&["new", "--id", "a"]);
    let said = fails(&place, &["fit", "a"], 2);
    assert!(said.contains("--window"), "{said}");
    place.ok(&["fit", "a", "--window", "8000"]);
    let said = fails(&place, &["fit", "a", "--window", "8000", "--preset", "seed003"], 2);
    assert!(said.contains("seed002"), "{said}");
}

#[test]
fn below_the_floor_the_error_says_what_takes_how_much() {
    let place = Place::new();
    let rules = "Never do this. ".repeat(300);
    place.ok(&["new", "--id", "a", "--window", "600", "--system", &rules]);
    place.ok(&["append", "a", "hello"]);
    let said = fails(&place, &["fit", "a"], 5);
    assert!(said.contains("system prompt and tools 1") && said.contains("larger window"), "{said}");
}

#[test]
fn a_program_may_write_the_summary_and_its_failure_changes_nothing() {
    let place = place_with_talk("200000");
    let before = place.ok(&["show", "a", "--json"]);
    let said = fails(&place, &["edit", "condense", "a", "--set", "compaction.command=false"], 5);
    assert!(said.contains("false"), "{said}");
    assert_eq!(place.ok(&["show", "a", "--json"]), before);
    place.ok(&[
        "edit",
        "condense",
        "a",
        "--set",
        "compaction.command=echo <summary>Read thirty files.</summary>",
    ]);
    assert!(place.ok(&["show", "a", "--json"]).contains("Read thirty files."));
}

#[test]
fn replay_keeps_every_promise_and_names_a_bad_line() {
    let place = Place::new();
    let folder = place.path().join("talks");
    std::fs::create_dir(&folder).unwrap();
    for n in [5, 20, 60] {
        std::fs::write(folder.join(format!("t{n}.jsonl")), talk(n)).unwrap();
    }
    for window in ["2000", "8000", "128000"] {
        for preset in ["komado", "seed000", "seed001", "seed002"] {
            let lines = place.ok(&[
                "replay",
                folder.to_str().unwrap(),
                "--window",
                window,
                "--preset",
                preset,
                "--json",
            ]);
            let rows: Vec<serde_json::Value> =
                lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
            assert_eq!(rows.len(), 4);
            let sum = rows.last().unwrap();
            assert_eq!((&sum["kind"], &sum["calls"]), (&"sum".into(), &88.into()));
            for promise in
                ["over_window", "invalid", "breaks_without_edit", "unrecoverable_bytes", "not_restored"]
            {
                assert_eq!(sum[promise], 0, "{promise} in {window} by {preset}");
            }
            if window == "2000" {
                assert!(sum["edits"].as_u64() > Some(0) && sum["hidden_bytes"].as_u64() > Some(0), "{sum}");
                assert!(sum["tokens_sent"].as_u64() < sum["tokens_raw"].as_u64(), "{sum}");
            }
        }
    }
    std::fs::write(folder.join("bad.jsonl"), "{\"role\":\"user\",\"content\":\"a\"}\nnope\n").unwrap();
    let said = fails(&place, &["replay", folder.to_str().unwrap(), "--window", "8000"], 6);
    assert!(said.contains("bad.jsonl line 2"), "{said}");
}

#[test]
fn what_is_saved_is_what_the_edits_in_force_save_and_a_mark_is_named_by_its_share() {
    let place = place_with_talk("20000");
    let used = place.json(&["context", "a"])["context_tokens"].as_u64().unwrap();
    let window = (used * 3 / 2).to_string();
    let said = place.ok(&["fit", "a", "--window", &window, "--dry-run"]);
    assert!(said.starts_with("over the mark at ") && said.contains(" % of the window: "), "{said}");
    assert!(!said.contains("nearly full"), "{said}");
    place.ok(&["edit", "condense", "a", "3..20", "--text", "Files were read."]);
    let edit = place.json(&["context", "a"])["edits"][0].to_string();
    assert!(place.ok(&["context", "a"]).contains("edits save "), "an edit is in force");
    place.ok(&["revert", &format!("a@{edit}")]);
    assert!(!place.ok(&["context", "a"]).contains("edits save"), "none is");
}
