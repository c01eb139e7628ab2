//! Spawned threads: bars 11 and 12.

use crate::bars::kit::{WINDOW, begun, called, check_tree, sees, status};
use crate::bars::room::{everywhere, model, user, words};
use komado_core::thread::ThreadStatus;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Bar 11.
#[test]
fn a_panic_inside_a_nested_child_leaves_a_consistent_tree_and_the_parent_goes_on() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut one = root.spawn(&called("one")).unwrap();
            one.say(user("outer work")).unwrap();
            let mut two = one.spawn(&called("two")).unwrap();
            two.say(user("inner work")).unwrap();
            let mut three = two.spawn(&called("three")).unwrap();
            three.say(user("innermost work")).unwrap();
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        for thread in ["stelis_1", "stelis_1_1", "stelis_1_1_1"] {
            assert_eq!(status(room, &id, thread), ThreadStatus::Aborted);
        }
        root.tend().unwrap();
        root.say(model("and on")).unwrap();
        check_tree(&room.engine, &id);
        drop(root);
        let root = room.root(&id);
        assert!(sees(&root, "(aborted)") && sees(&root, "and on"));
    });
}

/// Bar 12.
#[test]
fn a_child_two_levels_down_sees_the_roots_slice_whatever_the_root_does() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("one")).unwrap();
        child.say(user("between")).unwrap();
        let mut grandchild = child.spawn(&called("two")).unwrap();
        grandchild.say(user("deep down")).unwrap();
        let before = words(&grandchild);
        assert!(sees(&grandchild, "please build the calculator") && sees(&grandchild, "between"));
        for n in 0..50 {
            root.say(user(&format!("the root goes on {n}"))).unwrap();
            root.say(model("yes")).unwrap();
        }
        root.condense(vec![komado_core::Span::new(1, 2)], "S", "by_hand").unwrap();
        let earlier = child.last() - 1;
        child.rewind(earlier).unwrap();
        drop(child);
        assert_eq!(words(&grandchild), before);
        let shares = grandchild.shares(WINDOW).unwrap().unwrap();
        let above: Vec<u64> = shares.above.iter().map(|protected| protected.share).collect();
        assert_eq!((above, shares.own), (vec![20_000, 16_000], 64_000));
    });
}
