//! What a search found, as `grep -n` prints it: `12:` before a match, `12-` before its context, `--` between groups.
//!
//! Rows never take more than the limits allow. When one does not fit, the search ends before it and says so.

use super::super::Reading;
use super::super::scan::Drawn;
use super::{Pattern, Search};
use komado_core::clip::{CHARS, Call, Limits, Room, grep_call, line_call};
use std::collections::VecDeque;

/// Bytes of a number, its mark, the line break and a `--` before it.
const NUMBER: usize = 25;

/// Rows, and what is to be known to go on.
pub(super) struct Rows<'a> {
    search: &'a Search,
    reference: &'a str,
    /// Bytes for the rows.
    room: usize,
    /// Bytes for rows and note.
    bytes: usize,
    line_room: Room,
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
    cut: Option<Call>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(search: &'a Search, limits: &Limits, reference: &'a str) -> Self {
        // The call that goes on repeats the pattern, so long as that leaves room for something else.
        let repeated = grep_call(reference, search.pattern.text(), &[]).arguments.len();
        let room = limits.body() - repeated.min(limits.body() / 4);
        Self {
            search,
            reference,
            room,
            bytes: limits.bytes(),
            line_room: Room { chars: limits.max_line_length, bytes: room - NUMBER },
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
    pub(super) fn room(&self) -> Room {
        self.line_room
    }

    /// True when the search is over.
    pub(super) fn is_full(&self) -> bool {
        self.ended.is_some()
    }

    /// Matches shown so far.
    pub(super) fn matches(&self) -> u64 {
        self.matches
    }

    /// True when a line that does not match may be shown.
    pub(super) fn wants_context(&self) -> bool {
        self.after > 0 || self.search.before > 0
    }

    /// Takes in a line that does not match.
    pub(super) fn context(&mut self, number: u64, bytes: &[u8]) {
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
            let mut drawn = Drawn::new(self.line_room);
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
        let mut drawn = Drawn::new(self.line_room);
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
    pub(super) fn matched(&mut self, number: u64, text: &str, place: Option<(u64, u64)>) {
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
    pub(super) fn finish(mut self, last: u64) -> Reading {
        let next = self.ended.map(|(line, at)| self.go_on(line, at));
        let left = self.bytes - self.text.len();
        let notes = self.notes(last, next.as_ref());
        self.text.push_str(notes.iter().find(|note| note.len() <= left).map_or("", |note| note));
        Reading { text: self.text, next }
    }

    /// The same search, from `line` on.
    fn go_on(&self, line: u64, at: u64) -> Call {
        let Search { pattern, before, after, max_matches, .. } = self.search;
        let mut more = Vec::new();
        if matches!(pattern, Pattern::Regex(_)) {
            more.push(("regex", "true".to_owned()));
        }
        let numbers = [
            ("before", *before, 0),
            ("after", *after, 0),
            ("max_matches", *max_matches, Search::MATCHES),
            ("offset", line, 0),
            ("char_offset", at, 0),
        ];
        let told = numbers.iter().filter(|(_, value, usual)| value != usual);
        more.extend(told.map(|(name, value, _)| (*name, value.to_string())));
        grep_call(self.reference, pattern.text(), &more)
    }

    /// The last line, from the one that says most to the shortest.
    fn notes(&self, last: u64, next: Option<&Call>) -> Vec<String> {
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
