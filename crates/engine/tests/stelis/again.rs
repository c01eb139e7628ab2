//! Threads that go on after something went wrong: a spawn cut short, an anchor condensed away, a window too small.

use crate::stelis::kit::{anchor, begun, called, check_tree, done, ratio, resume, row, sees, status};
use crate::stelis::room::{Room, check, everywhere, model, thread_id, user, words};
use komado_core::journal::{Ending, Entry, Setup, Share};
use komado_core::thread::{Branch, ThreadStatus};
use komado_core::{Meter, Span};
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::stelis::{ChronicleBy, Finish, ResumeChild, Spawn};
use komado_engine::{Error, Thread};
use komado_store::OpenMode;
use komado_testkit::Scripted;

/// What the anchors in view say of `child`, the newest last.
fn shown(parent: &Thread<'_>, child: &str) -> Vec<String> {
    words(parent).into_iter().filter(|line| line.contains(&format!("ID: {child}"))).collect()
}

#[test]
fn a_child_whose_spawn_was_cut_short_has_a_share_and_can_be_resumed_or_rewound() {
    for opened in ["root", "stelis_1"] {
        everywhere(|room| {
            let id = begun(room);
            let mut root = room.root(&id);
            root.spawn_free(&Spawn { ratio: ratio(0.5), ..called("one") }).unwrap();
            root.spawn_free(&called("two")).unwrap();
            let (first, second) = (row(&room.engine, &id, "stelis_1"), room.look(&id, "stelis_2"));
            // The same session, as a crash before the share leaves it.
            let other = room.session("other");
            let mut root = room.root(&other);
            root.say(user("please build")).unwrap();
            let Entry::Anchor(said) = room.look(&id, "root").record(3).unwrap().entry else { panic!() };
            let store = room.engine.store();
            store.put_branch(&Branch { session: other.clone(), told: false, ..first }).unwrap();
            let seq = root.append(Entry::Anchor(said)).unwrap();
            let mut header = second.header().clone();
            (header.session, header.thread) = (other.clone(), thread_id("stelis_1"));
            header.parent.as_mut().unwrap().seq = seq;
            store.spawn(&header).unwrap();
            drop((root, second));
            drop(room.engine.open(&other, &thread_id(opened), OpenMode::Write).unwrap());
            drop(room.root(&other));
            let child = room.look(&other, "stelis_1");
            assert_eq!(child.status().unwrap(), ThreadStatus::Aborted);
            let share: Share = child.share().unwrap().expect("a share");
            assert_eq!((share.slices.len(), share.slices[0].ratio), (1, ratio(0.5)));
            assert!(sees(&child, "(stelis_1) has started"), "{:?}", words(&child));
            check(&child);
            check_tree(&room.engine, &other);
            drop(child);
            let mut child = room.thread(&other, "stelis_1");
            child.rewind(0).unwrap_err();
            child.rewind(1).unwrap();
            assert_eq!(child.shares(1_000).unwrap().unwrap().own, 500);
            child.close(Ending::Aborted, None).unwrap();
            drop(child);
            room.engine.resume_child(&other, &thread_id("stelis_1"), &resume()).unwrap();
            assert!(sees(&room.look(&other, "stelis_1"), "please build"));
            check_tree(&room.engine, &other);
        });
    }
}

#[test]
fn a_child_that_an_older_process_left_without_a_share_never_runs() {
    let room = Room::memory();
    let id = begun(&room);
    let mut root = room.root(&id);
    drop(root.spawn_free(&called("one")).unwrap());
    let mut header = room.look(&id, "stelis_1").header().clone();
    drop(root);
    header.thread = thread_id("bare");
    room.engine.store().spawn(&header).unwrap();
    let mut bare = room.thread(&id, "bare");
    bare.finish(Finish::aborted(None)).unwrap();
    for why in [bare.rewind(0).unwrap_err(), {
        drop(bare);
        room.engine.resume_child(&id, &thread_id("bare"), &resume()).unwrap_err()
    }] {
        assert!(matches!(why, Error::NeverBegun { .. }), "{why}");
        assert!(why.to_string().contains("start another one"), "{why}");
    }
}

