//! Lines of a stream, a piece at a time.
//!
//! A line may be longer than memory, so nothing here reads up to a break without a bound.

use super::error::{Error, Result};
use komado_core::clip::{Cut, Decoder, Line, Room};
use std::io::{self, BufRead, BufReader, Read};

/// Bytes of a line that are looked at together.
pub(super) const PIECE: usize = 64 * 1024;

/// Why a piece ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// The line did.
    Break,
    /// It is as long as it may be; the line may go on.
    Full,
    /// The stream did.
    End,
}

/// A stream of lines.
pub(super) struct Scan<'r> {
    from: BufReader<&'r mut dyn Read>,
}

impl<'r> Scan<'r> {
    pub(super) fn new(from: &'r mut dyn Read) -> Self {
        Self { from: BufReader::with_capacity(PIECE, from) }
    }

    /// Adds more of the present line, without its break, until `buffer` holds `most` bytes.
    pub(super) fn more(&mut self, buffer: &mut Vec<u8>, most: usize) -> io::Result<Stop> {
        let room = most.saturating_sub(buffer.len()) as u64;
        (&mut self.from).take(room).read_until(b'\n', buffer)?;
        if buffer.last() == Some(&b'\n') {
            buffer.pop();
            return Ok(Stop::Break);
        }
        Ok(if buffer.len() >= most { Stop::Full } else { Stop::End })
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
    pub(super) fn draw(&mut self, drawn: &mut Drawn, piece: &mut Vec<u8>) -> io::Result<bool> {
        if self.at_end()? {
            return Ok(false);
        }
        loop {
            piece.clear();
            let stop = self.more(piece, PIECE)?;
            drawn.push(piece);
            if stop != Stop::Full {
                return Ok(true);
            }
        }
    }
}

/// A line as it is shown, from its bytes.
pub(super) struct Drawn {
    decoder: Decoder,
    line: Line,
}

impl Drawn {
    pub(super) fn new(room: Room) -> Self {
        Self { decoder: Decoder::default(), line: Line::new(room) }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let line = &mut self.line;
        self.decoder.push(bytes, &mut |text| line.push(text));
    }

    /// The line is over: the way it is shown, and where it is cut.
    pub(super) fn end(&mut self) -> (&str, Option<Cut>) {
        let line = &mut self.line;
        self.decoder.finish(&mut |text| line.push(text));
        line.end()
    }

    /// Begins another line.
    pub(super) fn clear(&mut self) {
        self.line.clear();
    }
}
