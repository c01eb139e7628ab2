//! Forks: another way from a moment, for the price of a header.

use crate::engine::room::{
    call, calls, check, everywhere, model, result, result_with_output, seen, thread_id, user, words,
};
use komado_core::Span;
use komado_engine::Error;
use komado_store::Error as StoreError;

#[test]
fn a_fork_shows_the_words_a_rewind_would_and_goes_its_own_way() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        for n in 1..=6 {
            root.say(user(&format!("{n}"))).unwrap();
        }
        root.condense(vec![Span::new(1, 3)], "1-3", "by_hand").unwrap();
        root.say(model("8")).unwrap();
        for at in 0..=8 {
            let name = format!("f{at}");
            root.fork(at, thread_id(&name), Some("別案".into())).unwrap();
            let fork = room.look(&id, &name);
            assert_eq!(words(&fork), seen(&root.view_at(at).unwrap(), &root), "@{at}");
            assert_eq!((fork.last(), fork.view().tokens()), (at, root.view_at(at).unwrap().tokens()));
            check(&fork);
        }
        let mut fork = room.thread(&id, "f7");
        assert_eq!(fork.say(user("mine")).unwrap(), 8);
        root.say(user("yours")).unwrap();
        assert_eq!(words(&fork), ["user: 1-3", "user: 4", "user: 5", "user: 6", "user: mine"]);
        assert_eq!(words(&root).last().unwrap(), "user: yours");
        let mut rewound = room.thread(&id, "f8");
        rewound.rewind(6).unwrap();
        assert_eq!(words(&rewound), ["user: 1", "user: 2", "user: 3", "user: 4", "user: 5", "user: 6"]);
        fork.revert(7).unwrap();
        assert_eq!(words(&fork).len(), 7);
        check(&fork);
        check(&rewound);
        drop((fork, rewound, root));
        assert_eq!(words(&room.again().look(&id, "f7")).len(), 7);
    });
}

#[test]
fn a_fork_of_a_fork_before_its_base_goes_on_from_the_thread_that_owns_the_entry() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        for n in 1..=4 {
            root.say(user(&format!("root {n}"))).unwrap();
        }
        root.fork(4, thread_id("a"), None).unwrap();
        let mut a = room.thread(&id, "a");
        a.say(user("a 5")).unwrap();
        a.say(user("a 6")).unwrap();
        a.fork(5, thread_id("b"), None).unwrap();
        let mut b = room.thread(&id, "b");
        b.say(user("b 6")).unwrap();
        let base = |at, name: &str| b.fork(at, thread_id(name), None).unwrap().base.unwrap();
        for (at, owner) in [(0, "root"), (3, "root"), (4, "root"), (5, "a"), (6, "b")] {
            let base = base(at, &format!("c{at}"));
            assert_eq!((base.thread.as_str(), base.seq), (owner, at));
            let c = room.look(&id, &format!("c{at}"));
            assert_eq!(words(&c), seen(&b.view_at(at).unwrap(), &b));
            check(&c);
        }
        let mut c = room.thread(&id, "c3");
        assert_eq!(c.say(user("c 4")).unwrap(), 4);
        assert_eq!(words(&c), ["user: root 1", "user: root 2", "user: root 3", "user: c 4"]);
    });
}

#[test]
fn what_two_threads_share_is_what_came_before_they_parted() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        for n in 1..=5 {
            root.say(user(&format!("{n}"))).unwrap();
        }
        root.fork(4, thread_id("a"), None).unwrap();
        root.fork(2, thread_id("b"), None).unwrap();
        let mut a = room.thread(&id, "a");
        a.say(user("a")).unwrap();
        a.fork(5, thread_id("c"), None).unwrap();
        let (b, c) = (room.look(&id, "b"), room.look(&id, "c"));
        assert_eq!(root.shared_with(&a).unwrap(), 4);
        assert_eq!(a.shared_with(&root).unwrap(), 4);
        assert_eq!(a.shared_with(&c).unwrap(), 5);
        assert_eq!(c.shared_with(&root).unwrap(), 4);
        assert_eq!(b.shared_with(&c).unwrap(), 2);
        assert_eq!(a.shared_with(&a).unwrap(), 5);
        let other = room.session("other");
        assert_eq!(room.root(&other).shared_with(&a).unwrap(), 0);
    });
}

#[test]
fn forks_share_blobs_and_a_blob_that_only_a_fork_names_is_kept() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(calls(vec![call("c", "read", "{}")])).unwrap();
        root.fork(1, thread_id("a"), None).unwrap();
        let mut a = room.thread(&id, "a");
        let output = b"the same bytes".as_slice();
        root.say(result_with_output(room, &id, "c", "head", output)).unwrap();
        a.say(result_with_output(room, &id, "c", "head", output)).unwrap();
        assert_eq!(room.engine.named_blobs(&id).unwrap().len(), 1);
        a.say(calls(vec![call("d", "read", "{}")])).unwrap();
        a.say(result_with_output(room, &id, "d", "head", b"only the fork's")).unwrap();
        let blobs = room.engine.named_blobs(&id).unwrap();
        assert_eq!(blobs.len(), 2);
        let swept = room.engine.sweep(&id, komado_engine::cleanup::CleanupMode::Real).unwrap();
        assert_eq!(swept.blobs, 0);
        for blob in blobs {
            room.engine.store().blob(&id, &blob).unwrap();
        }
    });
}

#[test]
fn a_fork_inside_an_open_call_can_answer_it() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(calls(vec![call("a", "read", "{}"), call("b", "read", "{}")])).unwrap();
        root.say(result("a", "root's")).unwrap();
        root.fork(1, thread_id("f"), None).unwrap();
        let mut fork = room.thread(&id, "f");
        assert_eq!(fork.view().open().calls.len(), 2);
        fork.say(result("b", "fork's")).unwrap();
        fork.say(user("go on")).unwrap();
        check(&fork);
        check(&root);
    });
}

#[test]
fn a_taken_name_and_a_moment_to_come_are_refused() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(user("1")).unwrap();
        root.fork(1, thread_id("a"), None).unwrap();
        for name in ["a", "root"] {
            let error = root.fork(1, thread_id(name), None).unwrap_err();
            assert!(matches!(error, Error::Store(StoreError::ThreadExists(..))), "{error}");
        }
        assert!(matches!(root.fork(2, thread_id("b"), None), Err(Error::NoMoment { .. })));
    });
}