#[test]
fn a_child_whose_anchor_was_condensed_away_gets_another_one_when_it_is_resumed() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("x")).unwrap();
        child.say(user("work")).unwrap();
        child.end(&mut root, done("RESULT-ONE")).unwrap();
        let last = root.last();
        root.condense(vec![Span::new(1, last)], "short", "by_hand").unwrap();
        assert!(shown(&root, "stelis_1").is_empty());
        let why = room.engine.resume_child(&id, &thread_id("stelis_1"), &resume()).unwrap_err();
        assert!(matches!(why, Error::ParentBusy { .. }), "{why}");
        drop(root);
        room.engine.resume_child(&id, &thread_id("stelis_1"), &resume()).unwrap();
        let root = room.look(&id, "root");
        let [now] = &shown(&root, "stelis_1")[..] else { panic!("{:?}", words(&root)) };
        assert!(now.contains("in progress"), "{now}");
        drop(root);
        let mut child = room.thread(&id, "stelis_1");
        assert!(sees(&child, "(stelis_1) has started"), "{:?}", words(&child));
        check(&child);
        child.say(user("more work")).unwrap();
        drop(child);
        room.engine.finish_child(&id, &thread_id("stelis_1"), done("RESULT-TWO")).unwrap();
        let root = room.look(&id, "root");
        let [now] = &shown(&root, "stelis_1")[..] else { panic!("{:?}", words(&root)) };
        assert!(now.contains("RESULT-TWO") && !now.contains("in progress"), "{now}");
        check(&root);
    });
}

#[test]
fn a_child_that_no_longer_fits_is_resumed_with_less() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&Spawn { window: 5_000, ..called("x") }).unwrap();
        child.say(user("work")).unwrap();
        child.end(&mut root, done("done")).unwrap();
        root.set_up(Setup { system: Some("many words ".repeat(500)), ..Setup::default() }).unwrap();
        drop(root);
        let small = ResumeChild::new(5_000);
        let name = thread_id("stelis_1");
        let why = room.engine.resume_child(&id, &name, &small).unwrap_err();
        assert!(matches!(why, Error::TooMuch(_)), "{why}");
        room.engine.resume_child(&id, &name, &ResumeChild { ratio: Some(ratio(0.5)), ..small }).unwrap();
        assert_eq!(status(room, &id, "stelis_1"), ThreadStatus::Active);
        assert!((row(&room.engine, &id, "stelis_1").window_ratio - 0.5).abs() < 1e-9);
    });
}

#[test]
fn a_thread_that_cannot_hold_one_more_anchor_starts_no_other() {
    let room = Room::memory();
    let id = begun(&room);
    let mut root = room.root(&id);
    let small = Spawn { window: 2_000, ..called("x") };
    let mut started = 0;
    let (why, last) = loop {
        let last = root.last();
        match root.spawn_free(&small) {
            Ok(_) => started += 1,
            Err(why) => break (why, last),
        }
        assert!(started < 200, "nobody refuses");
    };
    assert!(matches!(why, Error::Crowded { room: 2_000, most: 1_900, .. }), "{why}");
    assert!(why.to_string().contains("end one of those"), "{why}");
    assert_eq!(root.last(), last);
    assert!(root.view().tokens() <= 2_000, "{}", root.view().tokens());
    drop(root);
    room.engine.finish_child(&id, &thread_id("stelis_1"), done("ended")).unwrap();
    room.root(&id).spawn_free(&small).unwrap();
    check_tree(&room.engine, &id);
}

#[test]
fn a_chronicle_told_again_in_vain_says_so_and_is_no_declined_summary() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("x")).unwrap();
        child.say(user("read /etc/motd")).unwrap();
        child.end(&mut root, done("first")).unwrap();
        drop(root);
        let mut dead = Scripted::new(Meter::Bytes4).fails("the line is dead");
        let telling = ChronicleBy::By { by: &mut dead, settings: CondenseSettings::default() };
        let told = room.engine.write_chronicle(&id, &thread_id("stelis_1"), telling).unwrap();
        assert!(told.declined.unwrap().contains("the line is dead"));
        let child = room.look(&id, "stelis_1");
        let lost = (1..=child.last()).find_map(|seq| match child.record(seq).unwrap().entry {
            Entry::Lost(reply) => Some(reply.finish),
            _ => None,
        });
        assert_eq!(lost.as_deref(), Some("untold"));
    });
}

