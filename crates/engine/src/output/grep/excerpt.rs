//! Steps through bytes that are text, or nearly.

use std::ops::Range;

/// True for a byte that goes on with a character.
const fn goes_on(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The line without the carriage return of its break.
pub(super) fn line_end(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// Characters of `bytes`; what is no UTF-8 counts as it is shown.
pub(super) fn chars(bytes: &[u8]) -> u64 {
    let count = bytes
        .utf8_chunks()
        .map(|chunk| chunk.valid().chars().count() + usize::from(!chunk.invalid().is_empty()));
    count.sum::<usize>() as u64
}

/// A place between two characters, at `at` or up to three bytes before it.
pub(super) fn part(bytes: &[u8], at: usize) -> usize {
    (at.saturating_sub(3)..=at).rev().find(|at| bytes.get(*at).is_none_or(|b| !goes_on(*b))).unwrap_or(at)
}

/// The place `count` characters after `at`, or the end.
pub(super) fn forth(bytes: &[u8], at: usize, count: u64) -> usize {
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
pub(super) fn excerpt(bytes: &[u8], found: Range<usize>, side: usize) -> Range<usize> {
    let most = forth(bytes, found.start, 4 * side as u64);
    back(bytes, found.start, side)..forth(bytes, part(bytes, found.end.min(most)), side as u64)
}
