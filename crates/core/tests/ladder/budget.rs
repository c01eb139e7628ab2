//! The numbers of every preset, one by one, on both sides of each mark.

use komado_core::budget::*;
use komado_core::journal::Entry;
use komado_core::message::{Call, CallKind, Message, MessagePart, Role, ToolOutcome};
use komado_testkit::Book;

/// A conversation in which a user asked for nothing much, the model said `said` tokens and a tool `output`.
fn book(said: u32, output: u32) -> Book {
    let mut book = Book::default();
    let mut push = |message, tokens| book.push(Entry::Message(message, None), tokens, "t").map(|_| ());
    push(Message::text(Role::User, "go"), 0).unwrap();
    push(Message::text(Role::Assistant, "well"), said).unwrap();
    if output > 0 {
        let (id, arguments) = ("a".to_owned(), "{}".to_owned());
        let call = Call { id, name: "ls".into(), arguments, kind: CallKind::Function, extra: None };
        push(Message::of(Role::Assistant, vec![MessagePart::Call(call)]), 0).unwrap();
        let outcome = ToolOutcome {
            call_id: "a".into(),
            name: None,
            content: vec![MessagePart::text("files")],
            is_error: false,
            output_ref: None,
            duration_ms: None,
            interrupted: false,
            replaces: None,
        };
        push(Message::of(Role::Tool, vec![MessagePart::Result(outcome)]), output).unwrap();
    }
    book
}

fn verdict(budget: &Budget, said: u32, output: u32) -> BudgetVerdict {
    let book = book(said, output);
    let Ok(verdict) = budget.will_manage(book.view(), book.rows());
    assert!(verdict.will_manage || verdict.fixed > 0 || budget.has_room(book.view()));
    verdict
}

fn rule(budget: &Budget, tokens: u64) -> BudgetRule {
    let verdict = verdict(budget, u32::try_from(tokens).unwrap(), 0);
    assert_eq!(verdict.will_manage, verdict.rule != BudgetRule::Fits);
    assert_eq!(verdict.tokens, tokens);
    verdict.rule
}

fn preset(preset: Preset, window: u64) -> Budget {
    Budget::new(preset.policy(), window, &[])
}

/// Seed 002 with a threshold for everyone, a reserve, and thresholds of its own for some.
fn percent(window: u64, reserve: u64, global: f64, named: &[(&str, f64)]) -> Policy {
    assert!(window > 0);
    let named = named.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Policy {
        reserve: Some(reserve),
        thresholds: Thresholds { global: Some(global), named },
        ..Preset::Seed002.policy()
    }
}

#[test]
fn ours_leaves_a_reserve_and_a_tenth_and_acts_above_nine_tenths_of_what_may_move() {
    // (window, reserve, usable, acts at, low)
    for (window, reserve, usable, act_at, low) in [
        (128_000, 8_192, 107_008, 96_308, 64_204),
        (200_000, 8_192, 171_808, 154_628, 103_084),
        (131_072, 8_192, 109_772, 98_795, 65_863),
        (8_192, 1_638, 5_734, 5_161, 3_440),
        (1_000, 200, 700, 631, 420),
    ] {
        let budget = preset(Preset::Komado, window);
        assert_eq!((budget.reserve, budget.usable), (reserve, usable), "{window}");
        assert_eq!((budget.act_at, budget.low), (act_at, low), "{window}");
        assert_eq!(rule(&budget, act_at - 1), BudgetRule::Fits, "{window}");
        assert_eq!(rule(&budget, act_at), BudgetRule::SoftMark, "{window}");
        assert_eq!(rule(&budget, usable), BudgetRule::SoftMark, "{window}");
        assert_eq!(rule(&budget, usable + 1), BudgetRule::HardGate, "{window}");
    }
    let budget = preset(Preset::Komado, 128_000);
    let marks = budget.marks(0);
    assert_eq!((marks.min_gain, marks.summary, marks.high, budget.most()), (26_752, 4_096, 80_256, 121_600));
    assert_eq!(preset(Preset::Komado, 8_192).marks(0).summary, 573);
    // A tenth of little is no summary: up to 384 tokens, a quarter of what may move.
    assert_eq!(preset(Preset::Komado, 4_000).marks(0).summary, 384);
    assert_eq!(preset(Preset::Komado, 1_000).marks(0).summary, 175);
    assert_eq!(preset(Preset::Komado, 300).marks(0).summary, 96);
}

