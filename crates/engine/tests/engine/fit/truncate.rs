//! A marker in place of the oldest: one, however often, and whatever stood there before.

use super::{ask, begin, fit_by, ours, read, tell};
use crate::engine::room::{Room, everywhere, words};
use komado_core::Span;
use komado_core::budget::{Budget, Policy, Preset, Truncate};
use komado_core::journal::{EditKind, ShowKind};
use komado_core::ladder::Rung;
use komado_engine::Thread;
use komado_engine::fit::FitResult;
use komado_testkit::Scripted;

/// Fits with a summariser that has nothing to say.
fn fit_speechless(root: &mut Thread<'_>, budget: &Budget) -> FitResult {
    let mut by = Scripted::new(root.meter());
    fit_by(root, budget, &mut by)
}

fn markers(view: &[String]) -> usize {
    view.iter().filter(|line| line.contains("[Earlier messages (@")).count()
}

#[test]
fn several_truncations_leave_one_marker() {
    for truncate in [Truncate::ToLow, Truncate::Half] {
        everywhere(|room| {
            let mut root = room.root(&begin(room));
            let budget = ours(|policy| {
                policy.rungs.condense = false;
                policy.rungs.truncate = truncate;
            });
            let mut rounds = 0;
            for n in 0..300 {
                tell(&mut root, &format!("step {n}"), 100);
                let fitted = fit_speechless(&mut root, &budget);
                if fitted.done.is_empty() {
                    continue;
                }
                rounds += 1;
                assert_eq!((fitted.done.len(), fitted.done[0].rung), (1, Rung::Truncate));
                let view = words(&root);
                assert_eq!(markers(&view), 1, "{truncate:?}, round {rounds}");
                // It names everything that is left out, from the first to the last.
                let hide = &fitted.done[0].edit.hide;
                assert_eq!(hide.len(), 1);
                let Span { from, to } = hide[0];
                assert_eq!(from, 2);
                let names = format!("user: [Earlier messages (@2-@{to}) are left out to save room.");
                assert!(view[1].starts_with(&names), "{}", view[1]);
                assert!(view[0].starts_with("user: please"));
                assert_eq!(root.view().edits().count(), 1);
            }
            assert!(rounds >= 4, "{truncate:?}: {rounds}");
        });
    }
}

#[test]
fn a_summary_outlives_truncations_as_long_as_there_is_something_else_to_take() {
    for truncate in [Truncate::ToLow, Truncate::Half] {
        let room = Room::memory();
        let mut root = room.root(&begin(&room));
        (0..20).for_each(|n| assert!(tell(&mut root, &format!("early {n}"), 100) > 0));
        root.condense(vec![Span::new(2, 21)], "the early steps, told in short", "by_hand").unwrap();
        let budget = ours(|policy| {
            policy.rungs.condense = false;
            policy.rungs.truncate = truncate;
        });
        let mut rounds = 0;
        for n in 0..300 {
            tell(&mut root, &format!("step {n}"), 100);
            rounds += fit_speechless(&mut root, &budget).done.len();
            let view = words(&root);
            assert_eq!(view[1], "user: the early steps, told in short", "{truncate:?}, step {n}");
            assert!(markers(&view) <= 1, "{truncate:?}, step {n}");
        }
        assert!(rounds >= 4, "{truncate:?}: {rounds}");
    }
}

#[test]
fn half_of_the_messages_after_the_first_leave_an_even_number_and_whole_units() {
    // (messages after the first, what must have left)
    for (after, gone) in [(4, 2), (5, 2), (6, 2), (7, 2), (8, 4), (10, 4), (11, 4), (12, 6)] {
        let room = Room::memory();
        let mut root = room.root(&begin(&room));
        for n in 0..after {
            tell(&mut root, &format!("step {n}"), 1_000);
        }
        // One token too many, so that half is always enough.
        let tokens = root.view().tokens();
        let mut policy = Policy { reserve: Some(0), buffer: 0.0, ..Preset::Seed002.policy() };
        policy.rungs.condense = false;
        let budget = Budget::new(policy, tokens - 1, &[]);
        let fitted = fit_speechless(&mut root, &budget);
        assert_eq!(fitted.done.len(), 1, "{after}");
        assert_eq!(fitted.done[0].edit.hide, [Span::new(2, 1 + gone)], "{after}");
        assert_eq!(
            fitted.after,
            tokens - u64::from(gone) * 1_000 + u64::from(fitted.done[0].edit.shown_tokens())
        );
    }
    // A call with its output is two messages that leave together: three may, so only the one unit does.
    let room = Room::memory();
    let mut root = room.root(&begin(&room));
    for n in 0..5 {
        read(&mut root, &format!("f{n}.rs"), 1_000);
    }
    let mut policy = Policy { reserve: Some(0), buffer: 0.0, ..Preset::Seed002.policy() };
    policy.rungs.condense = false;
    let budget = Budget::new(policy, root.view().tokens() - 1, &[]);
    let fitted = fit_speechless(&mut root, &budget);
    assert_eq!(fitted.done[0].edit.hide, [Span::new(2, 5)]);
}

#[test]
fn a_marker_says_where_to_read_on_and_stands_where_they_stood() {
    let room = Room::memory();
    let mut root = room.root(&begin(&room));
    for n in 0..80 {
        tell(&mut root, &format!("step {n}"), 100);
    }
    ask(&mut root, "and?", 10);
    let budget = ours(|policy| policy.rungs.condense = false);
    let fitted = fit_speechless(&mut root, &budget);
    let edit = &fitted.done[0].edit;
    assert_eq!((edit.kind, edit.show.len(), edit.show[0].kind), (EditKind::Truncate, 1, ShowKind::Marker));
    let to = edit.hide[0].to;
    assert_eq!(
        words(&root)[1],
        format!(
            "user: [Earlier messages (@2-@{to}) are left out to save room. They are kept: read one with \
             tool_output_cache({{\"ref_id\":\"@2\"}}).]"
        )
    );
    assert!(words(&root)[2].starts_with(&format!("assistant: step {} ", to - 1)), "{}", words(&root)[2]);
}
