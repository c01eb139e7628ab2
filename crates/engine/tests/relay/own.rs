//! Our own tools inside the client's conversation: offered, called and answered without the client noticing.

use super::kit::{Agent, Ear, World, words};
use komado_core::journal::Entry;
use komado_engine::relay::ToolOffer;
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedReply, ToolCall};

pub(crate) fn grown(dialect: Dialect, stream: bool) -> (World, Agent) {
    let world =
        World::new(dialect, 16_000, ScriptedOptions { window: Some(16_000), ..ScriptedOptions::default() });
    let mut agent = Agent::new(dialect).with_tools();
    agent.stream = stream;
    agent.turn(&world, "The lantern stands on the shelf behind the door. 提灯は棚の上。");
    let mut n = 0;
    while world.last_seen().body.len() * 3 >= agent.body().len() * 2 || n < 10 {
        n += 1;
        agent.turn(&world, &words(n).repeat(3));
        assert!(n < 120);
    }
    (world, agent)
}

fn tools(world: &World) -> String {
    let body: serde_json::Value = serde_json::from_slice(&world.last_seen().body).unwrap();
    body["tools"].to_string()
}

pub(crate) fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: None, name: name.into(), arguments: arguments.into() }
}

#[test]
fn recall_is_offered_called_and_answered_inside_in_every_dialect_and_form() {
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            let (world, mut agent) = grown(dialect, stream);
            let offered = tools(&world);
            assert!(offered.contains("\"recall\"") && offered.contains("\"read\""), "{dialect:?}");
            let before = world.server.seen().len();
            let reply = ScriptedReply {
                text: "Let me look. ".into(),
                calls: vec![call("recall", r#"{"query":"lantern"}"#)],
                ..ScriptedReply::default()
            };
            world.server.add(ScriptStep { reply, ..ScriptStep::default() });
            world.server.add(ScriptStep::say("On the shelf."));
            let (message, ear) = agent.turn(&world, "Where does the lantern stand?");
            let said: String = message.words().replace('\n', "");
            assert_eq!(said, "Let me look. On the shelf.", "{dialect:?} {stream}");
            assert_eq!(message.calls().count(), 0, "{dialect:?}: the client sees none of it");
            assert_eq!(world.server.seen().len() - before, 2);
            let asked = String::from_utf8(world.last_seen().body).unwrap();
            assert!(asked.contains("behind the door"), "{dialect:?}: the model read what it looked for");
            assert_eq!(tools(&world), offered, "{dialect:?}: always the same bytes");
            assert_eq!((ear.notes.attempts, ear.notes.recalls), (2, 1));
            assert!(ear.notes.after > world.thread(&ear.notes).view().tokens(), "our tools are counted");
            // The exchange stays in what the model sees, and the prefix is stable.
            let (_, ear) = agent.turn(&world, "Thank you.");
            assert_eq!(ear.notes.placed, "extends", "{dialect:?}");
            let next = String::from_utf8(world.last_seen().body).unwrap();
            assert!(next.contains("behind the door"), "{dialect:?}");
            let thread = world.thread(&ear.notes);
            let is_inner = |seq: &u32| matches!(thread.record(*seq).unwrap().entry, Entry::Sent(sent) if sent.mark.as_ref().is_some_and(|mark| mark.inner));
            assert_eq!((1..=thread.last()).filter(is_inner).count(), 1);
        }
    }
}

#[test]
fn next_to_a_clients_tool_both_calls_and_both_results_are_there() {
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            let (world, mut agent) = grown(dialect, stream);
            let calls = vec![call("recall", r#"{"query":"lantern"}"#), call("read", r#"{"path":"窓.rs"}"#)];
            world.server.add(ScriptStep {
                reply: ScriptedReply { calls, ..ScriptedReply::default() },
                ..ScriptStep::default()
            });
            let (message, _) = agent.turn(&world, "Look it up, and read the file.");
            let seen: Vec<&str> = message.calls().map(|call| call.name.as_str()).collect();
            assert_eq!(seen, ["read"], "{dialect:?}: the client sees its own");
            let id = message.calls().next().unwrap().id.clone();
            agent.results(&[(&id, "fn main() {}")]);
            world.server.add(ScriptStep::say("Both done."));
            let (message, ear) = agent.ask(&world);
            assert_eq!(message.words(), "Both done.");
            assert_eq!(ear.notes.placed, "extends", "{dialect:?}");
            let asked = String::from_utf8(world.last_seen().body).unwrap();
            assert!(asked.contains("behind the door") && asked.contains("fn main() {}"), "{dialect:?}");
            let first = super::kit::seen_list(&world.last_seen());
            agent.turn(&world, "Go on.");
            let second = super::kit::seen_list(&world.last_seen());
            assert_eq!(second[..first.len()], first[..], "{dialect:?}: the prefix is stable");
        }
    }
}

