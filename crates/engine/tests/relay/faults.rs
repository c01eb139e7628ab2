//! Whatever of ours fails: before the answer begins it is a fault and the request can go on untouched; after, the answer
//! comes all the same.

use super::kit::{Agent, Ear, World, words};
use komado_engine::relay::Fault;
use komado_provider::Dialect;
use komado_provider::scripted::Options;
use komado_store::{Faulty, MemoryStore};
use std::sync::Arc;

#[test]
fn a_store_that_fails_at_any_call_never_costs_the_client_its_answer() {
    let calls = {
        let store = Arc::new(Faulty::new(MemoryStore::default(), 0));
        let world = World::on(store.clone(), Dialect::Chat, 3_000, Options::default());
        let mut agent = Agent::new(Dialect::Chat);
        (1..=12).for_each(|n| drop(agent.turn(&world, &words(n))));
        store.calls()
    };
    assert!(calls > 100, "{calls}");
    let (mut faults, mut told) = (0, 0);
    for at in (1..=calls).step_by(7) {
        let store = Arc::new(Faulty::new(MemoryStore::default(), at));
        let world = World::on(store, Dialect::Chat, 3_000, Options::default());
        let mut agent = Agent::new(Dialect::Chat);
        for n in 1..=12 {
            agent.say(&words(n));
            let mut ear = Ear::default();
            match agent.send(&world, &mut ear) {
                Ok(()) => told += usize::from(ear.notes.fault.is_some()),
                Err(Fault::Ours(_)) => {
                    assert_eq!(ear.status, 0, "nothing had begun");
                    faults += 1;
                    agent.send_untouched(&world, &mut ear);
                }
                Err(other) => panic!("{other}"),
            }
            assert_eq!(ear.status, 200);
            let message = agent.hear(&ear).message().unwrap();
            agent.add(&message);
        }
    }
    assert!(faults > 5, "{faults} faults, {told} told");
}

#[test]
fn a_provider_that_is_not_there_is_their_fault_and_journaled() {
    let mut world = World::new(Dialect::Chat, 50_000, Options::default());
    let mut agent = Agent::new(Dialect::Chat);
    agent.turn(&world, "hello");
    agent.say("again");
    let other = World::new(Dialect::Chat, 50_000, Options::default());
    let gone = std::mem::replace(&mut world.server, other.server);
    drop(gone);
    let server = std::mem::replace(
        &mut world.server,
        komado_provider::scripted::Server::start(Options::default()).unwrap(),
    );
    drop(server);
    let mut ear = Ear::default();
    world.server.add(komado_provider::scripted::Step::read(r#"{"reply":"x","break_after":0}"#).unwrap());
    let ended = agent.send(&world, &mut ear);
    assert!(matches!(ended, Err(Fault::Theirs(_))) || ear.notes.cut.is_some(), "{ended:?}");
    let (_, ear) = agent.ask(&world);
    assert_eq!(ear.notes.thread, Some(super::kit::root()));
}

#[test]
fn what_cannot_be_admitted_is_a_fault_of_ours() {
    let world = World::new(Dialect::Chat, 50_000, Options::default());
    let mut agent = Agent::new(Dialect::Chat);
    agent.elements.push(r#"{"role":"tool","tool_call_id":"nobody","content":"x"}"#.into());
    let mut ear = Ear::default();
    assert!(matches!(agent.send(&world, &mut ear), Err(Fault::Ours(_))));
    assert_eq!(ear.status, 0);
}

#[test]
fn threads_are_settled_when_they_rest() {
    let world = World::new(Dialect::Chat, 50_000, Options::default());
    let mut agent = Agent::new(Dialect::Chat);
    let (_, ear) = agent.turn(&world, "hello");
    let session = ear.notes.session.unwrap();
    let calls = || world.relay.engine().session(&session).unwrap().counters.llm_call_count;
    assert_eq!(calls(), 0);
    assert_eq!(world.relay.settle_idle(1), 0, "it has not rested yet");
    assert_eq!(world.relay.settle_idle(1), 1);
    assert_eq!((calls(), world.relay.settle_idle(0)), (1, 0));
}