#[test]
fn ending_with_empty_words_ends_the_child_by_the_digest_and_says_so() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("x")).unwrap();
        child.say(user("read /etc/motd")).unwrap();
        let finished = child.end(&mut root, done(" ")).unwrap();
        assert!(finished.declined.unwrap().contains("empty"));
        assert!(finished.chronicle.unwrap().text.contains("/etc/motd"));
        assert_eq!(status(room, &id, "stelis_1"), ThreadStatus::Completed);
    });
}

#[test]
fn a_child_that_is_let_go_of_is_counted() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        root.settle().unwrap();
        let before = room.engine.session(&id).unwrap().counters;
        let mut child = root.spawn(&called("x")).unwrap();
        child.say(model("done")).unwrap();
        drop(child.detach().unwrap());
        assert_ne!(room.engine.session(&id).unwrap().counters, before);
    });
}

#[test]
fn a_fork_that_has_not_said_its_share_yet_is_not_taken_for_held() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("x")).unwrap();
        child.say(user("work")).unwrap();
        let mut header = child.header().clone();
        header.thread = thread_id("other");
        let base = komado_core::thread::Moment { thread: thread_id("stelis_1"), seq: child.last() };
        header.base = Some(base);
        let store = room.engine.store();
        store
            .put_branch(&Branch {
                thread: header.thread.clone(),
                told: false,
                ..row(&room.engine, &id, "stelis_1")
            })
            .unwrap();
        store.spawn(&header).unwrap();
        assert!(room.engine.recover(&id).unwrap().is_empty());
        assert_eq!(status(room, &id, "other"), ThreadStatus::Active);
        let fork = room.look(&id, "other");
        let row = komado_core::thread::branch(fork.header(), fork.source()).unwrap();
        assert_eq!(row.held_by, None);
    });
}

#[test]
fn an_anchor_says_whose_numbers_stand_in_it_and_holds_no_control_characters() {
    let room = Room::memory();
    let id = begun(&room);
    let mut root = room.root(&id);
    for (label, told, line) in [
        ("a\n\u{1b}[2Jb", "look at (@2)", "- ID: stelis_1 (an @N below is stelis_1@N)\n"),
        ("plain", "look at stelis_1@2, or ask a@b.org", "- ID: stelis_2\n"),
        ("実装する", "詳細は @2 を見る", "- ID: stelis_3（以下の @N は stelis_3@N）\n"),
    ] {
        let mut child = root.spawn(&called(label)).unwrap();
        let name = child.id().to_string();
        assert!(!anchor(&root, &name).contains("@N"));
        child.say(user("work")).unwrap();
        child.end(&mut root, done(told)).unwrap();
        let text = anchor(&root, &name);
        assert!(text.contains(line), "{text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(!words(&root).iter().any(|line| line.contains('\u{1b}')));
    }
}

#[test]
fn the_digest_keeps_what_came_of_ended_children() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        for (label, result) in [("Ship it", "DEPLOYED-v7.3.1"), ("Ship it", "DEPLOYED-v7.3.2")] {
            let mut child = root.spawn(&called(label)).unwrap();
            child.say(user("go")).unwrap();
            let telling = ChronicleBy::Words("## What\nAll hosts run it.".into());
            child
                .end(&mut root, Finish { ending: Ending::Completed, result: Some(result.into()), telling })
                .unwrap();
        }
        for n in 0..20 {
            root.say(user(&format!("and then number {n} of these many words"))).unwrap();
            root.say(model("yes, that was done as you said it should be done")).unwrap();
        }
        let all = [Span::new(1, root.last())];
        let mut by = ByDigest::new(Meter::Bytes4);
        let composed = komado_engine::condense::compose(
            root.source(),
            root.view(),
            &all,
            &CondenseSettings::default(),
            &mut by,
            Meter::Bytes4,
            400,
        );
        let text: String = composed.unwrap().unwrap().show.into_iter().map(|show| show.text).collect();
        for part in ["Ship it (stelis_1): DEPLOYED-v7.3.1: All hosts run it.", "(stelis_2): DEPLOYED-v7.3.2"]
        {
            assert!(text.contains(part), "{text}");
        }
    });
}
