//! Summaries that are not worth it or cannot be had: the view stays as it is, and what was spent is on record.

use super::{ask, begin, fit, fit_by, ours, read, tell, text};
use crate::engine::room::{Room, check, everywhere, setup, words};
use komado_core::budget::{Budget, BudgetRule, Preset};
use komado_core::journal::{Entry, Usage};
use komado_core::ladder::Rung;
use komado_core::{Seq, SessionId};
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::fit::Ladder;
use komado_engine::{Error, Thread};
use komado_testkit::Scripted;

const SUMMARY: &str = "<summary>They went through the buffer step by step and found nothing wrong.</summary>";

/// Between the soft mark and the gate, long enough for a summary to be worth it, with nothing to trim.
fn talk(room: &Room) -> SessionId {
    let id = begin(room);
    let mut root = room.root(&id);
    for n in 0..136 {
        tell(&mut root, &format!("step {n}"), 50);
    }
    let verdict = root.will_manage(&ours(|_| {})).unwrap();
    assert_eq!((verdict.rule, verdict.tokens), (BudgetRule::SoftMark, 6_810));
    id
}

#[test]
fn a_talk_at_the_soft_mark_is_condensed_when_a_summary_can_be_had() {
    // The control for the refusals below.
    let room = Room::memory();
    let mut root = room.root(&talk(&room));
    let mut by = Scripted::new(root.meter()).says(SUMMARY);
    let fitted = fit_by(&mut root, &ours(|_| {}), &mut by);
    assert_eq!((fitted.done.len(), fitted.done[0].rung, by.requests.len()), (1, Rung::Condense, 1));
    let cause = &fitted.done[0].edit.cause;
    assert_eq!((cause.model.as_deref(), cause.rule.as_str()), (Some("scripted"), "soft_mark"));
    assert_eq!(cause.usage.unwrap().output_tokens, root.meter().text(SUMMARY));
    assert!(fitted.after <= 4_204 && words(&root)[1].contains("found nothing wrong"));
}

/// Tries to fit, and finds the view as it was; gives what the journal says of the attempt.
fn in_vain(root: &mut Thread<'_>, mut by: Scripted, says: &str) -> (Option<Usage>, usize) {
    let (seen, tokens, last) = (words(root), root.view().tokens(), root.last());
    let fitted = fit_by(root, &ours(|_| {}), &mut by);
    assert!(fitted.done.is_empty(), "{says}: {fitted:?}");
    assert!(fitted.declined.len() == 1 && fitted.declined[0].contains(says), "{:?}", fitted.declined);
    assert_eq!((words(root), root.view().tokens()), (seen, tokens), "{says}");
    assert_eq!(root.last(), last + 2, "{says}");
    let Entry::Lost(lost) = root.record(last + 2).unwrap().entry else { panic!("{says}") };
    assert_eq!((lost.to, lost.finish.as_str()), (Some(last + 1), "declined"));
    assert_eq!(lost.error.as_ref(), fitted.declined.first());
    // As if it had not been tried: else the next one would wait until more is said.
    root.rewind(last).unwrap();
    (lost.usage, by.requests.len())
}

#[test]
fn an_empty_a_longer_and_a_failed_answer_change_nothing_and_are_paid_for() {
    everywhere(|room| {
        let mut root = room.root(&talk(room));
        let by = || Scripted::new(root.meter());
        let long = format!("<summary>{}</summary>", text("much", 8_000));
        let cases = [
            (by().says("<summary> </summary>"), "answered part 1 without a summary"),
            (by().says(long.clone()), "does not make the view smaller"),
            (by().fails("connection reset"), "failed on part 1: connection reset"),
        ];
        for (by, says) in cases {
            let (usage, asked) = in_vain(&mut root, by, says);
            let usage = usage.unwrap();
            assert_eq!(asked, 1);
            assert!(usage.input_tokens > 3_000, "{says}: {usage:?}");
            let answered = if says.starts_with("does not") { root.meter().text(&long) } else { 5 };
            let answered = if says.starts_with("failed") { 0 } else { answered };
            assert_eq!(usage.output_tokens, answered, "{says}");
        }
        // A window that cannot even hold the question costs nothing.
        let tiny = Scripted::new(root.meter()).within(200);
        assert_eq!(in_vain(&mut root, tiny, "the window of scripted has 200 tokens"), (None, 0));
    });
}

#[test]
fn a_summary_that_would_free_too_little_is_not_even_asked_for() {
    let room = Room::memory();
    let id = room.session("s");
    let mut root = room.root(&id);
    // Most of the view is what must stay, and of the rest most was not answered yet.
    ask(&mut root, "please", 5_000);
    for n in 0..5 {
        tell(&mut root, &format!("step {n}"), 100);
    }
    tell(&mut root, "at last", 1_350);
    let mut by = Scripted::new(root.meter()).always(SUMMARY);
    let last = root.last();
    let fitted = fit_by(&mut root, &ours(|_| {}), &mut by);
    assert_eq!((fitted.verdict.rule, fitted.done.len(), fitted.declined.len()), (BudgetRule::SoftMark, 0, 0));
    assert_eq!((by.requests.len(), root.last()), (0, last));
    // By hand it is done all the same: any gain will do.
    let mut ladder = Ladder { budget: ours(|_| {}), settings: CondenseSettings::default(), by: &mut by };
    let fitted = root.condense_now(&mut ladder).unwrap();
    assert_eq!((fitted.done.len(), by.requests.len()), (1, 1));
    assert_eq!(
        (fitted.verdict.rule, fitted.done[0].edit.cause.rule.as_str()),
        (BudgetRule::ByHand, "by_hand")
    );
}

