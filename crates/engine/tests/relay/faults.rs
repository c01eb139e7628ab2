//! Whatever of ours fails: before the answer begins it is a fault and the request can go on untouched; after, the answer
//! comes all the same.

use super::kit::{Agent, Ear, MODEL, World, words};
use komado_core::journal::Entry;
use komado_engine::relay::RelayFault;
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions};
use komado_store::MemoryStore;
use komado_testkit::Faulty;
use std::net::TcpListener;
use std::sync::Arc;

/// Each call of the store fails once (every `step`-th of them): how many faults there were before an answer.
fn stumble(client: Dialect, upstream: Dialect, step: usize) -> usize {
    let conversing = |fails_at: u64| {
        let store = Arc::new(Faulty::new(MemoryStore::default(), fails_at));
        let world = World::on(store.clone(), upstream, 3_000, ScriptedOptions::default());
        let mut agent = Agent::new(client);
        (agent.renames, agent.more) = (true, r#","model":"their-name""#.into());
        world.server.add(ScriptStep::say("answer to {{last}}").always());
        let mut faults = 0;
        for n in 1..=12 {
            agent.say(&format!("week {n}; {}", words(n)));
            let mut ear = Ear::default();
            match agent.send(&world, &mut ear) {
                Ok(()) => {}
                Err(RelayFault::Ours(_)) => {
                    assert_eq!(ear.status, 0, "nothing had begun");
                    faults += 1;
                    agent.send_untouched(&world, &mut ear);
                    if client == upstream {
                        let sent = String::from_utf8(world.last_seen().body).unwrap();
                        assert_eq!(sent, agent.body().replace("their-name", MODEL));
                    }
                }
                Err(other) => panic!("{other}"),
            }
            assert!(ear.status == 200 && ear.ended, "{client:?} to {upstream:?}, {fails_at}: {}", ear.text());
            let message = agent.hear(&ear).message().unwrap();
            let expected = format!("answer to week {n};");
            assert!(message.words().starts_with(&expected), "{client:?} to {upstream:?}, {fails_at}");
            agent.add(&message);
        }
        (store.calls(), faults)
    };
    let (calls, faults) = conversing(0);
    assert!(calls > 100 && faults == 0, "{calls}, {faults}");
    (1..=calls).step_by(step).map(|at| conversing(at).1).sum()
}

#[test]
fn a_store_that_fails_at_any_call_never_costs_the_client_its_answer() {
    let faults = stumble(Dialect::Chat, Dialect::Chat, 7);
    assert!(faults > 5, "{faults} faults");
}

#[test]
fn nor_where_the_provider_speaks_another_dialect() {
    for (client, upstream) in [
        (Dialect::Chat, Dialect::Messages),
        (Dialect::Messages, Dialect::Chat),
        (Dialect::Responses, Dialect::Ollama),
        (Dialect::Ollama, Dialect::Responses),
    ] {
        let faults = stumble(client, upstream, 101);
        assert!(faults > 2, "{client:?} to {upstream:?}: {faults} faults");
    }
}

#[test]
fn a_provider_that_is_not_there_is_their_fault_and_journaled() {
    for upstream in [Dialect::Chat, Dialect::Messages] {
        let mut world = World::new(upstream, 50_000, ScriptedOptions::default());
        let mut agent = Agent::new(Dialect::Chat);
        let (_, ear) = agent.turn(&world, "hello");
        let (notes, there) = (ear.notes, world.base.clone());
        agent.say("again");
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        world.turn_to(&format!("http://{nobody}"));
        let mut ear = Ear::default();
        assert!(matches!(agent.send(&world, &mut ear), Err(RelayFault::Theirs(_))), "{upstream:?}");
        assert_eq!((ear.status, ear.ended), (0, false), "{upstream:?}: nothing had begun");
        let thread = world.thread(&notes);
        let Entry::Lost(reply) = thread.record(thread.last()).unwrap().entry else { panic!("{upstream:?}") };
        assert_eq!((reply.finish.as_str(), reply.heard), ("lost", None));
        assert!(reply.error.unwrap().contains(&nobody.to_string()));
        let Entry::Sent(_) = thread.record(reply.to.unwrap()).unwrap().entry else { panic!("{upstream:?}") };
        drop(thread);
        world.turn_to(&there);
        let (_, ear) = agent.ask(&world);
        assert_eq!(ear.notes.thread, Some(super::kit::root()));
    }
}

#[test]
fn what_cannot_be_admitted_is_a_fault_of_ours() {
    let world = World::new(Dialect::Chat, 50_000, ScriptedOptions::default());
    let mut agent = Agent::new(Dialect::Chat);
    agent.elements.push(r#"{"role":"tool","tool_call_id":"nobody","content":"x"}"#.into());
    let mut ear = Ear::default();
    assert!(matches!(agent.send(&world, &mut ear), Err(RelayFault::Ours(_))));
    assert_eq!(ear.status, 0);
}

#[test]
fn threads_are_settled_when_they_rest() {
    let world = World::new(Dialect::Chat, 50_000, ScriptedOptions::default());
    let mut agent = Agent::new(Dialect::Chat);
    let (_, ear) = agent.turn(&world, "hello");
    let session = ear.notes.session.unwrap();
    let calls = || world.relay.engine().session(&session).unwrap().counters.llm_call_count;
    assert_eq!(calls(), 1, "the table knows when the client does");
    assert_eq!(world.relay.settle_idle(1), 0, "it has not rested yet");
    assert_eq!(world.relay.settle_idle(1), 1);
    assert_eq!((calls(), world.relay.settle_idle(0)), (1, 0));
}
