//! When the preset acts, and what it does then: summary first, marker when there is none.

use crate::roo::facts::{DECISIONS, MANAGED, Managed, TRUNCATED};
use crate::roo::room::{Room, call, calls, check, meta, model, result, user};
use crate::roo::story::{self, EACH, play};
use komado_core::budget::{Budget, BudgetRule, Policy, Preset, Thresholds};
use komado_core::journal::Entry;
use komado_core::ladder::Rung;
use komado_core::{Meter, SessionId, Span};
use komado_engine::Thread;
use komado_engine::condense::CondenseSettings;
use komado_engine::fit::{FitResult, Ladder};
use komado_testkit::Scripted;

const WINDOW: u64 = 100_000;

fn session(room: &Room) -> SessionId {
    let mut meta = meta("s", "2024-01-15T10:00:00Z");
    meta.config.meter = Meter::Bytes4.name().into();
    room.engine.create(&meta).unwrap()
}

fn words(tokens: u64) -> String {
    "word".repeat(tokens as usize)
}

fn policy(global: f64, own: Option<f64>) -> Policy {
    let named = own.map(|value| ("p".to_owned(), value)).into_iter().collect();
    Policy {
        reserve: Some(30_000),
        thresholds: Thresholds { global: Some(global), named },
        ..Preset::Seed002.policy()
    }
}

fn fit(root: &mut Thread<'_>, budget: &Budget, by: &mut Scripted) -> FitResult {
    let fitted =
        root.fit(&mut Ladder { budget: budget.clone(), settings: CondenseSettings::default(), by }).unwrap();
    check(root);
    fitted
}

#[test]
fn the_preset_decides_as_the_original_does() {
    for fact in DECISIONS {
        let id = fact.id;
        let room = Room::memory();
        let mut root = room.root(&session(&room));
        root.say(user(&words(fact.tokens.0))).unwrap();
        if fact.tokens.1 > 0 {
            root.say(model(&words(fact.tokens.1))).unwrap();
        }
        let mut policy = policy(fact.percent.0, fact.percent.1);
        policy.rungs.condense = fact.auto;
        let budget = Budget::new(policy, WINDOW, &["p"]);
        assert_eq!((budget.usable, budget.threshold), (60_000, Some(fact.holds)), "{id}");
        let verdict = root.will_manage(&budget).unwrap();
        assert_eq!(verdict.tokens, fact.tokens.0 + fact.tokens.1, "{id}");
        assert_eq!(verdict.will_manage, fact.acts, "{id}");
        assert!(verdict.rule != BudgetRule::HardGate, "{id}");
        let percent = verdict.tokens as f64 / 1_000.0;
        assert!((verdict.percent - percent).abs() < 1e-9, "{id}: {}", verdict.percent);
    }
}

/// Five messages with so many tokens together, the last one empty but for a word.
fn five(room: &Room, tokens: u64) -> SessionId {
    let id = session(room);
    let mut root = room.root(&id);
    let quarter = (tokens - 1) / 4;
    root.say(user(&words(tokens - 1 - 3 * quarter))).unwrap();
    root.say(model(&words(quarter))).unwrap();
    root.say(user(&words(quarter))).unwrap();
    root.say(model(&words(quarter))).unwrap();
    root.say(user("next")).unwrap();
    assert_eq!(root.view().tokens(), tokens);
    id
}

#[test]
fn the_preset_does_what_the_original_does() {
    for Managed { id, tokens, auto, gone, paid } in MANAGED {
        let room = Room::memory();
        let mut root = room.root(&five(&room, tokens));
        let mut policy = policy(100.0, None);
        policy.rungs.condense = auto;
        let budget = Budget::new(policy, WINDOW, &[]);
        // An empty answer, whoever asks for one.
        let mut by = Scripted::new(root.meter()).always("");
        let fitted = fit(&mut root, &budget, &mut by);
        assert_eq!(fitted.verdict.tokens, tokens, "{id}");
        let hidden: Vec<Span> = fitted.done.iter().flat_map(|done| done.edit.hide.clone()).collect();
        let expected = if gone > 0 { vec![Span::new(2, 1 + gone as u32)] } else { Vec::new() };
        assert_eq!(hidden, expected, "{id}");
        assert!(fitted.done.iter().all(|done| done.rung == Rung::Truncate), "{id}");
        let items = root.view().weight().items as usize;
        assert_eq!(items, if gone > 0 { 5 - gone + 1 } else { 5 }, "{id}");
        assert_eq!(
            (by.requests.len(), fitted.declined.len()),
            (usize::from(paid), usize::from(paid)),
            "{id}"
        );
        let lost = (1..=root.last()).filter_map(|seq| match root.record(seq).unwrap().entry {
            Entry::Lost(lost) => lost.usage,
            _ => None,
        });
        assert_eq!(lost.filter(|usage| usage.input_tokens > 10_000).count(), usize::from(paid), "{id}");
        assert!(root.view().tokens() <= 60_000, "{id}");
    }
}

