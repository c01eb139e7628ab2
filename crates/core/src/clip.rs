//! The view of an output that is too long to be shown whole.
//!
//! A tool may print gigabytes; the model is shown the beginning, the end, and the exact call that reads on. The bytes
//! stream through and memory stays within the limits however many there are. Lines that are too long are cut inside,
//! on character boundaries. The same bytes give the same view: no clock, no counter, no random name.
//!
//! Nothing is kept here and nothing is lost here: whoever calls has put the whole output where the call will find it.

mod calls;
mod decode;
mod ends;
mod line;
mod notes;
#[cfg(test)]
mod tests;

pub use calls::{CHARS, Call, GREP, LINE, LINES, READ, grep_call, line_call, read_call};
pub use decode::Decoder;
pub use line::{Cut, Line, Room};

use ends::{Head, Tail};
use notes::Notes;

/// How much of an output is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of the whole view, notes included. What is below [`Limits::FLOOR`] counts as that.
    pub max_message_bytes: usize,
    /// Characters of a line.
    pub max_line_length: usize,
}

impl Limits {
    /// The fewest bytes that hold the call that reads on, and some text.
    pub const FLOOR: usize = 300;

    /// The bytes that hold: what was asked for, or the floor.
    pub const fn bytes(&self) -> usize {
        if self.max_message_bytes < Self::FLOOR { Self::FLOOR } else { self.max_message_bytes }
    }

    /// Too few bytes for more than the call itself in the notes.
    pub const fn is_small(&self) -> bool {
        self.bytes() < 1024
    }

    /// Bytes for what is shown; the rest is for the notes.
    pub const fn body(&self) -> usize {
        self.bytes() - if self.is_small() { 170 } else { 512 }
    }

    /// Bytes for the head: the beginning says what it is, the end how it went.
    const fn head(&self) -> usize {
        self.body() / 10 * 6
    }

    const fn tail(&self) -> usize {
        self.body() - self.head()
    }

    /// What one line may take: so much that it fits both ends, or at least the head.
    const fn room(&self) -> Room {
        let bytes = if self.is_small() { self.head() } else { self.tail() };
        Room { chars: self.max_line_length, bytes: bytes - 1 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_message_bytes: 50 * 1024, max_line_length: 2000 }
    }
}

/// The view of `text`, which `reference` names; `None` when it can be shown as it is.
pub fn clip(text: &str, limits: &Limits, reference: &str) -> Option<String> {
    let mut clipper = Clipper::new(*limits);
    clipper.push(text.as_bytes());
    clipper.finish(reference)
}

/// Takes an output in, piece by piece, and keeps what will be shown of it.
pub struct Clipper {
    limits: Limits,
    decoder: Decoder,
    line: Line,
    /// Something of the present line has come, and not its break.
    inside: bool,
    /// Bytes that came in.
    bytes: u64,
    /// Bytes they take as text: what is no UTF-8 takes more.
    wide: u64,
    lines: u64,
    /// Some line has more characters than a line may have.
    long: bool,
    head: Head,
    tail: Tail,
}

impl Clipper {
    /// Begins a view within `limits`.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            decoder: Decoder::default(),
            line: Line::new(limits.room()),
            inside: false,
            bytes: 0,
            wide: 0,
            lines: 0,
            long: false,
            head: Head::new(limits.head()),
            tail: Tail::new(limits.tail()),
        }
    }

    /// Bytes that came in so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Lines so far; one that has not ended counts, too.
    pub fn lines(&self) -> u64 {
        self.lines + u64::from(self.inside)
    }

    /// Takes in more bytes. They may end inside a character; what is no UTF-8 becomes U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.push(bytes, &mut |text| self.text(text));
        self.decoder = decoder;
        // Also when all that came is the beginning of a character.
        self.inside = bytes.last().map_or(self.inside, |last| *last != b'\n');
    }

    fn text(&mut self, text: &str) {
        self.wide += text.len() as u64;
        for piece in text.split_inclusive('\n') {
            self.inside = true;
            match piece.strip_suffix('\n') {
                Some(end) => {
                    self.line.push(end);
                    self.end_line();
                }
                None => self.line.push(piece),
            }
        }
    }

    fn end_line(&mut self) {
        self.inside = false;
        self.lines += 1;
        self.long |= self.line.chars() > self.limits.max_line_length as u64;
        let (text, cut) = self.line.end();
        let cut = cut.map(|cut| (self.lines, cut.at));
        if !self.head.push(text, cut) {
            self.tail.push(text, cut, self.lines);
        }
        self.line.clear();
    }

    /// The view, in which `reference` names the output; `None` when it can be shown as it is.
    pub fn finish(mut self, reference: &str) -> Option<String> {
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.finish(&mut |text| self.text(text));
        if self.inside {
            self.end_line();
        }
        if !self.long && self.wide <= self.limits.bytes() as u64 {
            return None;
        }
        let notes = Notes { limits: &self.limits, reference, lines: self.lines, bytes: self.bytes };
        // The notes fit in the room that was left for them, unless the reference is longer than any we give.
        loop {
            let (gap, last) = notes.write(&self.head, &self.tail);
            let (head, tail) = (self.head.text.as_str(), self.tail.text());
            let over = (head.len() + gap.len() + tail.len() + last.len()).saturating_sub(self.limits.bytes());
            if over == 0 || (head.is_empty() && tail.is_empty()) {
                return Some([head, &gap, tail, &last].concat());
            }
            if tail.is_empty() { self.head.give(over) } else { self.tail.give(over) }
        }
    }
}
