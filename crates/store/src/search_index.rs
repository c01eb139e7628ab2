//! Which words stand where: an index of terms over all that was said in one session.
//!
//! A shelf is derived. It is filled from the journals, lost without harm and made again; it never decides what a model
//! sees. It keeps terms, not texts: the filler says which terms a passage has, and the caller says what each
//! of them is worth. So it knows no language, no stemming and no ranking but the sum it is told to make, and the
//! shelves of many sessions can be asked as if they were one.
//!
//! An entry is a *sheet*; a long one is cut into *passages*, so that a word deep in a large output counts as much as
//! one in a short message, and so that its place can be read without reading the rest.

#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) mod keyed;
pub(crate) mod postings;
pub(crate) mod search;
pub(crate) mod sqlite;

pub(crate) use sqlite::SqliteSearchIndex;

use crate::Result;
use komado_core::{Role, Seq, Span, ThreadId};

/// How far a thread has been taken in: every entry up to `seq`, and `part` passages of the one after it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct IndexedUpto {
    /// The last entry that is in whole.
    pub seq: Seq,
    /// Passages of the next entry that are in.
    pub part: u32,
}

/// Where a passage stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Passage {
    /// Its number in the entry, counted from 0.
    pub part: u32,
    /// Its first byte in the entry's text or output.
    pub at: u64,
    /// Its bytes.
    pub bytes: u32,
    /// True when it lies in the output that the entry names, not in its own text.
    pub in_output: bool,
}

/// A passage with its terms.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IndexedPassage {
    /// Where it stands.
    pub passage: Passage,
    /// Its length, in words.
    pub words: u32,
    /// Its terms, each with the number of times it occurs.
    pub terms: Vec<(String, u32)>,
}

/// An entry, or some of the passages of a long one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexedEntry {
    /// The entry.
    pub seq: Seq,
    /// Who speaks.
    pub role: Role,
    /// The tools it calls, or the one that answers.
    pub tools: Vec<String>,
    /// The files it is about.
    pub files: Vec<String>,
    /// When it was said.
    pub timestamp: String,
    /// Its passages, in order.
    pub docs: Vec<IndexedPassage>,
}

/// How common terms are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TermCounts {
    /// Passages in all.
    pub docs: u64,
    /// Words in all of them.
    pub words: u64,
    /// For each term asked for, the passages that have it.
    pub holding: Vec<u64>,
}

/// Which entries count.
#[derive(Clone, Debug, Default)]
pub struct SearchFilter {
    /// Only this speaker's.
    pub role: Option<Role>,
    /// Only calls and answers of this tool.
    pub tool: Option<String>,
    /// Only those about this file, or about one in this folder: a whole path, its end or its beginning.
    pub file: Option<String>,
    /// Only those said then or later (RFC 3339).
    pub since: Option<String>,
    /// Only those said then or earlier.
    pub until: Option<String>,
    /// Only these stretches of these threads.
    pub places: Option<Vec<(ThreadId, Span)>>,
    /// Of this thread only what stands before this entry; other threads are not narrowed by it.
    pub before: Option<(ThreadId, Seq)>,
    /// None that call this tool and no other, and none of its answers.
    pub not_tool: Option<String>,
}

/// What is looked for.
#[derive(Clone, Debug, Default)]
pub struct IndexQuery {
    /// Terms, each with what it is worth: rare ones are worth more.
    pub terms: Vec<(String, f32)>,
    /// Words of a passage on average.
    pub average: f32,
    /// Which entries count.
    pub filter: SearchFilter,
    /// At most so many.
    pub limit: usize,
}

/// An entry that was found, with the best of its passages.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchHit {
    /// Its place on the shelf; of two entries of a thread the later one has the higher.
    pub id: u64,
    /// The thread whose own entry it is.
    pub thread: ThreadId,
    /// The entry.
    pub seq: Seq,
    /// Who speaks.
    pub role: Role,
    /// The tools it calls, or the one that answers.
    pub tools: Vec<String>,
    /// When it was said.
    pub timestamp: String,
    /// The worth of its terms; 0 where none were asked for.
    pub score: f32,
    /// Which of the first 64 terms the passage has, one bit each.
    pub holds: u64,
    /// Its best passage; the first one where no terms were asked for.
    pub passage: Passage,
}

/// Which entries are asked for.
#[derive(Clone, Copy, Debug)]
pub enum SearchFor<'a> {
    /// The best for what is sought, best first.
    Best(&'a IndexQuery),
    /// Those that have every one of the terms, the last first: a page of those before an entry of the shelf.
    Holding(&'a [String], Option<u64>),
    /// Those of so many entries before an entry of a thread, and of as many after it, that count, in order.
    Around(&'a ThreadId, Seq, u32),
}

/// The index of one session.
pub trait SearchIndex: Send {
    /// How far `thread` has been taken in.
    fn upto(&self, thread: &ThreadId) -> Result<IndexedUpto>;

    /// Takes in sheets of `thread`, which had been taken in up to `after` and is up to `upto` then; all or none. When
    /// someone else was faster, or the shelf was cleared since it was opened, says so with
    /// [`Error::Moved`](crate::Error::Moved).
    fn add(
        &mut self,
        thread: &ThreadId,
        after: IndexedUpto,
        upto: IndexedUpto,
        sheets: &[IndexedEntry],
    ) -> Result<()>;

    /// How common `terms` are.
    fn tally(&self, terms: &[String]) -> Result<TermCounts>;

    /// The entries that are asked for and pass the filter; each with how far it is from the one that was named.
    fn hits(&self, wanted: SearchFor<'_>, filter: &SearchFilter) -> Result<Vec<(i32, SearchHit)>>;

    /// [`SearchFor::Best`].
    fn search(&self, sought: &IndexQuery) -> Result<Vec<SearchHit>> {
        self.hits(SearchFor::Best(sought), &sought.filter).map(alone)
    }

    /// [`SearchFor::Holding`]; empty when there are no more.
    fn holding(
        &self,
        terms: &[String],
        filter: &SearchFilter,
        before: Option<u64>,
    ) -> Result<Vec<SearchHit>> {
        self.hits(SearchFor::Holding(terms, before), filter).map(alone)
    }

    /// Forgets everything, so that no term of it is left on the disk.
    fn clear(&mut self) -> Result<()>;
}

fn alone(hits: Vec<(i32, SearchHit)>) -> Vec<SearchHit> {
    hits.into_iter().map(|(_, hit)| hit).collect()
}
