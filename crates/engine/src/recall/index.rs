//! Brings a session's search index up to its journals: only what is new is read, one entry at a time.
//!
//! Any number of readers may do so at once, also while someone writes: each filling says what it comes after, and who
//! was slower begins again with what the other did. An output that a message names is read as a stream, a passage at
//! a time, so that the memory used does not depend on its size.

use super::{RecallScope, terms};
use crate::engine::Engine;
use crate::error::{Error, Result};
use komado_core::head::EntrySource;
use komado_core::journal::Entry;
use komado_core::message::{Call, Message, MessagePart};
use komado_core::{Kind, Record, Role, Seq, SessionId, ThreadId};
use komado_store::search_index::{IndexedEntry, IndexedPassage, IndexedUpto, Passage};
use komado_store::{Error as StoreError, Journal, OpenMode, SearchIndex};
use serde_json::Value;
use std::collections::HashMap;
use std::io::Read;

/// Bytes of text that are written to an index at once.
const BATCH: usize = 2 << 20;
/// Bytes of an output that are read at once.
const PIECE: usize = 64 << 10;
/// An output that holds a zero byte so near its beginning is no text.
const PROBE: usize = 8 << 10;
/// How often a filling begins again before it gives up.
const TRIES: u32 = 200;

impl Engine {
    /// Brings the index of every session of `scope` up to date. `each` is told the entries read and those to be read.
    pub fn index(&self, scope: &RecallScope, each: &mut dyn FnMut(u64, u64)) -> Result<()> {
        for id in self.sessions_of(scope)? {
            self.shelf(&id, each)?;
        }
        Ok(())
    }

    /// Makes the index of a session again from its journals.
    pub fn reindex(&self, id: &SessionId, each: &mut dyn FnMut(u64, u64)) -> Result<()> {
        self.store().search_index(id)?.clear()?;
        self.shelf(id, each).map(|_| ())
    }

