//! Asking a shelf: the best entries for some terms, entries that have all of them, and what stands beside an entry.
//!
//! The places of all terms are walked once, in order, side by side. What is held in memory is one row of places per
//! term and the best entries so far, however large the shelf is.

use super::postings::{Posting, doc, entry_of, unpack};
use super::{IndexQuery, Passage, SearchFilter, SearchFor, SearchHit, TermCounts};
use komado_core::{Role, Seq, ThreadId};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// How soon saying a word again adds nothing.
const K1: f32 = 1.1;
/// How much longer passages are worth less.
const B: f32 = 0.5;
/// Entries of one page of [`holding`].
const PAGE: usize = 256;

/// The places of one term, a row at a time, forwards.
struct Walk<'a> {
    term: &'a str,
    worth: f32,
    row: Option<u64>,
    posts: Vec<Posting>,
    at: usize,
}

impl<'a> Walk<'a> {
    fn new<S: IndexTables>(stacks: &mut S, term: &'a str, worth: f32) -> Result<Self, S::Error> {
        let mut walk = Self { term, worth, row: None, posts: Vec::new(), at: 0 };
        walk.refill(stacks)?;
        Ok(walk)
    }

    fn refill<S: IndexTables>(&mut self, stacks: &mut S) -> Result<(), S::Error> {
        while self.at >= self.posts.len() {
            let Some((first, body)) = stacks.row_after(self.term, self.row)? else {
                return Ok(());
            };
            (self.row, self.posts, self.at) = (Some(first), unpack(first, &body), 0);
        }
        Ok(())
    }

    fn now(&self) -> Option<Posting> {
        self.posts.get(self.at).copied()
    }

    fn step<S: IndexTables>(&mut self, stacks: &mut S) -> Result<(), S::Error> {
        self.at += 1;
        self.refill(stacks)
    }
}

/// What a term that occurs `times` in a passage is worth; `stretch` is the passage's length against the average.
fn saturated(times: u32, stretch: f32) -> f32 {
    let times = times as f32;
    times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * stretch))
}

/// The best passage of an entry so far.
#[derive(Clone, Copy)]
struct Best {
    score: f32,
    doc: u64,
    holds: u64,
}

/// The best first; of equals the latest.
impl Ord for Best {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(self.doc.cmp(&other.doc))
    }
}

impl PartialOrd for Best {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Best {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Best {}

/// The best entries so far, the least of them at hand.
struct Ranking<'a> {
    filter: &'a SearchFilter,
    limit: usize,
    heap: BinaryHeap<Reverse<Best>>,
    /// The entry whose passages are being walked.
    open: Option<Best>,
}

impl Ranking<'_> {
    /// True when a passage worth at most `bound` could still be among the best.
    fn wants(&self, bound: f32) -> bool {
        self.heap.len() < self.limit || self.heap.peek().is_none_or(|Reverse(least)| bound >= least.score)
    }

    fn offer<S: IndexTables>(&mut self, stacks: &mut S, best: Best) -> Result<(), S::Error> {
        match &mut self.open {
            Some(open) if entry_of(open.doc) == entry_of(best.doc) => {
                if best.score > open.score {
                    *open = best;
                }
                Ok(())
            }
            _ => {
                self.close(stacks)?;
                self.open = Some(best);
                Ok(())
            }
        }
    }

    /// Takes the entry that was walked among the best, if it belongs there.
    fn close<S: IndexTables>(&mut self, stacks: &mut S) -> Result<(), S::Error> {
        let Some(best) = self.open.take() else { return Ok(()) };
        let full = self.heap.len() >= self.limit;
        if full && self.heap.peek().is_some_and(|Reverse(least)| best <= *least) {
            return Ok(());
        }
        if fits(stacks, entry_of(best.doc), self.filter)? {
            if full {
                self.heap.pop();
            }
            self.heap.push(Reverse(best));
        }
        Ok(())
    }
}

/// The entries that are asked for, each with how far it is from the one that was named.
pub(crate) fn hits<S: IndexTables>(
    stacks: &mut S,
    wanted: SearchFor<'_>,
    filter: &SearchFilter,
) -> Result<Vec<(i32, SearchHit)>, S::Error> {
    let found = match wanted {
        SearchFor::Best(sought) => search(stacks, sought, filter)?,
        SearchFor::Holding(terms, before) => holding(stacks, terms, filter, before)?,
        SearchFor::Around(thread, seq, reach) => return around(stacks, (thread, seq), reach, filter),
    };
    Ok(found.into_iter().map(|hit| (0, hit)).collect())
}

