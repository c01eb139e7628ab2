//! What tasks and playbooks print for programs is what docs/cli.md promises: no field that it does not name.

use crate::run;

use run::Place;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The fields that the contract names, by verb.
fn promised() -> BTreeMap<String, BTreeSet<String>> {
    let text = include_str!("../../../docs/cli.md");
    let section = text.split("\n## ").find(|section| section.starts_with("Tasks and playbooks")).unwrap();
    let words =
        |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let mut promised: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut verbs = Vec::new();
    for row in section.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.split('|').collect();
        if !cells[1].trim().is_empty() {
            verbs = words(cells[1]);
        }
        for verb in &verbs {
            promised.entry(verb.clone()).or_default().extend(words(cells[2]));
        }
    }
    promised
}

/// Refuses a field of `printed` that the contract does not name for `verb`.
fn keeps(verb: &str, printed: &[Value]) {
    let promised = &promised()[verb];
    assert!(!printed.is_empty(), "{verb} printed nothing");
    for field in printed.iter().flat_map(|row| row.as_object().unwrap().keys()) {
        assert!(promised.contains(field), "docs/cli.md does not name {field:?} of {verb}");
    }
}

fn with_playbook() -> Place {
    let place = Place::new();
    let nodes = json!([
        {"id": "ask", "type": "llm", "prompt": "{{task.title}}", "next": "look"},
        {"id": "look", "type": "tool", "tool": "list", "args": {"path": "."}, "next": "done"},
        {"id": "done", "type": "end"}
    ]);
    let good = json!({"name": "良い", "nodes": nodes}).to_string();
    std::fs::write(place.path().join("良い.json"), good).unwrap();
    std::fs::write(place.path().join("悪い.json"), "{}").unwrap();
    place
}

#[test]
fn playbooks_print_what_the_contract_names() {
    let place = with_playbook();
    let checked = place.run(&["playbook", "check", "良い.json", "悪い.json", "--json"]).out;
    let checked: Vec<Value> = checked.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    keeps("playbook check", &checked);
    let graph = ["playbook", "graph", "良い.json"];
    keeps("playbook graph", &[place.json(&graph), place.json(&[&graph[..], &["--svg", "絵.svg"]].concat())]);
    keeps(
        "playbook run",
        &[place.json(&["playbook", "run", "良い.json", "窓", "--provider", "scripted", "--window", "32000"])],
    );
}

#[test]
fn tasks_print_what_the_contract_names() {
    let place = with_playbook();
    let added = place.json(&["task", "add", "窓を直す", "--playbook", "良い.json"]);
    let task = added["session"].as_str().unwrap();
    keeps("task add", std::slice::from_ref(&added));
    for verb in ["pause", "resume"] {
        keeps(&format!("task {verb}"), &[place.json(&["task", verb, task])]);
    }
    keeps(
        "work",
        &place.json_lines(&["task", "work", "--once", "--provider", "scripted", "--window", "32000"]),
    );
    keeps("task list", &place.json_lines(&["task", "list", "--all"]));
    keeps("task show", &[place.json(&["task", "show", task])]);
    let other = place.json(&["task", "add", "別の窓"]);
    keeps("task stop", &[place.json(&["task", "stop", other["session"].as_str().unwrap()])]);
}
