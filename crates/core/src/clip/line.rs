//! One line, whole or cut inside.
//!
//! A line may be as long as the output. Beginning and end are kept, on character boundaries, and a mark between them
//! says how many characters are left out.

use std::str::from_utf8;

/// How much of a line is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineLimits {
    /// Characters.
    pub chars: usize,
    /// Bytes.
    pub bytes: usize,
}

/// Bytes that a mark may take; its digits and its words.
const MARK: usize = 48;

impl LineLimits {
    /// The shares of the beginning and the end of a line that is cut, three fifths and two.
    fn shares(self) -> (Self, Self) {
        // Where the mark itself would take more than half of the room, it comes on top.
        let chars = self.chars.saturating_sub(MARK).max(self.chars / 2);
        let bytes = self.bytes.saturating_sub(MARK);
        let front = LineLimits { chars: chars / 5 * 3 + chars % 5, bytes: bytes / 5 * 3 + bytes % 5 };
        (front, LineLimits { chars: chars - front.chars, bytes: bytes - front.bytes })
    }
}

/// Where a line is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineCut {
    /// Characters before the cut.
    pub at: u64,
    /// Characters left out.
    pub left_out: u64,
}

/// Takes a line in, piece by piece, and keeps what will be shown of it.
#[derive(Debug)]
pub struct LineClipper {
    room: LineLimits,
    chars: u64,
    /// The whole line while it fits; then its beginning.
    front: String,
    /// Characters of the beginning, once the line did not fit.
    front_chars: u64,
    /// The end of a line that did not fit, and a little more.
    back: Option<String>,
}

impl LineClipper {
    /// An empty line.
    pub fn new(room: LineLimits) -> Self {
        Self { room, chars: 0, front: String::new(), front_chars: 0, back: None }
    }

    /// Characters so far, shown or not.
    pub fn chars(&self) -> u64 {
        self.chars
    }

    /// Bytes in memory.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.front.capacity() + self.back.as_ref().map_or(0, String::capacity)
    }

    /// Takes in more of the line.
    pub fn push(&mut self, piece: &str) {
        self.chars += piece.chars().count() as u64;
        if let Some(back) = &mut self.back {
            return append(back, piece, self.room.shares().1.bytes);
        }
        if self.front.len() + piece.len() <= self.room.bytes && self.chars <= self.room.chars as u64 {
            return self.front.push_str(piece);
        }
        self.back = Some(self.part_with(piece));
    }

    /// The line does not fit: gives its end, and leaves the beginning in `front`.
    fn part_with(&mut self, piece: &str) -> String {
        let (front, end) = self.room.shares();
        let mut back = self.front.split_off(prefix(&self.front, front));
        let chars = self.front.chars().count();
        let mut taken = 0;
        if back.is_empty() {
            let left = LineLimits { chars: front.chars - chars, bytes: front.bytes - self.front.len() };
            taken = prefix(piece, left);
            self.front.push_str(&piece[..taken]);
        }
        self.front_chars = (chars + piece[..taken].chars().count()) as u64;
        append(&mut back, &piece[taken..], end.bytes);
        back
    }

    /// The line is over: the way it is shown, and where it is cut.
    pub fn end(&mut self) -> (&str, Option<LineCut>) {
        let Some(back) = self.back.take() else { return (&self.front, None) };
        let end = &back[suffix(&back, self.room.shares().1)..];
        let at = self.front_chars;
        let left_out = self.chars - at - end.chars().count() as u64;
        self.front.push_str(&format!("[…{left_out} characters left out…]{end}"));
        (&self.front, Some(LineCut { at, left_out }))
    }

    /// Begins another line.
    pub fn clear(&mut self) {
        (self.chars, self.front_chars, self.back) = (0, 0, None);
        self.front.clear();
    }
}

/// Adds `piece` to `back`, of which only the last `bytes` matter.
fn append(back: &mut String, piece: &str, bytes: usize) {
    if piece.len() >= bytes {
        back.clear();
        return back.push_str(&piece[boundary_after(piece, piece.len() - bytes)..]);
    }
    back.push_str(piece);
    if back.len() > 2 * bytes {
        back.drain(..boundary_after(back, back.len() - bytes));
    }
}

/// Length of the longest beginning of `text` within `share`.
fn prefix(text: &str, share: LineLimits) -> usize {
    let mut by_bytes = share.bytes.min(text.len());
    while !text.is_char_boundary(by_bytes) {
        by_bytes -= 1;
    }
    text[..by_bytes].char_indices().nth(share.chars).map_or(by_bytes, |(at, _)| at)
}

/// Where the longest end of `text` within `share` begins.
fn suffix(text: &str, share: LineLimits) -> usize {
    let by_bytes = boundary_after(text, text.len().saturating_sub(share.bytes));
    match share.chars {
        0 => text.len(),
        chars => {
            text[by_bytes..].char_indices().rev().nth(chars - 1).map_or(by_bytes, |(at, _)| by_bytes + at)
        }
    }
}

/// The first place between two characters at `at` or after it.
fn boundary_after(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

// Text from bytes that come in pieces.
//
// A piece may end inside a character. The text is the same however the bytes were cut, and the same that
// [`String::from_utf8_lossy`] gives for all of them at once.

/// Stands for what is no UTF-8.
const WRONG: &str = "\u{fffd}";

/// Decodes, and holds back the beginning of a character until the rest has come.
#[derive(Clone, Default, Debug)]
pub struct Utf8Decoder {
    /// At most three bytes.
    begun: Vec<u8>,
}

impl Utf8Decoder {
    /// True when a character has begun, and not ended.
    pub fn is_amid(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Gives the text of `bytes` to `each`, in pieces.
    pub fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str)) {
        let mut bytes = self.end_begun(bytes, each);
        loop {
            let error = match from_utf8(bytes) {
                Ok("") => return,
                Ok(text) => return each(text),
                Err(error) => error,
            };
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            // What was found valid is valid; this costs nothing but a second look.
            if let Ok(text) = from_utf8(valid)
                && !text.is_empty()
            {
                each(text);
            }
            let Some(length) = error.error_len() else {
                self.begun.extend_from_slice(rest);
                return;
            };
            each(WRONG);
            bytes = &rest[length..];
        }
    }

    /// Ends the character that had begun, with as many bytes as it takes; gives the others.
    fn end_begun<'b>(&mut self, mut bytes: &'b [u8], each: &mut dyn FnMut(&str)) -> &'b [u8] {
        while !self.begun.is_empty() {
            let Some((first, rest)) = bytes.split_first() else { break };
            self.begun.push(*first);
            match from_utf8(&self.begun) {
                Ok(text) => each(text),
                Err(error) if error.error_len().is_none() => {
                    bytes = rest;
                    continue;
                }
                Err(_) => {
                    // The byte that broke it may begin something of its own.
                    each(WRONG);
                    self.begun.clear();
                    break;
                }
            }
            self.begun.clear();
            bytes = rest;
        }
        bytes
    }

    /// Nothing follows: a character that had begun never ends.
    pub fn finish(&mut self, each: &mut dyn FnMut(&str)) {
        if !self.begun.is_empty() {
            self.begun.clear();
            each(WRONG);
        }
    }
}
