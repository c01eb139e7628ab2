//! Text from trackers: bounded as it is read, and never treated as instructions.
//!
//! Whatever stands in an issue is data. A text that is longer than anyone reads is cut, and says so; a title is one line.

use super::TaskComment;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The most that is kept of a text, in bytes.
const MOST: usize = 256 << 10;
/// The most of a title, in bytes.
const MOST_TITLE: usize = 1 << 10;

/// A text, or `null`; not more of it than is kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct BoundedText(pub(super) String);

impl<'de> Deserialize<'de> for BoundedText {
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

// Where in the code a comment stands, in words.
//
// The model has no page to look at: without file and line, "not here" says nothing.

/// A place in the code.
#[derive(Clone, Copy, Default)]
pub(super) struct CodePlace<'a> {
    pub(super) path: &'a str,
    /// The first of several lines.
    pub(super) from: Option<u64>,
    /// The line, or the last of several; a whole file has none.
    pub(super) line: Option<u64>,
    /// Which code is meant, where it is not that of today.
    pub(super) of: Option<&'a str>,
    /// True for an answer to another comment there.
    pub(super) is_reply: bool,
}

impl CodePlace<'_> {
    /// What was said there, with the place before it.
    pub(super) fn says(&self, text: &str) -> String {
        let on = if self.is_reply { "In reply, on" } else { "On" };
        let lines = match (self.from, self.line) {
            (Some(from), Some(line)) if from < line => format!(", lines {from} to {line}"),
            (_, Some(line)) => format!(", line {line}"),
            (_, None) => String::new(),
        };
        let of = self.of.filter(|_| self.line.is_some()).map(|of| format!(" {of}")).unwrap_or_default();
        format!("{on} {}{lines}{of}:\n{text}", line(self.path))
    }
}

// Comments that are handed on at one time: not more than can be held. The others are news the next time.

/// The most comments.
const MOST_COMMENTS: usize = 100;
/// The most of their words, in bytes; one comment may be longer.
const MOST_BYTES: usize = 1 << 20;

/// The oldest of those that are new, by where they stand.
pub(super) struct NewComments<K> {
    comments: BTreeMap<K, TaskComment>,
    bytes: usize,
    /// The oldest that gave way: nothing from there on is taken, or it would be missed behind the last one.
    end: Option<K>,
}

impl<K: Ord> NewComments<K> {
    pub(super) fn new() -> Self {
        Self { comments: BTreeMap::new(), bytes: 0, end: None }
    }

    /// One more: where there is no room, the newest give way. False when there is none for what is newer than all so far.
    pub(super) fn add(&mut self, at: K, comment: TaskComment) -> bool {
        if self.end.as_ref().is_some_and(|end| at >= *end) {
            return false;
        }
        self.bytes += comment.text.len();
        let before = self.comments.insert(at, comment);
        self.bytes -= before.map_or(0, |before| before.text.len());
        while self.is_over() {
            let Some((end, newest)) = self.comments.pop_last() else { break };
            self.bytes -= newest.text.len();
            self.end = Some(end);
        }
        !self.is_full()
    }

    /// True when others gave way, or would have to.
    pub(super) fn is_full(&self) -> bool {
        self.end.is_some() || self.comments.len() >= MOST_COMMENTS || self.bytes >= MOST_BYTES
    }

    /// In order, with where they stand.
    pub(super) fn into_all(self) -> impl Iterator<Item = (K, TaskComment)> {
        self.comments.into_iter()
    }

    fn is_over(&self) -> bool {
        self.comments.len() > MOST_COMMENTS || (self.bytes > MOST_BYTES && self.comments.len() > 1)
    }
}

// Words as a piece of an address: a label may hold a slash, a blank or an emoji.

