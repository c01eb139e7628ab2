//! What children get by flag, session, persona, variable and file, in that order.

use super::node;
use crate::thread::run::{Place, feed};
use serde_json::{Value, json};

const FILE: &str = "threads: {child_ratio: 0.6, max_depth: 2}\n\
    personas:\n  航海士: {stelis_config: {default_window_ratio: 0.7, max_depth: 1}}\n  \
    hermit: {stelis_config: {enabled: false}}\n";

fn session(place: &Place, options: &[&str]) -> String {
    let all: Vec<&str> = ["--meter", "bytes4", "--window", "100000"].iter().chain(options).copied().collect();
    let id = place.session_with(&all);
    place.ok(&["append", &id, "hello"]);
    id
}

fn ratio(place: &Place, id: &str, more: &[&str]) -> Value {
    let args: Vec<&str> = ["thread", "start", id].iter().chain(more).copied().collect();
    place.json(&args)["ratio"].clone()
}

#[test]
fn flag_over_session_over_persona_over_settings() {
    let place = Place::new();
    std::fs::write(place.path().join("komado.yaml"), FILE).unwrap();
    let plain = session(&place, &[]);
    assert_eq!(ratio(&place, &plain, &[]), 0.6);
    let persona = session(&place, &["--persona", "航海士"]);
    assert_eq!(ratio(&place, &persona, &[]), 0.7);
    let own = session(&place, &["--persona", "航海士", "--stelis", r#"{"default_window_ratio":0.5}"#]);
    assert_eq!(ratio(&place, &own, &[]), 0.5);
    assert_eq!(ratio(&place, &own, &["--ratio", "0.4"]), 0.4);
    // The persona's depth still counts where the session says nothing.
    let said = place.run(&["thread", "start", &format!("{own}/stelis_1")]);
    assert_eq!(said.code, 5, "{}", said.err);
    assert!(said.err.contains("at most 1 deep (personas.航海士.stelis_config.max_depth)"), "{}", said.err);
    place.ok(&["thread", "start", &format!("{plain}/stelis_1")]);
    let tree = place.json(&["thread", "tree", &own]);
    assert_eq!(node(&tree, "stelis_2")["ratio"], 0.4);
}

#[test]
fn the_variables_of_the_seed_set_ratio_and_depth() {
    let place = Place::new();
    let id = session(&place, &[]);
    let run = |args: &[&str], name: &str, value: &str| {
        let mut command = place.command(args);
        command.env(name, value);
        feed(command, b"")
    };
    let said = run(&["thread", "start", &id, "--json"], "STELIS_DEFAULT_WINDOW_RATIO", "0.5");
    let row: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&row["ratio"], &row["share"]["own"]), (&json!(0.5), &json!(50_000)));
    let said = run(&["thread", "start", &id], "STELIS_MAX_DEPTH", "0");
    assert_eq!(said.code, 5, "{}", said.err);
    for value in ["0", "1", "1.2", "abc"] {
        let said = run(&["thread", "start", &id], "STELIS_DEFAULT_WINDOW_RATIO", value);
        assert_eq!(said.code, 2);
        assert!(
            said.err.contains("threads.child_ratio") && said.err.contains(&format!("not: {value}")),
            "{}",
            said.err
        );
    }
    let said = run(&["thread", "start", &id], "STELIS_MAX_DEPTH", "-1");
    assert_eq!(said.code, 2);
    assert!(said.err.contains("threads.max_depth") && said.err.contains("0 to 100"), "{}", said.err);
}

