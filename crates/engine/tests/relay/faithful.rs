//! Under budget the bytes that arrive are the bytes that leave, and what comes back is handed on as it came.

use super::kit::{Agent, Canned, Ear, World, words};
use komado_core::journal::Entry;
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions};

#[test]
fn under_budget_the_bytes_are_the_clients_own_in_every_dialect_and_form() {
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            let world = World::new(dialect, 100_000, ScriptedOptions::default());
            let mut agent = Agent::new(dialect).with_tools();
            agent.stream = stream;
            for n in 1..=5 {
                agent.say(&words(n));
                let body = agent.body();
                let (_, ear) = agent.ask(&world);
                assert_eq!(String::from_utf8(world.last_seen().body).unwrap(), body, "{dialect:?} {n}");
                let placed = if n == 1 { "new" } else { "extends" };
                assert!(ear.notes.untouched && ear.ended, "{dialect:?} {n}");
                assert_eq!(
                    (ear.notes.placed, ear.notes.edits, ear.notes.attempts),
                    (placed, 0, 1),
                    "{dialect:?} {n}"
                );
                assert_eq!(ear.notes.before, ear.notes.after);
            }
            let mut ear = Ear::default();
            agent.say("last");
            agent.send(&world, &mut ear).unwrap();
            let thread = world.thread(&ear.notes);
            let digests = (1..=thread.last()).filter_map(|seq| match thread.record(seq).unwrap().entry {
                Entry::Sent(sent) => Some(sent.digest),
                _ => None,
            });
            assert_eq!(
                digests.collect::<Vec<_>>().pop().unwrap(),
                blake3::hash(agent.body().as_bytes()).to_hex().to_string()
            );
        }
    }
}

#[test]
fn what_the_provider_answers_is_what_the_client_hears_byte_for_byte() {
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            let mut world = World::new(dialect, 100_000, ScriptedOptions::default());
            let mut agent = Agent::new(dialect);
            agent.stream = stream;
            agent.say("窓を開けて");
            let answer = world.answer_to(
                &agent,
                ScriptStep { chunk: Some(3), ..ScriptStep::say("窓を開けました。\n  ok") },
            );
            assert!(world.last_seen().headers.contains(&("x-trace".into(), "7".into())));
            let canned = Canned::new();
            world.turn_to(&canned.url);
            let mut ears = [Ear::default(), Ear::default()];
            canned.repeat(&answer, answer.body.len());
            agent.send_untouched(&world, &mut ears[0]);
            canned.repeat(&answer, answer.body.len());
            agent.send(&world, &mut ears[1]).unwrap();
            for ear in &ears {
                assert_eq!(ear.text(), answer.text(), "{dialect:?} {stream}");
                assert!(ear.status == 200 && ear.ended && ear.body == answer.body && ear.notes.untouched);
                let odd = ear.headers.iter().filter(|(name, _)| name == "x-odd");
                assert_eq!(odd.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["窓", "b"]);
            }
            assert_eq!(ears[0].headers, ears[1].headers);
            assert_eq!(agent.hear(&ears[1]).message().unwrap().words(), "窓を開けました。\n  ok");
        }
    }
}