#[test]
fn reserve_and_buffer_are_parts_of_what_the_instructions_leave() {
    // (window, instructions, reserve, usable)
    for (window, instructions, reserve, usable) in [
        (128_000, 0, 8_192, 107_008),
        (128_000, 20_000, 8_192, 109_008),
        (26_000, 20_000, 1_500, 23_900),
        (7_400, 5_700, 425, 6_805),
        (5_000, 6_000, 0, 4_750),
    ] {
        let budget = preset(Preset::Komado, window).beside(instructions);
        assert_eq!((budget.reserve, budget.usable), (reserve, usable), "{window} {instructions}");
        assert_eq!(budget.beside(0), preset(Preset::Komado, window));
        // No more is kept free for an answer than it may have.
        let policy = Policy { longest: Some(400), ..Preset::Komado.policy() };
        let short = Budget::new(policy, window, &[]).beside(instructions);
        let most = (usable + reserve.saturating_sub(400)).min(window / 20 * 19);
        assert_eq!((short.reserve, short.usable), (reserve.min(400), most));
    }
    for name in [Preset::Seed000, Preset::Seed001, Preset::Seed002] {
        assert_eq!(preset(name, 26_000).beside(20_000), preset(name, 26_000), "{name:?}");
    }
}

#[test]
fn marks_stand_on_top_of_what_is_fixed_and_no_preset_of_a_document_has_them_there() {
    let budget = preset(Preset::Komado, 128_000);
    for (fixed, act_at, low, high, min_gain, summary) in [
        (7_008, 97_009, 67_008, 82_008, 25_000, 4_096),
        (87_008, 105_009, 99_008, 102_008, 5_000, 2_000),
        (107_008, 107_009, 107_008, 107_008, 1, 96),
        (200_000, 107_009, 107_008, 107_008, 1, 96),
    ] {
        let marks = budget.marks(fixed);
        assert_eq!((marks.act_at, marks.low, marks.high), (act_at, low, high), "{fixed}");
        assert_eq!((marks.min_gain, marks.summary), (min_gain, summary), "{fixed}");
    }
    for name in [Preset::Seed000, Preset::Seed001, Preset::Seed002] {
        let budget = preset(name, 128_000);
        assert_eq!(budget.marks(90_000), budget.marks(0), "{}", name.name());
    }
    // A share of what may move on top of a fixed part is no less than the same share of all: the quick look never misses.
    for fixed in 0..2_000 {
        let (less, more) =
            (preset(Preset::Komado, 1_500).marks(fixed), preset(Preset::Komado, 1_500).marks(fixed + 1));
        assert!(less.act_at <= more.act_at && less.low <= more.low, "{fixed}");
    }
}

#[test]
fn seed_000_acts_strictly_above_seven_tenths_of_the_window() {
    for (window, mark) in [(128_000, 89_600), (200_000, 140_000), (100, 70), (1_000, 700), (131_072, 91_750)]
    {
        let budget = preset(Preset::Seed000, window);
        assert_eq!(rule(&budget, mark), BudgetRule::Fits, "{window}");
        // In windows so small that a fifth is kept for the answer the mark is the gate itself.
        let above = if budget.usable == mark { BudgetRule::HardGate } else { BudgetRule::SoftMark };
        assert_eq!(rule(&budget, mark + 1), above, "{window}");
    }
    let policy = Preset::Seed000.policy();
    assert_eq!((policy.keep, policy.min_messages), (KeepRule::Messages(5), 10));
    assert_eq!(policy.rungs, LadderRungs { trim: false, condense: true, truncate: Truncate::ToLow });
    // Outputs are no reason of their own.
    let budget = preset(Preset::Seed000, 128_000);
    assert_eq!((budget.tools, verdict(&budget, 0, 89_600).rule), (None, BudgetRule::Fits));
}