#[test]
fn what_was_just_condensed_is_not_condensed_again() {
    for preset in Preset::ALL {
        let room = Room::memory();
        let mut root = room.root(&talk(&room));
        let budget = Budget::new(preset.policy(), 10_000, &[]);
        let mut by = Scripted::new(root.meter()).always(SUMMARY);
        let mut now = |root: &mut Thread<'_>| {
            let mut ladder =
                Ladder { budget: budget.clone(), settings: CondenseSettings::default(), by: &mut by };
            let fitted = root.condense_now(&mut ladder).unwrap();
            (fitted.done.len(), by.requests.len())
        };
        assert_eq!(now(&mut root), (1, 1), "{}", preset.name());
        let (last, seen) = (root.last(), words(&root));
        for _ in 0..3 {
            assert_eq!(now(&mut root), (0, 1), "{}", preset.name());
        }
        assert_eq!((root.last(), words(&root)), (last, seen));
        check(&root);
    }
}

#[test]
fn over_the_limit_a_failed_summary_gives_way_to_a_marker() {
    everywhere(|room| {
        let mut root = room.root(&talk(room));
        ask(&mut root, "and now?", 400);
        let last = root.last();
        let mut by = Scripted::new(root.meter()).fails("quota").always(SUMMARY);
        let fitted = fit_by(&mut root, &ours(|_| {}), &mut by);
        assert_eq!(fitted.verdict.rule, BudgetRule::HardGate);
        // Asked once, paid for, and then the marker; nobody asks again in the same round.
        assert_eq!((by.requests.len(), fitted.declined.len()), (1, 1));
        let kinds: Vec<_> = (last + 1..=root.last()).map(|seq| root.record(seq).unwrap().entry).collect();
        let [Entry::Sent(_), Entry::Lost(lost), Entry::Edit(edit)] = &kinds[..] else { panic!("{kinds:?}") };
        assert!(lost.usage.is_some_and(|usage| usage.input_tokens > 3_000));
        assert_eq!((edit.cause.rule.as_str(), edit.cause.usage), ("hard_gate", None));
        // 410 are fixed, and 6,590 may move.
        assert!(fitted.after <= 4_364, "{}", fitted.after);
    });
}

/// What a fit says that cannot be done; nothing has changed then.
fn floor(root: &mut Thread<'_>) -> komado_core::ladder::Floor {
    let (seen, last) = (words(root), root.last());
    let mut by = ByDigest::new(root.meter());
    let mut ladder = Ladder { budget: ours(|_| {}), settings: CondenseSettings::default(), by: &mut by };
    let Err(Error::Floor(planned)) = root.plan(&mut ladder) else { panic!("it was planned") };
    let Err(Error::Floor(floor)) = root.fit(&mut ladder) else { panic!("it was done") };
    assert_eq!(planned, floor);
    assert!(words(root) == seen && root.last() == last, "a fit that fails changed something");
    check(root);
    floor
}

#[test]
fn a_system_prompt_larger_than_the_window_is_named_with_numbers() {
    everywhere(|room| {
        let mut root = room.root(&talk(room));
        let prompt = setup(&text("You are", 12_000));
        root.set_up(prompt.clone()).unwrap();
        let floor = floor(&mut root);
        assert_eq!(floor.setup, u64::from(root.meter().setup(&prompt)));
        assert_eq!((floor.most, floor.system, floor.pinned), (9_500, 0, 0));
        assert_eq!(floor.tokens, root.view().tokens());
        assert_eq!(floor.floor, floor.setup + floor.requests + floor.newest + floor.marker);
        let said = Error::Floor(floor.clone()).to_string();
        assert!(said.contains("holds 9500 tokens at most"), "{said}");
        assert!(said.contains(&format!("system prompt and tools {},", floor.setup)), "{said}");
        assert!(said.contains("use a larger window") && said.contains("shorten the setup"), "{said}");
    });
}

#[test]
fn pins_larger_than_the_window_are_named_with_numbers() {
    let room = Room::memory();
    let mut root = room.root(&begin(&room));
    let pins: Vec<Seq> = (0..4).map(|n| read(&mut root, &format!("f{n}.rs"), 2_500)).collect();
    for seq in &pins {
        root.pin(*seq).unwrap();
    }
    let floor = floor(&mut root);
    // The pinned calls count with their outputs.
    let calls: u64 = pins.iter().map(|seq| u64::from(root.record(seq - 1).unwrap().tokens)).sum();
    assert_eq!((floor.pinned, floor.setup), (10_000 + calls, 0));
    let said = floor.to_string();
    assert!(said.contains(&format!("pins {},", floor.pinned)) && said.contains("unpin something"), "{said}");
    // The way out is true: with one pin less it fits.
    root.unpin(pins[0]).unwrap();
    assert!(fit(&mut root, &ours(|_| {})).after <= 9_500);
}
