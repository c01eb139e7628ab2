//! A session's index of words in a table of fields, as stores on servers keep it.
//!
//! `entry:7` is an entry, `piece:7:0` a passage of it, `term:窓` where the rows of a term's places begin and how many each has,
//! `row:窓:…` such a row, `mark:T` how far a thread is in. A filling reads what it adds to, and is written in one step if no
//! other writer came in between.

use super::postings::{LAST_PART, Posting, PostingRow, doc, entry_of};
use super::search::{EntrySide, IndexTables, PackedPostings, StoredEntry, StoredPassage};
use super::sqlite::joined;
use super::{
    IndexedEntry, IndexedPassage, IndexedUpto, Passage, SearchFilter, SearchFor, SearchHit, SearchIndex,
    TermCounts, search,
};
use crate::{Error, Result};
use komado_core::{Role, Seq, ThreadId};
use std::collections::{BTreeMap, HashMap};

/// Fields with their values.
pub(crate) type Fields = Vec<(String, Vec<u8>)>;

/// The table of one session.
pub(crate) trait FieldTable: Send {
    /// How often it was written, and how often it was cleared.
    fn counts(&self) -> Result<(u64, u64)>;

    /// The values of some fields.
    fn fields(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>>;

    /// The names of sheets between two others, the nearest to `from` first; at most so many.
    fn sheets(&self, from: &str, to: &str, most: u32) -> Result<Vec<String>>;

    /// Writes fields and sheets in one step; false when it was written since it had been `written` times.
    fn write(&self, written: u64, fields: Fields, sheets: Vec<String>) -> Result<bool>;

    /// Empties the table; gives how often it was cleared.
    fn clear(&mut self) -> Result<u64>;
}

/// The index, open.
pub(crate) struct KeyedSearchIndex<T> {
    table: T,
    clearings: u64,
}

/// What a filling goes on from.
struct Facts {
    written: u64,
    clearings: u64,
    docs: u64,
    words: u64,
    entries: u64,
    /// The thread of which an entry is half in, and that entry.
    half: Option<(String, u64)>,
    mark: IndexedUpto,
}

fn mark(text: &str) -> IndexedUpto {
    let (seq, part) = text.split_once(' ').unwrap_or(("0", "0"));
    IndexedUpto { seq: seq.parse().unwrap_or_default(), part: part.parse().unwrap_or_default() }
}

/// The texts of some fields.
fn texts<T: FieldTable>(table: &T, names: &[String]) -> Result<Vec<Option<String>>> {
    let text = |value: Vec<u8>| String::from_utf8(value).map_err(|e| Error::damaged("the index of words", e));
    table.fields(names)?.into_iter().map(|value| value.map(text).transpose()).collect()
}

impl<T: FieldTable> KeyedSearchIndex<T> {
    pub(crate) fn open(table: T) -> Result<Self> {
        let (_, clearings) = table.counts()?;
        Ok(Self { table, clearings })
    }

    fn facts(&self, thread: &ThreadId) -> Result<Facts> {
        let (written, clearings) = self.table.counts()?;
        let names = ["docs", "words", "entries", "half"].map(str::to_owned);
        let found = texts(&self.table, &[&names[..], &[format!("mark:{thread}")]].concat())?;
        let text = |i: usize| found[i].as_deref().unwrap_or_default();
        let number = |i: usize| text(i).parse().unwrap_or_default();
        let half =
            text(3).split_once(' ').and_then(|(name, entry)| Some((name.to_owned(), entry.parse().ok()?)));
        let (docs, words, entries, mark) = (number(0), number(1), number(2), mark(text(4)));
        Ok(Facts { written, clearings, docs, words, entries, half, mark })
    }

    /// Tries to write; false when another writer came in between.
    fn fill(
        &self,
        thread: &ThreadId,
        (after, upto): (IndexedUpto, IndexedUpto),
        sheets: &[IndexedEntry],
    ) -> Result<bool> {
        let mut facts = self.facts(thread)?;
        let moved = |found: Seq| Err(Error::Moved { expected: after.seq, found });
        if facts.clearings != self.clearings {
            return moved(0);
        }
        let is_others = facts.half.as_ref().is_some_and(|(name, _)| name != thread.as_str());
        if facts.mark != after || is_others {
            return moved(facts.mark.seq);
        }
        let (mut filling, mut half) = (Filling::default(), facts.half.clone());
        for sheet in sheets {
            filling.take(thread, sheet, &mut facts);
            half = Some((thread.to_string(), facts.entries));
        }
        let half = half.filter(|_| upto.part > 0).map(|(name, entry)| format!("{name} {entry}"));
        filling.post(&mut KeyedTables::new(&self.table))?;
        filling.set("half".into(), half.unwrap_or_default());
        filling.set(format!("mark:{thread}"), format!("{} {}", upto.seq, upto.part));
        for (name, n) in [("docs", facts.docs), ("words", facts.words), ("entries", facts.entries)] {
            filling.set(name.into(), n.to_string());
        }
        self.table.write(facts.written, filling.fields, filling.sheets)
    }
}

/// What is to be written.
#[derive(Default)]
struct Filling {
    fields: Fields,
    sheets: Vec<String>,
    terms: BTreeMap<String, Vec<Posting>>,
}

impl Filling {
    fn set(&mut self, field: String, value: impl Into<Vec<u8>>) {
        self.fields.push((field, value.into()));
    }

