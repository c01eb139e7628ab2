//! Text that a guess by length gets wrong: the window is kept before the provider complains, with nothing but defaults.

use super::kit::{Talk, setup};
use komado_core::Meter;
use komado_provider::Dialect;
use komado_provider::scripted::ScriptedOptions;
use std::fmt::Write;

const WINDOW: u64 = 8_192;

fn japanese(n: usize) -> String {
    format!("第{n}章では、窓辺の机に置かれた古い手帳について述べる。頁をめくると、雨の日の覚え書きが現れる。")
        .repeat(8)
}

fn base64(n: usize) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = n as u64 + 1;
    let mut digit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(DIGITS[(state >> 58) as usize])
    };
    (0..1_200).map(|_| digit()).collect()
}

fn lock_file(n: usize) -> String {
    let mut text = String::new();
    for i in 0..12 {
        let _ = writeln!(
            text,
            "[[package]]\nname = \"part-{n}-{i}\"\nversion = \"{}.{i}.{n}\"\nchecksum = \"{:016x}{:016x}{:016x}{:016x}\"\n",
            n % 7,
            (n as u64 * 31 + i).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            (n as u64 * 17 + i).wrapping_mul(0xC2B2_AE3D_27D4_EB4F),
            (n as u64 * 13 + i).wrapping_mul(0x1656_67B1_9E37_79F9),
            (n as u64 * 7 + i).wrapping_mul(0x85EB_CA77_C2B2_AE63)
        );
    }
    text
}

/// Says `text` until the window was filled several times over; the server counts with `meter`.
fn never_complains(meter: Meter, text: fn(usize) -> String) {
    let talk = Talk::new(
        Dialect::Chat,
        WINDOW,
        ScriptedOptions { window: Some(WINDOW), meter, ..ScriptedOptions::default() },
    );
    let mut thread = talk.thread();
    thread.set_up(setup()).unwrap();
    let (mut sum, mut edits, mut n) = (0, 0, 0);
    while sum < 5 * WINDOW {
        n += 1;
        sum += meter.text(&text(n));
        let (turned, told) = talk.ask(&mut thread, &text(n));
        assert!(told.too_large.is_empty() && !turned.is_ours, "turn {n}: {told:?}");
        edits += told.edits;
    }
    assert!(edits > 1, "{edits} edits in {n} turns");
    assert!(talk.server.seen().iter().all(|seen| seen.status == 200));
}

#[test]
fn japanese_base64_and_lock_files_are_kept_inside_the_window_by_defaults() {
    for text in [japanese, base64, lock_file] {
        never_complains(Meter::O200k, text);
    }
}

#[test]
fn also_before_a_provider_that_counts_otherwise() {
    // With the older table Japanese takes half as much again: what the first answers report is enough to know.
    for text in [japanese, base64, lock_file] {
        never_complains(Meter::Cl100k, text);
    }
}
