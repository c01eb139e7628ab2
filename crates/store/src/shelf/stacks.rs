//! What a shelf is made of, wherever it is kept: rows of places, entries and passages.

use super::{Passage, Tally};
use komado_core::{Role, Seq, ThreadId};

/// A row of a term's places: the first of them, and all of them packed.
pub(crate) type Places = (u64, Vec<u8>);

/// An entry as it is kept.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) thread: String,
    pub(crate) seq: Seq,
    pub(crate) role: Role,
    pub(crate) at: String,
    /// One in a line.
    pub(crate) tools: String,
    /// One in a line.
    pub(crate) files: String,
}

/// A passage as it is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) passage: Passage,
    pub(crate) words: u32,
}

/// Looks things up on a shelf.
pub(crate) trait Stacks {
    /// What can go wrong.
    type Error;

    /// How common `terms` are.
    fn tally(&mut self, terms: &[String]) -> Result<Tally, Self::Error>;

    /// The first row of a term's places that begins behind `after`; the very first without.
    fn row_after(&mut self, term: &str, after: Option<u64>) -> Result<Option<Places>, Self::Error>;

    /// The last row of a term's places that begins at or before `upto`.
    fn row_upto(&mut self, term: &str, upto: u64) -> Result<Option<Places>, Self::Error>;

    /// An entry.
    fn entry(&mut self, id: u64) -> Result<Option<Entry>, Self::Error>;

    /// The passage at a place.
    fn piece(&mut self, place: u64) -> Result<Option<Piece>, Self::Error>;

    /// The last entry before `id`; the very last without.
    fn entry_before(&mut self, id: Option<u64>) -> Result<Option<u64>, Self::Error>;

    /// The `reach` entries of a thread on one side of entry `seq`, the nearest first.
    fn beside(&mut self, moment: (&ThreadId, Seq), side: Side, reach: u32) -> Result<Vec<u64>, Self::Error>;
}

/// A side of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Before,
    After,
}