    fn take(&mut self, thread: &ThreadId, sheet: &IndexedEntry, facts: &mut Facts) {
        let id = match facts.half.take() {
            Some((_, id)) => id,
            None => self.entry(thread, sheet, facts),
        };
        for IndexedPassage { passage, words, terms } in
            sheet.docs.iter().filter(|doc| doc.passage.part <= LAST_PART)
        {
            let text = format!("{} {} {words} {}", passage.at, passage.bytes, u8::from(passage.in_output));
            self.set(format!("piece:{id}:{}", passage.part), text);
            for (term, times) in terms {
                let post = Posting { doc: doc(id, passage.part), times: *times };
                self.terms.entry(term.clone()).or_default().push(post);
            }
            facts.docs += 1;
            facts.words += u64::from(*words);
        }
    }

    fn entry(&mut self, thread: &ThreadId, sheet: &IndexedEntry, facts: &mut Facts) -> u64 {
        facts.entries += 1;
        let role = Role::ALL.iter().position(|role| *role == sheet.role).unwrap_or_default();
        let (tools, files) = (joined(&sheet.tools), joined(&sheet.files));
        let row = (thread.as_str(), sheet.seq, role, &sheet.timestamp, tools, files);
        self.set(format!("entry:{}", facts.entries), serde_json::to_vec(&row).unwrap_or_default());
        self.sheets.push(format!("{thread}\0{:010}\0{}", sheet.seq, facts.entries));
        facts.entries
    }

    /// Adds the places of each term to its last row, or begins another.
    fn post<T: FieldTable>(&mut self, stacks: &mut KeyedTables<'_, T>) -> Result<()> {
        let terms = std::mem::take(&mut self.terms);
        let mut last = stacks.last_rows(terms.keys())?;
        for (term, posts) in terms {
            let (mut list, mut row) = last.remove(&term).unwrap_or_default();
            for post in posts {
                if let Some(full) = row.take_if(|row| row.is_full()) {
                    self.keep(&term, &full, &mut list);
                }
                row.get_or_insert_with(|| PostingRow::begin(post.doc)).push(post);
            }
            if let Some(row) = &row {
                self.keep(&term, row, &mut list);
            }
            let lines: Vec<String> = list.iter().map(|(first, docs)| format!("{first} {docs}")).collect();
            self.set(format!("term:{term}"), lines.join("\n"));
        }
        Ok(())
    }

    fn keep(&mut self, term: &str, row: &PostingRow, list: &mut Vec<(u64, u64)>) {
        self.set(format!("row:{term}:{}", row.first), row.body.clone());
        match list.last_mut().filter(|(first, _)| *first == row.first) {
            Some((_, docs)) => *docs = row.docs,
            None => list.push((row.first, row.docs)),
        }
    }
}

impl<T: FieldTable> SearchIndex for KeyedSearchIndex<T> {
    fn upto(&self, thread: &ThreadId) -> Result<IndexedUpto> {
        self.facts(thread).map(|facts| facts.mark)
    }

    fn add(
        &mut self,
        thread: &ThreadId,
        after: IndexedUpto,
        upto: IndexedUpto,
        sheets: &[IndexedEntry],
    ) -> Result<()> {
        while !self.fill(thread, (after, upto), sheets)? {}
        Ok(())
    }

    fn tally(&self, terms: &[String]) -> Result<TermCounts> {
        KeyedTables::new(&self.table).tally(terms)
    }

    fn hits(&self, wanted: SearchFor<'_>, filter: &SearchFilter) -> Result<Vec<(i32, SearchHit)>> {
        search::hits(&mut KeyedTables::new(&self.table), wanted, filter)
    }

