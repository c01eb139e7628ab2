//! Bars 13, 15 and 16: requests are whole, their beginnings stay as they are, and only what is seen is counted.

use crate::bars::room::{Room, call, calls, everywhere, model, result, setup, user, words};
use crate::bars::talk::{Dice, budget, check_order, exchange, fit, fit_by, prose, read, request, session};
use komado_core::budget::{BudgetRule, Policy, Preset};
use komado_core::journal::EditKind;
use komado_core::ladder::Rung;
use komado_core::message::MessagePart;
use komado_core::{Meter, Span};
use komado_engine::condense::CondenseSettings;
use komado_engine::fit::Ladder;
use komado_engine::{OnOpenCalls, Thread};
use komado_testkit::Scripted;

/// Anything that an agent might do next.
fn goes_on(root: &mut Thread<'_>, dice: &mut Dice, n: u64) {
    let words = 10 + dice.below(120);
    match dice.below(6) {
        0 => exchange(root, n, words),
        1 => drop(read(root, n, words * 4)),
        2 => {
            // Several calls in one message, answered the other way round.
            let ids: Vec<String> = (0..2 + dice.below(3)).map(|i| format!("{n}-{i}")).collect();
            root.say(calls(ids.iter().map(|id| call(id, "grep", "{}")).collect())).unwrap();
            for id in ids.iter().rev() {
                root.say(result(id, &prose(n, words))).unwrap();
            }
        }
        3 => {
            // A call that is interrupted: the next to speak answers it.
            root.say(calls(vec![MessagePart::text("wait"), call("x", "sleep", "{}")])).unwrap();
            root.say(user("stop that")).unwrap();
        }
        4 => {
            // The same id again, as some models do.
            root.say(calls(vec![call("same", "ls", "{}")])).unwrap();
            root.say(result("same", &prose(n, words))).unwrap();
        }
        _ => drop(root.say(model(&prose(n, words))).unwrap()),
    }
    if dice.below(9) == 0 {
        let pin = 1 + u32::try_from(dice.below(u64::from(root.last()))).unwrap();
        // Half of the pins hit nothing; those that hit hold little.
        let _ = root.pin(pin);
        if root.view().pins().len() > 2 {
            let first = root.view().pins()[0].from;
            root.unpin(first).unwrap();
        }
    }
}

/// Bar 13.
#[test]
fn no_request_ever_has_a_result_without_its_call_or_a_call_without_its_result() {
    for seed in 0..24 {
        let mut dice = Dice(seed * 7919);
        let room = Room::memory();
        let mut root = room.root(&session(&room, Meter::Bytes4));
        let preset = Preset::ALL[seed as usize % 4];
        root.say(user("begin")).unwrap();
        let (mut edits, mut answered) = (0, 0);
        for n in 0..60 {
            goes_on(&mut root, &mut dice, n);
            root.answer_open_calls().unwrap();
            let budget = budget(preset, 3_000 + dice.below(2_000));
            let answer = "<summary>they went on with the parser and its buffer, line by line</summary>";
            let mut by = match dice.below(3) {
                0 => Scripted::new(root.meter()).fails("out of order"),
                _ => Scripted::new(root.meter()).always(answer),
            };
            edits += fit_by(&mut root, &budget, &mut by).done.len();
            check_order(&root);
            answered += by.requests.len();
        }
        assert!(edits > 3 && answered > 0, "seed {seed}: {edits} edits, {answered} questions");
    }
}

/// Bar 13, at the gate: a cut through a call and its result is not an edit.
#[test]
fn an_edit_that_would_part_a_call_from_its_result_is_refused() {
    everywhere(|room| {
        let mut root = room.root(&session(room, Meter::O200k)).on_open_calls(OnOpenCalls::Refuse);
        exchange(&mut root, 1, 20);
        read(&mut root, 2, 40);
        exchange(&mut root, 3, 20);
        let before = request(&root);
        for span in [Span::new(1, 3), Span::new(4, 5), Span::new(3, 3), Span::new(4, 4)] {
            root.truncate(vec![span], "[…]", "by_hand").unwrap_err();
        }
        assert_eq!(request(&root), before);
        root.truncate(vec![Span::new(3, 4)], "[…]", "by_hand").unwrap();
        check_order(&root);
    });
}

