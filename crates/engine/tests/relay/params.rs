//! What is changed outside the transcript is changed in its place, and nothing else is.

use super::kit::{Agent, Ear, MODEL, World, words};
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions};

fn seen(world: &World) -> serde_json::Value {
    serde_json::from_slice(&world.last_seen().body).unwrap()
}

#[test]
fn the_models_name_is_replaced_and_everything_else_stays() {
    for dialect in Dialect::ALL {
        let world = World::new(dialect, 50_000, ScriptedOptions::default());
        let mut agent = Agent::new(dialect);
        agent.renames = true;
        agent.more = r#","model":"their-name""#.into();
        agent.say("hello");
        let body = agent.body();
        agent.ask(&world);
        let sent = String::from_utf8(world.last_seen().body).unwrap();
        assert_eq!(sent, body.replace("their-name", MODEL), "{dialect:?}");
    }
}

#[test]
fn ollama_is_told_the_window_that_the_owner_named_unless_the_client_does() {
    let mut world = World::new(Dialect::Ollama, 8_000, ScriptedOptions::default());
    let mut agent = Agent::new(Dialect::Ollama);
    agent.turn(&world, "hello");
    assert!(seen(&world)["options"].is_null(), "nobody named one");
    world.asking.is_given = true;
    agent.more = r#","options":{"temperature":0.10}"#.into();
    agent.turn(&world, "again");
    let text = String::from_utf8(world.last_seen().body).unwrap();
    assert!(text.contains(r#""options":{"temperature":0.10,"num_ctx":8000}"#), "{text}");
    agent.more = r#","options":{"num_ctx":4096}"#.into();
    agent.turn(&world, "and again");
    assert_eq!(seen(&world)["options"]["num_ctx"], 4_096);
}

#[test]
fn the_room_for_thoughts_is_never_more_than_the_room_for_the_answer() {
    let world = World::new(
        Dialect::Messages,
        6_000,
        ScriptedOptions { window: Some(9_000), ..ScriptedOptions::default() },
    );
    let mut agent = Agent::new(Dialect::Messages);
    agent.max_tokens = Some(3_000);
    agent.more = r#","thinking":{"type":"enabled","budget_tokens":2700}"#.into();
    let mut least = 3_000;
    for n in 1..=12 {
        agent.turn(&world, &words(n));
        least = least.min(seen(&world)["max_tokens"].as_u64().unwrap());
    }
    assert_eq!(least, 2_701, "lowered, and no further than the thoughts allow");
}

#[test]
fn a_request_that_leans_on_the_servers_memory_is_placed_and_goes_out_as_it_is() {
    let world = World::new(Dialect::Responses, 50_000, ScriptedOptions::default());
    let mut agent = Agent::new(Dialect::Responses).whole();
    agent.say("The lantern stands on the shelf.");
    let (_, ear) = agent.ask(&world);
    let answer: serde_json::Value = serde_json::from_slice(&ear.body).unwrap();
    let (session, id) = (ear.notes.session, answer["id"].as_str().unwrap().to_owned());
    agent.elements.clear();
    agent.more = format!(",\"previous_response_id\":\"{id}\"");
    agent.say("And now?");
    let body = agent.body();
    let (_, ear) = agent.ask(&world);
    assert_eq!(String::from_utf8(world.last_seen().body).unwrap(), body);
    assert_eq!((ear.notes.session, ear.notes.placed), (session, "extends"));
}

#[test]
fn over_budget_it_goes_out_whole_without_the_servers_memory() {
    let world = World::new(
        Dialect::Responses,
        3_000,
        ScriptedOptions { window: Some(3_000), ..ScriptedOptions::default() },
    );
    let mut agent = Agent::new(Dialect::Responses).whole();
    let mut edits = 0;
    for n in 1..=30 {
        agent.say(&words(n));
        let (_, ear) = agent.ask(&world);
        edits += ear.notes.edits;
        let sent = seen(&world);
        assert!(edits == 0 || sent["previous_response_id"].is_null(), "{n}");
        if edits > 0 {
            assert!(sent["input"].as_array().unwrap().len() > 2, "{n}: what left is told");
        }
        let answer: serde_json::Value = serde_json::from_slice(&ear.body).unwrap();
        agent.elements.clear();
        agent.more = format!(",\"previous_response_id\":{}", answer["id"]);
    }
    assert!(edits > 0);
}

#[test]
fn a_limit_of_an_earlier_request_is_none_of_this_one() {
    for dialect in [Dialect::Chat, Dialect::Responses] {
        let world =
            World::new(dialect, 6_000, ScriptedOptions { window: Some(6_000), ..ScriptedOptions::default() });
        let mut agent = Agent::new(dialect);
        agent.max_tokens = Some(300);
        agent.turn(&world, "hello");
        agent.max_tokens = None;
        let mut edits = 0;
        for n in 1..=20 {
            let (_, ear) = agent.turn(&world, &words(n).repeat(2));
            edits += ear.notes.edits;
            let sent = seen(&world);
            assert!(sent["max_tokens"].is_null() && sent["max_output_tokens"].is_null(), "{dialect:?} {n}");
        }
        assert!(edits > 0);
    }
}

#[test]
fn a_request_that_goes_untouched_still_names_the_model_as_the_provider_knows_it() {
    for dialect in Dialect::ALL {
        let world = World::new(dialect, 50_000, ScriptedOptions::default());
        let mut agent = Agent::new(dialect);
        (agent.renames, agent.more) = (true, r#","model":"their-name""#.into());
        agent.say("hello");
        let mut ear = Ear::default();
        agent.send_untouched(&world, &mut ear);
        let sent = String::from_utf8(world.last_seen().body).unwrap();
        assert_eq!(sent, agent.body().replace("their-name", MODEL), "{dialect:?}");
        assert!(ear.status == 200 && !ear.notes.untouched);
    }
}

#[test]
fn two_options_of_ollama_are_written_once_and_together() {
    let mut world = World::new(
        Dialect::Ollama,
        4_096,
        ScriptedOptions { window: Some(4_096), ..ScriptedOptions::default() },
    );
    world.asking.is_given = true;
    let mut agent = Agent::new(Dialect::Ollama);
    agent.say("hello");
    world.server.add(ScriptStep::overflow());
    agent.more = r#","options":{"num_predict":3000}"#.into();
    agent.ask(&world);
    let text = String::from_utf8(world.last_seen().body).unwrap();
    assert_eq!(text.matches("\"options\"").count(), 1, "{text}");
    assert!(seen(&world)["options"]["num_predict"].as_u64().unwrap() < 3_000);
    assert_eq!(seen(&world)["options"]["num_ctx"], 4_096);
}

#[test]
fn an_empty_list_of_tools_is_offered_nothing_however_it_is_written() {
    for tools in [r#","tools":[        ]"#, r#","tools":[],"functions":[{"name":"read","parameters":{}}]"#] {
        let world = World::new(
            Dialect::Chat,
            16_000,
            ScriptedOptions { window: Some(16_000), ..ScriptedOptions::default() },
        );
        let mut agent = Agent::new(Dialect::Chat);
        agent.more = tools.into();
        let mut edits = 0;
        for n in 1..=60 {
            let (_, ear) = agent.turn(&world, &words(n).repeat(3));
            edits += ear.notes.edits;
            assert_eq!(ear.notes.rungs.iter().map(|(_, times)| times).sum::<u32>(), ear.notes.edits);
            assert_eq!(seen(&world)["tools"], serde_json::json!([]), "{n}");
        }
        assert!(edits > 0);
    }
}