    fn clear(&mut self) -> Result<()> {
        self.clearings = self.table.clear()?;
        Ok(())
    }
}

// A shelf's rows, entries and passages, read a few at a time and kept while one question is answered.

/// How many entries or passages are read in one go: those around the one asked for.
const BLOCK: u64 = 64;
/// How many rows.
const ROWS: usize = 16;
/// How many entries or passages are kept.
const KEPT: usize = 4096;
/// Where the rows of a term begin, and how many places each has.
type List = Vec<(u64, u64)>;

struct KeyedTables<'a, T> {
    table: &'a T,
    lists: HashMap<String, List>,
    /// Of each term a few rows in a run.
    rows: HashMap<String, HashMap<u64, Vec<u8>>>,
    entries: HashMap<u64, Option<StoredEntry>>,
    pieces: HashMap<u64, Option<StoredPassage>>,
    count: Option<u64>,
}

impl<'a, T: FieldTable> KeyedTables<'a, T> {
    fn new(table: &'a T) -> Self {
        let (lists, rows) = (HashMap::new(), HashMap::new());
        Self { table, lists, rows, entries: HashMap::new(), pieces: HashMap::new(), count: None }
    }

    fn list(&mut self, term: &str) -> Result<&List> {
        if !self.lists.contains_key(term) {
            let text = texts(self.table, &[format!("term:{term}")])?.swap_remove(0);
            self.lists.insert(term.to_owned(), list(text.as_deref().unwrap_or_default()));
        }
        Ok(&self.lists[term])
    }

    /// The `n`-th row of a term, read with those that come next in the direction of the walk.
    fn row(&mut self, term: &str, n: usize, side: EntrySide) -> Result<Option<PackedPostings>> {
        let first = self.list(term)?[n].0;
        let known = self.rows.get(term).and_then(|rows| rows.get(&first));
        if let Some(body) = known {
            return Ok(Some((first, body.clone())));
        }
        let run = match side {
            EntrySide::After => n..(n + ROWS).min(self.lists[term].len()),
            EntrySide::Before => (n + 1).saturating_sub(ROWS)..n + 1,
        };
        let firsts: Vec<u64> = self.lists[term][run].iter().map(|(first, _)| *first).collect();
        let fields: Vec<String> = firsts.iter().map(|first| format!("row:{term}:{first}")).collect();
        let mut rows = HashMap::new();
        for (first, body) in firsts.into_iter().zip(self.table.fields(&fields)?) {
            rows.extend(body.map(|body| (first, body)));
        }
        let found = rows.get(&first).map(|body| (first, body.clone()));
        self.rows.insert(term.to_owned(), rows);
        Ok(found)
    }

    /// For each term where its rows begin, and the last of them.
    fn last_rows<'t>(
        &mut self,
        terms: impl Iterator<Item = &'t String>,
    ) -> Result<HashMap<String, (List, Option<PostingRow>)>> {
        let terms: Vec<&String> = terms.collect();
        let fields: Vec<String> = terms.iter().map(|term| format!("term:{term}")).collect();
        let mut known: Vec<(&String, List)> = Vec::new();
        for (term, text) in terms.into_iter().zip(texts(self.table, &fields)?) {
            known.extend(text.map(|text| (term, list(&text))));
        }
        let ends = known.iter().map(|(term, list)| (term, list.last().copied().unwrap_or_default()));
        let fields: Vec<String> = ends.map(|(term, (first, _))| format!("row:{term}:{first}")).collect();
        let mut found = HashMap::new();
        for ((term, list), body) in known.into_iter().zip(self.table.fields(&fields)?) {
            let row =
                body.zip(list.last()).map(|(body, (first, docs))| PostingRow::kept(*first, *docs, body));
            found.insert(term.clone(), (list, row));
        }
        Ok(found)
    }

    fn count(&mut self) -> Result<u64> {
        if self.count.is_none() {
            let text = texts(self.table, &["entries".to_owned()])?.swap_remove(0);
            self.count = Some(text.and_then(|text| text.parse().ok()).unwrap_or_default());
        }
        Ok(self.count.unwrap_or_default())
    }

    fn read_entries(&mut self, id: u64) -> Result<()> {
        if self.entries.len() > KEPT {
            self.entries.clear();
        }
        let start = id - id % BLOCK;
        let fields: Vec<String> = (start..start + BLOCK).map(|id| format!("entry:{id}")).collect();
        for (id, text) in (start..).zip(texts(self.table, &fields)?) {
            let read = |text: String| {
                entry(&text).ok_or_else(|| Error::damaged("the index of words", "an entry cannot be read"))
            };
            let entry = text.map(read).transpose()?;
            self.entries.insert(id, entry);
        }
        Ok(())
    }

    /// First passages with those of the entries around, later ones with those around in their entry.
    fn read_pieces(&mut self, place: u64) -> Result<()> {
        if self.pieces.len() > KEPT {
            self.pieces.clear();
        }
        let id = entry_of(place);
        let part = place - doc(id, 0);
        let places: Vec<(u64, u64)> = if part == 0 {
            let start = id - id % BLOCK;
            (start..start + BLOCK).map(|id| (id, 0)).collect()
        } else {
            let start = part - part % BLOCK;
            (start..start + BLOCK).map(|part| (id, part)).collect()
        };
        let fields: Vec<String> = places.iter().map(|(id, part)| format!("piece:{id}:{part}")).collect();
        for ((id, part), text) in places.into_iter().zip(texts(self.table, &fields)?) {
            let piece = text.and_then(|text| piece(part as u32, &text));
            self.pieces.insert(doc(id, part as u32), piece);
        }
        Ok(())
    }
}