/// Bar 15.
#[test]
fn turns_without_an_edit_keep_a_byte_identical_prefix() {
    for preset in Preset::ALL {
        everywhere(|room| {
            let id = session(room, Meter::O200k);
            let mut root = room.root(&id);
            root.set_up(setup("You fix parsers. 直します。")).unwrap();
            root.say(user("please make the parser faster")).unwrap();
            let budget = budget(preset, 6_000);
            let mut before = request(&root).join("\n");
            let (mut calm, mut edited, mut disk) = (0, 0, Vec::new());
            for n in 0..110 {
                if n % 2 == 0 {
                    read(&mut root, n, 150);
                } else {
                    exchange(&mut root, n, 40);
                }
                let fitted = fit(&mut root, &budget);
                root.settle().unwrap();
                let now = request(&root).join("\n");
                let file = room
                    .files
                    .as_ref()
                    .map(|_| std::fs::read(room.folder(&id).join("current.jsonl")).unwrap());
                let file = file.unwrap_or_default();
                if fitted.done.is_empty() {
                    assert!(
                        now.starts_with(&before) && now.len() > before.len(),
                        "{} turn {n}",
                        preset.name()
                    );
                    assert!(file.starts_with(&disk));
                    calm += 1;
                } else {
                    edited += 1;
                }
                (before, disk) = (now, file);
                // A second process renders the same bytes.
                if n % 16 == 5 && room.files.is_none() {
                    assert_eq!(request(&room.again().look(&id, "root")).join("\n"), before);
                }
            }
            assert!(calm >= 90 && edited >= 3, "{}: {calm} calm turns, {edited} edits", preset.name());
        });
    }
}

/// Bar 16: 51 messages, most of them under a summary; then the window is full and no summary is to be had.
#[test]
fn truncation_after_a_condensation_counts_only_what_is_visible() {
    let room = Room::memory();
    let mut root = room.root(&session(&room, Meter::Bytes4));
    let say = |root: &mut Thread<'_>, n: u64| {
        let text = format!("message {n} {}", prose(n, 40));
        root.say(if n % 2 == 1 { user(&text) } else { model(&text) }).unwrap();
    };
    (1..=44).for_each(|n| say(&mut root, n));
    let large = budget(Preset::Seed002, 100_000);
    let mut by =
        Scripted::new(root.meter()).says("<summary>forty messages about the parser and its buffer</summary>");
    let mut ladder = Ladder { budget: large, settings: CondenseSettings::default(), by: &mut by };
    root.condense_now(&mut ladder).unwrap();
    (45..=51).for_each(|n| say(&mut root, n));
    // The first, the summary, three that were kept, seven new ones.
    assert_eq!(words(&root).len(), 12);
    let window = root.view().tokens();
    let policy = Policy { reserve: Some(0), ..Preset::Seed002.policy() };
    let budget = komado_core::budget::Budget::new(policy, window, &[]);
    let mut by = Scripted::new(root.meter()).fails("out of order");
    let fitted = fit_by(&mut root, &budget, &mut by);
    assert_eq!(fitted.verdict.rule, BudgetRule::HardGate);
    let [done] = &fitted.done[..] else { panic!("{fitted:?}") };
    assert_eq!((done.rung, done.edit.kind), (Rung::Truncate, EditKind::Truncate));
    // Half of the eleven after the first, an even number: four leave, one marker comes.
    let view = words(&root);
    assert_eq!(view.len(), 12 - 4 + 1, "{view:#?}");
    assert!(view[0].starts_with("user: message 1 "));
    assert!(view[1].contains("forty messages"), "the summary is the last to go: {}", view[1]);
    assert!(view[2].starts_with("user: [Earlier messages "), "{}", view[2]);
    assert!(view[3].starts_with("assistant: message 46 ") && view[8].starts_with("user: message 51 "));
    assert_eq!(fitted.after, root.view().tokens());
    assert!(fitted.after < fitted.verdict.tokens);
}
