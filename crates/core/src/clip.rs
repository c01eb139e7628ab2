//! The view of an output that is too long to be shown whole.
//!
//! A tool may print gigabytes; the model is shown the beginning, the end, and the exact call that reads on. The bytes
//! stream through and memory stays within the limits however many there are. Lines that are too long are cut inside,
//! on character boundaries. The same bytes give the same view: no clock, no counter, no random name.
//!
//! Nothing is kept here and nothing is lost here: the caller has put the whole output where the call will find it.

mod line;
#[cfg(test)]
mod tests;

pub use line::{LineClipper, LineCut, LineLimits, Utf8Decoder};

use std::collections::VecDeque;
use std::fmt::{Display, Formatter, Result};

/// How much of an output is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClipLimits {
    /// Bytes of the whole view, notes included. What is below [`ClipLimits::FLOOR`] counts as that.
    pub max_message_bytes: usize,
    /// Characters of a line.
    pub max_line_length: usize,
}

impl ClipLimits {
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
    const fn room(&self) -> LineLimits {
        let bytes = if self.is_small() { self.head() } else { self.tail() };
        LineLimits { chars: self.max_line_length, bytes: bytes - 1 }
    }
}

impl Default for ClipLimits {
    fn default() -> Self {
        Self { max_message_bytes: 50 * 1024, max_line_length: 2000 }
    }
}

/// The view of `text`, which `reference` names; `None` when it can be shown as it is.
pub fn clip(text: &str, limits: &ClipLimits, reference: &str) -> Option<String> {
    let mut clipper = Clipper::new(*limits);
    clipper.push(text.as_bytes());
    clipper.finish(reference)
}

/// The same for a model that has no tool to read on with: it is told that the whole is kept.
pub fn clip_kept(text: &str, limits: &ClipLimits) -> Option<String> {
    let mut clipper = Clipper::new(*limits);
    clipper.push(text.as_bytes());
    clipper.shown(None)
}

