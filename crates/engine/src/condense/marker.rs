//! The first line of a text that stands for a span: it tells a model what it reads and how to reach the originals.
//!
//! The line depends on the span alone, so that it is the same wherever the same span is hidden. It is taken off again
//! when the text becomes the input of the next summary: numbers that are no longer true must not be retold.

use super::{Language, Reach};
use komado_core::Span;
use komado_core::journal::ShowKind;

const SUMMARY: [&str; 2] = ["[Summary of earlier messages ", "[以前のメッセージの要約: "];
const RETAIN: [&str; 2] =
    ["[Kept word for word from earlier messages ", "[以前のメッセージからそのまま残した情報: "];

/// The line for a text of `kind` that stands for `hide`.
pub(super) fn line(kind: ShowKind, hide: &[Span], language: Language, reach: Reach) -> String {
    let japanese = language == Language::Japanese;
    let begin = match kind {
        ShowKind::Retain => RETAIN[usize::from(japanese)],
        ShowKind::Summary | ShowKind::Marker => SUMMARY[usize::from(japanese)],
    };
    let from = hide.iter().map(|span| span.from).min().unwrap_or_default();
    let to = hide.iter().map(|span| span.to).max().unwrap_or_default();
    let place = if from == to { format!("@{from}") } else { format!("@{from}–@{to}") };
    // The way to the originals is told once, with the summary.
    let rest = match (kind, reach, japanese) {
        (ShowKind::Retain, _, false) => ".]".to_owned(),
        (ShowKind::Retain, _, true) => "]".to_owned(),
        (_, Reach::Kept, false) => ". The originals are kept.]".to_owned(),
        (_, Reach::Kept, true) => "。原文は保存されています。]".to_owned(),
        (_, Reach::Tools, false) => format!(
            ". The originals are kept; read one with tool_output_cache({{\"ref_id\":\"@{from}\"}}) or search them with recall.]"
        ),
        (_, Reach::Tools, true) => format!(
            "。原文は保存されています。tool_output_cache({{\"ref_id\":\"@{from}\"}}) で1件を読み、recall で検索できます。]"
        ),
    };
    format!("{begin}{place}{rest}")
}

/// The text without such a line.
pub(super) fn strip(text: &str) -> &str {
    let ours = SUMMARY.iter().chain(&RETAIN).any(|begin| text.starts_with(begin));
    match text.split_once('\n') {
        Some((first, rest)) if ours && first.ends_with(']') => rest.trim_start_matches('\n'),
        None if ours && text.ends_with(']') => "",
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_names_its_span_and_can_be_taken_off_again() {
        let hide = [Span::new(2, 40), Span::new(50, 389)];
        for kind in [ShowKind::Retain, ShowKind::Summary] {
            for language in [Language::English, Language::Japanese] {
                for reach in [Reach::Tools, Reach::Kept] {
                    let line = line(kind, &hide, language, reach);
                    assert!(line.contains("@2–@389") && !line.contains('\n'), "{line}");
                    assert_eq!(strip(&format!("{line}\nwords\nmore")), "words\nmore");
                    assert_eq!(strip(&line), "");
                }
            }
        }
        assert_eq!(
            line(ShowKind::Summary, &[Span::new(2, 389)], Language::English, Reach::Tools),
            "[Summary of earlier messages @2–@389. The originals are kept; read one with \
             tool_output_cache({\"ref_id\":\"@2\"}) or search them with recall.]"
        );
        assert!(
            line(ShowKind::Retain, &[Span::new(7, 7)], Language::Japanese, Reach::Tools).ends_with(" @7]")
        );
        for other in
            ["a summary by hand\nof two lines", "[a note]\nwords", "", "[Summary of earlier messages @2\nx"]
        {
            assert_eq!(strip(other), other);
        }
    }
}
