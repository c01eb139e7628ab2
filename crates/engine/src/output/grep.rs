//! Finding something in an output, with the lines around it.
//!
//! A line is searched whole, up to 256 KiB. A longer one is searched in overlapping pieces, so that its length costs no
//! memory: what matches within 16 KiB is found wherever it stands, and `^` and `$` are the ends of the line and of
//! nothing else. A match longer than that may be missed, or be found shorter than it is.
//!
//! A line that is too long to be shown is shown around each match. The break of a line, `\n` or `\r\n`, is no part of it.

use super::Reading;
use super::error::{Error, Result};
use super::scan::{Drawn, Scan, Stop};
use komado_core::clip::{Limits, Room};
use regex::bytes::Regex;
use rows::Rows;
use std::io::Read;
use std::ops::Range;

mod rows;

/// Bytes of a line that are searched together.
const WINDOW: usize = 256 * 1024;
/// Bytes that two pieces of a line share: a match up to this length is found.
const OVERLAP: usize = 16 * 1024;

/// Bytes of a pattern. A longer one could take time that grows with both it and the output.
const PATTERN: usize = 1000;

/// What to look for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// This text, as it is.
    Literal(String),
    /// What this regular expression matches.
    Regex(String),
}

impl Pattern {
    /// As it was written.
    pub fn text(&self) -> &str {
        match self {
            Self::Literal(text) | Self::Regex(text) => text,
        }
    }

    fn compile(&self) -> Result<Regex> {
        match self {
            _ if self.text().is_empty() => Err(Error::NoPattern),
            _ if self.text().len() > PATTERN => {
                Err(Error::LongPattern { bytes: self.text().len(), most: PATTERN })
            }
            Self::Literal(text) => Ok(Regex::new(&regex::escape(text))?),
            Self::Regex(text) => Ok(Regex::new(text)?),
        }
    }
}

/// A search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Search {
    /// What to look for.
    pub pattern: Pattern,
    /// Lines to show before each match.
    pub before: u64,
    /// Lines to show after each match.
    pub after: u64,
    /// Matches to show at most.
    pub max_matches: u64,
    /// The line to begin with, counted from 1.
    pub offset: u64,
    /// Characters of that line to pass over.
    pub char_offset: u64,
}

impl Search {
    /// Matches that are shown when nothing else is said.
    pub const MATCHES: u64 = 50;

    /// A search of everything for `pattern`, without context.
    pub fn of(pattern: Pattern) -> Self {
        Self { pattern, before: 0, after: 0, max_matches: Self::MATCHES, offset: 1, char_offset: 0 }
    }

    fn check(&self) -> Result<()> {
        match (self.offset, self.max_matches) {
            (0, _) => Err(Error::LineZero { what: "offset" }),
            (_, 0) => Err(Error::ShowsNothing { what: "max_matches" }),
            _ => Ok(()),
        }
    }
}

/// Searches `from`, which `reference` names. When what it finds does not fit into the limits it ends earlier, and says
/// where to go on.
pub fn grep(from: &mut dyn Read, search: &Search, limits: &Limits, reference: &str) -> Result<Reading> {
    search.check()?;
    let regex = search.pattern.compile()?;
    let mut scan = Scan::new(from);
    let empty = search.offset == 1 && scan.at_end()?;
    if !empty {
        scan.go_to(search.offset)?;
    }
    let mut rows = Rows::new(search, limits, reference);
    let room = rows.room();
    let side = (room.chars / 10).min(room.bytes / 12).clamp(4, 500);
    let finder = Finder { regex, search, side, room };
    let (mut number, mut buffer) = (search.offset, Vec::new());
    while !rows.is_full() && !scan.at_end()? {
        buffer.clear();
        match scan.more(&mut buffer, WINDOW)? {
            Stop::Full => finder.long_line(&mut scan, &mut buffer, number, &mut rows)?,
            Stop::Break | Stop::End => finder.line(&buffer, number, &mut rows),
        }
        number += 1;
    }
    Ok(rows.finish(number - 1))
}

/// Looks into lines.
struct Finder<'a> {
    regex: Regex,
    search: &'a Search,
    /// Characters around a match, on either side, where a line is not shown whole.
    side: usize,
    room: Room,
}

/// A piece of a line.
struct Piece<'b> {
    bytes: &'b [u8],
    /// Number of the line.
    number: u64,
    /// Characters of the line before the piece.
    before: u64,
    /// Where in the piece to begin.
    from: usize,
    /// Matches that begin here or later are found in the next piece; `None` in the last one.
    until: Option<usize>,
}

