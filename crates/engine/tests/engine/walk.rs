//! Any verbs in any order: what is refused changes nothing, and every view can be sent.

use crate::engine::export::export;
use crate::engine::room::{Room, call, calls, check, model, result, setup, thread_id, user, words};
use komado_core::{Seq, Span};
use komado_engine::{Result, Thread};
use komado_store::OpenMode;
use proptest::prelude::*;

/// A verb and two numbers to choose its operands with.
type Step = (u8, Seq, Seq);

/// A number of an entry that is there, or nearly.
fn pick(thread: &Thread<'_>, n: Seq) -> Seq {
    n % (thread.last() + 2)
}

fn span(thread: &Thread<'_>, a: Seq, b: Seq) -> Vec<Span> {
    let (a, b) = (pick(thread, a).max(1), pick(thread, b).max(1));
    vec![Span::new(a.min(b), a.max(b))]
}

fn take(thread: &mut Thread<'_>, (verb, a, b): Step) -> Result<Seq> {
    let open = thread.view().open().calls.clone();
    match verb {
        0 | 1 => thread.say(user(&format!("ask {a}"))),
        2 => thread.say(model("answer, at some length")),
        3 | 4 => {
            // Some calls come without an id, and some with one that stands twice.
            let id = if b % 3 > 0 { "" } else { "id" };
            thread.say(calls((0..=a % 3).map(|i| call(id, "f", &format!("{i}"))).collect()))
        }
        5..=8 => match open.get(a as usize % open.len().max(1)) {
            Some(call) => thread.say(result(&call.id, &"out ".repeat(b as usize % 9))),
            None => thread.say(result("", "nobody asked")),
        },
        9 => thread.condense(span(thread, a, b), "S", "by_hand"),
        10 => thread.truncate(span(thread, a, b), "M", "by_hand"),
        11 => thread.trim(vec![(pick(thread, a), "T".into())], "by_hand"),
        12 => thread.pin(pick(thread, a)),
        13 => thread.unpin(pick(thread, a)),
        14 => thread.revert(pick(thread, a)),
        15 => thread.rewind(pick(thread, a)),
        _ => thread.set_up(setup(&format!("{b}"))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_view_can_be_sent_and_what_is_refused_changes_nothing(
        steps in proptest::collection::vec((0u8..19, 0u32..1000, 0u32..1000), 1..40)
    ) {
        let room = Room::memory();
        let id = room.session("s");
        let mut name = "root".to_owned();
        let mut thread = room.root(&id);
        for (n, &(verb, a, b)) in steps.iter().enumerate() {
            let before = (words(&thread), thread.last());
            match verb {
                17 => {
                    let at = a % (thread.last() + 1);
                    name = format!("f{n}");
                    thread.fork(at, thread_id(&name), None).unwrap();
                    drop(thread);
                    thread = room.thread(&id, &name);
                }
                18 => {
                    drop(thread);
                    room.engine.pause(&id, None).unwrap();
                    room.engine.resume(&id).unwrap();
                    thread = room.thread(&id, &name);
                    prop_assert_eq!(words(&thread), before.0);
                }
                verb => {
                    if take(&mut thread, (verb, a, b)).is_err() {
                        prop_assert_eq!((words(&thread), thread.last()), before);
                    }
                }
            }
            check(&thread);
        }
        drop(thread);
        let other = Room::memory();
        other.engine.import(&mut &export(&room, &id)[..], None, |_| {}).unwrap();
        let there = other.engine.open(&id, &thread_id(&name), OpenMode::Read).unwrap();
        prop_assert_eq!(words(&there), words(&room.look(&id, &name)));
    }
}
