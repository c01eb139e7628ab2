//! A shelf's rows, entries and passages, read from Redis a few at a time and kept while one question is answered.

use super::shelf::SHELF;
use super::told::read;
use super::{Inner, scripts};
use crate::shelf::posts::{Row, doc, entry_of};
use crate::shelf::stacks::{Entry, Piece, Places, Side, Stacks};
use crate::shelf::{Passage, Tally};
use crate::{Error, Result};
use komado_core::{Role, Seq, SessionId, ThreadId};
use redis::Value;
use std::collections::HashMap;

/// How many entries or passages are read in one go: those around the one asked for.
const BLOCK: u64 = 64;
/// How many rows.
const ROWS: usize = 16;
/// How many entries or passages are kept.
const KEPT: usize = 4096;
/// How many fields are asked for in one go.
const FIELDS: usize = 1000;

/// Where the rows of a term begin, and how many places each has.
type List = Vec<(u64, u64)>;

/// Reads fields of a shelf.
pub(super) fn look(store: &Inner, id: &SessionId, fields: &[String]) -> Result<Vec<Value>> {
    let mut found = Vec::with_capacity(fields.len());
    for some in fields.chunks(FIELDS) {
        let ask = store.about(id, &scripts::LOOK).arg(SHELF.number()).arg("").arg(some);
        found.extend(store.fine(id, ask)?.rest);
    }
    found.resize(fields.len(), Value::Nil);
    Ok(found)
}

pub(super) struct RedisStacks<'a> {
    store: &'a Inner,
    id: &'a SessionId,
    lists: HashMap<String, List>,
    /// Of each term a few rows in a run.
    rows: HashMap<String, HashMap<u64, Vec<u8>>>,
    entries: HashMap<u64, Option<Entry>>,
    pieces: HashMap<u64, Option<Piece>>,
    count: Option<u64>,
}

impl<'a> RedisStacks<'a> {
    pub(super) fn new(store: &'a Inner, id: &'a SessionId) -> Self {
        let (lists, rows) = (HashMap::new(), HashMap::new());
        Self { store, id, lists, rows, entries: HashMap::new(), pieces: HashMap::new(), count: None }
    }

    fn texts(&self, fields: &[String]) -> Result<Vec<Option<String>>> {
        look(self.store, self.id, fields)?.into_iter().map(read).collect()
    }

    fn list(&mut self, term: &str) -> Result<&List> {
        if !self.lists.contains_key(term) {
            let text = self.texts(&[format!("term:{term}")])?.swap_remove(0);
            self.lists.insert(term.to_owned(), list(text.as_deref().unwrap_or_default()));
        }
        Ok(&self.lists[term])
    }

    /// The `n`-th row of a term, read with those that come next in the direction of the walk.
    fn row(&mut self, term: &str, n: usize, side: Side) -> Result<Option<Places>> {
        let first = self.list(term)?[n].0;
        let known = self.rows.get(term).and_then(|rows| rows.get(&first));
        if let Some(body) = known {
            return Ok(Some((first, body.clone())));
        }
        let run = match side {
            Side::After => n..(n + ROWS).min(self.lists[term].len()),
            Side::Before => (n + 1).saturating_sub(ROWS)..n + 1,
        };
        let firsts: Vec<u64> = self.lists[term][run].iter().map(|(first, _)| *first).collect();
        let fields: Vec<String> = firsts.iter().map(|first| format!("row:{term}:{first}")).collect();
        let mut rows = HashMap::new();
        for (first, value) in firsts.into_iter().zip(look(self.store, self.id, &fields)?) {
            if let Some(body) = read::<Option<Vec<u8>>>(value)? {
                rows.insert(first, body);
            }
        }
        let found = rows.get(&first).map(|body| (first, body.clone()));
        self.rows.insert(term.to_owned(), rows);
        Ok(found)
    }