#[test]
fn a_depth_that_is_too_much_is_told_with_the_place_that_limits_it() {
    let place = Place::new();
    let plain = session(&place, &[]);
    let own = session(&place, &["--stelis", r#"{"max_depth":0}"#]);
    for (args, words) in [
        (&["thread", "start", &plain, "--max-depth", "0"][..], "(--max-depth)"),
        (&["thread", "start", &own], "(the session was made with max_depth in its stelis_config)"),
        (&["thread", "run", &own, "task", "--provider", "scripted"], "max_depth in its stelis_config"),
        (
            &["thread", "start", &plain, "--set", "threads.max_depth=0"],
            "(threads.max_depth, STELIS_MAX_DEPTH)",
        ),
    ] {
        let said = place.run(args);
        assert_eq!(said.code, 5, "{}", said.err);
        assert!(said.err.contains(words), "{}", said.err);
    }
    place.ok(&["thread", "start", &own, "--max-depth", "1"]);
}

#[test]
fn what_is_switched_off_is_refused_with_the_place_that_did_it() {
    let place = Place::new();
    std::fs::write(place.path().join("komado.yaml"), FILE).unwrap();
    let hermit = session(&place, &["--persona", "hermit"]);
    let off = session(&place, &["--stelis", r#"{"stelis_config":{"enabled":false}}"#]);
    let plain = session(&place, &[]);
    for (args, words) in [
        (&["thread", "start", &hermit][..], "personas.hermit.stelis_config.enabled is false"),
        (&["thread", "run", &hermit, "task"], "personas.hermit.stelis_config.enabled is false"),
        (&["thread", "start", &off], "stelis_config"),
        (&["thread", "start", &plain, "--set", "threads.enabled=false"], "threads.enabled is false"),
    ] {
        let said = place.run(args);
        assert_eq!(said.code, 5, "{}", said.err);
        assert!(said.err.contains(words), "{}", said.err);
    }
    for id in [&hermit, &off, &plain] {
        assert_eq!(place.json_lines(&["sessions", id]).len(), 1, "nothing was written");
    }
}

#[test]
fn a_session_keeps_its_persona_and_its_stelis_config() {
    let place = Place::new();
    let row = place.json(&["new", "--persona", "航海士", "--stelis", r#"{"max_depth":2,"enabled":true}"#]);
    assert_eq!(row["persona"], "航海士");
    assert_eq!(row["stelis_config"], json!({"max_depth": 2, "enabled": true}));
    let id = row["session"].as_str().unwrap();
    let meta = std::fs::read_to_string(place.folder(id).join("metadata.json")).unwrap();
    assert!(meta.contains("航海士") && meta.contains("stelis_config"), "{meta}");
    for (json, words) in [
        (
            r#"{"default_window_ratio":1.2}"#,
            "default_window_ratio must be a number from 0.01 to 0.99, not: 1.2",
        ),
        (r#"{"max_depth":-1}"#, "max_depth must be a whole number from 0 to 100, not: -1"),
        (r#"{"depth":1}"#, "unknown key: depth"),
        ("nonsense", "not JSON"),
    ] {
        let said = place.run(&["new", "--stelis", json]);
        assert_eq!(said.code, 2);
        assert!(said.err.contains(words), "{}", said.err);
    }
    std::fs::write(place.path().join("komado.yaml"), FILE).unwrap();
    let said = place.run(&["new", "--persona", "hermi"]);
    assert_eq!(said.code, 0);
    assert!(said.err.contains("did you mean hermit?"), "{}", said.err);
}

#[test]
fn an_anchor_never_takes_more_than_it_may() {
    let place = Place::new();
    let id = session(&place, &[]);
    let before = place.json(&["context", &id])["context_tokens"].as_u64().unwrap();
    let set = ["--set", "threads.anchor_tokens=200"];
    place.ok(&[&["thread", "start", &id, "長い話"][..], &set].concat());
    let child = format!("{id}/stelis_1");
    place.ok(&["append", &child, &"とても長い話です。".repeat(2_000)]);
    place.ok(&[&["thread", "end", &child, "--chronicle", &"たくさんのことをした。".repeat(500)][..], &set]
        .concat());
    let after = place.json(&["context", &id])["context_tokens"].as_u64().unwrap();
    assert!(after - before <= 200, "{before} {after}");
}
