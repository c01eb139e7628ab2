//! The words of one box: what people call the node, its id and type, and a line for each of its ways.

use super::escaped;
use crate::playbook::draw::{clipped, told_kind};
use crate::playbook::node::Node;
use komado_core::notation::width as long;

/// Where ways come in, from the top of a box.
pub(super) const INTO: usize = 16;
/// The least width.
const NARROWEST: usize = 200;
/// From the sides of a box to its words.
const SIDE: usize = 12;
/// Where the first line stands, from one line to the next, and below the last one.
const FIRST: usize = 20;
const STEP: usize = 18;
const LAST: usize = 10;
/// Width of a column in tenths, bold and small.
const BOLD: usize = 82;
const SMALL: usize = 66;
/// Most columns of a line: long words go on in the next one.
const BOLD_COLUMNS: usize = 48;
const SMALL_COLUMNS: usize = 60;
/// Before words that go on. It is drawn as room: not everyone who shows a picture keeps blanks at the beginning.
const INDENT: &str = "\u{3000}";
/// Most lines of the same words: nobody reads more in a picture.
const MOST_LINES: usize = 8;

/// Where a way goes.
#[derive(Clone, Copy)]
pub(super) enum Goes {
    /// To the row below.
    Down,
    /// To one further down.
    On,
    /// To one above, or to itself.
    Back,
}

/// The words of a box.
pub(super) struct Card {
    bold: Vec<String>,
    small: Vec<String>,
    /// The line that each way goes out from.
    outs: Vec<usize>,
}

/// A line of words.
pub(super) struct Line<'c> {
    words: &'c str,
    is_bold: bool,
    /// How far below the top of the box it stands.
    down: usize,
}

impl Card {
    pub(super) fn of(node: &Node) -> Self {
        let bold = wrapped(node.label.as_deref().unwrap_or(&node.id), BOLD_COLUMNS);
        let small = wrapped(&format!("{} · {}", node.id, told_kind(node)), SMALL_COLUMNS);
        Self { bold, small, outs: Vec::new() }
    }

    /// One more way; what is taken always needs no words.
    pub(super) fn add_way(&mut self, goes: Goes, when: &str) {
        if when.is_empty() {
            return self.outs.push(self.small.len() - 1);
        }
        let arrow = match goes {
            Goes::Down => '↓',
            Goes::On => '→',
            Goes::Back => '←',
        };
        self.outs.push(self.small.len());
        let lines = wrapped(when, SMALL_COLUMNS - long(INDENT)).into_iter().enumerate();
        self.small.extend(
            lines.map(|(n, line)| if n == 0 { format!("{arrow} {line}") } else { INDENT.to_owned() + &line }),
        );
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let bold = self.bold.iter().map(|words| (words, true));
        let all = bold.chain(self.small.iter().map(|words| (words, false)));
        all.enumerate().map(|(n, (words, is_bold))| Line { words, is_bold, down: FIRST + n * STEP })
    }

    /// How far below the top a way goes out.
    pub(super) fn out(&self, nth: usize) -> usize {
        let line = self.bold.len() + self.outs.get(nth).copied().unwrap_or_default();
        FIRST + line * STEP - 4
    }

    pub(super) fn height(&self) -> usize {
        FIRST + (self.bold.len() + self.small.len() - 1) * STEP + LAST
    }

    pub(super) fn width(&self) -> usize {
        let words = self.lines().map(|line| long(line.words) * if line.is_bold { BOLD } else { SMALL } / 10);
        (words.max().unwrap_or_default() + SIDE * 2).max(NARROWEST)
    }
}

impl Line<'_> {
    /// In a box at this place.
    pub(super) fn drawn(&self, x: usize, y: usize) -> String {
        let (room, words) = match self.words.strip_prefix(INDENT) {
            Some(words) => (SIDE + long(INDENT) * SMALL / 10, words),
            None => (SIDE, self.words),
        };
        let (x, y, words) = (x + room, y + self.down, escaped(words));
        let style = if self.is_bold { "font-weight=\"600\"" } else { "fill=\"#555\" font-size=\"11\"" };
        format!("<text x=\"{x}\" y=\"{y}\" {style}>{words}</text>")
    }
}

/// Words in lines of at most so many columns, broken at a blank where there is one near the end.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), text.trim());
    while long(rest) > columns && lines.len() + 1 < MOST_LINES {
        let fits = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let end = fits.take_while(|end| long(&rest[..*end]) <= columns).last().unwrap_or(rest.len());
        let blank = rest[..end].rfind(' ').filter(|blank| long(&rest[..*blank]) * 2 > columns);
        let (line, after) = rest.split_at(blank.unwrap_or(end));
        lines.push(line.to_owned());
        rest = after.trim_start();
    }
    lines.push(clipped(rest, columns));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_go_on_in_the_next_line_and_only_far_too_long_ones_are_cut() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("窓を直してください", 8), ["窓を直し", "てくださ", "い"]);
        assert_eq!(wrapped("", 8), [""]);
        let lines = wrapped(&"a".repeat(100), 10);
        assert_eq!((lines.len(), lines[7].as_str()), (MOST_LINES, "aaaaaaaaa…"));
    }
}
