//! Brings a session's shelf up to its journals: only what is new is read, one entry at a time.
//!
//! Any number of readers may do so at once, also while someone writes: each filling says what it comes after, and who
//! was slower begins again with what the other did. An output that a message names is read as a stream, a passage at
//! a time, so that the memory used does not depend on its size.

use super::text::{cut, files_of, said_by, text_of};
use super::{Scope, terms};
use crate::engine::Engine;
use crate::error::{Error, Result};
use komado_core::head::Source;
use komado_core::journal::Entry;
use komado_core::message::Message;
use komado_core::{Kind, Record, Seq, SessionId, ThreadId};
use komado_store::shelf::{Doc, Mark, Passage, Sheet};
use komado_store::{Error as StoreError, Journal, Mode, Shelf};
use std::collections::HashMap;
use std::io::Read;

/// Bytes of text that are put on a shelf at once.
const BATCH: usize = 2 << 20;
/// Bytes of an output that are read at once.
const PIECE: usize = 64 << 10;
/// An output that holds a zero byte so near its beginning is no text.
const PROBE: usize = 8 << 10;
/// How often a filling begins again before it gives up.
const TRIES: u32 = 200;

impl Engine {
    /// Brings the index of every session of `scope` up to date. `each` is told the entries read and those to be read.
    pub fn index(&self, scope: &Scope, each: &mut dyn FnMut(u64, u64)) -> Result<()> {
        for id in self.sessions_of(scope)? {
            self.shelf(&id, each)?;
        }
        Ok(())
    }

    /// Makes the index of a session again from its journals.
    pub fn reindex(&self, id: &SessionId, each: &mut dyn FnMut(u64, u64)) -> Result<()> {
        self.store().shelf(id)?.clear()?;
        self.shelf(id, each).map(|_| ())
    }

    /// The shelf of a session, up to date.
    pub(super) fn shelf(&self, id: &SessionId, each: &mut dyn FnMut(u64, u64)) -> Result<Box<dyn Shelf>> {
        let (mut broken, mut refused) = (false, 0);
        for _ in 0..TRIES {
            // The shelf is opened before the journals: once cleared it takes nothing from who opened it earlier, and
            // who opens it then reads journals from which the secret is gone.
            let mut shelf = self.store().shelf(id)?;
            match self.catch_up(id, &mut *shelf, each) {
                Ok(()) => return Ok(shelf),
                Err(Error::Store(StoreError::Moved { .. })) => {}
                Err(Error::Store(StoreError::Shelf(_))) if !broken => {
                    broken = true;
                    shelf.clear()?;
                }
                // The session may have been moved by its end; where it is now, it can be written.
                Err(Error::Store(StoreError::Io { .. })) if refused < 2 => refused += 1,
                Err(other) => return Err(other),
            }
        }
        Err(StoreError::Shelf("others fill or clear it all the time; try again later".into()).into())
    }

    fn catch_up(&self, id: &SessionId, shelf: &mut dyn Shelf, each: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let mut behind = Vec::new();
        let mut total = 0;
        for header in self.store().threads(id)? {
            // The mark first: a journal that is opened after it knows at least as much.
            let mark = shelf.upto(&header.thread)?;
            let journal = self.store().open(id, &header.thread, Mode::Read)?;
            if mark.seq > journal.last() {
                // The journal is not the one that the shelf was filled from.
                shelf.clear()?;
                return Err(StoreError::Moved { expected: mark.seq, found: journal.last() }.into());
            }
            let from = mark.seq.max(header.base_seq());
            if from < journal.last() {
                total += u64::from(journal.last() - from);
                behind.push((header.thread, mark));
            }
        }
        let mut done = 0;
        for (thread, mark) in behind {
            let journal = self.store().open(id, &thread, Mode::Read)?;
            let mut filler = Filler { engine: self, id, shelf, thread, mark, sheets: Vec::new(), weight: 0 };
            let mut unit = Unit::default();
            for seq in mark.seq.max(journal.header().base_seq()) + 1..=journal.last() {
                filler.take(&*journal, seq, &mut unit)?;
                done += 1;
                each(done, total.max(done));
            }
            filler.flush(Mark { seq: journal.last(), part: 0 })?;
        }
        Ok(())
    }
}

/// The calls of the unit that is being read: which tool, and about which files.
#[derive(Default)]
struct Unit {
    calls: HashMap<String, (String, Vec<String>)>,
}

impl Unit {
    fn begin(&mut self, message: &Message) {
        let calls = message.calls().map(|call| (call.id.clone(), (call.name.clone(), files_of(call))));
        self.calls = calls.collect();
    }

    /// The tools and files of a message.
    fn about(&mut self, journal: &dyn Journal, seq: Seq, message: &Message) -> Result<Sheeted> {
        let Some(outcome) = message.outcome() else {
            self.begin(message);
            let mut about = Sheeted::default();
            for call in message.calls() {
                push_new(&mut about.0, call.name.clone());
                files_of(call).into_iter().for_each(|file| push_new(&mut about.1, file));
            }
            return Ok(about);
        };
        if !self.calls.contains_key(&outcome.call_id) {
            let first = journal.head(seq)?.unit;
            if first < seq
                && let Entry::Message(asking, _) = Source::record(journal, first)?.entry
            {
                self.begin(&asking);
            }
        }
        let (tool, files) = self.calls.get(&outcome.call_id).cloned().unwrap_or_default();
        let tool = outcome.name.clone().unwrap_or(tool);
        Ok((vec![tool], files))
    }
}