fn search<S: IndexTables>(
    stacks: &mut S,
    sought: &IndexQuery,
    filter: &SearchFilter,
) -> Result<Vec<SearchHit>, S::Error> {
    if sought.limit == 0 {
        return Ok(Vec::new());
    }
    let mut walks = Vec::with_capacity(sought.terms.len());
    for (term, worth) in &sought.terms {
        walks.push(Walk::new(stacks, term, *worth)?);
    }
    let mut ranking = Ranking { filter, limit: sought.limit, heap: BinaryHeap::new(), open: None };
    let mut found: Vec<(f32, u32)> = Vec::with_capacity(walks.len());
    while let Some(place) = walks.iter().filter_map(|walk| walk.now().map(|post| post.doc)).min() {
        found.clear();
        let mut holds = 0u64;
        for (i, walk) in walks.iter_mut().enumerate() {
            if let Some(post) = walk.now().filter(|post| post.doc == place) {
                found.push((walk.worth, post.times));
                holds |= if i < 64 { 1 << i } else { 0 };
                walk.step(stacks)?;
            }
        }
        let sum = |stretch: f32| found.iter().map(|(worth, times)| worth * saturated(*times, stretch)).sum();
        if ranking.wants(sum(0.0)) {
            let words = stacks.piece(place)?.map_or(1, |piece| piece.words);
            let score = sum(words as f32 / sought.average.max(1.0));
            ranking.offer(stacks, Best { score, doc: place, holds })?;
        }
    }
    ranking.close(stacks)?;
    let mut best: Vec<Best> = ranking.heap.into_iter().map(|Reverse(best)| best).collect();
    best.sort_by(|a, b| b.cmp(a));
    best.into_iter().filter_map(|best| hit(stacks, best.doc, best.score, best.holds).transpose()).collect()
}

fn fits<S: IndexTables>(stacks: &mut S, id: u64, filter: &SearchFilter) -> Result<bool, S::Error> {
    Ok(stacks.entry(id)?.is_some_and(|entry| filter.takes(&entry)))
}

fn hit<S: IndexTables>(
    stacks: &mut S,
    place: u64,
    score: f32,
    holds: u64,
) -> Result<Option<SearchHit>, S::Error> {
    let id = entry_of(place);
    let Some(entry) = stacks.entry(id)? else { return Ok(None) };
    let Ok(thread) = ThreadId::new(entry.thread) else { return Ok(None) };
    let passage = stacks.piece(place)?.map(|piece| piece.passage).unwrap_or_default();
    let tools = entry.tools.lines().map(str::to_owned).collect();
    let StoredEntry { seq, role, at: timestamp, .. } = entry;
    Ok(Some(SearchHit { id, thread, seq, role, tools, timestamp, score, holds, passage }))
}

impl SearchFilter {
    fn takes(&self, entry: &StoredEntry) -> bool {
        self.role.is_none_or(|role| role == entry.role)
            && self.tool.as_ref().is_none_or(|tool| entry.tools.lines().any(|name| name == tool))
            && self.file.as_ref().is_none_or(|file| entry.files.lines().any(|path| is_about(path, file)))
            && self.since.as_ref().is_none_or(|since| entry.at >= *since)
            && self.until.as_ref().is_none_or(|until| entry.at <= *until)
            && self.places.as_ref().is_none_or(|places| {
                places.iter().any(|(thread, span)| thread.as_str() == entry.thread && span.holds(entry.seq))
            })
            && self
                .before
                .as_ref()
                .is_none_or(|(thread, seq)| thread.as_str() != entry.thread || entry.seq < *seq)
            && self
                .not_tool
                .as_ref()
                .is_none_or(|tool| entry.tools.is_empty() || entry.tools.lines().any(|name| name != tool))
    }
}

/// True when `path` is `wanted`, ends with it, or lies under it; always by whole names.
fn is_about(path: &str, wanted: &str) -> bool {
    let trim = |text: &str| text.trim_start_matches("./").trim_matches('/').to_owned();
    let (path, wanted) = (trim(path), trim(wanted));
    if wanted.is_empty() {
        return false;
    }
    path == wanted
        || path.ends_with(&format!("/{wanted}"))
        || format!("/{path}").contains(&format!("/{wanted}/"))
}

/// Which rows of one term's places were last looked at.
struct Glance<'a> {
    term: &'a str,
    row: Option<(u64, Vec<Posting>)>,
}

impl Glance<'_> {
    /// True when the term occurs between two places.
    fn has_any<S: IndexTables>(&mut self, stacks: &mut S, from: u64, to: u64) -> Result<bool, S::Error> {
        let mut to = to;
        loop {
            let known = self.row.as_ref().is_some_and(|(first, posts)| {
                *first <= to && posts.last().is_some_and(|last| last.doc >= to)
            });
            if !known {
                let found = stacks.row_upto(self.term, to)?;
                self.row = found.map(|(first, body)| (first, unpack(first, &body)));
            }
            let Some((first, posts)) = &self.row else { return Ok(false) };
            if posts.iter().any(|post| (from..=to).contains(&post.doc)) {
                return Ok(true);
            }
            if *first <= from || *first == 0 {
                return Ok(false);
            }
            to = first - 1;
        }
    }
}

