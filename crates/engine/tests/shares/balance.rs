//! Sharing out otherwise: slices are kept or cut anew, and nobody is left without room.

use crate::shares::kit::{
    WINDOW, counted, id, policy, ratio, root, seen_above, share, spawn, talk, words_above,
};
use crate::shares::room::{Room, everywhere, setup, thread_id, user};
use komado_core::journal::Setup;
use komado_engine::share::{ShareBalance, SliceRecut};
use komado_engine::{Error, Spawn};
use komado_store::{BranchFilter, OpenMode};

fn balance(of: Option<f64>, slices: SliceRecut) -> ShareBalance {
    ShareBalance { ratio: of.map(ratio), window: WINDOW, buffer: 0.1, slices }
}

#[test]
fn balancing_never_makes_a_slice_smaller_and_the_thread_itself_pays() {
    everywhere(|room| {
        let (_, mut root) = root(room, 60, 400);
        let mut child = root.spawn(&spawn(0.5)).unwrap();
        let (before, seen) = (share(&child), seen_above(&child));
        let seq = child.balance(balance(Some(0.9), SliceRecut::Keep)).unwrap();
        let now = share(&child);
        assert_eq!((now.slices[0].ratio, now.slices[0].tokens), (ratio(0.9), before.slices[0].tokens));
        assert_eq!((child.view().share(), seen_above(&child)), (Some(seq), seen));
        let shares = child.shares(WINDOW).unwrap().unwrap();
        assert_eq!((shares.above[0].share, shares.own), (2_000, 18_000));
        assert_eq!(shares.owed, u64::from(before.tokens()) - 2_000);
        assert_eq!(shares.room(), WINDOW - u64::from(before.tokens()));
        let rows = room.engine.store().branches(child.session(), BranchFilter::All).unwrap();
        assert!((rows.last().unwrap().window_ratio - 0.9).abs() < 1e-9, "the table follows");
    });
}

#[test]
fn a_share_that_would_leave_no_room_is_refused_and_changes_nothing() {
    let room = Room::memory();
    let (_, mut root) = root(&room, 90, 400);
    let mut child = root.spawn(&spawn(0.1)).unwrap();
    let last = child.last();
    let tight = ShareBalance { window: 18_200, ..balance(None, SliceRecut::Keep) };
    let why = child.balance(tight).unwrap_err();
    assert!(matches!(&why, Error::NoRoom(no_room) if no_room.above[0].2 > 15_000), "{why}");
    assert_eq!(child.last(), last);
    let why = root.balance(balance(Some(0.5), SliceRecut::Keep)).unwrap_err();
    assert!(why.to_string().contains("root was not spawned"), "{why}");
}

#[test]
fn a_refresh_shows_what_the_threads_above_say_now_and_how_the_child_came_to_be() {
    everywhere(|room| {
        let (_, mut root) = root(room, 60, 400);
        let mut child = root.spawn(&spawn(0.8)).unwrap();
        talk(&mut child, 2, 10);
        let mut grandchild = child.spawn(&spawn(0.8)).unwrap();
        talk(&mut root, 30, 400);
        root.say(user("the newest wish")).unwrap();
        talk(&mut child, 1, 10);
        assert!(!words_above(&grandchild).contains("newest wish"));
        grandchild.balance(balance(None, SliceRecut::Refresh)).unwrap();
        let words = words_above(&grandchild);
        assert!(words.contains("newest wish") && words.contains("stelis_1 answers 0"), "{words}");
        for name in ["thread stelis_1 has", "thread stelis_1_1 has"] {
            assert!(words.contains(name), "no anchor of {name}: {words}");
        }
        let shares = grandchild.shares(WINDOW).unwrap().unwrap();
        assert!(shares.above.iter().all(|above| above.used <= above.share * 9 / 10), "{shares:?}");
        assert_eq!(counted(room, &grandchild), grandchild.view().tokens());
    });
}

#[test]
fn a_refresh_in_the_middle_of_calls_leaves_them_out() {
    let room = Room::memory();
    let (_, mut root) = root(&room, 2, 10);
    let mut child = root.spawn(&spawn(0.8)).unwrap();
    root.say(crate::shares::room::calls(vec![crate::shares::room::call("c1", "read", "{}")])).unwrap();
    child.balance(balance(None, SliceRecut::Refresh)).unwrap();
    assert!(seen_above(&child).iter().all(|message| message.calls().next().is_none()));
}

