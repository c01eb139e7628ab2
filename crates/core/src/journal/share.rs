//! What a spawned thread has of the window, and what it sees of the threads above it.
//!
//! Both are said in one entry, the first of its journal, so that its view follows from its own journal and from moments
//! of journals that never change. A slice names what is shown, not how it was chosen: choosing is done once, by
//! [`slice`](mod@crate::slice), and a later choice is a later entry.

use super::Replace;
use crate::{Seq, Span, ThreadId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A part of a window, between 0.01 and 0.99, exact to a millionth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ratio(u32);

/// One, in millionths.
const WHOLE: u32 = 1_000_000;

/// Not a part of a window.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("a thread cannot have {0} of its parent's window; give it between 0.01 and 0.99, such as 0.8")]
pub struct BadRatio(pub f64);

impl Ratio {
    /// `of` one.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn new(of: f64) -> Result<Self, BadRatio> {
        if (0.01..=0.99).contains(&of) {
            Ok(Self((of * f64::from(WHOLE)).round() as u32))
        } else {
            Err(BadRatio(of))
        }
    }

    /// As a number.
    pub fn get(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// That part of `whole`, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.0) / u128::from(WHOLE);
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

/// Four fifths: what a child has of its parent's window, where nobody says otherwise.
impl Default for Ratio {
    fn default() -> Self {
        Self(WHOLE / 5 * 4)
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.get())
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.get())
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

/// What a spawned thread has of the window, and what it sees of the threads above it; the last one wins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// The thread it was said for: its anchor, and those of the threads above it, are shown to it in brief.
    pub thread: ThreadId,
    /// The window that was shared out, in tokens as the session counts them.
    pub window: u64,
    /// What it sees of the threads above it, the root's first.
    pub slices: Vec<Slice>,
    /// True when what the slices leave of their shares is lent to it.
    pub lends: bool,
    /// Most tokens of its anchor; as many as usual where nobody said.
    pub anchor_tokens: Option<u32>,
    /// What is asked of whoever tells, at the end, what was done here.
    pub chronicle_prompt: Option<String>,
    /// The process that ends it by ending itself; none for a thread that outlives processes.
    pub held_by: Option<String>,
}

/// What is seen of one thread above.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Slice {
    /// The thread.
    pub thread: ThreadId,
    /// Its last entry that counts.
    pub at: Seq,
    /// What the next thread down has of its window; the rest is what this slice may take.
    pub ratio: Ratio,
    /// The items of its view at that moment that are shown: messages by their own number, a summary by its edit's.
    pub keep: Vec<Span>,
    /// Of those, the ones that are shown with other content, because they were too large.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<Replace>,
    /// Says, before them, whose they are.
    pub head: String,
    /// Tokens of all that: heading, items, and its part of the system prompt and the tools.
    pub tokens: u32,
}

impl Share {
    /// Tokens of all slices.
    pub fn tokens(&self) -> u32 {
        self.slices.iter().fold(0, |sum, slice| sum.saturating_add(slice.tokens))
    }

    /// True when `thread` is the thread itself or one above it.
    pub fn is_within(&self, thread: &ThreadId) -> bool {
        *thread == self.thread || self.slices.iter().any(|slice| slice.thread == *thread)
    }

    /// How far below the root it is.
    pub fn depth(&self) -> usize {
        self.slices.len()
    }
}

impl Slice {
    /// True when the item with this number is shown.
    pub fn keeps(&self, item: Seq) -> bool {
        let i = self.keep.partition_point(|span| span.to < item);
        self.keep.get(i).is_some_and(|span| span.holds(item))
    }

    /// What is shown in place of the item with this number; none for one that is shown as it is.
    pub fn replaced(&self, item: Seq) -> Option<&Replace> {
        self.replace.iter().find(|swap| swap.seq == item)
    }
}
