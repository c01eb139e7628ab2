//! Clients whose calls have no ids: what is written again has none either, and calls and results stay in order.

use super::kit::{Agent, World, seen_list, words};
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions};
use serde_json::{Value, json};

fn seen(world: &World) -> Vec<Value> {
    seen_list(&world.last_seen()).iter().map(|element| serde_json::from_str(element).unwrap()).collect()
}

#[test]
fn calls_without_ids_stay_without_when_their_results_are_trimmed() {
    let options = ScriptedOptions { window: Some(6_000), ..ScriptedOptions::default() };
    let world = World::new(Dialect::Ollama, 6_000, options);
    let mut agent = Agent::new(Dialect::Ollama).with_tools().whole();
    let mut changed = 0;
    for n in 1..=30 {
        agent.say(&words(n));
        let call = |path: String| json!({"function": {"name": "read", "arguments": {"path": path}}});
        let calls = [call(format!("{n}-a")), call(format!("{n}-b"))];
        agent.elements.push(json!({"role": "assistant", "content": "", "tool_calls": calls}).to_string());
        for which in ["a", "b"] {
            let content = format!("{n}-{which}: {}", words(n).repeat(3));
            agent.elements.push(json!({"role": "tool", "tool_name": "read", "content": content}).to_string());
        }
        world.server.add(ScriptStep::say(format!("Done with {n}.")));
        let (_, ear) = agent.ask(&world);
        assert_eq!(ear.notes.attempts, 1, "{n}: the server takes it");
        let list = seen(&world);
        for element in &list {
            assert!(element.get("tool_call_id").is_none(), "{n}: {element}");
            let calls = element["tool_calls"].as_array().cloned().unwrap_or_default();
            assert!(calls.iter().all(|call| call.get("id").is_none()), "{n}: {element}");
        }
        // Two results after each pair of calls; those that still say something say it in order.
        for (at, element) in list.iter().enumerate().filter(|(_, element)| element["tool_calls"].is_array()) {
            let path = |i: usize| element["tool_calls"][i]["function"]["arguments"]["path"].as_str().unwrap();
            for i in 0..2 {
                let result = &list[at + 1 + i];
                assert_eq!((&result["role"], &result["tool_name"]), (&json!("tool"), &json!("read")), "{n}");
                let said = result["content"].as_str().unwrap();
                let is_whole = said.starts_with(&format!("{}: ", path(i)));
                changed += usize::from(!is_whole);
                assert!(is_whole || !said.contains("-a: ") && !said.contains("-b: "), "{n}: {said}");
            }
        }
    }
    assert!(changed > 0, "some were trimmed");
}

#[test]
fn functions_of_the_old_form_stay_in_it_when_their_results_are_trimmed() {
    let options = ScriptedOptions { window: Some(6_000), ..ScriptedOptions::default() };
    let world = World::new(Dialect::Chat, 6_000, options);
    let mut agent = Agent::new(Dialect::Chat).whole();
    agent.more = r#","functions":[{"name":"read","parameters":{"type":"object"}}]"#.into();
    let mut changed = 0;
    for n in 1..=30 {
        agent.say(&words(n));
        let call = json!({"name": "read", "arguments": format!("{{\"path\":\"{n}\"}}")});
        agent.elements.push(json!({"role": "assistant", "content": null, "function_call": call}).to_string());
        let content = format!("file {n}: {}", words(n).repeat(4));
        agent.elements.push(json!({"role": "function", "name": "read", "content": content}).to_string());
        world.server.add(ScriptStep::say(format!("Done with {n}.")));
        let (_, ear) = agent.ask(&world);
        assert_eq!(ear.notes.attempts, 1, "{n}: the server takes it");
        let list = seen(&world);
        for (at, element) in list.iter().enumerate() {
            assert!(element.get("tool_call_id").is_none() && element["role"] != "tool", "{n}: {element}");
            assert!(element.get("tool_calls").is_none(), "{n}: {element}");
            if element["role"] == "function" {
                assert_eq!(element["name"], "read", "{n}");
                assert!(list[at - 1]["function_call"].is_object(), "{n}");
                changed += usize::from(!element["content"].as_str().unwrap().starts_with("file "));
            }
        }
    }
    assert!(changed > 0, "some were trimmed");
}
