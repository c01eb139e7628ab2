//! Words for people, in lines that a terminal need not break.
//!
//! A line is broken at a space, or beside a character of a script that has none. What a reader copies stays whole, were it
//! wider than the terminal: a command (in backquotes, or behind a colon), a path, a name. It keeps the label before it.

use komado_core::notation::width;

/// What never begins a line.
const CLOSING: &str = "、。，．・：；！？」』）】〕》…ー";
/// What never ends one.
const OPENING: &str = "「『（【〔《";

/// The lines of a text, none wider than `room` columns unless it is one thing to be copied. Lines that go on begin with
/// `hang` spaces. `columns` measures a text.
pub(crate) fn wrapped(
    text: &str,
    room: usize,
    hang: usize,
    columns: impl Fn(&str) -> usize + Copy,
) -> Vec<String> {
    let lines = if text.is_empty() { vec![text] } else { text.lines().collect() };
    lines.into_iter().flat_map(|line| wrapped_line(line, room, hang, columns)).collect()
}

fn wrapped_line(line: &str, room: usize, hang: usize, columns: impl Fn(&str) -> usize) -> Vec<String> {
    if columns(line) <= room {
        return vec![line.to_owned()];
    }
    let mut lines = Vec::new();
    let (mut current, mut taken, mut is_empty) = (String::new(), 0, true);
    for (gap, piece) in pieces(line) {
        let wide = columns(piece);
        if !is_empty && taken + gap.len() + wide > room {
            lines.push(std::mem::replace(&mut current, " ".repeat(hang)));
            taken = hang;
        } else {
            current.push_str(gap);
            taken += gap.len();
        }
        current.push_str(piece);
        taken += wide;
        is_empty = false;
    }
    lines.push(current);
    lines
}

/// What stays together, each piece with the spaces before it.
fn pieces(line: &str) -> Vec<(&str, &str)> {
    let mut pieces: Vec<(&str, &str)> = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (gap, words) = rest.split_at(rest.len() - rest.trim_start_matches(' ').len());
        let end = kept_end(words);
        let (word, after) = words.split_at(end);
        let is_whole = word.contains(['`', '/', ' ']);
        if is_whole || word.is_ascii() {
            pieces.push((gap, word))
        } else {
            split(gap, word, &mut pieces)
        }
        rest = after;
    }
    pieces
}

/// Where what begins a text and stays together ends: at a space, but not inside backquotes, nor between a label and the command or path
/// that it names.
fn kept_end(text: &str) -> usize {
    let end = word_end(text);
    let (word, after) = text.split_at(end);
    let Some(next) = after.strip_prefix(' ').filter(|_| word.ends_with(':')) else { return end };
    if next.starts_with("komado ") {
        return text.len();
    }
    let named = word_end(next);
    if next[..named].contains('/') { end + 1 + named } else { end }
}

/// The end of a word; backquotes hold words together.
fn word_end(text: &str) -> usize {
    let mut at = 0;
    while let Some(found) = text[at..].find([' ', '`']) {
        let here = at + found;
        match (text[here..].starts_with('`'), text[here + 1..].find('`')) {
            (true, Some(closing)) => at = here + closing + 2,
            (true, None) => at = here + 1,
            (false, _) => return here,
        }
    }
    text.len()
}

/// A word of a script without spaces: it may be broken beside each of its characters, but for closing and opening marks.
fn split<'a>(gap: &'a str, word: &'a str, pieces: &mut Vec<(&'a str, &'a str)>) {
    let is_wide = |c: char| width(c.encode_utf8(&mut [0; 4])) == 2;
    let (mut start, mut gap, mut before) = (0, gap, None::<char>);
    for (at, c) in word.char_indices() {
        let may_break = before.is_some_and(|before| {
            (is_wide(before) || is_wide(c)) && !OPENING.contains(before) && !CLOSING.contains(c)
        });
        if may_break {
            pieces.push((gap, &word[start..at]));
            (start, gap) = (at, "");
        }
        before = Some(c);
    }
    pieces.push((gap, &word[start..]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, room: usize) -> Vec<String> {
        wrapped(text, room, 2, width)
    }

    #[test]
    fn a_line_is_broken_at_a_space_and_goes_on_under_its_beginning() {
        assert_eq!(lines("one two three", 13), ["one two three"]);
        assert_eq!(lines("one two three", 9), ["one two", "  three"]);
        assert_eq!(lines("  one\ntwo three", 6), ["  one", "two", "  three"]);
        assert_eq!(lines("", 5), [""]);
    }

    #[test]
    fn japanese_is_broken_between_characters_and_not_before_a_closing_mark() {
        assert_eq!(lines("小窓を開ける。", 8), ["小窓を開", "  ける。"]);
        assert_eq!(lines("小窓を。「開」", 8), ["小窓を。", "  「開」"]);
        assert_eq!(lines("ab小窓cd", 4), ["ab小", "  窓", "  cd"]);
    }

    #[test]
    fn what_is_copied_stays_whole_with_its_label() {
        for whole in
            ["undo: komado revert demo@1", "folder: /a/very/long/path", "`komado show a b`", "a-long-name"]
        {
            assert_eq!(lines(whole, 9), [whole]);
        }
        assert_eq!(
            lines("it is there: undo: komado revert a", 14),
            ["it is there:", "  undo: komado revert a"]
        );
        assert_eq!(lines("see `komado log x` or go", 12), ["see", "  `komado log x`", "  or go"]);
        assert_eq!(lines("a ` b c d", 5), ["a ` b", "  c d"]);
    }
}
