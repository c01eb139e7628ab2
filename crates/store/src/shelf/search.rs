//! Asking a shelf: the best entries for some terms, entries that have all of them, and what stands beside an entry.
//!
//! The places of all terms are walked once, in order, side by side. What is held in memory is one row of places per
//! term and the best entries so far, however large the shelf is.

use super::posts::{Post, doc, entry_of, unpack};
use super::{Filter, Hit, Passage, Sought, Tally};
use komado_core::{Role, Seq, ThreadId};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

type Sql<T> = rusqlite::Result<T>;

/// How soon saying a word again adds nothing.
const K1: f32 = 1.1;
/// How much longer passages are worth less.
const B: f32 = 0.5;
/// Entries of one page of [`holding`].
const PAGE: usize = 256;

pub(super) fn tally(db: &Connection, terms: &[String]) -> Sql<Tally> {
    let (docs, words): (i64, i64) =
        db.query_row("SELECT docs, words FROM facts", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut count = db.prepare_cached("SELECT sum(docs) FROM posts WHERE term = ?1")?;
    let mut holding = Vec::with_capacity(terms.len());
    for term in terms {
        let sum: Option<i64> = count.query_row([term], |row| row.get(0))?;
        holding.push(sum.unwrap_or(0) as u64);
    }
    Ok(Tally { docs: docs as u64, words: words as u64, holding })
}

/// The places of one term, a row at a time, forwards.
struct Walk<'a> {
    rows: CachedStatement<'a>,
    term: &'a str,
    worth: f32,
    row: Option<u64>,
    posts: Vec<Post>,
    at: usize,
}

impl<'a> Walk<'a> {
    fn new(db: &'a Connection, term: &'a str, worth: f32) -> Sql<Self> {
        let sql = "SELECT first, body FROM posts WHERE term = ?1 AND first > ?2 ORDER BY first LIMIT 1";
        let rows = db.prepare_cached(sql)?;
        let mut walk = Self { rows, term, worth, row: None, posts: Vec::new(), at: 0 };
        walk.refill()?;
        Ok(walk)
    }

    fn refill(&mut self) -> Sql<()> {
        while self.at >= self.posts.len() {
            let after = self.row.map_or(-1, |first| first as i64);
            let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, Vec<u8>>(1)?));
            let Some((first, body)) = self.rows.query_row(params![self.term, after], read).optional()? else {
                return Ok(());
            };
            (self.row, self.posts, self.at) = (Some(first), unpack(first, &body), 0);
        }
        Ok(())
    }

    fn now(&self) -> Option<Post> {
        self.posts.get(self.at).copied()
    }

    fn step(&mut self) -> Sql<()> {
        self.at += 1;
        self.refill()
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
    look: Look<'a>,
    filter: &'a Filter,
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

    fn offer(&mut self, best: Best) -> Sql<()> {
        match &mut self.open {
            Some(open) if entry_of(open.doc) == entry_of(best.doc) => {
                if best.score > open.score {
                    *open = best;
                }
                Ok(())
            }
            _ => {
                self.close()?;
                self.open = Some(best);
                Ok(())
            }
        }
    }

    /// Takes the entry that was walked among the best, if it belongs there.
    fn close(&mut self) -> Sql<()> {
        let Some(best) = self.open.take() else { return Ok(()) };
        let full = self.heap.len() >= self.limit;
        if full && self.heap.peek().is_some_and(|Reverse(least)| best <= *least) {
            return Ok(());
        }
        if self.look.fits(entry_of(best.doc), self.filter)? {
            if full {
                self.heap.pop();
            }
            self.heap.push(Reverse(best));
        }
        Ok(())
    }
}

