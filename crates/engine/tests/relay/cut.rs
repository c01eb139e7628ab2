//! A provider that dies in the middle: what had come is kept, the client is told, and the conversation goes on.

use super::kit::{Agent, Ear, World, root};
use komado_core::journal::Entry;
use komado_engine::relay::Fault;
use komado_provider::Dialect;
use komado_provider::scripted::{Options, Step};

const STORY: &str = "昔々、ある所に one lantern 提灯 and its owner.";

#[test]
fn an_answer_cut_anywhere_is_told_kept_and_followed_by_a_whole_one() {
    for dialect in Dialect::ALL {
        let world = World::new(dialect, 50_000, Options::default());
        let mut agent = Agent::new(dialect);
        agent.turn(&world, "hello");
        agent.say("Tell me a story.");
        let mut whole = 0;
        for after in (0..9_000).step_by(211) {
            world.server.add(Step { break_after: Some(after), chunk: Some(5), ..Step::say(STORY) });
            let mut ear = Ear::default();
            let ended = agent.send(&world, &mut ear);
            let heard = agent.hear(&ear);
            if heard.finish.is_some() && heard.message().is_some_and(|message| message.words() == STORY) {
                whole += 1;
                continue;
            }
            match ended {
                Err(Fault::Theirs(_)) => assert_eq!(ear.status, 0, "{dialect:?} {after}"),
                Ok(()) => {
                    assert!(ear.notes.cut.is_some(), "{dialect:?} {after}: {}", ear.text());
                    let thread = world.thread(&ear.notes);
                    let Entry::Lost(reply) = thread.record(thread.last()).unwrap().entry else {
                        panic!("{after}")
                    };
                    assert!(
                        STORY.starts_with(reply.heard.as_deref().unwrap_or_default()),
                        "{dialect:?} {after}"
                    );
                }
                Err(other) => panic!("{dialect:?} {after}: {other}"),
            }
        }
        assert!(whole > 0, "{dialect:?}");
        let (_, ear) = agent.ask(&world);
        assert_eq!(ear.notes.thread, Some(root()), "{dialect:?}: {}", ear.notes.placed);
    }
}