/// Tools and files.
type Sheeted = (Vec<String>, Vec<String>);

fn push_new(names: &mut Vec<String>, name: String) {
    if !names.contains(&name) {
        names.push(name);
    }
}

/// Fills a shelf with one thread.
struct Filler<'a> {
    engine: &'a Engine,
    id: &'a SessionId,
    shelf: &'a mut dyn Shelf,
    thread: ThreadId,
    mark: Mark,
    sheets: Vec<Sheet>,
    weight: usize,
}

impl Filler<'_> {
    fn take(&mut self, journal: &dyn Journal, seq: Seq, unit: &mut Unit) -> Result<()> {
        let kind = journal.head(seq)?.kind;
        let is_message = matches!(kind, Kind::System | Kind::User | Kind::Assistant | Kind::Tool);
        if !is_message && !matches!(kind, Kind::Chronicle | Kind::Tell) {
            return Ok(());
        }
        let Record { timestamp, entry, .. } = Source::record(journal, seq)?;
        let Some(message) = said_by(entry) else { return Ok(()) };
        // What is told between a call and its result is no part of their unit.
        let about = is_message.then(|| unit.about(journal, seq, &message)).transpose()?;
        let (tools, files) = about.unwrap_or_default();
        let sheet = Sheet { seq, role: message.role, tools, files, timestamp, docs: Vec::new() };
        let mut pages = Pages { sheet, skip: self.skip(seq), part: 0 };
        self.read(&mut text_of(&message).as_bytes(), false, &mut pages)?;
        if let Some(whole) = message.outcome().and_then(|outcome| outcome.output_ref.as_ref())
            && let Some(mut bytes) = self.engine.blob(self.id, &whole.id)?
        {
            self.read(&mut bytes, true, &mut pages)?;
        }
        self.sheets.push(pages.sheet);
        if self.weight >= BATCH {
            self.flush(Mark { seq, part: 0 })?;
        }
        Ok(())
    }

    /// Passages of this entry that are on the shelf already.
    fn skip(&self, seq: Seq) -> u32 {
        if self.mark.seq + 1 == seq { self.mark.part } else { 0 }
    }

    /// Cuts a stream into passages.
    fn read(&mut self, from: &mut dyn Read, in_output: bool, pages: &mut Pages) -> Result<()> {
        let (mut buffer, mut at, mut is_all) = (Vec::new(), 0u64, false);
        while !is_all {
            is_all = from.take(PIECE as u64).read_to_end(&mut buffer)? == 0;
            if in_output && at == 0 && buffer[..buffer.len().min(PROBE)].contains(&0) {
                return Ok(());
            }
            let mut from = 0;
            while let Some((end, is_rough)) = cut(&buffer[from..], is_all).filter(|(end, _)| *end > 0) {
                let passage = Passage { part: 0, at: at + from as u64, bytes: end as u32, in_output };
                // The pair across a rough cut belongs here.
                let reach = end + if is_rough { next_char(&buffer[from + end..]) } else { 0 };
                let text = String::from_utf8_lossy(&buffer[from..from + reach]);
                pages.add(passage, &text);
                self.weight += end;
                if self.weight >= BATCH {
                    self.flush_within(pages)?;
                }
                from += end;
            }
            buffer.drain(..from);
            at += from as u64;
        }
        Ok(())
    }

    /// Puts what there is on the shelf in the middle of an entry.
    fn flush_within(&mut self, pages: &mut Pages) -> Result<()> {
        let docs = std::mem::take(&mut pages.sheet.docs);
        if docs.is_empty() {
            return Ok(());
        }
        let seq = pages.sheet.seq;
        self.sheets.push(Sheet { docs, ..pages.sheet.clone() });
        self.flush(Mark { seq: seq - 1, part: pages.part })
    }

    fn flush(&mut self, upto: Mark) -> Result<()> {
        if upto > self.mark {
            self.shelf.add(&self.thread, self.mark, upto, &self.sheets)?;
            self.mark = upto;
        }
        self.sheets.clear();
        self.weight = 0;
        Ok(())
    }
}

fn next_char(bytes: &[u8]) -> usize {
    let tail = bytes.iter().skip(1).take_while(|b| **b & 0xc0 == 0x80).count();
    if bytes.is_empty() { 0 } else { 1 + tail }
}

/// The passages of one entry, as they are cut.
struct Pages {
    sheet: Sheet,
    /// So many of them are on the shelf already.
    skip: u32,
    part: u32,
}

impl Pages {
    fn add(&mut self, mut passage: Passage, text: &str) {
        passage.part = self.part;
        self.part += 1;
        if passage.part < self.skip {
            return;
        }
        let mut counts: HashMap<String, u32> = HashMap::new();
        let mut words = 0;
        terms::each(text, &mut |term| {
            words += u32::from(term.kind.is_counted());
            match counts.get_mut(term.text.as_ref()) {
                Some(count) => *count += 1,
                None => drop(counts.insert(term.text.into_owned(), 1)),
            }
        });
        self.sheet.docs.push(Doc { passage, words, terms: counts.into_iter().collect() });
    }
}