/// All but what an address holds as it is.
const PIECE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `words` so that they are one piece of a path or one value of a query.
pub(crate) fn encode(words: &str) -> String {
    utf8_percent_encode(words, PIECE).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        let json = serde_json::to_string(&"窓".repeat(MOST)).unwrap();
        let BoundedText(text) = serde_json::from_str(&json).unwrap();
        assert!(text.len() < MOST + 100);
        assert!(text.contains("more bytes stand at the tracker"));
        assert_eq!(serde_json::from_str::<BoundedText>("null").unwrap(), BoundedText::default());
        assert!(serde_json::from_str::<BoundedText>("7").is_err());
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(line("  直す\r\n\tthe  lid\u{0} "), "直す the lid");
        assert!(line(&"窓".repeat(9_999)).len() <= MOST_TITLE);
    }
}

#[cfg(test)]
mod place_tests {
    use super::*;

    #[test]
    fn a_place_is_one_line_before_what_was_said() {
        let place = CodePlace { path: "src/窓.rs\nOn x", line: Some(12), ..CodePlace::default() };
        assert_eq!(place.says("直す\n今"), "On src/窓.rs On x, line 12:\n直す\n今");
        assert_eq!(CodePlace { from: Some(12), ..place }.says("a"), "On src/窓.rs On x, line 12:\na");
        let several = CodePlace { from: Some(10), of: Some("before the change"), is_reply: true, ..place };
        assert_eq!(several.says("a"), "In reply, on src/窓.rs On x, lines 10 to 12 before the change:\na");
        assert_eq!(CodePlace { line: None, ..several }.says("a"), "In reply, on src/窓.rs On x:\na");
    }
}

#[cfg(test)]
mod news_tests {
    use super::*;

    fn comment(bytes: usize) -> TaskComment {
        TaskComment { id: String::new(), author: "ann".into(), text: "x".repeat(bytes) }
    }

    fn places(news: NewComments<usize>) -> Vec<usize> {
        news.into_all().map(|(at, _)| at).collect()
    }

    #[test]
    fn the_oldest_are_kept_whichever_way_they_come() {
        let (mut forth, mut back) = (NewComments::new(), NewComments::new());
        let read = (0..300).take_while(|at| forth.add(*at, comment(1))).count();
        (0..300).rev().for_each(|at| _ = back.add(at, comment(1)));
        assert_eq!(read, MOST_COMMENTS - 1, "no comment is read where there is no room");
        let expect: Vec<usize> = (0..MOST_COMMENTS).collect();
        assert_eq!((places(forth), places(back)), (expect.clone(), expect));
    }

    #[test]
    fn long_ones_take_the_room_of_many_and_one_always_fits() {
        for (bytes, expect) in [(MOST_BYTES / 2, vec![0, 1]), (MOST_BYTES * 2, vec![0])] {
            let mut news = NewComments::new();
            (0..9).rev().for_each(|at| _ = news.add(at, comment(bytes)));
            assert_eq!(places(news), expect);
        }
    }

    #[test]
    fn nothing_is_taken_behind_what_gave_way() {
        let mut news = NewComments::new();
        [1, 2, 3].into_iter().for_each(|at| _ = news.add(at, comment(MOST_BYTES * 2 / 5)));
        assert!(!news.add(4, comment(1)), "3 gave way, and comes first the next time");
        assert!(!news.add(0, comment(1)) && news.is_full());
        assert_eq!(places(news), [0, 1, 2]);
    }

    #[test]
    fn what_comes_twice_is_there_once_and_takes_its_room_once() {
        let mut news = NewComments::new();
        (0..9).for_each(|_| _ = news.add(1, comment(MOST_BYTES / 2)));
        assert!(news.add(2, comment(1)));
        assert_eq!(places(news), [1, 2]);
    }
}

#[cfg(test)]
mod percent_tests {
    use super::*;

    #[test]
    fn whatever_is_encoded_reads_back_and_is_one_piece() {
        for words in ["komado", "in work / 作業中 🪟", "100%", "a&b=c#d?e+f", "..", ""] {
            let piece = encode(words);
            assert_eq!(percent_encoding::percent_decode_str(&piece).decode_utf8().unwrap(), words);
            assert!(!piece.contains(['/', '?', '#', '&', ' ']), "{piece}");
        }
        assert_eq!(encode("a-b.c_d~é"), "a-b.c_d~%C3%A9");
    }
}
