//! Finding something in an output, with the lines around it.
//!
//! A line is searched whole, up to 256 KiB. A longer one is searched in overlapping pieces, so that its length costs no
//! memory: what matches within 16 KiB is found wherever it stands, and `^` and `$` are the ends of the line and of
//! nothing else. A match longer than that may be missed, or be found shorter than it is.
//!
//! A line that is too long to be shown is shown around each match. The break of a line, `\n` or `\r\n`, is not part of it.

use super::read::{DrawnLine, LineScan, LineStop};
use super::{Error, OutputReading, Result};
use komado_core::clip::{CHARS, ClipLimits, LineLimits, ReadOnCall, grep_call, line_call};
use regex::bytes::Regex;
use std::collections::VecDeque;
use std::io::Read;
use std::ops::Range;

/// Bytes of a line that are searched together.
const WINDOW: usize = 256 * 1024;
/// Bytes that two pieces of a line share: a match up to this length is found.
const OVERLAP: usize = 16 * 1024;

/// Bytes of a pattern. A longer one could take time that grows with both it and the output.
const PATTERN: usize = 1000;

/// What to look for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GrepPattern {
    /// This text, as it is.
    Literal(String),
    /// What this regular expression matches.
    Regex(String),
}

impl GrepPattern {
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
pub struct GrepSearch {
    /// What to look for.
    pub pattern: GrepPattern,
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

impl GrepSearch {
    /// Matches that are shown when nothing else is said.
    pub const MATCHES: u64 = 50;

    /// A search of everything for `pattern`, without context.
    pub fn of(pattern: GrepPattern) -> Self {
        Self { pattern, before: 0, after: 0, max_matches: Self::MATCHES, offset: 1, char_offset: 0 }
    }

    fn check(&self) -> Result<()> {
        match (self.offset, self.max_matches) {
            (0, _) => Err(Error::LineZero("offset")),
            (_, 0) => Err(Error::ShowsNothing("max_matches")),
            _ => Ok(()),
        }
    }
}

/// Searches `from`, which `reference` names. When what it finds does not fit into the limits it ends earlier, and says
/// where to go on.
pub fn grep(
    from: &mut dyn Read,
    search: &GrepSearch,
    limits: &ClipLimits,
    reference: &str,
) -> Result<OutputReading> {
    search.check()?;
    let regex = search.pattern.compile()?;
    let mut scan = LineScan::new(from);
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
            LineStop::Full => finder.long_line(&mut scan, &mut buffer, number, &mut rows)?,
            LineStop::Break | LineStop::End => finder.line(&buffer, number, &mut rows),
        }
        number += 1;
    }
    Ok(rows.finish(number - 1))
}