impl Finder<'_> {
    /// Characters of line `number` that are passed over.
    fn skipped(&self, number: u64) -> u64 {
        if number == self.search.offset { self.search.char_offset } else { 0 }
    }

    /// A line that is in memory whole.
    fn line(&self, bytes: &[u8], number: u64, rows: &mut Rows<'_>) {
        let bytes = line_end(bytes);
        let from = forth(bytes, 0, self.skipped(number));
        if !self.regex.is_match_at(bytes, from) {
            rows.context(number, bytes);
            return;
        }
        let mut drawn = Drawn::new(self.room);
        drawn.push(bytes);
        match drawn.end() {
            (text, None) => rows.matched(number, text, None),
            (_, Some(_)) => {
                self.piece(&Piece { bytes, number, before: 0, from, until: None }, rows);
            }
        }
    }

    /// A line that is not in memory whole: `buffer` holds its beginning.
    fn long_line(
        &self,
        scan: &mut Scan<'_>,
        buffer: &mut Vec<u8>,
        number: u64,
        rows: &mut Rows<'_>,
    ) -> Result<()> {
        let found = rows.matches();
        let mut drawn = rows.wants_context().then(|| Drawn::new(self.room));
        let (mut before, mut from, mut fresh, mut stop) = (0, 0, 0, Stop::Full);
        loop {
            drawn.iter_mut().for_each(|drawn| drawn.push(&buffer[fresh..]));
            let last = stop != Stop::Full;
            let bytes = if last { line_end(buffer) } else { &buffer[..] };
            let until = (!last).then(|| buffer.len() - OVERLAP);
            let begin = from.max(forth(bytes, 0, self.skipped(number).saturating_sub(before)));
            let reached = self.piece(&Piece { bytes, number, before, from: begin, until }, rows);
            if last || rows.is_full() {
                break;
            }
            // Two overlaps stay: one to be searched, and one that shows what stands before it.
            let drop = part(buffer, buffer.len() - 2 * OVERLAP);
            before += chars(&buffer[..drop]);
            from = reached.max(buffer.len() - OVERLAP) - drop;
            buffer.drain(..drop);
            fresh = buffer.len();
            stop = scan.more(buffer, WINDOW)?;
        }
        if let (Some(mut drawn), true) = (drawn, rows.matches() == found) {
            rows.context(number, drawn.end().0.as_bytes());
        }
        Ok(())
    }

    /// Shows the surroundings of each match in a piece of a line; gives where the last of them ends.
    fn piece(&self, piece: &Piece<'_>, rows: &mut Rows<'_>) -> usize {
        let Piece { bytes, number, before, mut from, until } = *piece;
        while from <= bytes.len()
            && !rows.is_full()
            && let Some(found) = self.regex.find_at(bytes, from)
            && until.is_none_or(|until| found.start() < until)
        {
            let shown = excerpt(bytes, found.range(), self.side);
            let ahead = before + chars(&bytes[..shown.start]);
            let mut text = String::from_utf8_lossy(&bytes[shown.clone()]).into_owned();
            if ahead > 0 {
                text.insert_str(0, &format!("[…{ahead} characters before…]"));
            }
            if until.is_some() || shown.end < bytes.len() {
                text.push_str("[…]");
            }
            let at = before + chars(&bytes[..found.start()]);
            rows.matched(number, &text, Some((ahead, at)));
            from = shown.end.max(found.start() + 1);
        }
        from
    }
}

/// True for a byte that goes on with a character.
const fn goes_on(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The line without the carriage return of its break.
fn line_end(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// Characters of `bytes`; what is no UTF-8 counts as it is shown.
fn chars(bytes: &[u8]) -> u64 {
    let count = bytes
        .utf8_chunks()
        .map(|chunk| chunk.valid().chars().count() + usize::from(!chunk.invalid().is_empty()));
    count.sum::<usize>() as u64
}

/// A place between two characters, at `at` or up to three bytes before it.
fn part(bytes: &[u8], at: usize) -> usize {
    (at.saturating_sub(3)..=at).rev().find(|at| bytes.get(*at).is_none_or(|b| !goes_on(*b))).unwrap_or(at)
}

/// The place `count` characters after `at`, or the end.
fn forth(bytes: &[u8], at: usize, count: u64) -> usize {
    if count == 0 {
        return at;
    }
    // A beginning character ends the one before it: the next one begins at the `count`-th after the first.
    let mut begins = bytes.iter().enumerate().skip(at + 1).filter(|(_, b)| !goes_on(**b)).map(|(i, _)| i);
    begins.nth(usize::try_from(count - 1).unwrap_or(usize::MAX)).unwrap_or(bytes.len())
}

/// The place `count` characters before `at`, or the beginning.
fn back(bytes: &[u8], at: usize, count: usize) -> usize {
    let mut begins = (0..at).rev().filter(|i| !goes_on(bytes[*i]));
    match count {
        0 => at,
        _ => begins.nth(count - 1).unwrap_or(0),
    }
}

/// A match with `side` characters before and after it. Of a match that is too long itself, the beginning.
fn excerpt(bytes: &[u8], found: Range<usize>, side: usize) -> Range<usize> {
    let most = forth(bytes, found.start, 4 * side as u64);
    back(bytes, found.start, side)..forth(bytes, part(bytes, found.end.min(most)), side as u64)
}
