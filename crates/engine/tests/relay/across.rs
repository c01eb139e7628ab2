//! A client of one dialect in front of a server of another.

use super::kit::{Agent, Ear, World, result, words};
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions};

#[test]
fn every_dialect_in_front_of_every_other_also_past_the_window() {
    for client in Dialect::ALL {
        for upstream in Dialect::ALL.into_iter().filter(|upstream| *upstream != client) {
            for stream in [true, false] {
                let options = ScriptedOptions { window: Some(4_096), ..ScriptedOptions::default() };
                let world = World::new(upstream, 4_096, options);
                let mut agent = Agent::new(client);
                agent.stream = stream;
                let mut edits = 0;
                for n in 1..=26 {
                    world.server.add(ScriptStep::say(format!("answer {n} 答え")));
                    let (message, ear) = agent.turn(&world, &words(n));
                    assert_eq!(message.words(), format!("answer {n} 答え"), "{client:?} to {upstream:?}");
                    let seen = world.last_seen();
                    assert_eq!((seen.dialect, seen.status), (upstream, 200));
                    assert!(!ear.notes.untouched);
                    edits += ear.notes.edits;
                }
                assert!(edits > 0, "{client:?} to {upstream:?}");
            }
        }
    }
}

#[test]
fn calls_and_results_go_over() {
    for client in [Dialect::Chat, Dialect::Messages] {
        for upstream in Dialect::ALL {
            let world = World::new(upstream, 50_000, ScriptedOptions::default());
            let mut agent = Agent::new(client).with_tools();
            world.server.add(ScriptStep::call("read", r#"{"path":"a.rs"}"#));
            world.server.add(ScriptStep::say("It says 窓."));
            let (message, _) = agent.turn(&world, "Read a.rs");
            let call = message.calls().next().unwrap();
            assert_eq!((call.name.as_str(), call.arguments.as_str()), ("read", r#"{"path":"a.rs"}"#));
            agent.add(&result(&call.id, "窓"));
            let (message, _) = agent.ask(&world);
            assert_eq!(message.words(), "It says 窓.", "{client:?} to {upstream:?}");
        }
    }
}

#[test]
fn an_error_is_told_in_the_clients_dialect() {
    let world = World::new(Dialect::Messages, 50_000, ScriptedOptions::default());
    let mut agent = Agent::new(Dialect::Chat);
    agent.say("hello");
    world.server.add(ScriptStep::fail(401, None));
    let mut ear = Ear::default();
    agent.send(&world, &mut ear).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&ear.body).unwrap();
    assert!(ear.status == 401 && body["error"]["message"].is_string(), "{}", ear.text());
}