    /// For each term where its rows begin, and the last of them.
    pub(super) fn last_rows<'t>(
        &mut self,
        terms: impl Iterator<Item = &'t String>,
    ) -> Result<HashMap<String, (List, Option<Row>)>> {
        let terms: Vec<&String> = terms.collect();
        let fields: Vec<String> = terms.iter().map(|term| format!("term:{term}")).collect();
        let mut known: Vec<(&String, List)> = Vec::new();
        for (term, text) in terms.into_iter().zip(self.texts(&fields)?) {
            known.extend(text.map(|text| (term, list(&text))));
        }
        let ends = known.iter().map(|(term, list)| (term, list.last().copied().unwrap_or_default()));
        let fields: Vec<String> = ends.map(|(term, (first, _))| format!("row:{term}:{first}")).collect();
        let mut found = HashMap::new();
        for ((term, list), value) in known.into_iter().zip(look(self.store, self.id, &fields)?) {
            let body: Option<Vec<u8>> = read(value)?;
            let row = body.zip(list.last()).map(|(body, (first, docs))| Row::kept(*first, *docs, body));
            found.insert(term.clone(), (list, row));
        }
        Ok(found)
    }

    fn damaged(&self, what: &str) -> Error {
        Error::Damaged { place: format!("{}:shelf", self.store.keys.heart(self.id)), why: what.to_owned() }
    }

    fn count(&mut self) -> Result<u64> {
        if self.count.is_none() {
            let text = self.texts(&["entries".to_owned()])?.swap_remove(0);
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
        for (id, text) in (start..).zip(self.texts(&fields)?) {
            let read = |text: String| entry(&text).ok_or_else(|| self.damaged("an entry cannot be read"));
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
        for ((id, part), text) in places.into_iter().zip(self.texts(&fields)?) {
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

fn entry(text: &str) -> Option<Entry> {
    let (thread, seq, role, at, tools, files): (String, Seq, usize, String, String, String) =
        serde_json::from_str(text).ok()?;
    let role = Role::ALL.get(role).copied().unwrap_or(Role::User);
    Some(Entry { thread, seq, role, at, tools, files })
}

fn piece(part: u32, text: &str) -> Option<Piece> {
    let mut numbers = text.split(' ').map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (at, bytes, words, in_output) = (next()?, next()? as u32, next()? as u32, next()? == 1);
    Some(Piece { passage: Passage { part, at, bytes, in_output }, words })
}

impl Stacks for RedisStacks<'_> {
    type Error = Error;

    fn tally(&mut self, terms: &[String]) -> Result<Tally> {
        let sums = ["docs".to_owned(), "words".to_owned()];
        let fields: Vec<String> = terms.iter().map(|term| format!("term:{term}")).collect();
        let found = self.texts(&[&sums[..], &fields].concat())?;
        let number = |i: usize| found[i].as_deref().and_then(|n| n.parse().ok()).unwrap_or_default();
        let (docs, words) = (number(0), number(1));
        let mut holding = Vec::with_capacity(terms.len());
        for (term, text) in terms.iter().zip(&found[2..]) {
            let list = list(text.as_deref().unwrap_or_default());
            holding.push(list.iter().map(|(_, docs)| docs).sum());
            self.lists.insert(term.clone(), list);
        }
        Ok(Tally { docs, words, holding })
    }

    fn row_after(&mut self, term: &str, after: Option<u64>) -> Result<Option<Places>> {
        let list = self.list(term)?;
        let n = after.map_or(0, |after| list.partition_point(|(first, _)| *first <= after));
        if n < list.len() { self.row(term, n, Side::After) } else { Ok(None) }
    }

    fn row_upto(&mut self, term: &str, upto: u64) -> Result<Option<Places>> {
        let n = self.list(term)?.partition_point(|(first, _)| *first <= upto);
        if n > 0 { self.row(term, n - 1, Side::Before) } else { Ok(None) }
    }

    fn entry(&mut self, id: u64) -> Result<Option<Entry>> {
        if !self.entries.contains_key(&id) {
            self.read_entries(id)?;
        }
        Ok(self.entries.get(&id).cloned().flatten())
    }

    fn piece(&mut self, place: u64) -> Result<Option<Piece>> {
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

    fn beside(&mut self, (thread, seq): (&ThreadId, Seq), side: Side, reach: u32) -> Result<Vec<u64>> {
        let here = format!("{thread}\0{seq:010}");
        let (command, from, to) = match side {
            Side::Before => ("ZREVRANGEBYLEX", format!("({here}"), format!("[{thread}\0")),
            Side::After => ("ZRANGEBYLEX", format!("({here}\u{1}"), format!("({thread}\u{1}")),
        };
        let ask = self.store.about(self.id, &scripts::BESIDE).arg(command).arg(from).arg(to).arg(reach);
        let found = self.store.fine(self.id, ask)?.rest;
        let id = |member: String| member.rsplit('\0').next().and_then(|id| id.parse().ok());
        let members = found.into_iter().map(read).collect::<Result<Vec<String>>>()?;
        Ok(members.into_iter().filter_map(id).collect())
    }
}
