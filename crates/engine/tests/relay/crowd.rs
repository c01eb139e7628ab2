//! Many at once: on files, no word is lost or mixed, and a request beside another leaves the thread alone.

use super::kit::{Agent, Ear, World, words};
use komado_core::journal::Entry;
use komado_core::{Role, ThreadId};
use komado_engine::Error;
use komado_engine::relay::RelayFault;
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions};
use komado_store::{Error as Store, FileStore, Holder, OpenMode};
use std::sync::{Arc, Barrier};

pub(crate) fn on_files(folder: &std::path::Path, window: u64) -> World {
    let holder =
        Holder { pid: 7, host: "host".into(), program: "test".into(), since: "2026-01-15T10:00:00Z".into() };
    let store = Arc::new(FileStore::new(folder, holder));
    World::on(
        store,
        Dialect::Chat,
        window,
        ScriptedOptions { window: Some(window), ..ScriptedOptions::default() },
    )
}

#[test]
fn many_conversations_at_once_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let world = on_files(folder.path(), 3_000);
    std::thread::scope(|scope| {
        for who in 0..6 {
            let world = &world;
            scope.spawn(move || {
                let mut agent = Agent::new(Dialect::Chat);
                // All of them begin with the same words, and some with the same key.
                agent.salt = format!("key {}", who % 2);
                let (mut said, mut session) = (Vec::new(), None);
                for n in 0..8 {
                    let text = if n == 0 { "hello".to_owned() } else { format!("{who}: {}", words(n)) };
                    let (message, ear) = agent.turn(world, &text);
                    said.extend([text, message.words()]);
                    assert!(
                        ear.notes.fault.is_none() && ear.notes.placed != "beside",
                        "{}",
                        ear.notes.placed
                    );
                    session = Some(ear.notes);
                }
                let thread = world.thread(&session.unwrap());
                let journaled: Vec<String> = (1..=thread.last())
                    .filter(|seq| thread.view().on_path(*seq))
                    .filter_map(|seq| match thread.record(seq).unwrap().entry {
                        Entry::Message(message, _) if message.role != Role::System => Some(message.words()),
                        _ => None,
                    })
                    .collect();
                assert_eq!(journaled, said, "{who}");
            });
        }
        for _ in 0..20 {
            world.relay.settle_idle(0);
        }
    });
    world.relay.settle_idle(0);
}

#[test]
fn two_requests_of_one_conversation_at_once_are_both_answered_and_one_is_beside() {
    let folder = tempfile::tempdir().unwrap();
    let world = on_files(folder.path(), 50_000);
    let mut agent = Agent::new(Dialect::Chat);
    agent.turn(&world, "hello");
    for text in ["Make a title.", "What now?"] {
        world.server.add(ScriptStep { delay_ms: 90, ..ScriptStep::say("ok").when_contains(text) });
    }
    let together = Barrier::new(2);
    let placed: Vec<&str> = std::thread::scope(|scope| {
        let ask = |text: &'static str| {
            let (world, together, mut agent) = (&world, &together, agent.clone());
            scope.spawn(move || {
                agent.say(text);
                let mut ear = Ear::default();
                together.wait();
                agent.send(world, &mut ear).unwrap();
                assert_eq!(ear.status, 200);
                ear.notes.placed
            })
        };
        let both = [ask("Make a title."), ask("What now?")];
        both.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(placed.contains(&"extends") && placed.contains(&"beside"), "{placed:?}");
}

#[test]
fn a_request_beside_a_session_that_is_held_elsewhere_makes_one_fork_however_often_it_looks() {
    let folder = tempfile::tempdir().unwrap();
    let (world, elsewhere) = (on_files(folder.path(), 50_000), on_files(folder.path(), 50_000));
    let mut agent = Agent::new(Dialect::Chat).with_tools();
    world.server.add(ScriptStep::say("It is open. 開いた。"));
    let (_, ear) = agent.turn(&world, "Open the window");
    let session = ear.notes.session.unwrap();
    let threads = || world.relay.engine().store().threads(&session).unwrap().len();
    let held = elsewhere.relay.engine().open(&session, &ThreadId::root(), OpenMode::Write).unwrap();
    let mut title = Agent { has_tools: false, ..agent.clone() };
    title.say("A title for this talk");
    let fault = title.send(&world, &mut Ear::default()).unwrap_err();
    assert!(matches!(fault, RelayFault::Ours(Error::Store(Store::Busy { .. }))), "{fault}");
    assert_eq!(threads(), 2, "the root and one beside it");
    drop(held);
    world.server.add(ScriptStep::say("窓"));
    assert_eq!(title.ask(&world).1.notes.placed, "beside");
}