#[test]
fn seed_001_acts_at_four_fifths_and_gives_outputs_a_quarter_between_twenty_and_sixty_thousand() {
    for (window, mark, tools) in [
        (128_000, 102_400, 32_000),
        (200_000, 160_000, 50_000),
        (1_000_000, 800_000, 60_000),
        (240_000, 192_000, 60_000),
        (131_073, 104_859, 32_768),
    ] {
        let budget = preset(Preset::Seed001, window);
        assert_eq!(budget.tools, Some(tools), "{window}");
        assert_eq!(rule(&budget, mark - 1), BudgetRule::Fits, "{window}");
        assert_eq!(rule(&budget, mark), BudgetRule::SoftMark, "{window}");
        let outputs = |tokens: u64| verdict(&budget, 10, u32::try_from(tokens).unwrap()).rule;
        assert_eq!(
            (outputs(tools), outputs(tools + 1)),
            (BudgetRule::Fits, BudgetRule::ToolBudget),
            "{window}"
        );
    }
    for (window, tools) in [(8_000, 20_000), (80_000, 20_000), (80_004, 20_001), (239_996, 59_999)] {
        assert_eq!(ToolBudget::FromWindow.tokens(window), Some(tools), "{window}");
    }
    // In a window where four fifths would leave no room for the answer, the gate comes first.
    let small = preset(Preset::Seed001, 32_000);
    assert_eq!((small.usable, small.act_at), (22_400, 22_401));
    assert_eq!((rule(&small, 22_400), rule(&small, 22_401)), (BudgetRule::Fits, BudgetRule::HardGate));
    let policy = Preset::Seed001.policy();
    assert_eq!((policy.keep, policy.rungs.trim), (KeepRule::Turns(1), true));
}

#[test]
fn seed_002_acts_at_a_percentage_inclusive_or_above_nine_tenths_less_the_reserve() {
    let budget = Budget::new(percent(100_000, 30_000, 50.0, &[]), 100_000, &[]);
    assert_eq!((budget.usable, budget.act_at, budget.threshold), (60_000, 50_000, Some(50.0)));
    assert_eq!(rule(&budget, 49_999), BudgetRule::Fits);
    assert_eq!(rule(&budget, 50_000), BudgetRule::Threshold);
    assert_eq!(rule(&budget, 60_000), BudgetRule::Threshold);
    assert_eq!(rule(&budget, 60_001), BudgetRule::HardGate);
    // Nobody asked for anything: a hundred percent, and 8192 for the answer. The gate comes first.
    let plain = preset(Preset::Seed002, 200_000);
    assert_eq!((plain.reserve, plain.usable, plain.threshold), (8_192, 171_808, Some(100.0)));
    assert_eq!((rule(&plain, 171_808), rule(&plain, 171_809)), (BudgetRule::Fits, BudgetRule::HardGate));
    // A model that writes much leaves little: 58 % here, whatever the percentage says.
    let writer = Budget::new(percent(200_000, 64_000, 100.0, &[]), 200_000, &[]);
    assert_eq!((rule(&writer, 116_000), rule(&writer, 116_001)), (BudgetRule::Fits, BudgetRule::HardGate));
    let policy = Preset::Seed002.policy();
    assert_eq!((policy.keep, policy.rungs.truncate), (KeepRule::Messages(3), Truncate::Half));
}

#[test]
fn seed_002_is_exact_in_windows_that_ten_does_not_divide() {
    // 0.9 x 131072 - 8192 = 109772.8: a request of 109772 fits, one of 109773 does not.
    let budget = preset(Preset::Seed002, 131_072);
    assert_eq!((rule(&budget, 109_772), rule(&budget, 109_773)), (BudgetRule::Fits, BudgetRule::HardGate));
    // 7 % of 131072 is 9175.04: the first whole number at it or above.
    let budget = Budget::new(percent(131_072, 8_192, 7.0, &[]), 131_072, &[]);
    assert_eq!((rule(&budget, 9_175), rule(&budget, 9_176)), (BudgetRule::Fits, BudgetRule::Threshold));
}

#[test]
fn a_profile_has_its_own_percentage_from_5_to_100_and_else_that_of_everyone() {
    for (own, effective) in [
        (50.0, 50.0),
        (5.0, 5.0),
        (100.0, 100.0),
        (-1.0, 80.0),
        (4.0, 80.0),
        (4.999, 80.0),
        (0.0, 80.0),
        (100.5, 80.0),
        (f64::NAN, 80.0),
    ] {
        let policy = percent(100_000, 8_192, 80.0, &[("p", own)]);
        let budget = Budget::new(policy.clone(), 100_000, &["p"]);
        assert_eq!(budget.threshold, Some(effective), "{own}");
        assert_eq!(Budget::new(policy, 100_000, &["other"]).threshold, Some(80.0), "{own}");
        let act_at = budget.act_at;
        assert_eq!(act_at, (effective * 1_000.0).min(81_809.0) as u64, "{own}");
    }
    // The first name with a value of its own decides: the model before its profile.
    let named = percent(100_000, 8_192, 80.0, &[("model", 30.0), ("profile", 60.0), ("off", -1.0)]);
    assert_eq!(named.thresholds.effective(&["model", "profile"]), Some(30.0));
    assert_eq!(named.thresholds.effective(&["off", "profile"]), Some(60.0));
    assert_eq!(named.thresholds.effective(&[]), Some(80.0));
    // A percentage takes the place of any preset's trigger.
    let thresholds = Thresholds { global: Some(10.0), ..Thresholds::default() };
    let ours = Budget::new(Policy { thresholds, ..Preset::Komado.policy() }, 100_000, &[]);
    assert_eq!((rule(&ours, 9_999), rule(&ours, 10_000)), (BudgetRule::Fits, BudgetRule::Threshold));
}