#[test]
fn a_changed_ratio_reaches_every_thread_below_or_none() {
    everywhere(|room| {
        let (session, mut root) = root(room, 60, 400);
        let free = |of| Spawn { lends: false, ..spawn(of) };
        let mut child = root.spawn_free(&free(0.8)).unwrap();
        talk(&mut child, 60, 400);
        let grandchild = child.spawn_free(&free(0.5)).unwrap();
        drop((root, child, grandchild));
        let look = |name: &str| share(&room.look(&session, name));
        let said = room
            .engine
            .balance_below(&session, &id("stelis_1"), balance(Some(0.7), SliceRecut::Keep))
            .unwrap();
        assert_eq!(
            said.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["stelis_1", "stelis_1_1"]
        );
        let ratios = |name: &str| look(name).slices.iter().map(|slice| slice.ratio.get()).collect::<Vec<_>>();
        assert_eq!((ratios("stelis_1"), ratios("stelis_1_1")), (vec![0.7], vec![0.7, 0.5]));
        // 0.1 leaves the grandchild 1,000 of 2,000, and the child's slice alone takes 7,000.
        let before = (look("stelis_1"), look("stelis_1_1"));
        let why = room.engine.balance_below(&session, &id("stelis_1"), balance(Some(0.1), SliceRecut::Keep));
        assert!(matches!(why, Err(Error::NoRoom(_))), "{why:?}");
        assert_eq!((look("stelis_1"), look("stelis_1_1")), before);
        // From the root everyone is told of a new window; a ratio it has none.
        let all =
            room.engine.balance_below(&session, &id("root"), balance(None, SliceRecut::Refresh)).unwrap();
        assert_eq!(all.len(), 2);
        assert!(
            room.engine.balance_below(&session, &id("root"), balance(Some(0.5), SliceRecut::Keep)).is_err()
        );
    });
}

#[test]
fn a_thread_that_waits_is_given_its_new_share_and_one_that_has_ended_is_not() {
    everywhere(|room| {
        let (session, mut root) = root(room, 3, 10);
        let child = root.spawn(&spawn(0.8)).unwrap();
        child.pause(&mut root, None).unwrap();
        drop(root);
        let all =
            |of| room.engine.balance_below(&session, &id("stelis_1"), balance(Some(of), SliceRecut::Keep));
        assert_eq!(all(0.6).unwrap().len(), 1);
        let resume = komado_engine::stelis::ResumeChild::new(WINDOW);
        room.engine.resume_child(&session, &id("stelis_1"), &resume).unwrap();
        assert_eq!(share(&room.look(&session, "stelis_1")).slices[0].ratio, ratio(0.6));
        let end = komado_engine::Finish::aborted(None);
        room.engine.finish_child(&session, &id("stelis_1"), end).unwrap();
        let why = all(0.7).unwrap_err().to_string();
        assert!(why.contains("closed at"), "{why}");
    });
}

#[test]
fn a_thread_that_is_open_elsewhere_keeps_the_others_from_being_told() {
    let room = Room::memory();
    let (session, mut root) = root(&room, 2, 10);
    let one = root.spawn_free(&spawn(0.8)).unwrap();
    let (last, name) = (one.last(), one.header().thread.clone());
    drop(one);
    let two = root.spawn(&spawn(0.8)).unwrap();
    assert!(room.engine.balance_below(&session, &id("root"), balance(None, SliceRecut::Keep)).is_err());
    assert_eq!(room.engine.open(&session, &name, OpenMode::Read).unwrap().last(), last);
    drop(two);
}

#[test]
fn tools_of_its_own_take_those_of_the_threads_above_off_the_count_and_back_on() {
    everywhere(|room| {
        let (_, mut root) = root(room, 3, 10);
        root.set_up(setup("親切に。")).unwrap();
        let mut child = root.spawn(&spawn(0.8)).unwrap();
        let full = share(&child).tokens();
        assert_eq!(counted(room, &child), child.view().tokens());
        child.set_up(setup("own")).unwrap();
        let less = share(&child).tokens();
        assert!(less < full, "{less} of {full}");
        assert_eq!(counted(room, &child), child.view().tokens());
        // Only words: the tools above are offered again.
        child.set_up(Setup { system: Some("only words".into()), ..Setup::default() }).unwrap();
        assert_eq!(share(&child).tokens(), full);
        assert_eq!(counted(room, &child), child.view().tokens());
        let last = child.last();
        child.set_up(Setup { system: Some("other words".into()), ..Setup::default() }).unwrap();
        assert_eq!(child.last(), last + 1, "the share was said again for nothing");
    });
}

#[test]
fn a_rewind_takes_back_what_was_said_and_not_the_share() {
    everywhere(|room| {
        let (_, mut root) = root(room, 60, 400);
        root.set_up(setup("親切に。")).unwrap();
        let mut child = root.spawn(&spawn(0.5)).unwrap();
        drop(root);
        let begun = child.last();
        child.set_up(setup("own")).unwrap();
        child.say(user("one")).unwrap();
        child.balance(balance(Some(0.6), SliceRecut::Keep)).unwrap();
        for to in [begun, begun + 1, begun + 2, begun + 3] {
            let mut other = fork(room, &child, to);
            assert_eq!(share(&other).slices[0].ratio, ratio(if to < begun + 4 { 0.5 } else { 0.6 }), "@{to}");
            other.say(user("before")).unwrap();
        }
        for to in [begun + 3, begun + 2, begun + 1, begun] {
            child.rewind(to).unwrap();
            assert_eq!(share(&child).slices[0].ratio, ratio(0.6), "@{to}");
            assert_eq!(counted(room, &child), child.view().tokens(), "@{to}");
        }
        assert!(child.budget(policy(), WINDOW, &[]).is_ok());
    });
}

/// A fork of a child at a moment. Its parent is free to be written for that.
fn fork<'r>(
    room: &'r Room,
    child: &komado_engine::Thread<'_>,
    at: komado_core::Seq,
) -> komado_engine::Thread<'r> {
    let name = thread_id(&format!("at{at}"));
    child.fork(at, name.clone(), None).unwrap();
    room.engine.open(child.session(), &name, OpenMode::Write).unwrap()
}