    /// The search index of a session, up to date.
    pub(super) fn shelf(
        &self,
        id: &SessionId,
        each: &mut dyn FnMut(u64, u64),
    ) -> Result<Box<dyn SearchIndex>> {
        let (mut broken, mut refused) = (false, 0);
        for _ in 0..TRIES {
            // The index is opened before the journals: once cleared it takes nothing from who opened it earlier, and
            // who opens it then reads journals from which the secret is gone.
            let mut shelf = self.store().search_index(id)?;
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

    fn catch_up(
        &self,
        id: &SessionId,
        shelf: &mut dyn SearchIndex,
        each: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let mut behind = Vec::new();
        let mut total = 0;
        for header in self.store().threads(id)? {
            // The mark first: a journal that is opened after it knows at least as much.
            let mark = shelf.upto(&header.thread)?;
            let journal = self.store().open(id, &header.thread, OpenMode::Read)?;
            if mark.seq > journal.last() {
                // The journal is not the one that the index was filled from.
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
            let journal = self.store().open(id, &thread, OpenMode::Read)?;
            let mut filler = Filler { engine: self, id, shelf, thread, mark, sheets: Vec::new(), weight: 0 };
            let mut unit = Unit::default();
            for seq in mark.seq.max(journal.header().base_seq()) + 1..=journal.last() {
                filler.take(&*journal, seq, &mut unit)?;
                done += 1;
                each(done, total.max(done));
            }
            filler.flush(IndexedUpto { seq: journal.last(), part: 0 })?;
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
                && let Entry::Message(asking, _) = EntrySource::record(journal, first)?.entry
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

/// Fills an index from one thread.
struct Filler<'a> {
    engine: &'a Engine,
    id: &'a SessionId,
    shelf: &'a mut dyn SearchIndex,
    thread: ThreadId,
    mark: IndexedUpto,
    sheets: Vec<IndexedEntry>,
    weight: usize,
}

impl Filler<'_> {
    fn take(&mut self, journal: &dyn Journal, seq: Seq, unit: &mut Unit) -> Result<()> {
        let kind = journal.head(seq)?.kind;
        let is_message = matches!(kind, Kind::System | Kind::User | Kind::Assistant | Kind::Tool);
        if !is_message && !matches!(kind, Kind::Chronicle | Kind::Tell) {
            return Ok(());
        }
        let Record { timestamp, entry, .. } = EntrySource::record(journal, seq)?;
        let Some(message) = said_by(entry) else { return Ok(()) };
        // What is told between a call and its result is not part of their unit.
        let about = is_message.then(|| unit.about(journal, seq, &message)).transpose()?;
        let (tools, files) = about.unwrap_or_default();
        let sheet = IndexedEntry { seq, role: message.role, tools, files, timestamp, docs: Vec::new() };
        let mut pages = Pages { sheet, skip: self.skip(seq), part: 0 };
        self.read(&mut text_of(&message).as_bytes(), false, &mut pages)?;
        if let Some(whole) = message.outcome().and_then(|outcome| outcome.output_ref.as_ref())
            && let Some(mut bytes) = self.engine.blob(self.id, &whole.id)?
        {
            self.read(&mut bytes, true, &mut pages)?;
        }
        self.sheets.push(pages.sheet);
        if self.weight >= BATCH {
            self.flush(IndexedUpto { seq, part: 0 })?;
        }
        Ok(())
    }

    /// Passages of this entry that are in the index already.
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

    /// Writes what there is to the index in the middle of an entry.
    fn flush_within(&mut self, pages: &mut Pages) -> Result<()> {
        let docs = std::mem::take(&mut pages.sheet.docs);
        if docs.is_empty() {
            return Ok(());
        }
        let seq = pages.sheet.seq;
        self.sheets.push(IndexedEntry { docs, ..pages.sheet.clone() });
        self.flush(IndexedUpto { seq: seq - 1, part: pages.part })
    }

    fn flush(&mut self, upto: IndexedUpto) -> Result<()> {
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
    sheet: IndexedEntry,
    /// So many of them are in the index already.
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
        self.sheet.docs.push(IndexedPassage { passage, words, terms: counts.into_iter().collect() });
    }
}

// What of an entry can be found, as one text, and how a long text is cut into passages.
//
// The words of a message, what its calls are given, and what the model thought; what was told of a thread at its end,
// and what one thread told another. Not what an edit shows in place of
// others: no one said that, and what it stands for is here in full. Arguments are read out of their JSON, so
// that a line break in them is one, and a Japanese word is no row of escapes.

/// A passage is not cut before it has so many bytes.
const TARGET: usize = 1400;
/// It ends at the next good place within so many more.
const SLACK: usize = 400;
/// The most files that one entry is about.
const MOST_FILES: usize = 32;
/// The longest argument that is looked through for paths.
const LONGEST_ARGUMENT: usize = 2000;

/// What an entry says, as a message; `None` for what says nothing. A chronicle, and words for another
/// thread, are said by the worker in the thread.
pub(crate) fn said_by(entry: Entry) -> Option<Message> {
    match entry {
        Entry::Message(message, _) => Some(message),
        Entry::Chronicle(chronicle) => Some(Message::text(Role::Assistant, chronicle.text)),
        Entry::Tell { text, .. } => Some(Message::text(Role::Assistant, text)),
        _ => None,
    }
}

/// The text of a message.
pub(crate) fn text_of(message: &Message) -> String {
    let mut text = String::new();
    write_parts(&message.parts, &mut text);
    text
}

fn write_parts(parts: &[MessagePart], out: &mut String) {
    for part in parts {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        match part {
            MessagePart::Text { text, .. } | MessagePart::Reasoning { text, .. } => out.push_str(text),
            MessagePart::Result(outcome) => write_parts(&outcome.content, out),
            MessagePart::Call(call) => {
                out.push_str(&call.name);
                out.push('\n');
                write_arguments(&call.arguments, out);
            }
            MessagePart::Image { .. } | MessagePart::Opaque(_) => {}
        }
    }
}

/// Arguments as lines of `key: value`; as they are when they are no JSON.
fn write_arguments(arguments: &str, out: &mut String) {
    match serde_json::from_str::<Value>(arguments) {
        Ok(value) => write_value(&value, out),
        Err(_) => out.push_str(arguments),
    }
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => out.push_str(text),
        Value::Array(values) => values.iter().for_each(|value| {
            write_value(value, out);
            out.push('\n');
        }),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            out.push_str(key);
            out.push_str(": ");
            write_value(value, out);
            out.push('\n');
        }),
        Value::Null => {}
        other => out.push_str(&other.to_string()),
    }
}

/// The files that a call names: whatever looks like a path in its shorter arguments.
pub(crate) fn files_of(call: &Call) -> Vec<String> {
    let mut files = Vec::new();
    match serde_json::from_str::<Value>(&call.arguments) {
        Ok(value) => gather(&value, &mut files),
        Err(_) => look_through(&call.arguments, &mut files),
    }
    files.truncate(MOST_FILES);
    files
}

fn gather(value: &Value, files: &mut Vec<String>) {
    match value {
        Value::String(text) => look_through(text, files),
        Value::Array(values) => values.iter().for_each(|value| gather(value, files)),
        Value::Object(fields) => fields.values().for_each(|value| gather(value, files)),
        _ => {}
    }
}

fn look_through(text: &str, files: &mut Vec<String>) {
    if text.len() > LONGEST_ARGUMENT {
        return;
    }
    let ends = |c: char| c.is_whitespace() || "\"'`()[]{}<>|;,=".contains(c);
    for word in text.split(ends).filter(|word| is_path(word)) {
        // A place in a file is about the file.
        let path = word.split(':').next().unwrap_or(word).trim_end_matches('.');
        if is_path(path) && files.len() < MOST_FILES && !files.iter().any(|known| known == path) {
            files.push(path.to_owned());
        }
    }
}

/// True for a word with a slash among letters, or with an ending such as `.rs`.
fn is_path(word: &str) -> bool {
    let ending = word.rsplit_once('.').is_some_and(|(stem, ending)| {
        stem.ends_with(char::is_alphanumeric)
            && (1..=5).contains(&ending.len())
            && ending.bytes().all(|b| b.is_ascii_alphanumeric())
            && ending.bytes().any(|b| b.is_ascii_alphabetic())
    });
    word.len() <= 300 && (ending || (word.contains('/') && word.contains(char::is_alphanumeric)))
}

/// Where the passage at the beginning of `bytes` ends, and whether that may part two characters of one word. `None` when
/// more bytes are needed to tell, which come unless this `is_all`.
pub(crate) fn cut(bytes: &[u8], is_all: bool) -> Option<(usize, bool)> {
    if bytes.len() <= TARGET + SLACK {
        return is_all.then_some((bytes.len(), false));
    }
    let window = &bytes[TARGET..TARGET + SLACK];
    let after = |mark: &[u8]| window.windows(mark.len()).position(|w| w == mark).map(|at| at + mark.len());
    let clean = after(b"\n").or_else(|| after("。".as_bytes())).or_else(|| after(b" "));
    if let Some(at) = clean {
        return Some((TARGET + at, false));
    }
    let boundary = (0..4).map(|back| TARGET + SLACK - back).find(|at| bytes[*at] & 0xc0 != 0x80);
    Some((boundary.unwrap_or(TARGET + SLACK), true))
}

#[cfg(test)]
mod text_tests {
    use super::*;
    use komado_core::message::CallKind;