/// Looks into lines.
struct Finder<'a> {
    regex: Regex,
    search: &'a GrepSearch,
    /// Characters around a match, on either side, where a line is not shown whole.
    side: usize,
    room: LineLimits,
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
        let mut drawn = DrawnLine::new(self.room);
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
        scan: &mut LineScan<'_>,
        buffer: &mut Vec<u8>,
        number: u64,
        rows: &mut Rows<'_>,
    ) -> Result<()> {
        let found = rows.matches();
        let mut drawn = rows.wants_context().then(|| DrawnLine::new(self.room));
        let (mut before, mut from, mut fresh, mut stop) = (0, 0, 0, LineStop::Full);
        loop {
            drawn.iter_mut().for_each(|drawn| drawn.push(&buffer[fresh..]));
            let last = stop != LineStop::Full;
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

// What a search found, as `grep -n` prints it: `12:` before a match, `12-` before its context, `--` between groups.
//
// Rows never take more than the limits allow. When one does not fit, the search ends before it and says so.

/// Bytes of a number, its mark, the line break and a `--` before it.
const NUMBER: usize = 25;

/// Rows, and what is to be known to go on.
struct Rows<'a> {
    search: &'a GrepSearch,
    reference: &'a str,
    /// Bytes for the rows.
    room: usize,
    /// Bytes for rows and note.
    bytes: usize,
    line_room: LineLimits,
    text: String,
    /// Matches shown.
    matches: u64,
    /// The last line shown.
    last: u64,
    /// Lines to be shown as context of what was found.
    after: u64,
    /// Lines that will be shown when the next one matches, each as its bytes.
    before: VecDeque<(u64, Vec<u8>)>,
    before_bytes: usize,
    /// Where the search ended, when more follows: a line, and characters of it.
    ended: Option<(u64, u64)>,
    /// A line that was not shown whole.
    cut: Option<ReadOnCall>,
}

impl<'a> Rows<'a> {
    fn new(search: &'a GrepSearch, limits: &ClipLimits, reference: &'a str) -> Self {
        // The call that goes on repeats the pattern, so long as that leaves room for something else.
        let repeated = grep_call(reference, search.pattern.text(), &[]).arguments.len();
        let room = limits.body() - repeated.min(limits.body() / 4);
        Self {
            search,
            reference,
            room,
            bytes: limits.bytes(),
            line_room: LineLimits { chars: limits.max_line_length, bytes: room - NUMBER },
            text: String::new(),
            matches: 0,
            last: 0,
            after: 0,
            before: VecDeque::new(),
            before_bytes: 0,
            ended: None,
            cut: None,
        }
    }

    /// The room of one line.
    fn room(&self) -> LineLimits {
        self.line_room
    }

    /// True when the search is over.
    fn is_full(&self) -> bool {
        self.ended.is_some()
    }

    /// Matches shown so far.
    fn matches(&self) -> u64 {
        self.matches
    }

    /// True when a line that does not match may be shown.
    fn wants_context(&self) -> bool {
        self.after > 0 || self.search.before > 0
    }

    /// Takes in a line that does not match.
    fn context(&mut self, number: u64, bytes: &[u8]) {
        if self.after > 0 {
            self.after -= 1;
            let row = self.draw(number, bytes);
            if self.text.len() + row.len() > self.room {
                self.ended = Some((number, 0));
                return;
            }
            self.text.push_str(&row);
            self.last = number;
        } else if self.search.before > 0 {
            self.remember(number, bytes);
        }
    }

    /// Most lines are forgotten again, so they are kept as they are and drawn when it comes to it.
    fn remember(&mut self, number: u64, bytes: &[u8]) {
        let mut kept = Vec::new();
        while self.before.len() as u64 >= self.search.before {
            kept = self.forget_one();
        }
        kept.clear();
        // One that will be cut is cut now: it may be as long as a window.
        if bytes.len() > self.line_room.bytes {
            let mut drawn = DrawnLine::new(self.line_room);
            drawn.push(bytes);
            kept.extend_from_slice(drawn.end().0.as_bytes());
        } else {
            kept.extend_from_slice(bytes);
        }
        self.before_bytes += kept.len() + NUMBER;
        self.before.push_back((number, kept));
        while self.before_bytes > self.room {
            self.forget_one();
        }
    }

    fn forget_one(&mut self) -> Vec<u8> {
        let Some((_, row)) = self.before.pop_front() else { return Vec::new() };
        self.before_bytes -= row.len() + NUMBER;
        row
    }

    fn draw(&self, number: u64, bytes: &[u8]) -> String {
        let mut drawn = DrawnLine::new(self.line_room);
        drawn.push(bytes);
        format!("{number}-{}\n", drawn.end().0)
    }

    /// The lines before a match, as many of the last as fit into `room`.
    fn drawn_before(&mut self, room: usize) -> VecDeque<String> {
        let (mut rows, mut size) = (VecDeque::new(), 0);
        for (number, bytes) in self.before.iter().rev() {
            let row = self.draw(*number, bytes);
            size += row.len();
            if size > room {
                break;
            }
            rows.push_front(row);
        }
        rows
    }

    /// Takes in a match. Where the line is not shown whole: the characters before what is shown, and before the match.
    fn matched(&mut self, number: u64, text: &str, place: Option<(u64, u64)>) {
        let at = place.map_or(0, |(_, at)| at);
        if self.matches == self.search.max_matches {
            self.ended = Some((number, at));
            return;
        }
        let mut row = format!("{number}:{text}\n");
        if row.len() > self.room {
            // Only where a match and its surroundings are wider than all there is room for.
            let mut end = self.room - "[…]\n".len();
            while !row.is_char_boundary(end) {
                end -= 1;
            }
            row.truncate(end);
            row.push_str("[…]\n");
        }
        // What was found goes before what stands around it: where nothing is shown yet, only as much as fits.
        let left = self.room - self.text.len();
        let most = if self.text.is_empty() { left - row.len() } else { usize::MAX };
        let before = self.drawn_before(most);
        let first = number - before.len() as u64;
        let apart = self.wants_groups() && self.last > 0 && first > self.last + 1;
        let mark = if apart { "--\n" } else { "" };
        if mark.len() + before.iter().map(String::len).sum::<usize>() + row.len() > left {
            self.ended = Some((number, at));
            return;
        }
        self.text.push_str(mark);
        self.text.extend(before);
        self.before.clear();
        self.text.push_str(&row);
        (self.before_bytes, self.last, self.after) = (0, number, self.search.after);
        self.matches += 1;
        if let Some((ahead, _)) = place {
            self.cut.get_or_insert_with(|| line_call(self.reference, number, ahead, CHARS));
        }
    }

    fn wants_groups(&self) -> bool {
        self.search.before > 0 || self.search.after > 0
    }

    /// What was found in the lines up to `last`.
    fn finish(mut self, last: u64) -> OutputReading {
        let next = self.ended.map(|(line, at)| self.go_on(line, at));
        let left = self.bytes - self.text.len();
        let notes = self.notes(last, next.as_ref());
        self.text.push_str(notes.iter().find(|note| note.len() <= left).map_or("", |note| note));
        OutputReading { text: self.text, next }
    }

    /// The same search, from `line` on.
    fn go_on(&self, line: u64, at: u64) -> ReadOnCall {
        let GrepSearch { pattern, before, after, max_matches, .. } = self.search;
        let mut more = Vec::new();
        if matches!(pattern, GrepPattern::Regex(_)) {
            more.push(("regex", "true".to_owned()));
        }
        let numbers = [
            ("before", *before, 0),
            ("after", *after, 0),
            ("max_matches", *max_matches, GrepSearch::MATCHES),
            ("offset", line, 0),
            ("char_offset", at, 0),
        ];
        let told = numbers.iter().filter(|(_, value, usual)| value != usual);
        more.extend(told.map(|(name, value, _)| (*name, value.to_string())));
        grep_call(self.reference, pattern.text(), &more)
    }

    /// The last line, from the one that says most to the shortest.
    fn notes(&self, last: u64, next: Option<&ReadOnCall>) -> Vec<String> {
        let matches = match self.matches {
            0 => "no match".to_owned(),
            1 => "1 match".to_owned(),
            n => format!("{n} matches"),
        };
        let cut = self.cut.as_ref().map(|call| format!("; a line is not shown whole: {call}"));
        let cut = cut.unwrap_or_default();
        let Some(call) = next else {
            let lines = match (self.search.offset, last) {
                (_, 0) => return vec!["[no match: the output is empty]".to_owned()],
                (first, last) if first >= last => format!("line {last}"),
                (first, last) => format!("lines {first} to {last}"),
            };
            let all = format!("{matches} in {lines}, the end");
            return vec![format!("[{all}{cut}]"), format!("[{all}]"), format!("[{matches}, the end]")];
        };
        let so_far = format!("{matches} up to line {}, more follow", self.last);
        // A pattern as long as a page is not repeated.
        let from = call.arguments.rfind("\"offset\":").map_or("", |at| &call.arguments[at..]);
        vec![
            format!("[{so_far}{cut}; read on with {call}]"),
            format!("[{so_far}; read on with {call}]"),
            format!("[read on with {call}]"),
            format!("[more follow; search again with {{{from}]"),
        ]
    }
}
