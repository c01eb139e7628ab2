//! A provider that dies in the middle: what had come is kept, the client is told, and the conversation goes on.

use super::kit::{Agent, Canned, Ear, World, root};
use super::own::{call, grown};
use komado_core::journal::Entry;
use komado_engine::relay::RelayFault;
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedReply};

const STORY: &str = "昔々、ある所に one lantern 提灯 and its owner.";

#[test]
fn an_answer_cut_anywhere_is_told_kept_and_followed_by_a_whole_one() {
    for dialect in Dialect::ALL {
        let world = World::new(dialect, 50_000, ScriptedOptions::default());
        let mut agent = Agent::new(dialect);
        agent.turn(&world, "hello");
        agent.say("Tell me a story.");
        let mut whole = 0;
        for after in (0..9_000).step_by(211) {
            world.server.add(ScriptStep {
                break_after: Some(after),
                chunk: Some(5),
                ..ScriptStep::say(STORY)
            });
            let mut ear = Ear::default();
            let ended = agent.send(&world, &mut ear);
            let heard = agent.hear(&ear);
            if heard.finish.is_some() && heard.message().is_some_and(|message| message.words() == STORY) {
                whole += 1;
                continue;
            }
            match ended {
                Err(RelayFault::Theirs(_)) => assert_eq!(ear.status, 0, "{dialect:?} {after}"),
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

/// What must hold however an answer was cut: no answer and a fault, or an answer that says that it is not whole.
fn check(ended: Result<(), RelayFault>, ear: &Ear, heard_all: bool, what: &str) {
    match ended {
        Err(RelayFault::Theirs(_)) => assert_eq!((ear.status, ear.ended), (0, false), "{what}"),
        Ok(()) => {
            assert!(ear.status > 0 && ear.ended, "{what}");
            assert!(heard_all || ear.notes.cut.is_some() || ear.status >= 500, "{what}: {}", ear.text());
        }
        Err(other) => panic!("{what}: {other}"),
    }
}

#[test]
fn an_answer_cut_at_any_byte_is_told_in_every_dialect_roughly_or_politely() {
    for dialect in Dialect::ALL {
        let mut world = World::new(dialect, 50_000, ScriptedOptions::default());
        let mut agent = Agent::new(dialect);
        agent.say("Is the 窓 open?");
        let answer = world.answer_to(&agent, ScriptStep { chunk: Some(3), ..ScriptStep::say("窓 ok") });
        let (canned, there, mut whole) = (Canned::new(), world.base.clone(), 0);
        for after in 0..=answer.body.len() {
            // A rough end differs from a polite one only in how it is noticed: a part of them will do.
            for polite in [true, false].into_iter().filter(|polite| *polite || after % 8 == 0) {
                agent.salt = format!("{after} {polite}");
                if polite {
                    world.turn_to(&canned.url);
                    canned.repeat(&answer, after);
                } else {
                    world.turn_to(&there);
                    let break_after = Some(after as u64);
                    world.server.add(ScriptStep { break_after, chunk: Some(3), ..ScriptStep::say("窓 ok") });
                }
                let mut ear = Ear::default();
                let ended = agent.send(&world, &mut ear);
                let heard = agent.hear(&ear);
                let all =
                    heard.finish.is_some() && heard.message().is_some_and(|said| said.words() == "窓 ok");
                whole += usize::from(all);
                let what = format!("{dialect:?} {after} {polite}");
                if polite && ended.is_ok() {
                    assert_eq!(ear.body, answer.body[..after], "{what}: not a byte more or less");
                }
                check(ended, &ear, all, &what);
            }
        }
        assert!(whole > 0, "{dialect:?}");
    }
}

#[test]
fn with_our_own_tools_offered_an_answer_that_ends_anywhere_is_one_or_a_fault() {
    for dialect in Dialect::ALL {
        for (text, stream) in [("", true), ("Let me look. ", true), ("", false), ("Let me look. ", false)] {
            let (mut world, mut agent) = grown(dialect, stream);
            agent.say("Where does the lantern stand?");
            let calls = vec![call("recall", r#"{"query":"lantern"}"#)];
            let reply = ScriptedReply { text: text.into(), calls, ..ScriptedReply::default() };
            let looks = world.answer_to(&agent, ScriptStep { reply, ..ScriptStep::default() });
            let says = world.answer_to(&agent, ScriptStep::say("On the shelf."));
            let canned = Canned::new();
            world.turn_to(&canned.url);
            let step = if stream && text.is_empty() && dialect == Dialect::Chat { 13 } else { 301 };
            for after in (0..looks.body.len()).step_by(step).chain([looks.body.len()]) {
                let mut ear = Ear::default();
                canned.repeat(&looks, after);
                let is_whole = after == looks.body.len();
                canned.repeat(&says, says.body.len());
                let ended = agent.send(&world, &mut ear);
                let heard = agent.hear(&ear);
                let what = format!("{dialect:?} {stream} {text:?} {after}");
                assert!(heard.message().is_none_or(|said| said.calls().next().is_none()), "{what}");
                let all = heard.finish.is_some() && ear.notes.recalls > 0;
                if is_whole {
                    assert!(all && heard.message().unwrap().words().contains("On the shelf."), "{what}");
                }
                // Only a call that came whole has a second round.
                canned.clear();
                check(ended, &ear, all, &what);
            }
        }
    }
}

#[test]
fn across_dialects_an_answer_cut_at_any_byte_is_told_with_and_without_a_journal() {
    for (client, upstream, step) in [
        (Dialect::Chat, Dialect::Messages, 1),
        (Dialect::Messages, Dialect::Chat, 1),
        (Dialect::Ollama, Dialect::Responses, 7),
        (Dialect::Responses, Dialect::Ollama, 1),
    ] {
        for stream in [true, false] {
            let mut world = World::new(upstream, 50_000, ScriptedOptions::default());
            let mut agent = Agent::new(client);
            agent.stream = stream;
            agent.say("Is the 窓 open?");
            let mut speaker = Agent::new(upstream);
            speaker.stream = stream;
            speaker.say("Is the 窓 open?");
            let answer = world.answer_to(&speaker, ScriptStep { chunk: Some(3), ..ScriptStep::say("窓 ok") });
            let (canned, mut whole) = (Canned::new(), 0);
            world.turn_to(&canned.url);
            for after in (0..answer.body.len()).step_by(step).chain([answer.body.len()]) {
                for journals in [true, false] {
                    agent.salt = format!("{after}");
                    canned.repeat(&answer, after);
                    let mut ear = Ear::default();
                    let ended = match journals {
                        true => agent.send(&world, &mut ear),
                        false => agent.try_untouched(&world, &mut ear).map_err(RelayFault::Theirs),
                    };
                    let heard = agent.hear(&ear);
                    let all =
                        heard.finish.is_some() && heard.message().is_some_and(|said| said.words() == "窓 ok");
                    whole += usize::from(all);
                    check(ended, &ear, all, &format!("{client:?} {upstream:?} {stream} {after} {journals}"));
                }
            }
            assert!(whole > 1, "{client:?} {upstream:?}");
        }
    }
}
