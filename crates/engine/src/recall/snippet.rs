//! A few words around what was found: enough to know whether to read on, never the whole.
//!
//! Line breaks and whatever a terminal would act on become spaces, so that a result is one line wherever it is shown.

use super::terms;
use std::ops::Range;

/// A piece of a text with the places of what was found in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Snippet {
    /// The piece; `…` stands where the text goes on.
    pub text: String,
    /// Where in it the matches are, in bytes.
    pub marks: Vec<Range<usize>>,
}

/// The best stretch of at most `width` characters of `text` for these terms.
pub(crate) fn around_terms(text: &str, wanted: &[(String, f32)], width: usize) -> Snippet {
    let mut places: Vec<(Range<usize>, usize)> = Vec::new();
    terms::each(text, &mut |term| {
        if let Some(which) = wanted.iter().position(|(known, _)| *known == term.text) {
            places.push((term.span, which));
        }
    });
    let chosen = densest(text, &places, wanted, width);
    let spans: Vec<Range<usize>> = places.into_iter().map(|(span, _)| span).collect();
    cut_out(text, chosen, &spans, width)
}

/// The stretch of at most `width` characters around the match at `span`.
pub(crate) fn around_match(text: &str, spans: &[Range<usize>], width: usize) -> Snippet {
    cut_out(text, spans.first().cloned().unwrap_or(0..0), spans, width)
}

/// From the first to the last of those places that fit into `width` and are worth most together.
fn densest(
    text: &str,
    places: &[(Range<usize>, usize)],
    wanted: &[(String, f32)],
    width: usize,
) -> Range<usize> {
    let mut best = (0.0, 0..0);
    for (i, (first, _)) in places.iter().enumerate() {
        let mut seen = vec![false; wanted.len()];
        let (mut worth, mut end) = (0.0, first.end);
        for (span, which) in &places[i..] {
            if span.start < first.start || span.end < end {
                continue;
            }
            // No character is more than four bytes; counting them is only worth it where it may matter.
            let fits =
                span.end - first.start <= width || text[first.start..span.end].chars().count() <= width;
            if !fits {
                break;
            }
            if !std::mem::replace(&mut seen[*which], true) {
                (worth, end) = (worth + wanted[*which].1, span.end);
            }
        }
        if worth > best.0 {
            best = (worth, first.start..end);
        }
    }
    best.1
}

/// `width` characters of `text` with `inner` in their middle.
fn cut_out(text: &str, inner: Range<usize>, spans: &[Range<usize>], width: usize) -> Snippet {
    let used = text[inner.clone()].chars().take(width + 1).count();
    let spare = width.saturating_sub(used);
    let before =
        text[..inner.start].char_indices().rev().take(spare / 3).last().map_or(inner.start, |(i, _)| i);
    let start = word_start(text, before, inner.start);
    let end = text[start..].char_indices().nth(width).map_or(text.len(), |(i, _)| start + i);
    let end = word_end(text, end, inner.end);
    let mut out = Snippet::default();
    if !text[..start].trim().is_empty() {
        out.text.push('…');
    }
    let goes_on = !text[end..].trim().is_empty();
    copy(&text[start..end], start, spans, &mut out);
    if goes_on {
        out.text.push('…');
    }
    out
}

/// The next beginning of a word at or after `at`, but not after `limit`.
fn word_start(text: &str, at: usize, limit: usize) -> usize {
    if at == 0 || text[..at].ends_with(char::is_whitespace) {
        return at;
    }
    match text[at..limit].char_indices().take(24).find(|(_, c)| c.is_whitespace()) {
        Some((i, c)) => at + i + c.len_utf8(),
        None => at,
    }
}

/// The last end of a word at or before `at`, but not before `limit`.
fn word_end(text: &str, at: usize, limit: usize) -> usize {
    if at >= text.len() || at <= limit {
        return at;
    }
    match text[limit..at].char_indices().rev().take(24).find(|(_, c)| c.is_whitespace()) {
        Some((i, _)) => limit + i,
        None => at,
    }
}

/// Copies a piece that begins at `from`, with runs of blanks as one, and notes where the matches went.
fn copy(piece: &str, from: usize, spans: &[Range<usize>], out: &mut Snippet) {
    let mut open: Option<Range<usize>> = None;
    for (i, c) in piece.char_indices() {
        let at = from + i;
        let c = if is_blank(c) { ' ' } else { c };
        if c == ' ' && (out.text.is_empty() || out.text.ends_with([' ', '…'])) {
            continue;
        }
        let begin = out.text.len();
        out.text.push(c);
        if spans.iter().any(|span| span.contains(&at)) {
            open = Some(open.map_or(begin, |mark| mark.start)..out.text.len());
        } else if let Some(mark) = open.take() {
            out.marks.push(mark);
        }
    }
    out.marks.extend(open);
    while out.text.ends_with(' ') {
        out.text.pop();
    }
    let end = out.text.len();
    out.marks.iter_mut().for_each(|mark| mark.end = mark.end.min(end));
    out.marks.retain(|mark| mark.start < mark.end);
}

/// Blanks, and what a terminal would act on: control characters and changes of writing direction.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(terms: &[&str]) -> Vec<(String, f32)> {
        terms.iter().map(|term| ((*term).to_owned(), 1.0)).collect()
    }

    fn marked(snippet: &Snippet) -> Vec<&str> {
        snippet.marks.iter().map(|mark| &snippet.text[mark.clone()]).collect()
    }

    #[test]
    fn the_stretch_with_most_of_the_terms_is_shown() {
        let text = format!(
            "{} window {} a small window opens {}",
            "x ".repeat(90),
            "y ".repeat(90),
            "z ".repeat(90)
        );
        let snippet = around_terms(&text, &wanted(&["window", "small", "open"]), 60);
        assert_eq!(marked(&snippet), ["small", "window", "opens"]);
        assert!(snippet.text.starts_with('…') && snippet.text.ends_with('…'), "{}", snippet.text);
        assert!(snippet.text.chars().count() <= 62);
        let wide = around_terms(&text, &wanted(&["window", "small"]), 10_000);
        assert_eq!(wide.text, text.split_whitespace().collect::<Vec<_>>().join(" "));
    }

    #[test]
    fn no_character_is_split_and_no_line_broken() {
        let text = format!("{}\n小窓\tを\u{1b}[31m開ける\n{}", "あ".repeat(400), "🪟".repeat(400));
        for width in 0..80 {
            let snippet = around_terms(&text, &wanted(&["小窓"]), width);
            assert!(!snippet.text.contains(['\n', '\t', '\u{1b}']), "{}", snippet.text);
            assert!(snippet.text.chars().count() <= width + 2, "{width}: {}", snippet.text);
        }
        assert_eq!(marked(&around_terms(&text, &wanted(&["小窓"]), 40)), ["小窓"]);
    }

    #[test]
    fn without_a_match_it_is_the_beginning() {
        let snippet = around_terms("one two three four five", &wanted(&["none"]), 9);
        assert_eq!((snippet.text.as_str(), snippet.marks.len()), ("one two…", 0));
        assert_eq!(around_terms("", &[], 9).text, "");
        assert_eq!(marked(&around_match("a match here", &[2..7, 8..12], 100)), ["match", "here"]);
    }
}
