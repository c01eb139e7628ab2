//! What answers teach: the factor between our tokens and theirs, and a server that silently leaves things out.

use super::kit::{Talk, tokens};
use komado_core::Meter;
use komado_provider::Dialect;
use komado_provider::scripted::{OnOverflow, ScriptedOptions};

#[test]
fn the_factor_is_learned_from_what_is_reported() {
    let talk = Talk::new(
        Dialect::Chat,
        100_000,
        ScriptedOptions { meter: Meter::Cl100k, ..ScriptedOptions::default() },
    );
    let mut thread = talk.thread();
    let text = "設定ファイルを読み込み、待ち時間を三十秒に変更してから再起動してください。".repeat(20);
    let ratio = Meter::Cl100k.text(&text) as f64 / tokens(&text) as f64;
    assert!(ratio > 1.2, "the two tables differ here: {ratio}");
    for _ in 0..5 {
        talk.ask(&mut thread, &text);
    }
    let lesson = talk.lesson();
    assert_eq!(lesson.learned.samples, 5);
    assert!((lesson.factor() / ratio - 1.0).abs() < 0.1, "{} against {ratio}", lesson.factor());
}

#[test]
fn a_silent_truncation_is_told_and_does_not_happen_again() {
    let options =
        ScriptedOptions { window: Some(2_048), overflow: OnOverflow::Truncate, ..ScriptedOptions::default() };
    // As Ollama does behind its OpenAI door, where it cannot be told not to.
    let talk = Talk::new(Dialect::Chat, 16_384, options);
    let mut thread = talk.thread();
    let text = "The report of the third quarter lists every order by region and by month. ".repeat(12);
    let mut told_at = Vec::new();
    for n in 1..=40 {
        let (_, told) = talk.ask(&mut thread, &format!("{n}: {text}"));
        told_at.extend(told.truncated.iter().map(|(reported, expected)| (n, *reported, *expected)));
    }
    let (_, reported, expected) = *told_at.first().expect("it was seen");
    assert!(reported <= 2_048 && expected > 2 * reported, "{told_at:?}");
    assert!(told_at.len() <= 2, "from then on requests are small enough: {told_at:?}");
    assert!(talk.server.seen().last().unwrap().tokens <= 2_048);
}