pub(super) fn search(db: &Connection, sought: &Sought) -> Sql<Vec<Hit>> {
    if sought.limit == 0 {
        return Ok(Vec::new());
    }
    let mut walks = Vec::with_capacity(sought.terms.len());
    for (term, worth) in &sought.terms {
        walks.push(Walk::new(db, term, *worth)?);
    }
    let mut length = db.prepare_cached("SELECT words FROM passages WHERE id = ?1")?;
    let (look, filter, limit) = (Look::new(db)?, &sought.filter, sought.limit);
    let mut ranking = Ranking { look, filter, limit, heap: BinaryHeap::new(), open: None };
    let mut found: Vec<(f32, u32)> = Vec::with_capacity(walks.len());
    while let Some(place) = walks.iter().filter_map(|walk| walk.now().map(|post| post.doc)).min() {
        found.clear();
        let mut holds = 0u64;
        for (i, walk) in walks.iter_mut().enumerate() {
            if let Some(post) = walk.now().filter(|post| post.doc == place) {
                found.push((walk.worth, post.times));
                holds |= if i < 64 { 1 << i } else { 0 };
                walk.step()?;
            }
        }
        let sum = |stretch: f32| found.iter().map(|(worth, times)| worth * saturated(*times, stretch)).sum();
        if ranking.wants(sum(0.0)) {
            let words: f64 = length.query_row([place as i64], |row| row.get(0)).optional()?.unwrap_or(1.0);
            let score = sum(words as f32 / sought.average.max(1.0));
            ranking.offer(Best { score, doc: place, holds })?;
        }
    }
    ranking.close()?;
    let mut best: Vec<Best> = ranking.heap.into_iter().map(|Reverse(best)| best).collect();
    best.sort_by(|a, b| b.cmp(a));
    best.into_iter()
        .filter_map(|best| ranking.look.hit(best.doc, best.score, best.holds).transpose())
        .collect()
}

/// Looks entries and passages up.
struct Look<'a> {
    entries: CachedStatement<'a>,
    passages: CachedStatement<'a>,
}

/// An entry's row.
struct Entry {
    thread: String,
    seq: Seq,
    role: Role,
    at: String,
    tools: String,
    files: String,
}

impl<'a> Look<'a> {
    fn new(db: &'a Connection) -> Sql<Self> {
        Ok(Self {
            entries: db.prepare_cached(
                "SELECT t.name, e.seq, e.role, e.at, e.tools, e.files FROM entries e \
                 JOIN threads t ON t.id = e.thread WHERE e.id = ?1",
            )?,
            passages: db.prepare_cached("SELECT at, bytes, in_output FROM passages WHERE id = ?1")?,
        })
    }

    fn entry(&mut self, id: u64) -> Sql<Option<Entry>> {
        let read = |row: &Row<'_>| {
            Ok(Entry {
                thread: row.get(0)?,
                seq: row.get(1)?,
                role: Role::ALL.get(usize::from(row.get::<_, u8>(2)?)).copied().unwrap_or(Role::User),
                at: row.get(3)?,
                tools: row.get(4)?,
                files: row.get(5)?,
            })
        };
        self.entries.query_row([id as i64], read).optional()
    }

    fn fits(&mut self, id: u64, filter: &Filter) -> Sql<bool> {
        Ok(self.entry(id)?.is_some_and(|entry| filter.takes(&entry)))
    }

    fn hit(&mut self, place: u64, score: f32, holds: u64) -> Sql<Option<Hit>> {
        let id = entry_of(place);
        let Some(entry) = self.entry(id)? else { return Ok(None) };
        let Ok(thread) = ThreadId::new(entry.thread) else { return Ok(None) };
        let read = |row: &Row<'_>| {
            Ok(Passage {
                part: (place - doc(id, 0)) as u32,
                at: row.get::<_, i64>(0)? as u64,
                bytes: row.get(1)?,
                in_output: row.get(2)?,
            })
        };
        let passage = self.passages.query_row([place as i64], read).optional()?.unwrap_or_default();
        let tools = entry.tools.lines().map(str::to_owned).collect();
        let Entry { seq, role, at: timestamp, .. } = entry;
        Ok(Some(Hit { id, thread, seq, role, tools, timestamp, score, holds, passage }))
    }
}

