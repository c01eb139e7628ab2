//! Results that come after the user has spoken: the thread goes on, and the model is shown what its tool found.

use super::kit::{Agent, Ear, World, result, root, seen_list, words};
use komado_core::journal::Entry;
use komado_core::message::{Call, Message, Role};
use komado_engine::Thread;
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions};

const FOUND: &str = "fn main: the true answer";

/// An agent whose model made two calls at once, as if it had said so itself.
fn calling(dialect: Dialect, world: &World) -> (Agent, Vec<Call>, Ear) {
    let mut agent = Agent::new(dialect).with_tools();
    let both = r#"{"reply":{"calls":[{"name":"read","arguments":{"path":"a"}},{"name":"read","arguments":{"path":"b"}}]}}"#;
    world.server.add(ScriptStep::read(both).unwrap());
    let (message, ear) = agent.turn(world, &words(1));
    let calls: Vec<Call> = message.calls().cloned().collect();
    assert_eq!(calls.len(), 2, "{dialect:?}");
    (agent, calls, ear)
}

/// What the view shows of each result: the call's id and the words.
fn results(thread: &Thread<'_>) -> Vec<(String, String)> {
    let mut shown = Vec::new();
    let mut open: Vec<String> = Vec::new();
    thread
        .view()
        .pour_said(thread.source(), &mut |_, message: &Message| -> komado_engine::Result<()> {
            match message.outcome() {
                Some(outcome) => {
                    assert!(open.contains(&outcome.call_id), "a result follows its call");
                    open.retain(|id| *id != outcome.call_id);
                    shown.push((outcome.call_id.clone(), message.words()));
                }
                None => {
                    assert!(open.is_empty(), "nobody speaks while calls wait");
                    open = message.calls().map(|call| call.id.clone()).collect();
                }
            }
            Ok(())
        })
        .unwrap();
    shown
}

#[test]
fn a_result_that_comes_after_the_user_spoke_is_shown_in_its_place_and_the_thread_goes_on() {
    let world = World::new(Dialect::Responses, 100_000, ScriptedOptions::default());
    let (mut agent, calls, _) = calling(Dialect::Responses, &world);
    agent.results(&[(&calls[0].id, "a is short")]);
    agent.say("Hurry, please.");
    let (_, ear) = agent.ask(&world);
    assert_eq!(ear.notes.placed, "extends");
    assert!(results(&world.thread(&ear.notes))[1].1.contains("no result"));
    agent.results(&[(&calls[1].id, FOUND)]);
    agent.say("And now?");
    let told = agent.elements.clone();
    let (_, ear) = agent.ask(&world);
    assert_eq!(
        (ear.notes.placed, ear.notes.thread.clone()),
        ("extends", Some(root())),
        "{:?}",
        ear.notes.fault
    );
    let (mut seen, mut expected) = (seen_list(&world.last_seen()), told);
    assert_ne!(seen, expected, "the result stands with its call");
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected, "every element is the client's own, byte for byte, and no other is there");
    let thread = world.thread(&ear.notes);
    let expected = [(calls[0].id.clone(), "a is short".to_owned()), (calls[1].id.clone(), FOUND.to_owned())];
    assert_eq!(results(&thread), expected);
}

