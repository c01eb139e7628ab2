//! Takes a summariser's answer apart: what to keep word for word, and the summary.
//!
//! Models forget end tags, wrap everything in a code fence, think aloud before they speak, write tags in capitals or
//! escaped. All of that is read for what was meant. Where two readings are possible, the one that keeps more words
//! wins: a stray word in a summary does less harm than a lost one. Nothing here fails; at worst there is no summary.

use std::borrow::Cow;

/// An answer, taken apart.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ParsedSummary {
    /// What to keep word for word.
    pub retain: Option<String>,
    /// The summary; `None` when there are no words in it.
    pub summary: Option<String>,
}

/// Takes an answer apart. Without tags all of it is the summary.
pub fn parse(text: &str) -> ParsedSummary {
    let mut tags = tags(text, &PLAIN);
    let mut text = Cow::Borrowed(text);
    if !tags.iter().any(|tag| tag.name.is_section()) {
        let escaped = self::tags(&text, &ESCAPED);
        if escaped.iter().any(|tag| tag.name.is_section()) {
            text = Cow::Owned(unescape(&text));
            tags = self::tags(&text, &PLAIN);
        }
    }
    Reader { text: &text, tags: &tags, ..Reader::default() }.read()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Name {
    Retain,
    Summary,
    /// Thinking aloud, by the place of its name in [`NAMES`].
    Thought(usize),
}

impl Name {
    const fn is_section(self) -> bool {
        matches!(self, Self::Retain | Self::Summary)
    }
}

/// What tags are called; all but the first two hold thoughts.
const NAMES: [&str; 8] =
    ["retain", "summary", "think", "thinking", "analysis", "thought", "reasoning", "scratchpad"];

/// Beginnings and ends of a tag.
type Brackets = [(&'static str, &'static str); 2];
const PLAIN: Brackets = [("<", ">"), ("＜", "＞")];
const ESCAPED: Brackets = [("&lt;", "&gt;"), ("&#60;", "&#62;")];

/// The longest tag, attributes and all, in bytes.
const LONGEST: usize = 200;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tag {
    name: Name,
    is_end: bool,
    /// Where it begins and ends in the text.
    from: usize,
    to: usize,
}

/// Every tag we know, in order.
fn tags(text: &str, brackets: &Brackets) -> Vec<Tag> {
    let mut found = Vec::new();
    for (open, close) in brackets {
        for (from, _) in text.match_indices(open) {
            if let Some((name, is_end, length)) = tag_at(&text[from + open.len()..], open, close) {
                let to = from + open.len() + length;
                found.push(Tag { name, is_end, from, to });
            }
        }
    }
    found.sort_unstable_by_key(|tag| tag.from);
    found
}

/// Reads a tag whose bracket was just passed: its name, whether it ends something, and its length.
fn tag_at(text: &str, open: &str, close: &str) -> Option<(Name, bool, usize)> {
    let window = text.get(..LONGEST).unwrap_or_else(|| {
        let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        &text[..end.unwrap_or(0)]
    });
    let length = window.find(close)?;
    let inner = &window[..length];
    if inner.contains(open) || inner.contains('\n') {
        return None;
    }
    let inner = inner.trim();
    let bare = inner.strip_prefix(['/', '／']);
    let word = bare.unwrap_or(inner).trim_start();
    let end = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
    let (name, rest) = word.split_at(end);
    // `<summary-of>` and `<summary_2>` are other tags.
    if !(rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || c == '/')) {
        return None;
    }
    let place = NAMES.iter().position(|known| name.eq_ignore_ascii_case(known))?;
    let name = match place {
        0 => Name::Retain,
        1 => Name::Summary,
        place => Name::Thought(place),
    };
    Some((name, bare.is_some(), length + close.len()))
}