impl Filter {
    fn takes(&self, entry: &Entry) -> bool {
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
    rows: CachedStatement<'a>,
    term: &'a str,
    row: Option<(u64, Vec<Post>)>,
}

impl Glance<'_> {
    /// True when the term occurs between two places.
    fn has_any(&mut self, from: u64, to: u64) -> Sql<bool> {
        let mut to = to;
        loop {
            let known = self.row.as_ref().is_some_and(|(first, posts)| {
                *first <= to && posts.last().is_some_and(|last| last.doc >= to)
            });
            if !known {
                let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, Vec<u8>>(1)?));
                let found = self.rows.query_row(params![self.term, to as i64], read).optional()?;
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

/// The row of a term's places that begins at or before a place.
const ROW_BEFORE: &str =
    "SELECT first, body FROM posts WHERE term = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1";

pub(super) fn holding(
    db: &Connection,
    terms: &[String],
    filter: &Filter,
    before: Option<u64>,
) -> Sql<Vec<Hit>> {
    let mut look = Look::new(db)?;
    let counts = tally(db, terms)?.holding;
    let rarest = counts.iter().enumerate().min_by_key(|(_, count)| **count).map(|(i, _)| i);
    let mut hits = Vec::new();
    let end = before.map_or(i64::MAX, |id| id as i64);
    let Some(rarest) = rarest else {
        let mut ids = db.prepare_cached("SELECT id FROM entries WHERE id < ?1 ORDER BY id DESC")?;
        let mut ids = ids.query([end])?;
        while let Some(row) = ids.next()?.filter(|_| hits.len() < PAGE) {
            let id = row.get::<_, i64>(0)? as u64;
            if look.fits(id, filter)? {
                hits.extend(look.hit(doc(id, 0), 0.0, 0)?);
            }
        }
        return Ok(hits);
    };
    let mut others = Vec::new();
    for (_, term) in terms.iter().enumerate().filter(|(i, _)| *i != rarest) {
        others.push(Glance { rows: db.prepare_cached(ROW_BEFORE)?, term, row: None });
    }
    let mut rows = db.prepare_cached(ROW_BEFORE)?;
    let mut last = before.map_or(i64::MAX as u64, |id| doc(id, 0).saturating_sub(1));
    while hits.len() < PAGE {
        let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, Vec<u8>>(1)?));
        let found = rows.query_row(params![terms[rarest], last as i64], read).optional()?;
        let Some((first, body)) = found else { break };
        for post in unpack(first, &body).iter().rev() {
            let id = entry_of(post.doc);
            let known = hits.last().is_some_and(|hit: &Hit| hit.id == id);
            if post.doc > last || known || !look.fits(id, filter)? {
                continue;
            }
            let mut all = true;
            for other in &mut others {
                all = all && other.has_any(doc(id, 0), doc(id + 1, 0) - 1)?;
            }
            if all {
                hits.extend(look.hit(post.doc, 0.0, 0)?);
            }
        }
        if first == 0 {
            break;
        }
        last = first - 1;
    }
    Ok(hits)
}

pub(super) fn around(
    db: &Connection,
    (thread, seq): (&ThreadId, Seq),
    reach: u32,
    filter: &Filter,
) -> Sql<Vec<(i32, Hit)>> {
    let sides = [
        "SELECT e.id FROM threads t JOIN entries e ON e.thread = t.id \
         WHERE t.name = ?1 AND e.seq < ?2 ORDER BY e.seq DESC LIMIT ?3",
        "SELECT e.id FROM threads t JOIN entries e ON e.thread = t.id \
         WHERE t.name = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT ?3",
    ];
    let mut look = Look::new(db)?;
    let mut hits = Vec::new();
    for (sql, side) in sides.into_iter().zip([-1, 1]) {
        let mut found = db.prepare_cached(sql)?;
        let mut rows = found.query(params![thread.as_str(), seq, reach])?;
        let mut distance = 0;
        while let Some(row) = rows.next()? {
            distance += side;
            let id = row.get::<_, i64>(0)? as u64;
            if look.fits(id, filter)? {
                hits.extend(look.hit(doc(id, 0), 0.0, 0)?.map(|hit| (distance, hit)));
            }
        }
    }
    hits.sort_by_key(|(distance, _)| *distance);
    Ok(hits)
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
