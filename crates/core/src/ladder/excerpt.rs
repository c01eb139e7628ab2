//! A message shown in part: its beginning and its end, how much is left out between them, and how to read that.
//!
//! The cut is made between any two characters, not only between lines: what is shown is as long as it may be, so no room
//! is left that nobody can use.

use super::{OriginalsHint, placeholder};
use crate::clip::{CHARS, LINES, line_call, read_call};
use crate::digest::{end, start};
use crate::journal::Replace;
use crate::message::Message;
use crate::{Meter, Seq};

/// Bytes of words from which on the end is shown too, and the call that reads on. Fewer of an old output are not worth
/// their place: a placeholder says as much.
const BOTH_ENDS: usize = 160;

/// Bytes of words that say something, at least.
const FEWEST: usize = 16;

/// Bytes that a token of words has at the most, on average.
const LONGEST: u64 = 16;

/// A message that is to be shown in part.
pub(crate) struct Excerpt<'m> {
    meter: Meter,
    seq: Seq,
    message: &'m Message,
    reach: OriginalsHint,
    words: String,
    characters: usize,
}

impl<'m> Excerpt<'m> {
    /// Of entry `seq`.
    pub(crate) fn of(meter: Meter, seq: Seq, message: &'m Message, reach: OriginalsHint) -> Self {
        let words = message.words();
        let characters = words.chars().count();
        Self { meter, seq, message, reach, words, characters }
    }

    /// As much of its words as `cap` tokens hold, when that is worth showing.
    pub(crate) fn part(&self, cap: u64) -> Option<Replace> {
        self.longest(BOTH_ENDS, cap, |bytes| self.both_ends(bytes))
    }

    /// As much of its words as `cap` tokens hold, and some words however few these are. `None` when it has no words.
    pub(super) fn words(&self, cap: u64) -> Option<Replace> {
        self.longest(BOTH_ENDS, cap, |bytes| self.both_ends(bytes))
            .or_else(|| self.longest(FEWEST, cap, |bytes| self.beginning(bytes)))
            .or_else(|| self.least())
    }

    /// The fewest words that say something.
    pub(super) fn least(&self) -> Option<Replace> {
        self.beginning(FEWEST.min(self.words.len()))
    }

    /// What says that it was there.
    pub(crate) fn gone(&self) -> Replace {
        let (seq, bytes) = (self.seq, self.words.len());
        self.saying(match (self.message.outcome(), self.reach) {
            (Some(outcome), _) => {
                placeholder(seq, outcome.output_ref.as_ref(), self.words.lines().count() as u64)
            }
            (None, OriginalsHint::Kept) => format!("[a message of {bytes} bytes; it is kept]"),
            (None, OriginalsHint::Tools) => {
                format!(
                    "[a message of {bytes} bytes; read it with tool_output_cache({{\"ref_id\":\"@{seq}\"}})]"
                )
            }
        })
    }

    /// The longest excerpt in `cap` tokens, of those that `showing` gives for `least` bytes of words or more.
    fn longest(
        &self,
        mut least: usize,
        cap: u64,
        showing: impl Fn(usize) -> Option<Replace>,
    ) -> Option<Replace> {
        let fitting = |bytes| showing(bytes).filter(|found| u64::from(found.tokens) <= cap);
        // More bytes than these hold more tokens in anything but blanks; to try them would only take long.
        let bytes = usize::try_from(cap.saturating_mul(LONGEST)).unwrap_or(usize::MAX);
        let mut most = self.words.len().min(bytes);
        let mut best = if least < most { fitting(least) } else { None };
        while best.is_some() && most - least > 1 + least / 256 {
            let bytes = least.midpoint(most);
            match fitting(bytes) {
                Some(found) => (best, least) = (Some(found), bytes),
                None => most = bytes,
            }
        }
        best
    }

    /// So many bytes of its beginning.
    fn beginning(&self, bytes: usize) -> Option<Replace> {
        let head = start(&self.words, bytes);
        let way = match self.reach {
            OriginalsHint::Tools => format!("ref={}", self.name()),
            OriginalsHint::Kept => "all is kept".to_owned(),
        };
        let cut = || format!("{head}\n[cut: {} bytes in all; {way}]", self.words.len());
        (!head.trim().is_empty()).then(|| self.saying(cut()))
    }

    /// So many bytes of its words, three fifths of them from the beginning.
    fn both_ends(&self, bytes: usize) -> Option<Replace> {
        let (words, from_end) = (self.words.as_str(), bytes / 5 * 2);
        let head = start(words, bytes - from_end);
        let tail = end(words, from_end);
        if head.trim().is_empty() && tail.trim().is_empty() {
            return None;
        }
        let left_out = self.characters - head.chars().count() - tail.chars().count();
        let way = match self.reach {
            OriginalsHint::Tools => format!("read on with {}", self.read_on(head, tail)),
            OriginalsHint::Kept => "the rest is kept".to_owned(),
        };
        let end = if tail.ends_with('\n') { "" } else { "\n" };
        Some(self.saying(format!("{head}[…{left_out} characters left out…]{tail}{end}[{way}]")))
    }

    /// The call that reads what is between `head` and `tail`.
    fn read_on(&self, head: &str, tail: &str) -> String {
        let name = self.name();
        let line = head.matches('\n').count() as u64 + 1;
        let between = &self.words[head.len()..self.words.len() - tail.len()];
        if between.contains('\n') {
            return read_call(&name, line, LINES).to_string();
        }
        let begins = head.rfind('\n').map_or(0, |at| at + 1);
        line_call(&name, line, head[begins..].chars().count() as u64, CHARS).to_string()
    }

    fn saying(&self, text: String) -> Replace {
        let tokens = self.meter.message(&self.message.saying(&text));
        Replace { seq: self.seq, text, tokens }
    }

    /// Under which name the whole is kept.
    fn name(&self) -> String {
        let output = self.message.outcome().and_then(|outcome| outcome.output_ref.as_ref());
        output.map_or_else(|| format!("@{}", self.seq), |output| output.id.clone())
    }
}

/// The message with as much of its words as `cap` tokens hold, or with a placeholder when that is nothing.
pub(crate) fn clipped(meter: Meter, seq: Seq, message: &Message, cap: u64) -> Replace {
    let excerpt = Excerpt::of(meter, seq, message, OriginalsHint::Tools);
    excerpt.part(cap).unwrap_or_else(|| excerpt.gone())
}
