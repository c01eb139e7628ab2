//! Cutting a text to a number of tokens, between characters, and better: between lines or sentences.
//!
//! The work is that of the part which is kept, however long the text is. Nothing here decides whether what is kept is
//! still of use.

use komado_core::Meter;

/// How many bytes are tried at a time.
const STEP: usize = 1024;

/// The longest beginning of `text` found that takes at most `budget` tokens. Cut between characters.
pub(crate) fn prefix(meter: Meter, text: &str, budget: u64) -> &str {
    let mut counter = meter.counter();
    let (mut end, mut step) = (0, STEP);
    while end < text.len() && step > 0 {
        let next = floor(text, end + step);
        // A step smaller than the character that stands there.
        if next == end {
            break;
        }
        let mut trial = counter.clone();
        trial.push(&text[end..next]);
        if trial.count() <= budget {
            (counter, end) = (trial, next);
        } else {
            step /= 2;
        }
    }
    &text[..end]
}

/// The last place between two characters at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// As [`prefix`], but ending where a line or a sentence does when that costs less than half of it; the rest comes
/// second. The first is empty only if not one character fits.
pub(crate) fn split(meter: Meter, text: &str, budget: u64) -> (&str, &str) {
    let most = prefix(meter, text, budget);
    if most.len() == text.len() {
        return (text, "");
    }
    text.split_at(last_end(most).filter(|end| *end > most.len() / 2).unwrap_or(most.len()))
}

/// Where the last whole line of `text` ends, or else its last sentence, or else its last word.
fn last_end(text: &str) -> Option<usize> {
    let after = |found: Option<usize>, width: usize| found.map(|at| at + width);
    let half = text.len() / 2;
    let line = after(text.rfind('\n'), 1).filter(|end| *end > half);
    let wide = text.rfind(['。', '！', '？']).map(|at| at + '。'.len_utf8());
    let narrow = [". ", "! ", "? "].iter().filter_map(|stop| text.rfind(stop)).max().map(|at| at + 2);
    let sentence = wide.max(narrow).filter(|end| *end > half);
    line.or(sentence).or_else(|| after(text.rfind(' '), 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_is_cut_after_a_line_a_sentence_or_a_word_and_else_between_characters() {
        let meter = Meter::Chars4;
        for (text, first) in [
            ("one line here\nanother line that does not fit", "one line here\n"),
            ("A sentence. And one more that is far too long", "A sentence. "),
            (
                "文をひとつ丁寧に書きました。そしてもうひとつ長い文を書きます。",
                "文をひとつ丁寧に書きました。",
            ),
            ("some words without an end", "some words without an "),
            ("A stop. Then nothing for so long", "A stop. Then nothing "),
            (
                "吾輩は猫である名前はまだ無いどこで生れたか見当つかぬ",
                "吾輩は猫である名前はまだ無いどこで生れたか見当",
            ),
        ] {
            assert_eq!(split(meter, text, 5), (first, &text[first.len()..]));
        }
        assert_eq!(split(meter, "short", 5), ("short", ""));
        assert_eq!(split(Meter::O200k, "anything", 0), ("", "anything"));
    }

    proptest! {
        #[test]
        fn what_is_kept_fits_and_nothing_is_lost(text in "([a-z ]{0,40}|[あ-んア-ン。\n]{0,30}|😀){0,60}", budget in 0u64..400) {
            for meter in Meter::ALL {
                let (head, tail) = split(meter, &text, budget);
                prop_assert!(meter.text(head) <= budget);
                prop_assert_eq!(format!("{head}{tail}"), text.clone());
                // Far from the budget, nothing is cut.
                if meter.text(&text) <= budget / 2 {
                    prop_assert!(tail.is_empty());
                }
            }
        }
    }
}
