//! Bars 1, 9 and 14: the count is the real one, it is real for every kind of text, and no window is made up.

use crate::bars::room::{Room, counted, everywhere, setup, user};
use crate::bars::talk::{Dice, budget, exchange, fit, read, session};
use komado_core::Meter;
use komado_core::budget::{BudgetRule, Preset};
use komado_engine::Error;
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::fit::Ladder;

/// Bar 1.
#[test]
fn right_after_a_compaction_the_count_is_the_real_one_and_it_does_not_compact_again() {
    for preset in Preset::ALL {
        everywhere(|room| compacts_and_rests(room, preset));
    }
}

fn compacts_and_rests(room: &Room, preset: Preset) {
    let id = session(room, Meter::O200k);
    let mut root = room.root(&id);
    root.set_up(setup("You fix parsers.")).unwrap();
    root.say(user("please make the parser faster")).unwrap();
    let budget = budget(preset, 6_000);
    let mut compacted = 0;
    for n in 0..60 {
        if n % 3 == 0 {
            read(&mut root, n, 220);
        } else {
            exchange(&mut root, n, 90);
        }
        let before = root.view().tokens();
        assert_eq!(before, counted(&root));
        let fitted = fit(&mut root, &budget);
        if fitted.done.is_empty() {
            assert_eq!(fitted.after, before);
            continue;
        }
        compacted += 1;
        let real = counted(&root);
        let causes: Vec<_> = fitted.done.iter().map(|done| &done.edit.cause).collect();
        assert_eq!((causes[0].before, causes[causes.len() - 1].after), (before, real));
        assert!(causes.windows(2).all(|pair| pair[0].after == pair[1].before));
        assert_eq!((fitted.after, root.view().tokens()), (real, real));
        let last = root.last();
        for _ in 0..3 {
            let again = fit(&mut root, &budget);
            assert!(again.done.is_empty() && again.declined.is_empty(), "{}: {again:?}", preset.name());
        }
        assert_eq!(root.last(), last);
        root.say(user("go on")).unwrap();
        assert!(fit(&mut root, &budget).done.is_empty(), "{}: the next message", preset.name());
        assert_eq!(root.view().tokens(), counted(&root));
    }
    assert!(compacted >= 3, "{}: {compacted}", preset.name());
    root.settle().unwrap();
    let (tokens, last) = (root.view().tokens(), root.last());
    drop(root);
    // Another process counts the same, and has nothing to do.
    let later = room.again();
    let mut root = later.root(&id);
    assert_eq!((root.view().tokens(), counted(&root)), (tokens, tokens));
    assert!(fit(&mut root, &budget).done.is_empty());
    assert_eq!(root.last(), last);
}

/// Text of a kind, and how much fuller than full a count by characters would let the window get.
type Sample = (&'static str, fn(u64) -> String);

fn japanese(n: u64) -> String {
    const SAID: [&str; 6] = [
        "構文解析器は入力を一行ずつ読み込み、",
        "失敗した場合は例外を投げずに誤りの位置を返します。",
        "設定ファイルの書式が変わったので、",
        "移行手順を文書に追記してください。",
        "試験は四十二件すべて通りましたが、",
        "計測結果は前回より三割ほど遅くなっています。",
    ];
    let mut dice = Dice(n);
    (0..14).map(|_| SAID[dice.below(6) as usize]).collect()
}

fn base64(n: u64) -> String {
    const SIGNS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut dice = Dice(n);
    (0..400).map(|_| char::from(SIGNS[dice.below(64) as usize])).collect()
}

fn lock_file(n: u64) -> String {
    let mut dice = Dice(n);
    let mut text = String::new();
    for _ in 0..4 {
        let hash: String = (0..64).map(|_| format!("{:x}", dice.below(16))).collect();
        let (a, b) = (dice.below(40), dice.below(900));
        text.push_str(&format!(
            "[[package]]\nname = \"crate-{b}\"\nversion = \"{a}.{}.{b}\"\nchecksum = \"{hash}\"\n\n",
            a % 7
        ));
    }
    text
}

/// Bar 9.
#[test]
fn japanese_base64_and_lock_files_trigger_before_the_window_overflows() {
    let samples: [Sample; 3] = [("japanese", japanese), ("base64", base64), ("lock file", lock_file)];
    for (name, text) in samples {
        for preset in Preset::ALL {
            let room = Room::memory();
            let mut root = room.root(&session(&room, Meter::O200k));
            let budget = budget(preset, 8_000);
            root.say(user("read all of this")).unwrap();
            let (mut n, mut acted) = (0, 0);
            while acted < 4 {
                n += 1;
                root.say(user(&text(n))).unwrap();
                // Before the request leaves, it is known whether it fits; and then it does.
                let full = root.will_manage(&budget).unwrap();
                assert!(full.tokens <= 8_000, "{name}: {} tokens without a trigger", full.tokens);
                acted += u64::from(!fit(&mut root, &budget).done.is_empty());
                assert!(counted(&root) <= budget.usable, "{name}");
            }
        }
        // A quarter of the characters is still below seven tenths when the window is long full.
        let (mut all, mut n) = (String::new(), 0);
        while Meter::Chars4.text(&all) * 10 <= 8_000 * 7 {
            n += 1;
            all.push_str(&text(n));
        }
        let real = Meter::O200k.text(&all);
        assert!(real > 8_000, "{name}: a guess would fire at {real} tokens of 8000");
    }
}

/// Bar 14. The type asks for a number; none is taken in its place, and nothing is one too few.
#[test]
fn a_budget_is_never_made_without_a_window() {
    let room = Room::memory();
    let mut root = room.root(&session(&room, Meter::O200k));
    exchange(&mut root, 1, 10);
    let (last, tokens) = (root.last(), root.view().tokens());
    for preset in Preset::ALL {
        let budget = budget(preset, 0);
        assert_eq!((budget.window, budget.usable, budget.reserve), (0, 0, 0));
        assert_eq!(root.will_manage(&budget).unwrap().rule, BudgetRule::HardGate);
        let mut by = ByDigest::new(root.meter());
        let mut ladder = Ladder { budget, settings: CondenseSettings::default(), by: &mut by };
        let Err(Error::Floor(floor)) = root.plan(&mut ladder) else { panic!("{}", preset.name()) };
        assert_eq!(floor.most, 0);
        assert!(floor.to_string().starts_with("the window holds 0 tokens at most"), "{floor}");
    }
    assert_eq!((root.last(), root.view().tokens()), (last, tokens));
}