/// Walks over the tags of a text.
#[derive(Default)]
struct Reader<'a> {
    text: &'a str,
    tags: &'a [Tag],
    retain: Vec<&'a str>,
    summary: Vec<&'a str>,
    /// What stands outside all sections.
    loose: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn read(mut self) -> ParsedSummary {
        let (mut at, mut i) = (0, 0);
        while let Some(&tag) = self.tags.get(i) {
            if tag.from < at {
                i += 1;
                continue;
            }
            self.loose.push(&self.text[at..tag.from]);
            at = tag.to;
            i += 1;
            match (tag.name, tag.is_end) {
                (Name::Thought(_), false) => at = self.end_of_thought(tag, i),
                // The beginning was left out: all before it was thought.
                (Name::Thought(_), true) => self.loose.clear(),
                (_, true) => {}
                (name, false) => (at, i) = self.section(name, tag.to, i),
            }
        }
        self.loose.push(&self.text[at.min(self.text.len())..]);
        let summary = [&self.summary, &self.loose].into_iter().find_map(|pieces| joined(pieces));
        ParsedSummary { retain: joined(&self.retain), summary }
    }

    /// Where what was thought ends: at its end tag, else where a section begins, else with the text.
    fn end_of_thought(&self, begin: Tag, i: usize) -> usize {
        let rest = &self.tags[i..];
        let end = rest.iter().find(|tag| tag.is_end && tag.name == begin.name).map(|tag| tag.to);
        let section = rest.iter().find(|tag| !tag.is_end && tag.name.is_section()).map(|tag| tag.from);
        end.or(section).unwrap_or(self.text.len())
    }

    /// Reads a section whose text begins at `at` and whose next tag is `i`; gives where to go on.
    fn section(&mut self, name: Name, mut at: usize, mut i: usize) -> (usize, usize) {
        let mut depth = 1;
        while let Some(&tag) = self.tags.get(i) {
            i += 1;
            if !tag.name.is_section() || tag.from < at {
                continue;
            }
            if tag.name != name {
                if tag.is_end {
                    continue;
                }
                self.keep(name, at, tag.from);
                // The other section lies in this one if this one still ends; else its end was forgotten.
                if !self.tags[i..].iter().any(|later| later.name == name && later.is_end) {
                    return (tag.from, i - 1);
                }
                (at, i) = self.section(tag.name, tag.to, i);
                continue;
            }
            self.keep(name, at, tag.from);
            at = tag.to;
            depth = if tag.is_end { depth - 1 } else { depth + 1 };
            let next = self.tags[i..].iter().find(|later| later.name.is_section());
            // An end tag too many: the one before was only mentioned.
            let again = next.is_some_and(|next| next.name == name && next.is_end);
            if depth == 0 && !again {
                return (at, i);
            }
            depth = depth.max(1);
        }
        self.keep(name, at, self.text.len());
        (self.text.len(), i)
    }

    fn keep(&mut self, name: Name, from: usize, to: usize) {
        let piece = &self.text[from..to.max(from)];
        match name {
            Name::Retain => self.retain.push(piece),
            _ => self.summary.push(piece),
        }
    }
}

/// The pieces as one text; `None` when no word is in it.
fn joined(pieces: &[&str]) -> Option<String> {
    let mut kept: Vec<&str> = Vec::new();
    for piece in pieces.iter().map(|piece| piece.trim()).filter(|piece| has_words(piece)) {
        if !kept.contains(&piece) {
            kept.push(piece);
        }
    }
    let text = unfenced(&kept.join("\n\n")).trim().to_owned();
    has_words(&text).then_some(text)
}

fn has_words(text: &str) -> bool {
    text.lines().any(|line| !is_fence(line) && line.chars().any(char::is_alphanumeric))
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

/// The text without a code fence around all of it, or half of one whose other half is elsewhere.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let fences = text.lines().filter(|line| is_fence(line)).count();
    let (first, last) = (text.lines().next().unwrap_or(""), text.lines().last().unwrap_or(""));
    let (opens, closes) = (is_fence(first), last.trim() == "```");
    let mut inner = text;
    if opens && (fences == 2 && closes || fences == 1) {
        inner = inner[first.len()..].trim_start_matches('\n');
    }
    if closes && (fences == 2 && opens || fences == 1) && inner.len() >= last.len() {
        inner = &inner[..inner.len() - last.len()];
    }
    inner
}

