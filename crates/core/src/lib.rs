//! The pure heart of Komado: what a conversation is, and what the model sees of it.
//!
//! A thread is an append-only [journal] of entries. Folding the journal gives the [view]: exactly
//! what the model sees. [`admit`](mod@admit) refuses an entry that would leave a view which cannot be sent.
//!
//! Nothing here does I/O, reads a clock, or draws a random number; the caller brings the entries, the time and
//! the ids. That is what lets the same fold run live, on reopen, in tests and in a simulator.

#![forbid(unsafe_code)]

pub mod address;
pub mod admit;
pub mod amount;
pub mod budget;
pub mod clip;
pub mod digest;
pub mod grammar;
pub mod harness;
pub mod head;
pub mod journal;
pub mod ladder;
pub mod message;
pub mod meter;
mod names;
pub mod notation;
pub mod openai;
pub mod picture;
pub mod raw;
pub mod session;
pub mod share;
pub mod slice;
pub mod suggest;
pub mod thread;
pub mod view;

pub use address::{Address, BadId, SessionId, ThreadId};
pub use admit::{EntryRefusal, admit};
pub use digest::Digest;
pub use head::{EntrySource, Head, Kind};
pub use journal::{Entry, Record};
pub use message::{Message, MessagePart, Role};
pub use meter::Meter;
pub use view::View;

/// The number of an entry in its thread, counted from 1. With the thread it is the entry's identity.
pub type Seq = u32;

/// An inclusive range of entries, kept as the pair of its ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(from = "[Seq; 2]", into = "[Seq; 2]")]
pub struct Span {
    /// First entry.
    pub from: Seq,
    /// Last entry, inclusive.
    pub to: Seq,
}

impl Span {
    /// The span `from..=to`.
    pub const fn new(from: Seq, to: Seq) -> Self {
        Self { from, to }
    }

    /// True when `seq` lies inside.
    pub const fn holds(self, seq: Seq) -> bool {
        self.from <= seq && seq <= self.to
    }

    /// True when `other` lies inside, ends included.
    pub const fn covers(self, other: Self) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// True when the two share an entry.
    pub const fn meets(self, other: Self) -> bool {
        self.from <= other.to && other.from <= self.to
    }
}

impl From<[Seq; 2]> for Span {
    fn from([from, to]: [Seq; 2]) -> Self {
        Self { from, to }
    }
}

impl From<Span> for [Seq; 2] {
    fn from(span: Span) -> Self {
        [span.from, span.to]
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.from == self.to {
            write!(f, "{}", self.from)
        } else {
            write!(f, "{}..{}", self.from, self.to)
        }
    }
}
