//! Words of strangers: bounded as they are read, and never more than words.
//!
//! Whatever stands in an issue is data. A text that is longer than anyone reads is cut, and says so; a title is one line.

use serde::de::{Deserialize, Deserializer};

/// The most that is kept of a text, in bytes.
const MOST: usize = 256 << 10;
/// The most of a title, in bytes.
const MOST_TITLE: usize = 1 << 10;

/// A text, or `null`; not more of it than is kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Words(pub(super) String);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
        let left = text.len() - head(&text, MOST).len();
        if left > 0 {
            text.truncate(text.len() - left);
            text.push_str(&format!("\n\n[cut here: {left} more bytes stand at the tracker]"));
        }
        Ok(Self(text))
    }
}

/// As one line, and not too long a one.
pub(super) fn line(text: &str) -> String {
    let words: Vec<&str> = head(text, MOST_TITLE).split(|c: char| c.is_control() || c == ' ').collect();
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The first bytes of a text, at most `most`, between two characters.
pub(crate) fn head(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        let json = serde_json::to_string(&"窓".repeat(MOST)).unwrap();
        let Words(text) = serde_json::from_str(&json).unwrap();
        assert!(text.len() < MOST + 100);
        assert!(text.contains("more bytes stand at the tracker"));
        assert_eq!(serde_json::from_str::<Words>("null").unwrap(), Words::default());
        assert!(serde_json::from_str::<Words>("7").is_err());
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(line("  直す\r\n\tthe  lid\u{0} "), "直す the lid");
        assert!(line(&"窓".repeat(9_999)).len() <= MOST_TITLE);
    }
}