fn unescape(text: &str) -> String {
    let pairs =
        [("&lt;", "<"), ("&#60;", "<"), ("&gt;", ">"), ("&#62;", ">"), ("&quot;", "\""), ("&#39;", "'")];
    let text = pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    // Last, or `&amp;lt;` would be unescaped twice.
    text.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, retain: Option<&str>, summary: Option<&str>) {
        let parsed = parse(text);
        assert_eq!((parsed.retain.as_deref(), parsed.summary.as_deref()), (retain, summary), "{text}");
    }

    #[test]
    fn sections_are_found_in_any_order_and_spelling() {
        for text in [
            "<retain>R</retain><summary>S</summary>",
            "<summary>\nS\n</summary>\n\n<retain> R </retain>",
            "<RETAIN>R</RETAIN>\n<Summary>S</SUMMARY>",
            "Sure! <retain kind=\"x\">R</retain> and <summary lang='ja' >S</summary> Done.",
            "```xml\n<retain>R</retain>\n<summary>S</summary>\n```",
            "<summary>S<retain>R</retain></summary>",
            "< retain >R</ retain >< summary >S</ summary >",
            "＜retain＞R＜/retain＞＜summary＞S＜/summary＞",
            "&lt;retain&gt;R&lt;/retain&gt;&lt;summary&gt;S&lt;/summary&gt;",
            "<retain>R</retain>S",
            "<retain>R\n<summary>S</summary>",
            "<retain>R</retain><summary>S",
            "<retain>R</retain>\n```\n<summary>\nS\n```",
            "<retain>R</retain><summary>S</summary><summary>S</summary>",
            "<retain>R</retain><summary><summary>S</summary></summary>",
            "<retain>R</retain><summary><summary>S</summary>",
            "<retain>R</retain>S</summary>",
        ] {
            check(text, Some("R"), Some("S"));
        }
    }

    #[test]
    fn thinking_aloud_is_left_out_and_mentioned_tags_do_no_harm() {
        check("<think>I use <summary> tags</think><summary>S</summary>", None, Some("S"));
        check("<analysis>hm <summary>draft</summary></analysis>\n<summary>S</summary>", None, Some("S"));
        check("hm, let me see</think>S", None, Some("S"));
        check("<analysis>no end\n<summary>S</summary>", None, Some("S"));
        check("<thinking>only that", None, None);
        check(
            "<summary>They asked about <think> tags</summary>",
            None,
            Some("They asked about <think> tags"),
        );
        check("<summary>a </summary> b</summary>", None, Some("a\n\nb"));
        check("<summary>one</summary> x <summary>two</summary>", None, Some("one\n\ntwo"));
        check("<summary_2>x</summary_2>", None, Some("<summary_2>x</summary_2>"));
        check("a < b and <summary is > not a tag\n", None, Some("not a tag"));
    }

    #[test]
    fn without_tags_all_of_it_is_the_summary_and_without_words_there_is_none() {
        check("猫の話をした。", None, Some("猫の話をした。"));
        check("```\nS\n```", None, Some("S"));
        check("See:\n```\ncode\n```", None, Some("See:\n```\ncode\n```"));
        check("<summary>a &lt;b&gt; &amp;amp;</summary>", None, Some("a &lt;b&gt; &amp;amp;"));
        check("&lt;summary&gt;a &amp;lt; b&lt;/summary&gt;", None, Some("a &lt; b"));
        for text in [
            "",
            " \n",
            "<summary></summary>",
            "<summary/>",
            "```\n```",
            "<summary> … </summary>",
            "<retain>R</retain>",
        ] {
            assert_eq!(parse(text).summary, None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_answer_is_too_broken_to_read(pieces in prop::collection::vec(prop_oneof![
            "[a-z猫 \n]{0,8}", "[<>/&;`＜＞]{1,3}", "</?(retain|summary|think|analysis|SUMMARY)( a=\"1\")?/?>?",
            "&lt;/?(retain|summary)&gt;", "```(xml)?\n?", any::<String>(),
        ], 0..14)) {
            let text = pieces.concat();
            let parsed = parse(&text);
            prop_assert!(parsed.summary.is_none_or(|summary| !summary.trim().is_empty()));
            prop_assert!(parsed.retain.is_none_or(|retain| !retain.trim().is_empty()));
        }

        #[test]
        fn a_well_formed_answer_is_read_back(retain in "[a-z猫][a-z猫 \n]{0,40}", summary in "[a-z猫][a-z猫 \n]{0,40}") {
            let parsed = parse(&format!("<retain>{retain}</retain>\n<summary>{summary}</summary>"));
            prop_assert_eq!(parsed.retain.as_deref(), Some(retain.trim()));
            prop_assert_eq!(parsed.summary.as_deref(), Some(summary.trim()));
        }
    }
}
