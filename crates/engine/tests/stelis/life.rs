//! Beginning, ending, pausing, going on.

use crate::stelis::kit::{anchor, begun, called, check_tree, done, resume, row, rows, sees, status};
use crate::stelis::room::{everywhere, model, thread_id, user};
use komado_core::journal::{Ending, Entry};
use komado_core::thread::ThreadStatus;
use komado_engine::stelis::{ChronicleBy, Finish};
use komado_engine::{Error, Thread};
use komado_store::{Error as StoreError, OpenMode};

#[test]
fn a_child_that_ends_is_closed_told_and_in_the_table() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("x")).unwrap();
        assert_eq!(row(&room.engine, &id, "stelis_1").status, ThreadStatus::Active);
        child.say(user("work")).unwrap();
        let finish = Finish { result: Some("42".into()), ..done("worked") };
        let finished = child.end(&mut root, finish).unwrap();
        assert_eq!(finished.chronicle.unwrap().text, "worked");
        let row = row(&room.engine, &id, "stelis_1");
        assert_eq!((row.status, row.told, row.depth), (ThreadStatus::Completed, true, 1));
        assert_eq!((row.chronicle_summary.as_deref(), row.window_ratio), (Some("worked"), 0.8));
        assert!(row.completed_at.is_some());
        assert!(anchor(&root, "stelis_1").contains("- Result: 42"));
        let mut child = room.thread(&id, "stelis_1");
        let why = child.say(user("more")).unwrap_err().to_string();
        assert!(why.contains("closed"), "{why}");
        let again = child.finish(done("again")).unwrap_err();
        assert!(matches!(again, Error::Refused(_)), "{again}");
        root.say(model("the parent goes on")).unwrap();
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_guard_that_is_dropped_breaks_the_child_off_with_a_partial_chronicle() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("x")).unwrap();
        child.say(user("edit src/lib.rs and run cargo test")).unwrap();
        child.say(model("I changed src/lib.rs; cargo test failed with exit code 101")).unwrap();
        drop(child);
        assert_eq!(status(room, &id, "stelis_1"), ThreadStatus::Aborted);
        assert!(
            anchor(&root, "stelis_1").contains("in progress"),
            "the parent hears of it when it is at work"
        );
        root.tend().unwrap();
        let text = anchor(&root, "stelis_1");
        assert!(text.contains("(aborted)") && text.contains("## Chronicle (partial)"), "{text}");
        assert!(text.contains("src/lib.rs"), "{text}");
        check_tree(&room.engine, &id);
    });
}

#[test]
fn ending_a_thread_breaks_off_those_below_it_the_deepest_first() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut one = root.spawn_free(&called("one")).unwrap();
        let mut two = one.spawn_free(&called("two")).unwrap();
        two.spawn_free(&called("three")).unwrap();
        one.spawn_free(&called("four")).unwrap();
        drop((two, root));
        let names = ["stelis_1_1_1", "stelis_1_1", "stelis_1_2"].map(thread_id);
        drop(one);
        let finished = room.engine.finish_child(&id, &thread_id("stelis_1"), done("all done")).unwrap();
        assert_eq!((finished.aborted, finished.is_told), (names.to_vec(), true));
        assert!(anchor(&room.look(&id, "stelis_1_1"), "stelis_1_1_1").contains("the thread above it ended"));
        check_tree(&room.engine, &id);
    });
}

#[test]
fn ending_a_session_breaks_off_every_open_child() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut one = root.spawn_free(&called("one")).unwrap();
        one.spawn_free(&called("two")).unwrap();
        root.fork(2, thread_id("alt"), None).unwrap();
        let mut alt = room.thread(&id, "alt");
        alt.spawn_free(&called("three")).unwrap();
        drop((one, root, alt));
        room.engine.complete(&id, None).unwrap();
        for thread in ["stelis_1", "stelis_1_1", "alt_1"] {
            assert_eq!(status(room, &id, thread), ThreadStatus::Aborted);
        }
        assert!(anchor(&room.look(&id, "root"), "stelis_1").contains("(aborted)"));
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_guard_in_the_way_is_left_to_its_holder() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut one = root.spawn(&called("one")).unwrap();
        let mut two = one.spawn(&called("two")).unwrap();
        let finished = one.end(&mut root, done("early")).unwrap();
        assert!(finished.aborted.is_empty());
        two.say(user("still here")).unwrap();
        drop(two);
        drop(root);
        room.root(&id);
        assert_eq!(status(room, &id, "stelis_1"), ThreadStatus::Completed);
        assert_eq!(status(room, &id, "stelis_1_1"), ThreadStatus::Aborted);
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_paused_child_waits_for_days_and_goes_on_with_what_its_parent_sees_then() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("x")).unwrap();
        child.say(user("half of it")).unwrap();
        child.pause(&mut root, Some("lunch".into())).unwrap();
        let text = anchor(&root, "stelis_1");
        assert!(text.contains("- End: paused") && text.contains("- Reason: lunch"), "{text}");
        let paused = row(&room.engine, &id, "stelis_1");
        assert_eq!((paused.status, paused.held_by), (ThreadStatus::Paused, None));
        root.say(user("meanwhile, use Rust")).unwrap();
        drop(root);
        let room = room.again();
        let why = room.thread(&id, "stelis_1").say(user("no")).unwrap_err().to_string();
        assert!(why.contains("resume"), "{why}");
        room.engine.resume_child(&id, &thread_id("stelis_1"), &resume()).unwrap();
        let mut child = room.thread(&id, "stelis_1");
        assert!(sees(&child, "meanwhile, use Rust") && sees(&child, "half of it"));
        child.say(user("the other half")).unwrap();
        drop(child);
        assert!(anchor(&room.root(&id), "stelis_1").contains("in progress"));
        let why = room.engine.resume_child(&id, &thread_id("stelis_1"), &resume()).unwrap_err();
        assert!(matches!(why, Error::NotClosed { .. }), "{why}");
        check_tree(&room.engine, &id);
    });
}