#[test]
fn with_an_edit_in_force_the_true_result_leaves_once_and_where_its_call_is() {
    let world = World::new(Dialect::Responses, 100_000, ScriptedOptions::default());
    let (mut agent, calls, _) = calling(Dialect::Responses, &world);
    agent.results(&[(&calls[0].id, "a is short")]);
    agent.say("Hurry, please.");
    agent.ask(&world);
    agent.results(&[(&calls[1].id, FOUND)]);
    agent.say("And now?");
    let (_, ear) = agent.ask(&world);
    let session = ear.notes.session.clone().unwrap();
    let mut thread = world.relay.engine().open(&session, &root(), komado_store::OpenMode::Write).unwrap();
    let first = (1..=thread.last())
        .find(|seq| matches!(thread.record(*seq).unwrap().entry, Entry::Message(ref said, None) if said.role == Role::User))
        .unwrap();
    thread.trim(vec![(first, "…".into())], "by_hand").unwrap();
    drop(thread);
    agent.say("Well?");
    let told = agent.elements.clone();
    let (_, ear) = agent.ask(&world);
    assert_eq!(ear.notes.placed, "extends", "{:?}", ear.notes.fault);
    let seen = seen_list(&world.last_seen());
    let at = |list: &[String], what: &str| list.iter().position(|element| element.contains(what)).unwrap();
    assert_eq!(seen.iter().filter(|element| element.contains(FOUND)).count(), 1, "{seen:#?}");
    assert!(at(&told, FOUND) > at(&told, "Hurry") && at(&seen, FOUND) < at(&seen, "Hurry"), "{seen:#?}");
    assert_eq!(seen[at(&seen, FOUND)], told[at(&told, FOUND)], "it is the client's own, byte for byte");
    assert!(!seen.iter().any(|element| element.contains("no result")), "{seen:#?}");
    assert_eq!(seen.len(), told.len());
}

#[test]
fn a_client_that_puts_a_late_result_where_it_belongs_goes_on_in_its_thread() {
    for dialect in Dialect::ALL {
        let world = World::new(dialect, 100_000, ScriptedOptions::default());
        let (mut agent, calls, _) = calling(dialect, &world);
        let at = agent.elements.len();
        agent.say("Hurry, please.");
        world.server.add(ScriptStep::say("Well."));
        let (_, ear) = agent.ask(&world);
        assert_eq!(ear.notes.placed, "extends", "{dialect:?}");
        let later = agent.elements.split_off(at);
        agent.results(&[(&calls[0].id, "a is short"), (&calls[1].id, FOUND)]);
        agent.elements.extend(later);
        agent.say("And now?");
        let whole = agent.elements.clone();
        let (_, ear) = agent.ask(&world);
        let notes = &ear.notes;
        assert_eq!((notes.placed, notes.thread.clone()), ("rewinds", Some(root())), "{dialect:?}: {notes:?}");
        assert_eq!(seen_list(&world.last_seen()), whole, "{dialect:?}");
        let shown = results(&world.thread(notes));
        assert_eq!(shown.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>(), ["a is short", FOUND]);
        agent.say("Go on.");
        assert_eq!(agent.ask(&world).1.notes.placed, "extends", "{dialect:?}");
    }
}

#[test]
fn another_past_beside_a_given_up_call_is_still_a_fork() {
    let world = World::new(Dialect::Chat, 100_000, ScriptedOptions::default());
    let (mut agent, calls, _) = calling(Dialect::Chat, &world);
    let at = agent.elements.len();
    agent.say("Hurry, please.");
    agent.ask(&world);
    agent.elements.truncate(at);
    agent.results(&[(&calls[0].id, "a"), (&calls[1].id, FOUND)]);
    agent.say("Something else.");
    assert_eq!(agent.ask(&world).1.notes.placed, "forks");
}

#[test]
fn results_in_any_order_of_arrival_give_the_same_view() {
    let world = World::new(Dialect::Chat, 100_000, ScriptedOptions::default());
    let (_, calls, ear) = calling(Dialect::Chat, &world);
    let session = ear.notes.session.unwrap();
    let mut thread = world.relay.engine().open(&session, &root(), komado_store::OpenMode::Write).unwrap();
    thread.say(Message::text(Role::User, "Hurry, please.")).unwrap();
    for (call, text) in [(&calls[1], FOUND), (&calls[0], "a is short"), (&calls[1], "newer")] {
        thread.say(result(&call.id, text)).unwrap();
    }
    let shown: Vec<String> = results(&thread).into_iter().map(|(_, words)| words).collect();
    assert_eq!(shown, ["a is short", "newer"]);
    let fold = thread.view_at(thread.last()).unwrap();
    assert_eq!(*thread.view(), fold);
}
