//! Random conversations with calls, in every dialect, past a small window: 1,000 requests that a strict server takes.

use super::kit::{Agent, World, seen_list, words};
use komado_core::message::Message;
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedReply, ToolCall};

/// A small generator: the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn step(dice: &mut Dice, n: usize) -> ScriptStep {
    let calls = match dice.roll(3) {
        0 => dice.roll(3) + 1,
        _ => 0,
    };
    let calls = (0..calls).map(|i| ToolCall {
        id: Some(format!("call_{n}_{i}")),
        name: "read".into(),
        arguments: format!("{{\"path\":\"src/{n}_{i}.rs\"}}"),
    });
    let text = if dice.roll(4) == 0 {
        String::new()
    } else {
        format!("Answer {n}. {}", "答え ".repeat(dice.roll(40) as usize))
    };
    let reply = ScriptedReply { text, calls: calls.collect(), ..ScriptedReply::default() };
    let empty = reply.text.is_empty() && reply.calls.is_empty();
    if empty { ScriptStep::say("ok") } else { ScriptStep { reply, ..ScriptStep::default() } }
}

fn converse(dialect: Dialect, seed: u64, requests: usize) {
    let world =
        World::new(dialect, 6_000, ScriptedOptions { window: Some(6_000), ..ScriptedOptions::default() });
    let mut agent = Agent::new(dialect).with_tools();
    agent.stream = seed.is_multiple_of(2);
    let mut dice = Dice(seed);
    let (mut open, mut before): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut edited = false;
    for n in 0..requests {
        if open.is_empty() {
            agent.say(&words(n)[..words(n).char_indices().nth(dice.roll(200) as usize + 20).unwrap().0]);
        } else {
            let results: Vec<(String, String)> = open
                .drain(..)
                .map(|id| {
                    (
                        id.clone(),
                        format!("{id}: {}", "line of output 出力\n".repeat(dice.roll(120) as usize + 1)),
                    )
                })
                .collect();
            let results: Vec<(&str, &str)> =
                results.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
            agent.results(&results);
        }
        world.server.add(step(&mut dice, n));
        let sent = agent.elements.clone();
        let (message, ear): (Message, _) = agent.ask(&world);
        let seen = world.last_seen();
        assert_eq!((seen.status, ear.notes.attempts), (200, 1), "{dialect:?} {seed} {n}");
        if n > 0 {
            assert_eq!(ear.notes.placed, "extends", "{dialect:?} {seed} {n}");
        }
        let list = seen_list(&seen);
        if ear.notes.untouched {
            assert_eq!(list, sent);
        }
        if ear.notes.edits == 0 {
            assert!(
                list.len() >= before.len() && list[..before.len()] == before[..],
                "{dialect:?} {seed} {n}: prefix"
            );
        } else {
            edited = true;
        }
        before = list;
        open = message.calls().map(|call| call.id.clone()).collect();
    }
    assert!(edited, "{dialect:?} {seed}");
}

#[test]
fn a_thousand_random_requests_are_all_taken_with_a_stable_prefix() {
    for dialect in Dialect::ALL {
        for seed in 0..5 {
            converse(dialect, seed * 77 + 1, 50);
        }
    }
}
