//! Numbered lines of an output, as `cat -n` prints them.

use super::{Error, OutputReading, Result};
use komado_core::clip::{
    CHARS, ClipLimits, LINES, LineClipper, LineCut, LineLimits, ReadOnCall, Utf8Decoder, line_call, read_call,
};
use std::io;
use std::io::{BufRead, BufReader, Read};

/// Which lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputPage {
    /// The first, counted from 1.
    pub offset: u64,
    /// How many at most.
    pub limit: u64,
}

impl Default for OutputPage {
    fn default() -> Self {
        Self { offset: 1, limit: LINES }
    }
}

/// Bytes of a number, its tab and the line break; numbers up to 20 digits.
const NUMBER: usize = 22;

/// Reads a page of `from`, which `reference` names. Lines that are too long are cut inside; when the page does not fit
/// into the limits it ends earlier, and says where to go on.
pub fn read(
    from: &mut dyn Read,
    page: &OutputPage,
    limits: &ClipLimits,
    reference: &str,
) -> Result<OutputReading> {
    if page.offset == 0 {
        return Err(Error::LineZero("offset"));
    }
    if page.limit == 0 {
        return Err(Error::ShowsNothing("limit"));
    }
    let mut scan = LineScan::new(from);
    if page.offset == 1 && scan.at_end()? {
        return Ok(OutputReading { text: "[the output is empty]".to_owned(), next: None });
    }
    scan.go_to(page.offset)?;
    let room = LineLimits { chars: limits.max_line_length, bytes: limits.body() - NUMBER };
    let (mut text, mut number) = (String::new(), page.offset);
    let (mut drawn, mut piece, mut cut) = (DrawnLine::new(room), Vec::new(), None);
    let full = loop {
        if number - page.offset == page.limit {
            break !scan.at_end()?;
        }
        if !scan.draw(&mut drawn, &mut piece)? {
            break false;
        }
        let (shown, at) = drawn.end();
        let row = format!("{number:>6}\t{shown}\n");
        if text.len() + row.len() > limits.body() {
            break true;
        }
        text.push_str(&row);
        cut = cut.or_else(|| at.map(|cut| (number, line_call(reference, number, cut.at, CHARS))));
        drawn.clear();
        number += 1;
    };
    let next = full.then(|| read_call(reference, number, page.limit));
    text.push_str(&note(page.offset, number - 1, cut, next.as_ref(), limits));
    Ok(OutputReading { text, next })
}

/// The last line: what was shown, and how to read on.
fn note(
    first: u64,
    last: u64,
    cut: Option<(u64, ReadOnCall)>,
    next: Option<&ReadOnCall>,
    limits: &ClipLimits,
) -> String {
    let shown = if first == last { format!("line {last}") } else { format!("lines {first} to {last}") };
    match (next, cut) {
        (Some(call), _) if limits.is_small() => format!("[read on with {call}]"),
        (None, Some((_, call))) if limits.is_small() => format!("[the end; read on with {call}]"),
        (Some(call), None) => format!("[{shown}; read on with {call}]"),
        (None, None) => format!("[{shown}, the end]"),
        (Some(call), Some((line, whole))) => {
            format!("[{shown}; line {line} is cut: {whole}; read on with {call}]")
        }
        (None, Some((line, whole))) => {
            format!("[{shown}, the end; line {line} is cut: read on with {whole}]")
        }
    }
}

// Characters of one line of an output: for what is one line and no more, however long.

/// Which characters of which line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineStretch {
    /// The line, counted from 1.
    pub line_number: u64,
    /// Characters to pass over.
    pub char_offset: u64,
    /// How many at most.
    pub char_limit: u64,
}

impl LineStretch {
    /// The beginning of a line.
    pub fn of(line_number: u64) -> Self {
        Self { line_number, char_offset: 0, char_limit: CHARS }
    }
}

/// Collects the characters asked for, as far as there is room.
struct Taken {
    stretch: LineStretch,
    room: usize,
    text: String,
    taken: u64,
    /// Characters of the line so far.
    chars: u64,
    full: bool,
}

impl Taken {
    fn push(&mut self, piece: &str) {
        let count = piece.chars().count() as u64;
        if !self.full && self.chars + count > self.stretch.char_offset {
            let skip = self.stretch.char_offset.saturating_sub(self.chars);
            for c in piece.chars().skip(skip as usize) {
                self.full =
                    self.taken == self.stretch.char_limit || self.text.len() + c.len_utf8() > self.room;
                if self.full {
                    break;
                }
                self.text.push(c);
                self.taken += 1;
            }
        }
        self.chars += count;
    }
}

