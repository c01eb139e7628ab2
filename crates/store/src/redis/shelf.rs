//! A session's index of words in Redis.
//!
//! One hash has all of it: `entry:7` an entry, `piece:7:0` a passage of it, `term:窓` where the rows of a term's places begin
//! and how many each has, `row:窓:…` such a row, `mark:T` how far a thread is in. A filling reads what it adds to, and is
//! written in one step if nobody else wrote in between.

use super::scripts::{self, Which};
use super::stacks::{RedisStacks, look};
use super::{Inner, told};
use crate::shelf::posts::{LAST_PART, Post, Row, doc};
use crate::shelf::search;
use crate::shelf::sql::joined;
use crate::shelf::stacks::Stacks;
use crate::shelf::{Doc, Filter, Hit, Mark, Sheet, Shelf, Sought, Tally};
use crate::{Error, Result};
use komado_core::{Role, Seq, SessionId, ThreadId};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct RedisShelf {
    store: Arc<Inner>,
    id: SessionId,
    clearings: u64,
}

/// What a filling goes on from.
struct Facts {
    version: u64,
    clearings: u64,
    docs: u64,
    words: u64,
    entries: u64,
    /// The thread of which an entry is half in, and that entry.
    half: Option<(String, u64)>,
    mark: Mark,
}

fn mark(text: &str) -> Mark {
    let (seq, part) = text.split_once(' ').unwrap_or(("0", "0"));
    Mark { seq: seq.parse().unwrap_or_default(), part: part.parse().unwrap_or_default() }
}

impl RedisShelf {
    pub(super) fn open(store: &Arc<Inner>, id: &SessionId) -> Result<Self> {
        let found = look(store, id, &["clearings".to_owned()])?;
        let clearings = told::read::<Option<u64>>(found[0].clone())?.unwrap_or_default();
        Ok(Self { store: Arc::clone(store), id: id.clone(), clearings })
    }

    fn stacks(&self) -> RedisStacks<'_> {
        RedisStacks::new(&self.store, &self.id)
    }

    fn facts(&self, thread: &ThreadId) -> Result<Facts> {
        let names = ["version", "clearings", "docs", "words", "entries"].map(str::to_owned);
        let fields = [&names[..], &["half".to_owned(), format!("mark:{thread}")]].concat();
        let found = look(&self.store, &self.id, &fields)?;
        let number = |i: usize| told::read::<Option<u64>>(found[i].clone()).map(Option::unwrap_or_default);
        let text = |i: usize| told::read::<Option<String>>(found[i].clone()).map(Option::unwrap_or_default);
        let half = text(5)?;
        let half =
            half.split_once(' ').and_then(|(name, entry)| Some((name.to_owned(), entry.parse().ok()?)));
        Ok(Facts {
            version: number(0)?,
            clearings: number(1)?,
            docs: number(2)?,
            words: number(3)?,
            entries: number(4)?,
            half,
            mark: mark(&text(6)?),
        })
    }
}

/// What is to be written.
#[derive(Default)]
struct Filling {
    fields: Vec<(String, Vec<u8>)>,
    sheets: Vec<String>,
    terms: BTreeMap<String, Vec<Post>>,
}

impl Filling {
    fn set(&mut self, field: String, value: impl Into<Vec<u8>>) {
        self.fields.push((field, value.into()));
    }

    fn take(&mut self, thread: &ThreadId, sheet: &Sheet, facts: &mut Facts) {
        let id = match facts.half.take() {
            Some((_, id)) => id,
            None => self.entry(thread, sheet, facts),
        };
        for Doc { passage, words, terms } in sheet.docs.iter().filter(|doc| doc.passage.part <= LAST_PART) {
            let text = format!("{} {} {words} {}", passage.at, passage.bytes, u8::from(passage.in_output));
            self.set(format!("piece:{id}:{}", passage.part), text);
            for (term, times) in terms {
                let post = Post { doc: doc(id, passage.part), times: *times };
                self.terms.entry(term.clone()).or_default().push(post);
            }
            facts.docs += 1;
            facts.words += u64::from(*words);
        }
    }

    fn entry(&mut self, thread: &ThreadId, sheet: &Sheet, facts: &mut Facts) -> u64 {
        facts.entries += 1;
        let role = Role::ALL.iter().position(|role| *role == sheet.role).unwrap_or_default();
        let (tools, files) = (joined(&sheet.tools), joined(&sheet.files));
        let row = (thread.as_str(), sheet.seq, role, &sheet.timestamp, tools, files);
        self.set(format!("entry:{}", facts.entries), serde_json::to_vec(&row).unwrap_or_default());
        self.sheets.push(format!("{thread}\0{:010}\0{}", sheet.seq, facts.entries));
        facts.entries
    }