fn holding<S: IndexTables>(
    stacks: &mut S,
    terms: &[String],
    filter: &SearchFilter,
    before: Option<u64>,
) -> Result<Vec<SearchHit>, S::Error> {
    let counts = stacks.tally(terms)?.holding;
    let rarest = counts.iter().enumerate().min_by_key(|(_, count)| **count).map(|(i, _)| i);
    let Some(rarest) = rarest else { return latest(stacks, filter, before) };
    let others = terms.iter().enumerate().filter(|(i, _)| *i != rarest);
    let mut others: Vec<Glance<'_>> = others.map(|(_, term)| Glance { term, row: None }).collect();
    let mut hits = Vec::new();
    let mut last = before.map_or(i64::MAX as u64, |id| doc(id, 0).saturating_sub(1));
    while hits.len() < PAGE {
        let Some((first, body)) = stacks.row_upto(&terms[rarest], last)? else { break };
        for post in unpack(first, &body).iter().rev() {
            let id = entry_of(post.doc);
            let known = hits.last().is_some_and(|hit: &SearchHit| hit.id == id);
            if post.doc > last || known || !fits(stacks, id, filter)? {
                continue;
            }
            let mut all = true;
            for other in &mut others {
                all = all && other.has_any(stacks, doc(id, 0), doc(id + 1, 0) - 1)?;
            }
            if all {
                hits.extend(hit(stacks, post.doc, 0.0, 0)?);
            }
        }
        if first == 0 {
            break;
        }
        last = first - 1;
    }
    Ok(hits)
}

/// Entries whatever their terms, the last first.
fn latest<S: IndexTables>(
    stacks: &mut S,
    filter: &SearchFilter,
    before: Option<u64>,
) -> Result<Vec<SearchHit>, S::Error> {
    let (mut hits, mut end) = (Vec::new(), before);
    while hits.len() < PAGE {
        let Some(id) = stacks.entry_before(end)? else { break };
        end = Some(id);
        if fits(stacks, id, filter)? {
            hits.extend(hit(stacks, doc(id, 0), 0.0, 0)?);
        }
    }
    Ok(hits)
}

fn around<S: IndexTables>(
    stacks: &mut S,
    moment: (&ThreadId, Seq),
    reach: u32,
    filter: &SearchFilter,
) -> Result<Vec<(i32, SearchHit)>, S::Error> {
    let mut hits = Vec::new();
    for (side, step) in [(EntrySide::Before, -1), (EntrySide::After, 1)] {
        let mut distance = 0;
        for id in stacks.beside(moment, side, reach)? {
            distance += step;
            if fits(stacks, id, filter)? {
                hits.extend(hit(stacks, doc(id, 0), 0.0, 0)?.map(|hit| (distance, hit)));
            }
        }
    }
    hits.sort_by_key(|(distance, _)| *distance);
    Ok(hits)
}

// What a shelf is made of, wherever it is kept: rows of places, entries and passages.

/// A row of a term's places: the first of them, and all of them packed.
pub(crate) type PackedPostings = (u64, Vec<u8>);

/// An entry as it is kept.
#[derive(Clone, Debug)]
pub(crate) struct StoredEntry {
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
pub(crate) struct StoredPassage {
    pub(crate) passage: Passage,
    pub(crate) words: u32,
}

/// Looks things up on a shelf.
pub(crate) trait IndexTables {
    /// What can go wrong.
    type Error;

    /// How common `terms` are.
    fn tally(&mut self, terms: &[String]) -> Result<TermCounts, Self::Error>;

    /// The first row of a term's places that begins behind `after`; the very first without.
    fn row_after(&mut self, term: &str, after: Option<u64>) -> Result<Option<PackedPostings>, Self::Error>;

    /// The last row of a term's places that begins at or before `upto`.
    fn row_upto(&mut self, term: &str, upto: u64) -> Result<Option<PackedPostings>, Self::Error>;

    /// An entry.
    fn entry(&mut self, id: u64) -> Result<Option<StoredEntry>, Self::Error>;

    /// The passage at a place.
    fn piece(&mut self, place: u64) -> Result<Option<StoredPassage>, Self::Error>;

    /// The last entry before `id`; the very last without.
    fn entry_before(&mut self, id: Option<u64>) -> Result<Option<u64>, Self::Error>;

    /// The `reach` entries of a thread on one side of entry `seq`, the nearest first.
    fn beside(
        &mut self,
        moment: (&ThreadId, Seq),
        side: EntrySide,
        reach: u32,
    ) -> Result<Vec<u64>, Self::Error>;
}

/// A side of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntrySide {
    Before,
    After,
}

#[cfg(test)]
mod tests {
    use super::is_about;

    #[test]
    fn a_file_is_named_by_its_path_its_end_or_a_folder_above_it() {
        for wanted in ["a/src/main.rs", "main.rs", "src/main.rs", "a", "src", "a/src/", "./a/src", "/a"] {
            assert!(is_about("a/src/main.rs", wanted), "{wanted}");
        }
        for wanted in ["ain.rs", "main", "rc", "main.rs/x", "", "/", "b/main.rs"] {
            assert!(!is_about("a/src/main.rs", wanted), "{wanted}");
        }
        assert!(is_about("/home/窓/設計.md", "設計.md") && is_about("./x", "x"));
    }
}