#[test]
fn an_error_that_is_no_overflow_is_handed_on_as_it_is_and_not_tried_again() {
    let world = World::new(Dialect::Chat, 100_000, ScriptedOptions::default());
    let mut agent = Agent::new(Dialect::Chat);
    agent.say("hello");
    world.server.add(
        ScriptStep::read(
            r#"{"fail":{"status":429,"retry_after":3,"body":"{\"error\":{\"message\":\"slow\"}}"}}"#,
        )
        .unwrap(),
    );
    let mut ear = Ear::default();
    agent.send(&world, &mut ear).unwrap();
    assert_eq!((ear.status, ear.text().as_str()), (429, r#"{"error":{"message":"slow"}}"#));
    assert!(ear.headers.iter().any(|(name, value)| name == "retry-after" && value == "3"));
    assert_eq!(world.server.seen().len(), 1);
    // The client asks again, and the thread goes on.
    let (_, ear) = agent.ask(&world);
    assert!(matches!(ear.notes.placed, "again" | "extends"), "{}", ear.notes.placed);
    assert_eq!(ear.notes.thread, Some(super::kit::root()));
}

#[test]
fn nothing_is_lost_and_nothing_is_stored_twice() {
    for dialect in Dialect::ALL {
        let world = World::new(dialect, 100_000, ScriptedOptions::default());
        let mut agent = Agent::new(dialect);
        let mut said = Vec::new();
        let mut last = None;
        for n in 1..=8 {
            let (message, ear) = agent.turn(&world, &words(n));
            said.extend([words(n), message.words()]);
            last = Some(ear.notes);
        }
        let thread = world.thread(&last.unwrap());
        let journaled: Vec<String> = (1..=thread.last())
            .filter_map(|seq| match thread.record(seq).unwrap().entry {
                Entry::Message(message, _) if message.role != komado_core::Role::System => {
                    Some(message.words())
                }
                _ => None,
            })
            .collect();
        assert_eq!(journaled, said, "{dialect:?}");
    }
}

/// Moves the client's cache mark to its newest element, as real clients do.
fn mark_newest(agent: &mut Agent) {
    let last = agent.elements.len() - 1;
    for (i, element) in agent.elements.iter_mut().enumerate() {
        let mut value: serde_json::Value = serde_json::from_str(element).unwrap();
        let blocks = value["content"].as_array_mut().unwrap();
        for block in blocks.iter_mut().filter_map(|block| block.as_object_mut()) {
            block.remove("cache_control");
        }
        if i == last {
            blocks.last_mut().unwrap()["cache_control"] = serde_json::json!({"type": "ephemeral"});
        }
        *element = value.to_string();
    }
}

#[test]
fn marks_that_move_stand_where_the_client_has_them_now() {
    let world = World::new(
        Dialect::Messages,
        6_000,
        ScriptedOptions { window: Some(6_000), ..ScriptedOptions::default() },
    );
    let mut agent = Agent::new(Dialect::Messages).with_tools();
    let (mut edits, mut call) = (0, None);
    for n in 1..=40 {
        match call.take() {
            Some(id) => {
                let id: String = id;
                agent.results(&[(&id, &words(n).repeat(2))]);
            }
            None => agent.say(&words(n)),
        }
        if n % 2 == 1 {
            world.server.add(ScriptStep::call("read", r#"{"path":"a"}"#));
        }
        mark_newest(&mut agent);
        let (message, ear) = agent.ask(&world);
        assert!(n == 1 || ear.notes.placed == "extends", "{n}: {}", ear.notes.placed);
        let body = String::from_utf8(world.last_seen().body).unwrap();
        assert_eq!(body.matches("cache_control").count(), 1, "{n}: {body}");
        let last = super::kit::seen_list(&world.last_seen()).pop().unwrap();
        assert!(last.contains("cache_control"), "{n}");
        edits += ear.notes.edits;
        call = message.calls().next().map(|call| call.id.clone());
    }
    assert!(edits > 0);
}

#[test]
fn an_edited_past_is_a_fork_and_a_shorter_one_goes_back() {
    for dialect in Dialect::ALL {
        let world = World::new(dialect, 50_000, ScriptedOptions::default());
        let mut agent = Agent::new(dialect);
        (1..=3).for_each(|n| drop(agent.turn(&world, &words(n))));
        let mut shorter = agent.clone();
        let own = agent.elements.len() / 3;
        shorter.elements.truncate(agent.elements.len() - own);
        shorter.say("Another way.");
        let body = shorter.body();
        let (_, ear) = shorter.ask(&world);
        assert!(matches!(ear.notes.placed, "forks" | "rewinds"), "{dialect:?}: {}", ear.notes.placed);
        assert_eq!(String::from_utf8(world.last_seen().body).unwrap(), body);
        let (_, again) = shorter.turn(&world, "And on.");
        assert_eq!((again.notes.thread, again.notes.placed), (ear.notes.thread, "extends"), "{dialect:?}");
    }
}
