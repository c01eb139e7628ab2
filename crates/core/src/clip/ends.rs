//! The beginning and the end of an output: the lines that are shown.
//!
//! Whole lines only, each already short enough. Neither end ever holds more than its share of the bytes, so both
//! together are bounded however long the output is.

use std::collections::VecDeque;

/// A line that is cut inside: its number, and the characters before the cut.
pub(super) type CutLine = (u64, u64);

/// The first lines, until one does not fit.
pub(super) struct Head {
    room: usize,
    full: bool,
    /// The lines, each with its break.
    pub(super) text: String,
    pub(super) lines: u64,
    pub(super) cuts: Vec<CutLine>,
}

impl Head {
    pub(super) fn new(room: usize) -> Self {
        Self { room, full: false, text: String::new(), lines: 0, cuts: Vec::new() }
    }

    /// Takes a line in; false when it, or one before it, does not fit.
    pub(super) fn push(&mut self, line: &str, cut: Option<CutLine>) -> bool {
        self.full |= self.text.len() + line.len() >= self.room;
        if !self.full {
            self.text.push_str(line);
            self.text.push('\n');
            self.lines += 1;
            self.cuts.extend(cut);
        }
        !self.full
    }

    /// Lets the last lines go, `bytes` at least.
    pub(super) fn give(&mut self, bytes: usize) {
        let most = self.text.len().saturating_sub(bytes);
        while self.text.len() > most {
            self.text.pop();
            self.text.truncate(self.text.rfind('\n').map_or(0, |at| at + 1));
            self.lines -= 1;
        }
        let last = self.lines;
        self.cuts.retain(|(number, _)| *number <= last);
    }
}

/// The last lines, as many as there is room for.
pub(super) struct Tail {
    room: usize,
    buffer: String,
    /// Where in the buffer the first line that is kept begins.
    start: usize,
    pub(super) lines: u64,
    /// Number of the last line.
    last: u64,
    pub(super) cuts: VecDeque<CutLine>,
}

impl Tail {
    pub(super) fn new(room: usize) -> Self {
        Self { room, buffer: String::new(), start: 0, lines: 0, last: 0, cuts: VecDeque::new() }
    }

    /// The lines, each with its break.
    pub(super) fn text(&self) -> &str {
        &self.buffer[self.start..]
    }

    /// Bytes in memory.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.buffer.capacity()
    }

    /// Takes line `number` in; the first ones go to make room for it.
    pub(super) fn push(&mut self, line: &str, cut: Option<CutLine>, number: u64) {
        self.buffer.push_str(line);
        self.buffer.push('\n');
        self.lines += 1;
        self.last = number;
        self.cuts.extend(cut);
        self.shrink(self.room);
    }

    /// Lets the first lines go, `bytes` at least.
    pub(super) fn give(&mut self, bytes: usize) {
        self.shrink(self.text().len().saturating_sub(bytes));
    }

    fn shrink(&mut self, most: usize) {
        while self.text().len() > most {
            self.start += self.text().find('\n').map_or(self.text().len(), |at| at + 1);
            self.lines -= 1;
        }
        let gone = self.last - self.lines;
        while self.cuts.front().is_some_and(|(number, _)| *number <= gone) {
            self.cuts.pop_front();
        }
        // Moving what is left only when it is the smaller half costs each byte once.
        if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
    }
}