fn list(text: &str) -> List {
    let line = |line: &str| {
        let (first, docs) = line.split_once(' ')?;
        Some((first.parse().ok()?, docs.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn entry(text: &str) -> Option<StoredEntry> {
    let (thread, seq, role, at, tools, files): (String, Seq, usize, String, String, String) =
        serde_json::from_str(text).ok()?;
    let role = Role::ALL.get(role).copied().unwrap_or(Role::User);
    Some(StoredEntry { thread, seq, role, at, tools, files })
}

fn piece(part: u32, text: &str) -> Option<StoredPassage> {
    let mut numbers = text.split(' ').map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (at, bytes, words, in_output) = (next()?, next()? as u32, next()? as u32, next()? == 1);
    Some(StoredPassage { passage: Passage { part, at, bytes, in_output }, words })
}

impl<T: FieldTable> IndexTables for KeyedTables<'_, T> {
    type Error = Error;

    fn tally(&mut self, terms: &[String]) -> Result<TermCounts> {
        let sums = ["docs".to_owned(), "words".to_owned()];
        let fields: Vec<String> = terms.iter().map(|term| format!("term:{term}")).collect();
        let found = texts(self.table, &[&sums[..], &fields].concat())?;
        let number = |i: usize| found[i].as_deref().and_then(|n| n.parse().ok()).unwrap_or_default();
        let (docs, words) = (number(0), number(1));
        let mut holding = Vec::with_capacity(terms.len());
        for (term, text) in terms.iter().zip(&found[2..]) {
            let list = list(text.as_deref().unwrap_or_default());
            holding.push(list.iter().map(|(_, docs)| docs).sum());
            self.lists.insert(term.clone(), list);
        }
        Ok(TermCounts { docs, words, holding })
    }

    fn row_after(&mut self, term: &str, after: Option<u64>) -> Result<Option<PackedPostings>> {
        let list = self.list(term)?;
        let n = after.map_or(0, |after| list.partition_point(|(first, _)| *first <= after));
        if n < list.len() { self.row(term, n, EntrySide::After) } else { Ok(None) }
    }

    fn row_upto(&mut self, term: &str, upto: u64) -> Result<Option<PackedPostings>> {
        let n = self.list(term)?.partition_point(|(first, _)| *first <= upto);
        if n > 0 { self.row(term, n - 1, EntrySide::Before) } else { Ok(None) }
    }

    fn entry(&mut self, id: u64) -> Result<Option<StoredEntry>> {
        if !self.entries.contains_key(&id) {
            self.read_entries(id)?;
        }
        Ok(self.entries.get(&id).cloned().flatten())
    }

    fn piece(&mut self, place: u64) -> Result<Option<StoredPassage>> {
        if !self.pieces.contains_key(&place) {
            self.read_pieces(place)?;
        }
        Ok(self.pieces.get(&place).copied().flatten())
    }

    /// Entries are numbered without a gap.
    fn entry_before(&mut self, id: Option<u64>) -> Result<Option<u64>> {
        let last = self.count()?;
        let before = id.map_or(last, |id| last.min(id.saturating_sub(1)));
        Ok((before > 0).then_some(before))
    }

    fn beside(&mut self, (thread, seq): (&ThreadId, Seq), side: EntrySide, reach: u32) -> Result<Vec<u64>> {
        let here = format!("{thread}\0{seq:010}");
        let found = match side {
            EntrySide::Before => self.table.sheets(&here, &format!("{thread}\0"), reach)?,
            EntrySide::After => {
                self.table.sheets(&format!("{here}\u{1}"), &format!("{thread}\u{1}"), reach)?
            }
        };
        let id = |member: String| member.rsplit('\0').next().and_then(|id| id.parse().ok());
        Ok(found.into_iter().filter_map(id).collect())
    }
}
