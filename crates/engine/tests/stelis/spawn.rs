//! What a child starts with, and what is refused before anything is written.

use crate::stelis::kit::{WINDOW, anchor, begun, called, check_tree, ratio, rows, sees};
use crate::stelis::room::{call, calls, everywhere, setup, thread_id, user, words};
use komado_core::journal::{Entry, Setup};
use komado_engine::Error;
use komado_engine::stelis::Spawn;
use komado_store::OpenMode;

#[test]
fn a_child_sees_its_parents_slice_and_its_own_words() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("Coding Session")).unwrap();
        assert_eq!(child.id(), &thread_id("stelis_1"));
        child.say(user("write calculator_v2")).unwrap();
        assert_eq!(
            words(&child),
            [
                "user: [From thread root, which this work was started from. It stays in view here; an @N in it is root@N.]",
                "user: please build the calculator",
                "assistant: I will start a thread for it",
                "system: [Stelis thread Coding Session (stelis_1) has started]",
                "user: write calculator_v2",
            ]
        );
        let text = anchor(&root, "stelis_1");
        assert_eq!(
            text.lines().next(),
            Some("[Stelis thread: Coding Session]"),
            "the parent sees it in full: {text}"
        );
        assert!(text.ends_with("- End: in progress"), "{text}");
        assert!(!sees(&root, "calculator_v2"));
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_call_that_waits_a_closed_parent_and_a_reader_cannot_spawn_and_nothing_is_written() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        root.say(calls(vec![call("a", "f", "{}")])).unwrap();
        let last = root.last();
        let why = root.spawn(&called("x")).err().unwrap();
        assert!(matches!(why, Error::Refused(_)) && why.to_string().contains("still wait"), "{why}");
        assert_eq!((root.last(), rows(&room.engine, &id).len()), (last, 0));
        drop(root);
        let why = room.look(&id, "root").spawn(&called("x")).err().unwrap();
        assert!(why.to_string().contains("reading only"), "{why}");
        assert!(rows(&room.engine, &id).is_empty());
        room.engine.pause(&id, None).unwrap();
        let why = room.root(&id).spawn(&called("x")).err().unwrap();
        assert!(why.to_string().contains("closed at"), "{why}");
        assert!(rows(&room.engine, &id).is_empty());
    });
}

#[test]
fn depth_is_checked_before_anything_is_written() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let two = Spawn { max_depth: 2, ..called("x") };
        let mut child = root.spawn(&two).unwrap();
        let mut grandchild = child.spawn(&two).unwrap();
        assert_eq!(grandchild.id(), &thread_id("stelis_1_1"));
        let (last, before) = (grandchild.last(), rows(&room.engine, &id));
        let why = grandchild.spawn(&two).err().unwrap();
        assert!(matches!(why, Error::TooDeep { depth: 2, most: 2, .. }), "{why}");
        assert!(why.to_string().contains("STELIS_MAX_DEPTH"), "{why}");
        assert_eq!((grandchild.last(), rows(&room.engine, &id)), (last, before));
        let none = root.spawn(&Spawn { max_depth: 0, ..called("x") }).err().unwrap();
        assert!(matches!(none, Error::TooDeep { depth: 0, most: 0, .. }), "{none}");
    });
}

#[test]
fn what_must_stay_or_the_room_left_can_be_too_much_or_too_little_and_says_the_numbers() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let pin = root.say(user(&"keep this. ".repeat(400))).unwrap();
        root.pin(pin).unwrap();
        let last = root.last();
        let tight = Spawn { ratio: ratio(0.99), ..called("x") };
        let why = root.spawn(&tight).err().unwrap();
        assert!(matches!(why, Error::TooMuch(_)), "{why}");
        let small = Spawn { window: 2_000, ratio: ratio(0.1), lends: false, ..called("x") };
        let why = root.spawn(&small).err().unwrap();
        assert!(matches!(why, Error::NoRoom(_)), "{why}");
        assert!(why.to_string().contains("window of 2000"), "{why}");
        let cap = Spawn { anchor_cap: 10, ..called("x") };
        let why = root.spawn(&cap).err().unwrap();
        assert!(matches!(why, Error::AnchorCap { cap: 10, .. }), "{why}");
        assert_eq!((root.last(), rows(&room.engine, &id).len()), (last, 0));
    });
}

#[test]
fn names_count_up_and_one_that_is_taken_is_refused() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut one = root.spawn_free(&called("a")).unwrap();
        let two = root.spawn_free(&called("b")).unwrap();
        let below = one.spawn_free(&called("c")).unwrap();
        let own = Spawn { name: Some(thread_id("research")), ..called("d") };
        let mut research = root.spawn_free(&own).unwrap();
        let under = research.spawn_free(&called("e")).unwrap();
        let names = [one.id(), two.id(), below.id(), research.id(), under.id()];
        assert_eq!(
            names,
            ["stelis_1", "stelis_2", "stelis_1_1", "research", "research_1"].map(thread_id).each_ref()
        );
        let last = root.last();
        let why = root.spawn_free(&own).err().unwrap().to_string();
        assert!(why.contains("has a thread research already"), "{why}");
        assert_eq!(root.last(), last);
    });
}

#[test]
fn a_child_has_its_own_prompt_after_its_parents_and_its_own_tools_in_place_of_them() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        root.set_up(setup("You are the root.")).unwrap();
        let child = root.spawn(&called("x")).unwrap();
        assert_eq!(child.setup().unwrap().tools, setup("").tools);
        assert_eq!(words(&child)[0], "system: You are the root.");
        let own = Setup { system: Some("You write code.".into()), ..Setup::default() };
        let own = Setup { tools: komado_core::raw::RawJson::parse("[]").ok(), ..own };
        let other = root.spawn(&Spawn { setup: Some(own.clone()), ..called("y") }).unwrap();
        assert_eq!(words(&other)[0], "system: You are the root.\n\nYou write code.");
        assert_eq!(other.setup().unwrap().tools, own.tools);
        // The root's tools are not offered there, so they do not count.
        let slice = |thread: &komado_engine::Thread<'_>| thread.share().unwrap().unwrap().slices[0].tokens;
        assert!(slice(&other) > 0 && slice(&child) > 0);
        let mut nested = child;
        let below = nested.spawn(&Spawn { setup: Some(own), ..called("z") }).unwrap();
        assert!(slice(&below) < slice(&nested), "{} {}", slice(&below), slice(&nested));
    });
}

#[test]
fn the_first_entries_of_a_child_are_its_share_and_its_setup_and_its_header_names_its_anchor() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let own = setup("You write code.");
        let spawn = Spawn {
            setup: Some(own.clone()),
            chronicle_prompt: Some("このセッションで行った作業を要約してください".into()),
            lends: false,
            ..called("x")
        };
        let child = root.spawn_free(&spawn).unwrap();
        let Entry::Share(share) = child.record(1).unwrap().entry else { panic!() };
        assert_eq!((share.window, share.lends, share.held_by), (WINDOW, false, None));
        assert_eq!(share.chronicle_prompt, spawn.chronicle_prompt);
        assert_eq!(child.record(2).unwrap().entry, Entry::Setup(own));
        let parent = child.header().parent.clone().unwrap();
        assert_eq!((parent.thread, parent.seq), (thread_id("root"), root.last()));
        drop((child, root));
        let child = room.engine.open(&id, &thread_id("stelis_1"), OpenMode::Write).unwrap();
        assert_eq!(child.status().unwrap(), komado_core::thread::ThreadStatus::Active);
    });
}
