//! Numbered lines of an output, as `cat -n` prints them.

use super::Reading;
use super::error::{Error, Result};
use super::scan::{Drawn, Scan};
use komado_core::clip::{CHARS, Call, LINES, Limits, Room, line_call, read_call};
use std::io::Read;

/// Which lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    /// The first, counted from 1.
    pub offset: u64,
    /// How many at most.
    pub limit: u64,
}

impl Default for Page {
    fn default() -> Self {
        Self { offset: 1, limit: LINES }
    }
}

/// Bytes of a number, its tab and the line break; numbers up to 20 digits.
const NUMBER: usize = 22;

/// Reads a page of `from`, which `reference` names. Lines that are too long are cut inside; when the page does not fit
/// into the limits it ends earlier, and says where to go on.
pub fn read(from: &mut dyn Read, page: &Page, limits: &Limits, reference: &str) -> Result<Reading> {
    if page.offset == 0 {
        return Err(Error::LineZero { what: "offset" });
    }
    if page.limit == 0 {
        return Err(Error::ShowsNothing { what: "limit" });
    }
    let mut scan = Scan::new(from);
    if page.offset == 1 && scan.at_end()? {
        return Ok(Reading { text: "[the output is empty]".to_owned(), next: None });
    }
    scan.go_to(page.offset)?;
    let room = Room { chars: limits.max_line_length, bytes: limits.body() - NUMBER };
    let (mut text, mut number) = (String::new(), page.offset);
    let (mut drawn, mut piece, mut cut) = (Drawn::new(room), Vec::new(), None);
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
    Ok(Reading { text, next })
}

/// The last line: what was shown, and how to read on.
fn note(first: u64, last: u64, cut: Option<(u64, Call)>, next: Option<&Call>, limits: &Limits) -> String {
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