    fn call(arguments: &str) -> Call {
        let (id, name) = ("c".into(), "read_file".into());
        Call { id, name, arguments: arguments.into(), kind: CallKind::Function, extra: None }
    }

    #[test]
    fn a_call_is_told_by_its_name_and_what_it_is_given() {
        let escaped = call(r#"{"path":"\u7a93.rs","n":1.0,"lines":["a\nb",null]}"#);
        let thought = MessagePart::Reasoning { text: "hm".into(), signature: None };
        let message =
            Message::of(Role::Assistant, vec![thought, MessagePart::text("now"), MessagePart::Call(escaped)]);
        let text = text_of(&message);
        assert!(text.starts_with("hm\nnow\nread_file\n"), "{text}");
        assert!(text.contains("path: 窓.rs") && text.contains("a\nb") && text.contains("n: 1.0"), "{text}");
        let free = Message::of(Role::Assistant, vec![MessagePart::Call(call("not {json"))]);
        assert_eq!(text_of(&free), "read_file\nnot {json");
    }

    #[test]
    fn what_looks_like_a_path_is_a_file() {
        let files = |arguments: &str| files_of(&call(arguments));
        assert_eq!(files(r#"{"path":"src/設計.md","mode":"r"}"#), ["src/設計.md"]);
        let shell = r#"{"command":"cat ./a/b.rs:12 | grep 'x' > out.txt; ls /tmp/x"}"#;
        assert_eq!(files(shell), ["./a/b.rs", "out.txt", "/tmp/x"]);
        assert!(files(r#"{"query":"what is 3.5 and so on."}"#).is_empty());
        let long = format!("{{\"content\":{:?}}}", "a/b ".repeat(1000));
        assert!(files(&long).is_empty());
    }

    #[test]
    fn passages_join_to_the_text_they_were_cut_from() {
        let prose = "Some words, and then some more of them. ".repeat(200);
        let japanese = "窓を開けて風を入れる".repeat(300);
        for text in [prose.as_str(), &japanese, &"x".repeat(9000), "short", ""] {
            let (mut rest, mut joined) = (text.as_bytes(), Vec::new());
            while let Some((end, _)) = cut(rest, true).filter(|(end, _)| *end > 0) {
                assert!(std::str::from_utf8(&rest[..end]).is_ok(), "cut inside a character");
                assert!(end <= TARGET + SLACK);
                joined.extend_from_slice(&rest[..end]);
                rest = &rest[end..];
            }
            assert_eq!(joined, text.as_bytes());
        }
        assert_eq!(cut(b"maybe more", false), None);
    }
}