#[test]
fn a_model_that_does_not_stop_calling_is_told_to() {
    let (world, mut agent) = grown(Dialect::Chat, true);
    world.server.add(ScriptStep::call("recall", r#"{"query":"lantern"}"#).always());
    let (message, ear) = agent.turn(&world, "Where?");
    assert_eq!(message.calls().count(), 0);
    assert!((9..=11).contains(&ear.notes.attempts), "{}", ear.notes.attempts);
    let asked = String::from_utf8(world.last_seen().body).unwrap();
    assert!(asked.contains("enough calls"));
}

#[test]
fn nothing_is_offered_to_a_client_without_tools_nor_where_it_is_not_wanted() {
    let mut world = World::new(Dialect::Chat, 8_000, ScriptedOptions::default());
    let mut agent = Agent::new(Dialect::Chat);
    (1..=60).for_each(|n| drop(agent.turn(&world, &words(n))));
    let body = String::from_utf8(world.last_seen().body).unwrap();
    assert!(!body.contains("\"tools\"") && body.contains("The originals are kept."));
    world.offer = ToolOffer::Never;
    let mut agent = Agent::new(Dialect::Chat).with_tools();
    agent.salt = "bob".into();
    (1..=60).for_each(|n| drop(agent.turn(&world, &words(n))));
    assert!(!tools(&world).contains("recall"));
}

#[test]
fn a_client_that_goes_amid_an_answer_ends_it_and_what_came_is_kept() {
    let world = World::new(Dialect::Chat, 50_000, ScriptedOptions::default());
    let mut agent = Agent::new(Dialect::Chat);
    agent.say("Tell me a long story.");
    world.server.add(ScriptStep { chunk: Some(4), ..ScriptStep::say("once upon a time ".repeat(200)) });
    let mut ear = Ear { patience: Some(3), ..Ear::default() };
    agent.send(&world, &mut ear).unwrap();
    let thread = world.thread(&ear.notes);
    let Entry::Lost(reply) = thread.record(thread.last()).unwrap().entry else { panic!("lost") };
    assert_eq!(reply.finish, "cancelled");
    assert!(reply.heard.unwrap().starts_with("once"));
    let (_, ear) = agent.ask(&world);
    assert_eq!(ear.notes.thread, Some(super::kit::root()));
}

/// A client's own tool of that name, in its own dialect.
fn own_recall(dialect: Dialect) -> String {
    let tool = match dialect {
        Dialect::Chat | Dialect::Ollama => {
            r#"{"type":"function","function":{"name":"recall","parameters":{"type":"object","properties":{}}}}"#
        }
        Dialect::Messages => r#"{"name":"recall","input_schema":{"type":"object","properties":{}}}"#,
        Dialect::Responses => {
            r#"{"type":"function","name":"recall","parameters":{"type":"object","properties":{}},"strict":false}"#
        }
    };
    format!(",\"tools\":[{tool}]")
}

#[test]
fn a_clients_own_tool_of_our_name_is_the_clients_also_across_dialects_and_past_the_window() {
    for client in Dialect::ALL {
        for upstream in Dialect::ALL {
            for stream in [true, false] {
                let world = World::new(
                    upstream,
                    6_000,
                    ScriptedOptions { window: Some(6_000), ..ScriptedOptions::default() },
                );
                let mut agent = Agent::new(client);
                (agent.stream, agent.more) = (stream, own_recall(client));
                let what = format!("{client:?} {upstream:?} {stream}");
                let mut edits = 0;
                for n in 1..=14 {
                    world.server.add(ScriptStep::call("recall", r#"{"query":"x"}"#));
                    let (message, ear) = agent.turn(&world, &words(n).repeat(3));
                    let call = message.calls().next().unwrap_or_else(|| panic!("{what} {n}"));
                    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("recall", r#"{"query":"x"}"#));
                    agent.results(&[(&call.id.clone(), "their own")]);
                    world.server.add(ScriptStep::say("done"));
                    let (message, next) = agent.ask(&world);
                    assert_eq!(message.words(), "done", "{what} {n}");
                    assert_eq!(ear.notes.recalls + next.notes.recalls, 0, "{what}");
                    edits += ear.notes.edits + next.notes.edits;
                }
                assert!(edits > 0, "{what}");
            }
        }
    }
}

#[test]
fn an_overflow_after_the_words_of_a_first_round_is_an_error_and_no_success() {
    for dialect in Dialect::ALL {
        let (mut world, mut agent) = grown(dialect, false);
        world.asking.tries = 0;
        agent.say("Where does the lantern stand?");
        let calls = vec![call("recall", r#"{"query":"lantern"}"#)];
        let reply = ScriptedReply { text: "Let me look. ".into(), calls, ..ScriptedReply::default() };
        world.server.add(ScriptStep { reply, ..ScriptStep::default() });
        world.server.add(ScriptStep::overflow());
        let mut ear = Ear::default();
        agent.send(&world, &mut ear).unwrap();
        assert!((400..500).contains(&ear.status) && ear.ended, "{dialect:?}: {} {}", ear.status, ear.text());
        assert!(!ear.text().contains("Let me look"), "{dialect:?}");
        let _: serde_json::Value = serde_json::from_slice(&ear.body).unwrap();
    }
}
