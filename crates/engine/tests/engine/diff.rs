//! What two views do not share.

use crate::engine::room::{call, calls, everywhere, model, result, thread_id, user};
use komado_core::view::ItemSource;
use komado_core::{Seq, Span};
use komado_engine::Thread;
use komado_engine::diff::{ViewChange, diff};

fn told(a: (&Thread<'_>, Seq), b: (&Thread<'_>, Seq)) -> String {
    let (before, after) = (a.0.view_at(a.1).unwrap(), b.0.view_at(b.1).unwrap());
    let shared = a.0.shared_with(b.0).unwrap();
    let changes = diff((&before, a.0.source()), (&after, b.0.source()), shared).unwrap();
    let told = changes.iter().map(|change| {
        let (sign, item) = match change {
            ViewChange::Gone(item) => ('-', item),
            ViewChange::New(item) => ('+', item),
        };
        let mark = match item.what {
            ItemSource::Said(_) => "",
            ItemSource::Shown => "s",
            ItemSource::Replaced(_) => "r",
        };
        format!("{sign}{}{mark}", item.seq)
    });
    told.collect::<Vec<_>>().join(" ")
}

fn talk(thread: &mut Thread<'_>, count: usize) {
    for n in 0..count {
        thread
            .say(if n % 2 == 0 {
                user("I ask this at some length")
            } else {
                model("I answer at some length")
            })
            .unwrap();
    }
}

#[test]
fn two_moments_of_one_thread_differ_by_what_was_said_and_what_was_edited_between() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        talk(&mut root, 6);
        assert_eq!(told((&root, 6), (&root, 6)), "");
        assert_eq!(told((&root, 4), (&root, 6)), "+5 +6");
        assert_eq!(told((&root, 6), (&root, 4)), "-5 -6");
        assert_eq!(told((&root, 0), (&root, 2)), "+1 +2");
        root.condense(vec![Span::new(2, 4)], "S", "by_hand").unwrap();
        assert_eq!(told((&root, 6), (&root, 7)), "-2 -3 -4 +7s");
        assert_eq!(told((&root, 7), (&root, 6)), "-7s +2 +3 +4");
        root.say(user("more")).unwrap();
        root.revert(7).unwrap();
        assert_eq!(told((&root, 8), (&root, 9)), "-7s +2 +3 +4");
        assert_eq!(told((&root, 6), (&root, 9)), "+8");
        root.rewind(7).unwrap();
        assert_eq!(told((&root, 9), (&root, 10)), "-2 -3 -4 +7s -8");
        assert_eq!(told((&root, 7), (&root, 10)), "");
        root.trim(vec![(5, "a placeholder".into())], "by_hand").unwrap();
        assert_eq!(told((&root, 10), (&root, 11)), "-5 +5r");
        root.trim(vec![(5, "U".into())], "by_hand").unwrap();
        assert_eq!(told((&root, 11), (&root, 12)), "-5r +5r");
    });
}

#[test]
fn in_two_threads_the_same_number_is_the_same_entry_only_up_to_where_they_parted() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        talk(&mut root, 2);
        root.say(calls(vec![call("a", "read", "{}")])).unwrap();
        root.say(result("a", "an output of some length")).unwrap();
        root.fork(4, thread_id("f"), None).unwrap();
        let mut fork = room.thread(&id, "f");
        assert_eq!(told((&root, 4), (&fork, 4)), "");
        root.say(user("one way")).unwrap();
        fork.say(user("other way")).unwrap();
        assert_eq!(told((&root, 5), (&fork, 5)), "-5 +5");
        root.trim(vec![(4, "T".into())], "by_hand").unwrap();
        fork.trim(vec![(4, "U".into())], "by_hand").unwrap();
        assert_eq!(told((&root, 6), (&fork, 6)), "-4r -5 +4r +5");
        root.condense(vec![Span::new(1, 2)], "S", "by_hand").unwrap();
        fork.condense(vec![Span::new(1, 2)], "T", "by_hand").unwrap();
        assert_eq!(told((&root, 7), (&fork, 7)), "-7s +7s -4r -5 +4r +5");
        root.fork(7, thread_id("g"), None).unwrap();
        assert_eq!(told((&root, 7), (&room.look(&id, "g"), 7)), "");
    });
}

#[test]
fn a_long_conversation_is_compared_at_once() {
    let room = crate::engine::room::Room::memory();
    let id = room.session("s");
    let mut root = room.root(&id);
    let many = |n| (0..n).map(|_| (user("x"), None)).collect::<Vec<_>>();
    root.say_all(many(60_000)).unwrap();
    let began = std::time::Instant::now();
    assert_eq!(told((&root, 59_998), (&root, 60_000)), "+59999 +60000");
    assert!(began.elapsed().as_secs() < 5);
}
