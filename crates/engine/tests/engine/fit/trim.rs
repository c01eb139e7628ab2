//! Old outputs become placeholders: many at once, the stale ones first, the recent ones and pins never.

use super::{ask, begin, fit, ours, read, run, tell, text};
use crate::engine::room::{Room, call, calls, everywhere, result_with_output, words};
use komado_core::Seq;
use komado_core::budget::{Budget, BudgetRule, Policy, Preset, ToolBudget};
use komado_core::journal::EditKind;
use komado_core::ladder::Rung;
use komado_engine::fit::FitResult;

/// The entries that the first edit shows in short.
fn trimmed(fitted: &FitResult) -> Vec<Seq> {
    let done = &fitted.done[0];
    assert_eq!((done.rung, done.edit.kind), (Rung::Trim, EditKind::Trim));
    assert!(done.edit.hide.is_empty() && done.edit.show.is_empty());
    done.edit.replace.iter().map(|replace| replace.seq).collect()
}

#[test]
fn old_outputs_leave_together_oldest_first_and_only_as_many_as_needed() {
    everywhere(|room| {
        let mut root = room.root(&begin(room));
        let outputs: Vec<Seq> = (0..9).map(|n| read(&mut root, &format!("f{n}.rs"), 790)).collect();
        let before = root.view().tokens();
        let fitted = fit(&mut root, &ours(|_| {}));
        assert_eq!((fitted.done.len(), fitted.verdict.rule), (1, BudgetRule::HardGate));
        // One edit: three of the oldest, and of the fourth as much as brings the view down to the low mark.
        assert_eq!(trimmed(&fitted), outputs[..4]);
        assert!((4_190..=4_204).contains(&fitted.after), "{before} to {}", fitted.after);
        let view = words(&root);
        let lines = text(r#"output of read_file {"path":"f0.rs"}:"#, 790).lines().count();
        assert_eq!(view[2], format!("tool #c1: [tool output trimmed; ref=@{}; {lines} lines]", outputs[0]));
        let part = &view[8];
        assert!(part.starts_with("tool #c7: output of read_file") && part.contains("left out"), "{part}");
        assert!(view[10].starts_with("tool #c9: output of read_file"), "{}", view[10]);
    });
}

#[test]
fn reads_that_a_later_read_or_write_has_made_stale_go_before_older_ones() {
    let room = Room::memory();
    let mut root = room.root(&begin(&room));
    let oldest = read(&mut root, "old.rs", 790);
    let other = run(&mut root, "run", r#"{"cmd":"make"}"#, 1_590);
    let again = read(&mut root, "again.rs", 900);
    let written = read(&mut root, "./written.rs", 900);
    let asked = run(&mut root, "run", r#"{"cmd":"make test"}"#, 900);
    read(&mut root, "again.rs", 600);
    run(&mut root, "write_file", r#"{"path":"written.rs","text":"…"}"#, 600);
    run(&mut root, "run", r#"{"cmd":"make test"}"#, 600);
    tell(&mut root, "so far", 430);
    let fitted = fit(&mut root, &ours(|_| {}));
    // Three are stale; one more is needed, and that is the oldest. The second oldest stays.
    assert_eq!(trimmed(&fitted), [oldest, again, written, asked]);
    assert!(other < again && fitted.after <= 4_204, "{}", fitted.after);
}

#[test]
fn stale_outputs_alone_go_when_they_are_enough() {
    let room = Room::memory();
    let mut root = room.root(&begin(&room));
    read(&mut root, "old.rs", 300);
    let stale = [read(&mut root, "a.rs", 1_900), read(&mut root, "b.rs", 1_900)];
    read(&mut root, "between.rs", 400);
    read(&mut root, "a.rs", 1_300);
    read(&mut root, "b.rs", 1_300);
    let fitted = fit(&mut root, &ours(|_| {}));
    assert_eq!(trimmed(&fitted), stale);
    assert!(fitted.after <= 4_204, "{}", fitted.after);
}

#[test]
fn recent_outputs_pins_and_small_ones_are_spared() {
    let room = Room::memory();
    let mut root = room.root(&begin(&room));
    let pinned = read(&mut root, "pinned.rs", 790);
    root.pin(pinned).unwrap();
    let small = read(&mut root, "small.rs", 40);
    let old: Vec<Seq> = (0..7).map(|n| read(&mut root, &format!("f{n}.rs"), 790)).collect();
    let recent = [read(&mut root, "g.rs", 790), read(&mut root, "h.rs", 790)];
    let fitted = fit(&mut root, &ours(|_| {}));
    let gone = trimmed(&fitted);
    assert_eq!(gone, old[..gone.len()]);
    assert!(gone.len() >= 5, "{gone:?}");
    for seq in [pinned, small].iter().chain(&recent) {
        assert!(!gone.contains(seq), "@{seq} in {gone:?}");
    }
    assert!(words(&root)[2].starts_with("tool #c1: output of read_file"), "{}", words(&root)[2]);
}

#[test]
fn a_placeholder_names_the_ref_of_an_output_that_is_kept_apart() {
    everywhere(|room| {
        let id = begin(room);
        let mut root = room.root(&id);
        let whole = "line\n".repeat(2_000);
        root.say(calls(vec![call("a", "make", "{}")])).unwrap();
        let seq =
            root.say(result_with_output(room, &id, "a", &text("head of", 790), whole.as_bytes())).unwrap();
        for n in 0..8 {
            read(&mut root, &format!("f{n}.rs"), 790);
        }
        let fitted = fit(&mut root, &ours(|_| {}));
        assert_eq!(trimmed(&fitted)[0], seq);
        let blob = room.engine.store().put_blob(&id, &mut whole.as_bytes()).unwrap().id;
        assert_eq!(words(&root)[2], format!("tool #a: [tool output trimmed; ref={blob}; 2000 lines]"));
        let mut back = String::new();
        std::io::Read::read_to_string(&mut root.blob(&blob).unwrap(), &mut back).unwrap();
        assert_eq!(back, whole);
    });
}

#[test]
fn outputs_over_their_own_budget_are_trimmed_with_room_to_spare() {
    for preset in [Preset::Komado, Preset::Seed001] {
        let room = Room::memory();
        let mut root = room.root(&begin(&room));
        let policy = Policy { tools: ToolBudget::Tokens(10_000), ..preset.policy() };
        let budget = Budget::new(policy, 40_000, &[]);
        let outputs: Vec<Seq> = (0..112).map(|n| read(&mut root, &format!("f{n}.rs"), 90)).collect();
        // More talk than what is spared at the end.
        (0..80).for_each(|n| assert!(tell(&mut root, &format!("step {n}"), 90) > 0));
        let verdict = root.will_manage(&budget).unwrap();
        assert_eq!((verdict.rule, verdict.tool_tokens), (BudgetRule::ToolBudget, 112 * 90));
        assert!(verdict.tokens < budget.act_at);
        let fitted = fit(&mut root, &budget);
        let gone = trimmed(&fitted);
        assert_eq!(gone, outputs[..gone.len()], "{}", preset.name());
        let left = root.will_manage(&budget).unwrap();
        assert_eq!(left.rule, BudgetRule::Fits);
        assert!(left.tool_tokens <= 5_000, "{}: {}", preset.name(), left.tool_tokens);
        // So it is not done again with the next output, nor the one after.
        for n in 0..20 {
            read(&mut root, &format!("g{n}.rs"), 90);
            assert!(fit(&mut root, &budget).done.is_empty());
        }
    }
}

#[test]
fn where_outputs_hold_too_little_nothing_is_trimmed() {
    let room = Room::memory();
    let mut root = room.root(&begin(&room));
    // 15 % of what is usable are 1,050: less is not worth a break.
    let outputs = [read(&mut root, "a.rs", 500), read(&mut root, "b.rs", 500)];
    for n in 0..70 {
        tell(&mut root, &format!("step {n}"), 100);
    }
    ask(&mut root, "and?", 10);
    let fitted = fit(&mut root, &ours(|_| {}));
    assert_eq!(fitted.done[0].rung, Rung::Condense);
    assert!(outputs.iter().all(|seq| !root.view().shows(*seq)));
}

#[test]
fn presets_that_know_no_trim_never_trim() {
    for preset in [Preset::Seed000, Preset::Seed002] {
        let room = Room::memory();
        let mut root = room.root(&begin(&room));
        let budget = Budget::new(preset.policy(), 10_000, &[]);
        for n in 0..40 {
            read(&mut root, &format!("f{n}.rs"), 400);
            let fitted = fit(&mut root, &budget);
            assert!(fitted.done.iter().all(|done| done.rung != Rung::Trim), "{}: {fitted:?}", preset.name());
        }
    }
}