    /// Adds the places of each term to its last row, or begins another.
    fn post(&mut self, stacks: &mut RedisStacks<'_>) -> Result<()> {
        let terms = std::mem::take(&mut self.terms);
        let mut last = stacks.last_rows(terms.keys())?;
        for (term, posts) in terms {
            let (mut list, mut row) = last.remove(&term).unwrap_or_default();
            for post in posts {
                if let Some(full) = row.take_if(|row| row.is_full()) {
                    self.keep(&term, &full, &mut list);
                }
                row.get_or_insert_with(|| Row::begin(post.doc)).push(post);
            }
            if let Some(row) = &row {
                self.keep(&term, row, &mut list);
            }
            let lines: Vec<String> = list.iter().map(|(first, docs)| format!("{first} {docs}")).collect();
            self.set(format!("term:{term}"), lines.join("\n"));
        }
        Ok(())
    }

    fn keep(&mut self, term: &str, row: &Row, list: &mut Vec<(u64, u64)>) {
        self.set(format!("row:{term}:{}", row.first), row.body.clone());
        match list.last_mut().filter(|(first, _)| *first == row.first) {
            Some((_, docs)) => *docs = row.docs,
            None => list.push((row.first, row.docs)),
        }
    }
}

impl RedisShelf {
    /// Tries to write; false when somebody else wrote in between.
    fn fill(
        &self,
        thread: &ThreadId,
        (after, upto): (Mark, Mark),
        sheets: &[Sheet],
        nonce: &str,
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
        let (mut filling, version) = (Filling::default(), facts.version);
        let mut half = facts.half.clone();
        for sheet in sheets {
            filling.take(thread, sheet, &mut facts);
            half = Some((thread.to_string(), facts.entries));
        }
        let half = half.filter(|_| upto.part > 0).map(|(name, entry)| format!("{name} {entry}"));
        filling.post(&mut self.stacks())?;
        filling.set("half".into(), half.unwrap_or_default());
        filling.set(format!("mark:{thread}"), format!("{} {}", upto.seq, upto.part));
        for (name, n) in [("docs", facts.docs), ("words", facts.words), ("entries", facts.entries)] {
            filling.set(name.into(), n.to_string());
        }
        self.write(filling, version, nonce)
    }

    fn write(&self, filling: Filling, version: u64, nonce: &str) -> Result<bool> {
        let ask = self.store.about(&self.id, &scripts::FILL).arg(version).arg(nonce).arg(self.store.ttl());
        let mut ask = ask.arg(filling.fields.len());
        for (field, value) in filling.fields {
            ask = ask.arg(field).arg(value);
        }
        let said = self.store.said(ask.arg(filling.sheets))?;
        if said.word == "again" { Ok(false) } else { said.fine(&self.id).map(|_| true) }
    }
}

impl Shelf for RedisShelf {
    fn upto(&self, thread: &ThreadId) -> Result<Mark> {
        self.facts(thread).map(|facts| facts.mark)
    }

    fn add(&mut self, thread: &ThreadId, after: Mark, upto: Mark, sheets: &[Sheet]) -> Result<()> {
        let nonce = self.store.nonce();
        while !self.fill(thread, (after, upto), sheets, &nonce)? {}
        Ok(())
    }

    fn tally(&self, terms: &[String]) -> Result<Tally> {
        self.stacks().tally(terms)
    }

    fn search(&self, sought: &Sought) -> Result<Vec<Hit>> {
        search::search(&mut self.stacks(), sought)
    }

    fn holding(&self, terms: &[String], filter: &Filter, before: Option<u64>) -> Result<Vec<Hit>> {
        search::holding(&mut self.stacks(), terms, filter, before)
    }

    fn around(&self, thread: &ThreadId, seq: Seq, reach: u32, filter: &Filter) -> Result<Vec<(i32, Hit)>> {
        search::around(&mut self.stacks(), (thread, seq), reach, filter)
    }

    fn clear(&mut self) -> Result<()> {
        let ask = self.store.about(&self.id, &scripts::CLEAR).arg(self.store.ttl());
        self.clearings = self.store.fine(&self.id, ask.spread())?.number(0);
        Ok(())
    }
}

/// The key that has it all.
pub(super) const SHELF: Which = Which::Shelf;