#[test]
fn an_ended_and_an_aborted_child_can_be_resumed_unless_its_parent_has_ended() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut one = root.spawn(&called("one")).unwrap();
        let two = one.spawn(&called("two")).unwrap();
        two.abort(&mut one, None).unwrap();
        one.say(user("did one thing")).unwrap();
        one.end(&mut root, done("did one thing")).unwrap();
        for n in 0..5 {
            root.say(user(&format!("on {n}"))).unwrap();
        }
        drop(root);
        let below = thread_id("stelis_1_1");
        let why = room.engine.resume_child(&id, &below, &resume()).unwrap_err();
        assert!(matches!(why, Error::ParentEnded { .. }), "{why}");
        room.engine.resume_child(&id, &thread_id("stelis_1"), &resume()).unwrap();
        room.engine.resume_child(&id, &below, &resume()).unwrap();
        assert_eq!(status(room, &id, "stelis_1"), ThreadStatus::Active);
        assert_eq!(status(room, &id, "stelis_1_1"), ThreadStatus::Active);
        assert!(sees(&room.look(&id, "stelis_1"), "on 4"));
        // What was told is not forgotten while it goes on.
        let text = anchor(&room.look(&id, "root"), "stelis_1");
        assert!(text.contains("in progress") && text.contains("did one thing"), "{text}");
        check_tree(&room.engine, &id);
        room.engine.finish_child(&id, &thread_id("stelis_1"), done("did two things")).unwrap();
        assert!(anchor(&room.look(&id, "root"), "stelis_1").contains("did two things"));
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_resume_that_finds_no_room_changes_nothing() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let child = root.spawn(&called("x")).unwrap();
        child.pause(&mut root, None).unwrap();
        let last = room.look(&id, "stelis_1").last();
        let small = komado_engine::stelis::ResumeChild::new(100);
        room.engine.resume_child(&id, &thread_id("stelis_1"), &small).unwrap_err();
        assert_eq!(room.look(&id, "stelis_1").last(), last);
        assert_eq!(status(room, &id, "stelis_1"), ThreadStatus::Paused);
    });
}

#[test]
fn a_child_that_is_let_go_outlives_its_holder() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("x")).unwrap();
        child.say(user("work")).unwrap();
        let mut free: Thread<'_> = child.detach().unwrap();
        free.say(user("more work")).unwrap();
        drop((free, root));
        let room = room.again();
        room.root(&id);
        assert_eq!(status(&room, &id, "stelis_1"), ThreadStatus::Active);
        assert_eq!(row(&room.engine, &id, "stelis_1").held_by, None);
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_parent_that_someone_writes_is_told_later() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        root.spawn_free(&called("x")).unwrap();
        let finished = room.engine.finish_child(&id, &thread_id("stelis_1"), done("done")).unwrap();
        assert!(!finished.is_told && !row(&room.engine, &id, "stelis_1").told);
        assert!(anchor(&root, "stelis_1").contains("in progress"));
        let tended = root.tend().unwrap();
        assert_eq!((tended.len(), tended[0].status), (1, ThreadStatus::Completed));
        assert!(tended[0].seq.is_some() && root.tend().unwrap().is_empty());
        check_tree(&room.engine, &id);
    });
}

#[test]
fn only_a_spawned_thread_is_finished_resumed_or_told_of() {
    everywhere(|room| {
        let id = begun(room);
        let root = thread_id("root");
        let engine = &room.engine;
        let by_handle = room.root(&id).finish(done("x")).unwrap_err();
        for why in [
            by_handle,
            engine.finish_child(&id, &root, done("x")).unwrap_err(),
            engine.resume_child(&id, &root, &resume()).unwrap_err(),
            engine.write_chronicle(&id, &root, ChronicleBy::Digest).unwrap_err(),
        ] {
            assert!(matches!(why, Error::NotSpawned { .. }), "{why}");
        }
        let why = engine.finish_child(&id, &thread_id("nobody"), done("x")).unwrap_err();
        assert!(matches!(why, Error::Store(StoreError::NoThread(..))), "{why}");
        assert!(rows(engine, &id).is_empty());
    });
}

#[test]
fn a_child_closed_by_hand_is_told_as_well() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn_free(&called("x")).unwrap();
        child.close(Ending::Completed, Some("by hand".into())).unwrap();
        drop((child, root));
        let root = room.root(&id);
        assert!(anchor(&root, "stelis_1").contains("- Result: by hand"));
        check_tree(&room.engine, &id);
    });
}

#[test]
fn nothing_is_asked_of_the_journals_when_there_is_nothing_to_tell() {
    everywhere(|room| {
        let id = begun(room);
        let last = room.look(&id, "root").last();
        let mut root = room.engine.open(&id, &thread_id("root"), OpenMode::Write).unwrap();
        assert!(root.tend().unwrap().is_empty() && root.hear().unwrap().is_empty());
        assert_eq!(root.last(), last);
        assert!(matches!(root.record(last).unwrap().entry, Entry::Message(..)));
    });
}