#[test]
fn with_summaries_off_the_percentage_is_ignored_and_the_gate_is_not() {
    let mut policy = percent(100_000, 30_000, 50.0, &[("p", 20.0)]);
    policy.rungs.condense = false;
    let budget = Budget::new(policy, 100_000, &["p"]);
    for (tokens, expected) in [
        (20_000, BudgetRule::Fits),
        (55_000, BudgetRule::Fits),
        (60_000, BudgetRule::Fits),
        (60_001, BudgetRule::HardGate),
    ] {
        assert_eq!(rule(&budget, tokens), expected, "{tokens}");
    }
}

#[test]
fn a_reserve_is_what_was_given_but_never_eats_a_small_window() {
    for (given, window, reserve) in [
        (None, 200_000, 8_192),
        (None, 40_960, 8_192),
        (None, 40_000, 8_000),
        (None, 1_000, 200),
        (Some(64_000), 200_000, 64_000),
        (Some(128_000), 200_000, 80_000),
        (Some(8_192), 8_192, 3_276),
        (Some(1), 8_192, 1),
    ] {
        let policy = Policy { reserve: given, ..Preset::Komado.policy() };
        let budget = Budget::new(policy, window, &[]);
        assert_eq!(budget.reserve, reserve, "{given:?} of {window}");
        assert_eq!(budget.usable, window * 9 / 10 - reserve, "{given:?} of {window}");
    }
}

#[test]
fn a_window_of_nothing_holds_nothing() {
    for preset in Preset::ALL {
        let budget = self::preset(preset, 0);
        assert_eq!((budget.usable, budget.most()), (0, 0));
        assert_eq!(rule(&budget, 1), BudgetRule::HardGate, "{}", preset.name());
    }
}

#[test]
fn after_an_overflow_every_mark_moves_down_with_the_window() {
    let budget = preset(Preset::Komado, 128_000).shrunk(0.5);
    assert_eq!((budget.window, budget.usable, budget.marks(0).low), (64_000, 53_504, 32_102));
    assert_eq!((rule(&budget, 48_153), rule(&budget, 48_154)), (BudgetRule::Fits, BudgetRule::SoftMark));
    assert_eq!(rule(&budget, 53_505), BudgetRule::HardGate);
}

#[test]
fn every_preset_is_found_by_its_name_and_a_verdict_tells_its_numbers() {
    for preset in Preset::ALL {
        assert_eq!(Preset::named(preset.name()), Some(preset));
        assert_eq!(preset.policy().preset, preset);
    }
    assert_eq!(Preset::named("roo"), None);
    let verdict = verdict(&preset(Preset::Komado, 128_000), 60_000, 40_000);
    assert_eq!((verdict.tokens, verdict.tool_tokens, verdict.rule), (100_000, 40_000, BudgetRule::SoftMark));
    assert!((verdict.percent - 78.125).abs() < 1e-9, "{}", verdict.percent);
    let numbers =
        "100000 tokens, 0 fixed; window 128000, reserve 8192, usable 107008; acts at 96308, down to 64204";
    assert_eq!(verdict.numbers(), numbers);
    let json = serde_json::to_string(&verdict).unwrap();
    assert!(json.contains(r#""rule":"soft_mark""#) && json.contains(r#""window":128000"#), "{json}");
    for rule in [
        BudgetRule::Fits,
        BudgetRule::ToolBudget,
        BudgetRule::SoftMark,
        BudgetRule::Threshold,
        BudgetRule::HardGate,
        BudgetRule::ByHand,
    ] {
        assert_eq!(serde_json::to_string(&rule).unwrap(), format!("{:?}", rule.name()));
    }
}