#[test]
fn half_of_what_comes_after_the_first_leaves_when_the_window_is_full() {
    let room = Room::memory();
    let told = play(&room, TRUNCATED.story);
    let mut root = room.root(&told.session);
    let tokens = root.view().tokens();
    let mut policy = Policy { reserve: Some(0), buffer: 0.0, ..Preset::Seed002.policy() };
    policy.rungs.condense = false;
    let mut by = Scripted::new(root.meter());
    let fitted = fit(&mut root, &Budget::new(policy, tokens - 1, &[]), &mut by);
    assert_eq!(story::seen(&root), TRUNCATED.seen, "{}", TRUNCATED.id);
    let [done] = &fitted.done[..] else { panic!("{}: {fitted:?}", TRUNCATED.id) };
    // The marker speaks as a user and counts; it names what left instead of how many.
    let marker = &done.edit.show[0];
    assert_eq!(fitted.after, tokens - 4 * EACH + u64::from(marker.tokens), "{}", TRUNCATED.id);
    assert!(marker.text.contains("(@2-@5)"), "{}: {}", TRUNCATED.id, marker.text);
}

#[test]
fn at_the_threshold_the_summary_is_really_made() {
    // 50 % of the window is far from full, and the talk is short: the percentage alone decides.
    let room = Room::memory();
    let mut root = room.root(&session(&room));
    let say = |root: &mut Thread<'_>, n: u32, tokens: u64| {
        let message = if n % 2 == 1 { user(&words(tokens)) } else { model(&words(tokens)) };
        root.say(message).unwrap();
    };
    (1..=6).for_each(|n| say(&mut root, n, 7_000));
    let budget = Budget::new(policy(50.0, None), WINDOW, &[]);
    let mut by =
        Scripted::new(root.meter()).always("<summary>words, and more words, and nothing else</summary>");
    assert!(fit(&mut root, &budget, &mut by).done.is_empty());
    say(&mut root, 7, 7_999);
    assert_eq!(root.view().tokens(), 49_999);
    assert!(fit(&mut root, &budget, &mut by).done.is_empty());
    root.rewind(6).unwrap();
    say(&mut root, 7, 8_000);
    let fitted = fit(&mut root, &budget, &mut by);
    assert_eq!((fitted.verdict.rule, fitted.verdict.tokens), (BudgetRule::Threshold, 50_000));
    let [done] = &fitted.done[..] else { panic!("{fitted:?}") };
    // The first and the last three stay.
    assert_eq!((done.rung, done.edit.hide.as_slice()), (Rung::Condense, &[Span::new(2, 4)][..]));
}

#[test]
fn a_failed_summary_below_the_limit_changes_nothing() {
    let room = Room::memory();
    let mut root = room.root(&five(&room, 55_000));
    let budget = Budget::new(policy(50.0, None), WINDOW, &[]);
    let mut by = Scripted::new(root.meter()).fails("HTTP 500");
    let fitted = fit(&mut root, &budget, &mut by);
    assert_eq!((fitted.verdict.rule, fitted.done.len()), (BudgetRule::Threshold, 0));
    assert_eq!((root.view().tokens(), root.view().weight().items), (55_000, 5));
}

#[test]
fn what_the_original_cannot_reduce_we_can() {
    // Two messages, one of them larger than the window: there it "removes" nothing and says that it did.
    let room = Room::memory();
    let mut root = room.root(&session(&room)).clipping(None);
    root.say(user("please read it")).unwrap();
    root.say(calls(vec![call("t", "read_file", r#"{"path":"a.txt"}"#)])).unwrap();
    root.say(result("t", &words(150_000))).unwrap();
    let budget = Budget::new(policy(100.0, None), WINDOW, &[]);
    let mut by = Scripted::new(root.meter()).always("");
    let fitted = fit(&mut root, &budget, &mut by);
    assert!(fitted.after <= 60_000, "{}", fitted.after);
    assert_eq!(fitted.done.last().unwrap().rung, Rung::Clip);
    assert_eq!(root.view().weight().items, 3);
}
