//! Arbitrary graphs: none makes the check panic, and one that passes it comes to an end, or to a limit.

use crate::playbook::kit::{World, words};
use komado_agent::playbook::Playbook;
use proptest::prelude::*;
use serde_json::{Value, json};

fn id(n: usize) -> String {
    format!("n{n}")
}

/// A node that leads somewhere among `count` others.
fn node(n: usize, count: usize) -> impl Strategy<Value = Value> {
    let to = 0..count;
    (0..8_u8, to.clone(), to, 0..4_i64).prop_map(move |(kind, a, b, k)| {
        let (own, a, b) = (id(n), id(a), id(b));
        match kind {
            0 => json!({"id": own, "type": "llm", "prompt": "p {{n}}", "next": a}),
            1 => json!({"id": own, "type": "tool", "next": a, "on_error": b}),
            2 => json!({"id": own, "type": "tool", "tool": "look", "args": {"n": "{{n}}"}, "next": a}),
            3 => json!({"id": own, "type": "branch", "cases": [{"if": {"var": "n", "gt": k}, "next": a}], "else": b}),
            4 => json!({"id": own, "type": "set", "vars": {"n": {"add": ["n", 1]}}, "next": a}),
            5 => json!({"id": own, "type": "stelis_start", "next": a}),
            6 => json!({"id": own, "type": "stelis_end", "next": a}),
            _ => json!({"id": own, "type": "end"}),
        }
    })
}

fn graph() -> impl Strategy<Value = Vec<Value>> {
    (1_usize..9).prop_flat_map(|count| (0..count).map(|n| node(n, count)).collect::<Vec<_>>())
}

/// The graph without what cannot be reached: chance makes few that are right otherwise.
fn reached(nodes: &[Value]) -> Vec<Value> {
    let mut kept = vec!["n0".to_owned()];
    let mut n = 0;
    while n < kept.len() {
        let node = nodes.iter().find(|node| node["id"] == kept[n].as_str()).unwrap();
        let ways = [&node["next"], &node["on_error"], &node["else"], &node["cases"][0]["next"]];
        for to in ways.into_iter().filter_map(Value::as_str) {
            if !kept.iter().any(|id| id == to) {
                kept.push(to.to_owned());
            }
        }
        n += 1;
    }
    nodes.iter().filter(|node| kept.iter().any(|id| node["id"] == id.as_str())).cloned().collect()
}

fn text(nodes: &[Value]) -> String {
    json!({"name": "r", "vars": {"n": 0}, "start": "n0", "nodes": nodes}).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_arbitrary_graph_is_checked_drawn_and_followed_without_a_panic(nodes in graph()) {
        let _ = Playbook::parse("r.json", &text(&nodes));
        let Ok(playbook) = Playbook::parse("r.json", &text(&reached(&nodes))) else { return Ok(()) };
        prop_assert!(playbook.drawn(40).lines().count() > playbook.len());
        prop_assert!(playbook.svg().ends_with("</svg>\n"));
        let mut world = World::new(|_| words("ok"));
        world.limits.turns = Some(5);
        // A loop of calls alone is bounded by time in earnest; here by how much its variables and turns may be.
        let ended = match has_llm_in_every_loop(&nodes) {
            true => Some(world.run(&playbook)),
            false => None,
        };
        if let Some(Err(why)) = ended {
            let why = why.to_string();
            prop_assert!(why.contains("turns") || why.contains("deep") || why.contains("room"), "{}", why);
        }
    }

    #[test]
    fn arbitrary_json_is_never_more_than_a_problem(text in "[\\[\\]{}\":,a-z0-9 .]{0,80}") {
        let _ = Playbook::parse("r.json", &text);
    }
}

/// Calls of a playbook's own are not turns; a loop of them alone has no end that this test would wait for.
fn has_llm_in_every_loop(nodes: &[Value]) -> bool {
    nodes.iter().all(|node| node["tool"].is_null())
}
