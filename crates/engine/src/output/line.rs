//! Characters of one line of an output: for what is one line and no more, however long.

use super::Reading;
use super::error::{Error, Result};
use super::scan::{PIECE, Scan, Stop};
use komado_core::clip::{CHARS, Decoder, Limits, line_call};
use std::io::Read;

/// Which characters of which line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// The line, counted from 1.
    pub line_number: u64,
    /// Characters to pass over.
    pub char_offset: u64,
    /// How many at most.
    pub char_limit: u64,
}

impl Stretch {
    /// The beginning of a line.
    pub fn of(line_number: u64) -> Self {
        Self { line_number, char_offset: 0, char_limit: CHARS }
    }
}

/// Collects the characters asked for, as far as there is room.
struct Taken {
    stretch: Stretch,
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
pub fn line(from: &mut dyn Read, stretch: &Stretch, limits: &Limits, reference: &str) -> Result<Reading> {
    let Stretch { line_number: number, char_offset: offset, char_limit: limit } = *stretch;
    if number == 0 {
        return Err(Error::LineZero { what: "line_number" });
    }
    if limit == 0 {
        return Err(Error::ShowsNothing { what: "char_limit" });
    }
    let mut scan = Scan::new(from);
    scan.go_to(number)?;
    let (text, room) = (String::new(), limits.body());
    let mut taken = Taken { stretch: *stretch, room, text, taken: 0, chars: 0, full: false };
    let (mut decoder, mut piece) = (Decoder::default(), Vec::new());
    loop {
        piece.clear();
        let stop = scan.more(&mut piece, PIECE)?;
        decoder.push(&piece, &mut |text| taken.push(text));
        if stop != Stop::Full {
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
    Ok(Reading { text, next })
}
