//! What the thread shows and the client does not tell: it reaches the model in its place, edits or none.

use super::kit::{Agent, Ear, World, root, seen_list, words};
use komado_core::journal::{Anchor, Entry};
use komado_core::message::{Message, Role};
use komado_core::{SessionId, ThreadId};
use komado_engine::Thread;
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions};
use komado_store::OpenMode;

const MAGIC: &str = "The password is 提灯.";

fn open<'a>(world: &'a World, session: &SessionId) -> Thread<'a> {
    world.relay.engine().open(session, &root(), OpenMode::Write).unwrap()
}

fn append(world: &World, ear: &Ear, text: &str) {
    open(world, ear.notes.session.as_ref().unwrap()).say(Message::text(Role::User, text)).unwrap();
}

fn marks(world: &World, ear: &Ear) -> Vec<bool> {
    let thread = world.thread(&ear.notes);
    let apart = |seq| match thread.record(seq).unwrap().entry {
        Entry::Sent(sent) => sent.mark.map(|mark| mark.apart),
        _ => None,
    };
    (1..=thread.last()).filter_map(apart).collect()
}

#[test]
fn words_added_by_hand_reach_the_model_in_their_place_and_stay_there() {
    for dialect in Dialect::ALL {
        let world = World::new(dialect, 100_000, ScriptedOptions::default());
        let mut agent = Agent::new(dialect).with_tools();
        let (_, ear) = agent.turn(&world, &words(1));
        append(&world, &ear, MAGIC);
        agent.say(&words(2));
        let mut expected = agent.elements.clone();
        let (_, ear) = agent.ask(&world);
        assert!(!ear.notes.untouched && ear.notes.placed == "extends", "{dialect:?}: {}", ear.notes.placed);
        let first = seen_list(&world.last_seen());
        let at = expected.len() - 1;
        assert!(first[at].contains(MAGIC), "{dialect:?}: {first:?}");
        expected.insert(at, first[at].clone());
        assert_eq!(first, expected, "{dialect:?}: all else is the client's, byte for byte");
        for n in 3..=4 {
            agent.say(&words(n));
            let whole = agent.elements.clone();
            agent.ask(&world);
            let mut next = seen_list(&world.last_seen());
            assert_eq!(next[..first.len()], first[..], "{dialect:?} {n}: the prefix is stable");
            assert!(next.remove(at).contains(MAGIC));
            assert_eq!(next, whole, "{dialect:?} {n}");
        }
        assert_eq!(marks(&world, &ear), [false, true, true, true], "{dialect:?}");
    }
}

#[test]
fn words_left_behind_by_a_rewind_are_left_out_again() {
    let world = World::new(Dialect::Chat, 100_000, ScriptedOptions::default());
    let mut agent = Agent::new(Dialect::Chat);
    let (_, ear) = agent.turn(&world, &words(1));
    let session = ear.notes.session.clone().unwrap();
    let before = open(&world, &session).last();
    append(&world, &ear, MAGIC);
    let mut other = agent.clone();
    agent.turn(&world, &words(2));
    open(&world, &session).rewind(before).unwrap();
    let (_, ear) = other.turn(&world, &words(3));
    assert_eq!(ear.notes.thread, Some(root()), "{}", ear.notes.placed);
    assert!(ear.notes.untouched);
    // The other one tells what was left: it goes on where the words are.
    let (_, ear) = agent.turn(&world, &words(4));
    assert_eq!(ear.notes.placed, "forks");
    assert!(String::from_utf8(world.last_seen().body).unwrap().contains(MAGIC));
}

#[test]
fn the_anchor_of_a_child_reaches_the_model() {
    let world = World::new(Dialect::Messages, 100_000, ScriptedOptions::default());
    let mut agent = Agent::new(Dialect::Messages);
    let (_, ear) = agent.turn(&world, &words(1));
    let mut thread = open(&world, ear.notes.session.as_ref().unwrap());
    let anchor = Anchor {
        thread: "stelis_1".parse::<ThreadId>().unwrap(),
        label: None,
        ending: None,
        text: MAGIC.into(),
        brief: None,
        first: None,
    };
    thread.append(Entry::Anchor(anchor)).unwrap();
    drop(thread);
    let (_, ear) = agent.turn(&world, &words(2));
    assert!(!ear.notes.untouched);
    assert!(String::from_utf8(world.last_seen().body).unwrap().contains(MAGIC));
}

#[test]
fn a_pin_by_hand_changes_no_byte() {
    let world = World::new(Dialect::Chat, 100_000, ScriptedOptions::default());
    let mut agent = Agent::new(Dialect::Chat);
    let (_, ear) = agent.turn(&world, &words(1));
    let mut thread = open(&world, ear.notes.session.as_ref().unwrap());
    let said = (1..=thread.last())
        .find(|seq| matches!(thread.record(*seq).unwrap().entry, Entry::Message(ref message, None) if message.role == Role::User));
    thread.pin(said.unwrap()).unwrap();
    drop(thread);
    let (_, ear) = agent.turn(&world, &words(2));
    assert!(ear.notes.untouched);
}

#[test]
fn what_was_taken_in_for_a_request_that_never_left_is_not_said_twice() {
    for dialect in Dialect::ALL {
        let world = World::new(dialect, 100_000, ScriptedOptions::default());
        let mut agent = Agent::new(dialect);
        let (_, ear) = agent.turn(&world, &words(1));
        // As if the gateway had ended between the two appends.
        append(&world, &ear, &words(2));
        agent.say(&words(2));
        let body = agent.body();
        let (_, ear) = agent.ask(&world);
        assert!(ear.notes.untouched && ear.notes.placed == "again", "{dialect:?}: {:?}", ear.notes);
        assert_eq!(String::from_utf8(world.last_seen().body).unwrap(), body);
    }
}

#[test]
fn words_added_while_a_tool_of_the_client_works_come_behind_its_answer() {
    for dialect in Dialect::ALL {
        let world = World::new(dialect, 100_000, ScriptedOptions::default());
        let mut agent = Agent::new(dialect).with_tools();
        world.server.add(ScriptStep::call("read", r#"{"path":"a"}"#));
        let (message, ear) = agent.turn(&world, &words(1));
        append(&world, &ear, MAGIC);
        let id = message.calls().next().unwrap().id.clone();
        agent.results(&[(&id, "the answer")]);
        let mut expected = agent.elements.clone();
        let (_, ear) = agent.ask(&world);
        assert_eq!(ear.notes.placed, "extends", "{dialect:?}");
        let first = seen_list(&world.last_seen());
        assert!(first.last().unwrap().contains(MAGIC), "{dialect:?}: {first:?}");
        expected.push(first.last().unwrap().clone());
        assert_eq!(first, expected, "{dialect:?}");
        agent.turn(&world, &words(2));
        let next = seen_list(&world.last_seen());
        assert_eq!(next[..first.len()], first[..], "{dialect:?}: the prefix is stable");
    }
}
