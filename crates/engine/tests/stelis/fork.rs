//! Forks of children.

use crate::stelis::kit::{anchor, begun, called, check_tree, done, row, status};
use crate::stelis::room::{check, everywhere, model, thread_id, user, words};
use komado_core::thread::ThreadStatus;
use komado_engine::Error;

#[test]
fn a_fork_of_a_child_sees_what_it_saw_and_has_an_anchor_and_an_end_of_its_own() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("x")).unwrap();
        child.say(user("one way")).unwrap();
        let (at, before) = (child.last(), words(&child));
        child.say(model("went that way")).unwrap();
        let why = child.fork(at, thread_id("other"), None).unwrap_err();
        assert!(matches!(why, Error::ParentBusy { .. }) && why.to_string().contains("root"), "{why}");
        drop(root);
        let header = child.fork(at, thread_id("other"), Some("another way".into())).unwrap();
        let parent = header.parent.clone().unwrap();
        assert_ne!(Some(&parent), child.header().parent.as_ref());
        let mut fork = room.thread(&id, "other");
        assert_eq!((words(&fork), fork.status().unwrap()), (before, ThreadStatus::Active));
        check(&fork);
        let taken = row(&room.engine, &id, "other");
        assert_eq!((taken.held_by, taken.depth, taken.told), (None, 1, true));
        fork.say(model("went another way")).unwrap();
        drop(fork);
        let mut root = room.root(&id);
        child.end(&mut root, done("the first way")).unwrap();
        assert!(anchor(&root, "other").contains("in progress"));
        drop(root);
        room.engine.finish_child(&id, &thread_id("other"), done("the second way")).unwrap();
        let root = room.look(&id, "root");
        assert!(anchor(&root, "stelis_1").contains("the first way"));
        let text = anchor(&root, "other");
        assert!(text.contains("the second way") && text.contains("another way"), "{text}");
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_fork_of_an_ended_child_goes_on_and_may_have_children() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("x")).unwrap();
        child.say(user("work")).unwrap();
        child.end(&mut root, done("done")).unwrap();
        drop(root);
        let ended = room.look(&id, "stelis_1");
        ended.fork(ended.last(), thread_id("again"), None).unwrap();
        drop(ended);
        assert_eq!(status(room, &id, "again"), ThreadStatus::Active);
        assert_eq!(status(room, &id, "stelis_1"), ThreadStatus::Completed);
        let mut fork = room.thread(&id, "again");
        fork.say(user("more work")).unwrap();
        let below = fork.spawn(&called("below")).unwrap();
        check(&below);
        assert!(words(&below).iter().any(|line| line.contains("more work")));
        below.abort(&mut fork, None).unwrap();
        check(&fork);
        drop(fork);
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_fork_from_before_the_share_is_refused_and_nothing_is_written() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        root.spawn_free(&called("x")).unwrap();
        let last = root.last();
        drop(root);
        let child = room.look(&id, "stelis_1");
        let why = child.fork(0, thread_id("none"), None).unwrap_err().to_string();
        assert!(why.contains("began after that"), "{why}");
        let why = child.fork(1, thread_id("stelis_1"), None).unwrap_err().to_string();
        assert!(why.contains("already"), "{why}");
        assert_eq!(room.look(&id, "root").last(), last);
        check_tree(&room.engine, &id);
    });
}