/// Reads a stretch of `from`, which `reference` names. When it does not fit into the limits it ends earlier, and says
/// where to go on.
pub fn line(
    from: &mut dyn Read,
    stretch: &LineStretch,
    limits: &ClipLimits,
    reference: &str,
) -> Result<OutputReading> {
    let LineStretch { line_number: number, char_offset: offset, char_limit: limit } = *stretch;
    if number == 0 {
        return Err(Error::LineZero("line_number"));
    }
    if limit == 0 {
        return Err(Error::ShowsNothing("char_limit"));
    }
    let mut scan = LineScan::new(from);
    scan.go_to(number)?;
    let (text, room) = (String::new(), limits.body());
    let mut taken = Taken { stretch: *stretch, room, text, taken: 0, chars: 0, full: false };
    let (mut decoder, mut piece) = (Utf8Decoder::default(), Vec::new());
    loop {
        piece.clear();
        let stop = scan.more(&mut piece, PIECE)?;
        decoder.push(&piece, &mut |text| taken.push(text));
        if stop != LineStop::Full {
            break;
        }
    }
    decoder.finish(&mut |text| taken.push(text));
    let Taken { mut text, taken, chars, .. } = taken;
    if taken == 0 && (offset > 0 || chars > 0) {
        return Err(Error::NoChars { line: number, chars, offset });
    }
    let end = offset + taken;
    let next = (end < chars).then(|| line_call(reference, number, end, limit));
    let shown = match chars {
        0 => format!("line {number} is empty"),
        _ => format!("characters {} to {end} of {chars} of line {number}", offset + 1),
    };
    text.push_str(&match &next {
        Some(call) if limits.is_small() => format!("\n[read on with {call}]"),
        Some(call) => format!("\n[{shown}; read on with {call}]"),
        None if chars == 0 => format!("[{shown}]"),
        None => format!("\n[{shown}, its end]"),
    });
    Ok(OutputReading { text, next })
}

// Lines of a stream, a piece at a time.
//
// A line may be longer than memory, so nothing here reads up to a break without a bound.

/// Bytes of a line that are looked at together.
pub(super) const PIECE: usize = 64 * 1024;

/// Why a piece ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LineStop {
    /// The line did.
    Break,
    /// It is as long as it may be; the line may go on.
    Full,
    /// The stream did.
    End,
}

/// A stream of lines.
pub(super) struct LineScan<'r> {
    from: BufReader<&'r mut dyn Read>,
}

impl<'r> LineScan<'r> {
    pub(super) fn new(from: &'r mut dyn Read) -> Self {
        Self { from: BufReader::with_capacity(PIECE, from) }
    }

    /// Adds more of the present line, without its break, until `buffer` holds `most` bytes.
    pub(super) fn more(&mut self, buffer: &mut Vec<u8>, most: usize) -> io::Result<LineStop> {
        let room = most.saturating_sub(buffer.len()) as u64;
        (&mut self.from).take(room).read_until(b'\n', buffer)?;
        if buffer.last() == Some(&b'\n') {
            buffer.pop();
            return Ok(LineStop::Break);
        }
        Ok(if buffer.len() >= most { LineStop::Full } else { LineStop::End })
    }

    /// True when nothing follows.
    pub(super) fn at_end(&mut self) -> io::Result<bool> {
        loop {
            match self.from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return Ok(other?.is_empty()),
            }
        }
    }

    /// Passes over everything before line `number`.
    pub(super) fn go_to(&mut self, number: u64) -> Result<()> {
        for lines in 0..number {
            if self.at_end()? {
                return Err(Error::NoLine { line: number, lines });
            }
            if lines + 1 < number {
                self.from.skip_until(b'\n')?;
            }
        }
        Ok(())
    }

    /// Takes the next line into `drawn`; false when there is none.
    pub(super) fn draw(&mut self, drawn: &mut DrawnLine, piece: &mut Vec<u8>) -> io::Result<bool> {
        if self.at_end()? {
            return Ok(false);
        }
        loop {
            piece.clear();
            let stop = self.more(piece, PIECE)?;
            drawn.push(piece);
            if stop != LineStop::Full {
                return Ok(true);
            }
        }
    }
}

/// A line as it is shown, from its bytes.
pub(super) struct DrawnLine {
    decoder: Utf8Decoder,
    line: LineClipper,
}

impl DrawnLine {
    pub(super) fn new(room: LineLimits) -> Self {
        Self { decoder: Utf8Decoder::default(), line: LineClipper::new(room) }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let line = &mut self.line;
        self.decoder.push(bytes, &mut |text| line.push(text));
    }

    /// The line is over: the way it is shown, and where it is cut.
    pub(super) fn end(&mut self) -> (&str, Option<LineCut>) {
        let line = &mut self.line;
        self.decoder.finish(&mut |text| line.push(text));
        line.end()
    }

    /// Begins another line.
    pub(super) fn clear(&mut self) {
        self.line.clear();
    }
}
