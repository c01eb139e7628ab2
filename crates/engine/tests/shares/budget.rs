//! The budget of a spawned thread: its share, whatever it is handed.

use crate::shares::kit::{WINDOW, counted, fit, policy, root, seen_above, share, spawn, talk, words_above};
use crate::shares::room::{Room, everywhere, user};
use komado_core::budget::Budget;
use komado_core::journal::Entry;
use komado_engine::{Error, Spawn};

#[test]
fn a_thread_that_was_not_spawned_has_the_whole_window() {
    everywhere(|room| {
        let (_, root) = root(room, 2, 10);
        assert_eq!(root.budget(policy(), 128_000, &["m"]).unwrap(), Budget::new(policy(), 128_000, &["m"]));
        assert_eq!((root.share().unwrap(), root.shares(128_000).unwrap()), (None, None));
    });
}

#[test]
fn a_child_of_full_threads_has_the_numbers_of_the_seed() {
    everywhere(|room| {
        // Enough was said for every slice to be full.
        let (_, mut root) = root(room, 120, 600);
        let spawn = Spawn { window: 100_000, ..spawn(0.8) };
        let mut child = root.spawn(&spawn).unwrap();
        talk(&mut child, 120, 600);
        let grandchild = child.spawn(&spawn).unwrap();
        let shares = grandchild.shares(100_000).unwrap().unwrap();
        let protected: Vec<u64> = shares.above.iter().map(|above| above.share).collect();
        assert_eq!((protected, shares.own, shares.owed), (vec![20_000, 16_000], 64_000, 0));
        for above in &shares.above {
            let most = above.share * 9 / 10;
            assert!(above.used <= most && above.used > most - 700, "{above:?}");
        }
        let budget = grandchild.budget(policy(), 100_000, &[]).unwrap();
        assert_eq!((budget.window, budget.above), (100_000, shares.used()));
        assert!((64_000..65_000).contains(&budget.room), "{}", budget.room);
        assert_eq!(counted(room, &grandchild), grandchild.view().tokens());
    });
}

#[test]
fn a_child_that_is_handed_the_whole_window_works_in_its_share_all_the_same() {
    everywhere(|room| {
        let (_, mut root) = root(room, 40, 400);
        let spawn = Spawn { lends: false, ..spawn(0.3) };
        let mut child = root.spawn(&spawn).unwrap();
        talk(&mut child, 40, 400);
        let (before, whole) = (seen_above(&child), Budget::new(policy(), WINDOW, &[]));
        let (fitted, kept_to) = fit(&mut child, whole).unwrap();
        assert!(!fitted.done.is_empty() && fitted.share.is_none());
        let own = child.view().tokens() - child.view().weight().above;
        assert!(own <= 6_000 && child.view().tokens() <= WINDOW * 9 / 10, "{own}");
        assert_eq!(kept_to, child.budget(policy(), WINDOW, &[]).unwrap());
        assert_eq!(seen_above(&child), before);
    });
}

#[test]
fn a_share_without_room_is_an_error_that_names_every_thread_and_what_to_do() {
    let room = Room::memory();
    let (_, mut root) = root(&room, 40, 400);
    let mut child = root.spawn(&spawn(0.5)).unwrap();
    talk(&mut child, 2, 10);
    // So small a window that even what is cut anew leaves too little.
    let why = child.budget(policy(), 600, &[]).unwrap_err();
    let Error::NoRoom(no_room) = &why else { panic!("{why}") };
    let text = why.to_string();
    assert_eq!((no_room.window, no_room.above.len()), (600, 1));
    for part in ["thread stelis_1", "600 tokens", "root has 300", "fewer than 256", "komado thread balance"] {
        assert!(text.contains(part), "{text}");
    }
    // Before anything is written.
    let last = child.last();
    assert!(fit(&mut child, Budget::new(policy(), 600, &[])).is_err());
    assert_eq!(child.last(), last);
}

#[test]
fn a_smaller_window_first_costs_the_thread_and_then_cuts_the_slices_from_the_same_moments() {
    everywhere(|room| {
        let (_, mut root) = root(room, 60, 400);
        let mut child = root.spawn(&spawn(0.5)).unwrap();
        talk(&mut child, 3, 10);
        let (first, before) = (share(&child), words_above(&child));
        talk(&mut root, 3, 10);
        // 9,000 of 10,000: in a window of 16,000 the thread pays, and keeps more than half of its 8,000.
        assert!(first.tokens() > 8_000);
        let (fitted, _) = fit(&mut child, Budget::new(policy(), 16_000, &[])).unwrap();
        assert_eq!((fitted.share, share(&child)), (None, first.clone()));
        // In one of 10,000 hardly anything would be left for it.
        let budget = child.budget(policy(), 10_000, &[]).unwrap();
        let (fitted, kept_to) = fit(&mut child, Budget::new(policy(), 10_000, &[])).unwrap();
        assert_eq!(kept_to, budget);
        let cut = fitted.share.expect("the slices were cut");
        let seq = cut.seq;
        assert_eq!((cut.window, cut.before, cut.after), (10_000, first.tokens(), share(&child).tokens()));
        assert!(matches!(child.record(seq).unwrap().entry, Entry::Share(_)));
        let now = share(&child);
        assert_eq!((now.window, now.slices[0].at), (10_000, first.slices[0].at));
        assert!(now.tokens() <= 4_500 && now.tokens() > 3_500, "{}", now.tokens());
        let kept = words_above(&child);
        assert!(kept.lines().all(|line| before.contains(line)) && kept.len() < before.len());
        assert!(kept.contains("root asks 59") && kept.contains("stelis_1"), "{kept}");
        assert_eq!(counted(room, &child), child.view().tokens());
        // Once is enough, and a window that is a little larger or smaller changes nothing.
        for window in [10_000, 12_400, 8_100] {
            assert_eq!(fit(&mut child, Budget::new(policy(), window, &[])).unwrap().0.share, None);
        }
        // Back in the larger one they are what they were, and once is enough again.
        let budget = child.budget(policy(), WINDOW, &[]).unwrap();
        let (fitted, kept_to) = fit(&mut child, Budget::new(policy(), WINDOW, &[])).unwrap();
        assert_eq!(kept_to, budget);
        let grown = fitted.share.expect("there is room again");
        assert_eq!((grown.before, grown.after), (now.tokens(), first.tokens()));
        assert_eq!((share(&child), words_above(&child)), (first, before));
        assert_eq!(fit(&mut child, Budget::new(policy(), WINDOW, &[])).unwrap().0.share, None);
        assert_eq!(counted(room, &child), child.view().tokens());
    });
}

#[test]
fn a_plan_cuts_nothing_and_says_what_would_be_cut() {
    let room = Room::memory();
    let (_, mut root) = root(&room, 60, 400);
    let mut child = root.spawn(&spawn(0.5)).unwrap();
    child.say(user("go on")).unwrap();
    let (last, first) = (child.last(), share(&child));
    let mut by = komado_engine::condense::ByDigest::new(child.meter());
    let budget = Budget::new(policy(), 8_000, &[]);
    let settings = komado_engine::condense::CondenseSettings::default();
    let mut ladder = komado_engine::fit::Ladder { budget, settings, by: &mut by };
    let planned = child.plan(&mut ladder).unwrap();
    assert_eq!(planned.share.map(|cut| cut.seq), Some(last + 1));
    assert_eq!((child.last(), share(&child)), (last, first));
}