/// Takes an output in, piece by piece, and keeps what will be shown of it.
pub struct Clipper {
    limits: ClipLimits,
    decoder: Utf8Decoder,
    line: LineClipper,
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
    pub fn new(limits: ClipLimits) -> Self {
        Self {
            limits,
            decoder: Utf8Decoder::default(),
            line: LineClipper::new(limits.room()),
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
    pub fn finish(self, reference: &str) -> Option<String> {
        self.shown(Some(reference))
    }

    fn shown(mut self, reference: Option<&str>) -> Option<String> {
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

// The calls that read an output, ready to be made: the text a model copies.
//
// Their names and arguments are a contract with the crate that offers the tools; only the text is made here.

/// The tool that reads lines.
pub const READ: &str = "tool_output_cache";
/// The tool that searches.
pub const GREP: &str = "tool_output_cache_grep";
/// The tool that reads characters of one line.
pub const LINE: &str = "tool_output_cache_line";

/// Lines that are read when nothing else is said.
pub const LINES: u64 = 200;
/// Characters that are read when nothing else is said.
pub const CHARS: u64 = 2000;

/// One call: a tool, and its arguments as JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadOnCall {
    /// The tool.
    pub tool: &'static str,
    /// A JSON object.
    pub arguments: String,
}

impl Display for ReadOnCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}({})", self.tool, self.arguments)
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Reads `limit` lines from line `offset` on, counted from 1.
pub fn read_call(reference: &str, offset: u64, limit: u64) -> ReadOnCall {
    let reference = quoted(reference);
    ReadOnCall {
        tool: READ,
        arguments: format!(r#"{{"ref_id":{reference},"offset":{offset},"limit":{limit}}}"#),
    }
}

/// Reads `limit` characters of line `line`, after the first `offset` of them.
pub fn line_call(reference: &str, line: u64, offset: u64, limit: u64) -> ReadOnCall {
    let reference = quoted(reference);
    let arguments = format!(
        r#"{{"ref_id":{reference},"line_number":{line},"char_offset":{offset},"char_limit":{limit}}}"#
    );
    ReadOnCall { tool: LINE, arguments }
}

/// Searches; `more` are further arguments, each with its value as JSON.
pub fn grep_call(reference: &str, pattern: &str, more: &[(&str, String)]) -> ReadOnCall {
    let mut arguments = format!(r#"{{"ref_id":{},"pattern":{}"#, quoted(reference), quoted(pattern));
    for (name, value) in more {
        arguments.push_str(&format!(",{}:{value}", quoted(name)));
    }
    arguments.push('}');
    ReadOnCall { tool: GREP, arguments }
}

// What a view says about what it does not show: which lines, and the call that reads on.

/// What the notes are about.
struct Notes<'a> {
    limits: &'a ClipLimits,
    /// The name under which it can be read; `None` when the model has no tool for that.
    reference: Option<&'a str>,
    lines: u64,
    bytes: u64,
}

impl Notes<'_> {
    /// The mark between head and tail, with its line break, and the last line.
    fn write(&self, head: &Head, tail: &Tail) -> (String, String) {
        let shown = head.lines + tail.lines;
        let cuts = head.cuts.len() + tail.cuts.len();
        let first_cut = head.cuts.first().or_else(|| tail.cuts.front());
        let cut = first_cut.zip(self.reference);
        let cut = cut.map(|((line, at), name)| (*line, line_call(name, *line, *at, CHARS)));
        let read_on = |from| self.reference.map(|name| read_call(name, from, LINES));
        if shown == self.lines {
            // Nothing is left out but what lies inside of lines, so there is one.
            let call = cut.map(|(_, call)| call).or_else(|| read_on(1));
            return (String::new(), self.last(shown, cuts, None, call));
        }
        let (from, to) = (head.lines + 1, self.lines - tail.lines);
        let gap = if from == to {
            format!("[…line {from} left out…]\n")
        } else {
            format!("[…lines {from} to {to} left out…]\n")
        };
        (gap, self.last(shown, cuts, cut, read_on(from)))
    }

    fn last(
        &self,
        shown: u64,
        cuts: usize,
        cut: Option<(u64, ReadOnCall)>,
        call: Option<ReadOnCall>,
    ) -> String {
        let way = call.map_or_else(|| "the rest is kept".to_owned(), |call| format!("read on with {call}"));
        if self.limits.is_small() {
            return format!("[{way}]");
        }
        let shown = if shown == self.lines { "all".to_owned() } else { format!("{shown} of") };
        let lines = if self.lines == 1 { "line" } else { "lines" };
        let inside = match cuts {
            0 => String::new(),
            n => format!(", {n} of them cut inside"),
        };
        let cut = cut.map(|(line, call)| format!("; line {line}: {call}")).unwrap_or_default();
        let bytes = self.bytes;
        format!("[{shown} {} {lines} shown{inside}, {bytes} bytes in all{cut}; {way}]", self.lines)
    }
}

// The beginning and the end of an output: the lines that are shown.
//
// Whole lines only, each already short enough. Neither end ever holds more than its share of the bytes, so both
// together are bounded however long the output is.

/// A line that is cut inside: its number, and the characters before the cut.
type CutLine = (u64, u64);

/// The first lines, until one does not fit.
struct Head {
    room: usize,
    full: bool,
    /// The lines, each with its break.
    text: String,
    lines: u64,
    cuts: Vec<CutLine>,
}

impl Head {
    fn new(room: usize) -> Self {
        Self { room, full: false, text: String::new(), lines: 0, cuts: Vec::new() }
    }

    /// Takes a line in; false when it, or one before it, does not fit.
    fn push(&mut self, line: &str, cut: Option<CutLine>) -> bool {
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
    fn give(&mut self, bytes: usize) {
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
struct Tail {
    room: usize,
    buffer: String,
    /// Where in the buffer the first line that is kept begins.
    start: usize,
    lines: u64,
    /// Number of the last line.
    last: u64,
    cuts: VecDeque<CutLine>,
}

impl Tail {
    fn new(room: usize) -> Self {
        Self { room, buffer: String::new(), start: 0, lines: 0, last: 0, cuts: VecDeque::new() }
    }

    /// The lines, each with its break.
    fn text(&self) -> &str {
        &self.buffer[self.start..]
    }

    /// Bytes in memory.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.buffer.capacity()
    }

    /// Takes line `number` in; the first ones go to make room for it.
    fn push(&mut self, line: &str, cut: Option<CutLine>, number: u64) {
        self.buffer.push_str(line);
        self.buffer.push('\n');
        self.lines += 1;
        self.last = number;
        self.cuts.extend(cut);
        self.shrink(self.room);
    }

    /// Lets the first lines go, `bytes` at least.
    fn give(&mut self, bytes: usize) {
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
