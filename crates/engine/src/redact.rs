//! Taking a secret out: the one change to what was said.
//!
//! Every journal line that holds the secret, a thread's label included, is written again without it, with a note of when
//! and why; blobs that hold it are replaced by blobs that do not; everything derived is made again, also in the threads
//! that see a part of the one it stood in. What was redacted cannot be brought back.
//! Numbers, order, pairing and token counts stay, so that every view of the session stays what it was, but for the
//! words.

use crate::cleanup::blobs_of;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lineage;
use komado_core::head::EntrySource;
use komado_core::journal::{Entry, decode};
use komado_core::thread::{Branch, Header, branch};
use komado_core::{Seq, SessionId, ThreadId, View};
use komado_store::{BlobRef, BranchFilter, Journal, OpenMode};
use regex::Regex;
use scrub::{Scrub, emptied};
use std::collections::{BTreeMap, HashSet};
use std::io::Read;

mod scrub;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// What is to be taken out.
pub enum RedactTarget {
    /// Everything one entry says.
    Entry(ThreadId, Seq),
    /// Every place in the session that matches.
    Matching(Regex),
}

/// What was taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RedactResult {
    /// Entries changed, and labels.
    pub entries: u64,
    /// Blobs replaced or removed.
    pub blobs: u64,
}

impl Engine {
    /// Where a secret stands outside of what was said: names and attributes, which a redaction cannot change.
    pub fn redact_leaves(&self, id: &SessionId, pattern: &Regex) -> Result<Vec<String>> {
        let meta = self.session(id)?.meta;
        let key = meta.task_key.to_string();
        let mut named = vec![("the session's id", id.to_string()), ("the task key", key)];
        named.extend(meta.user.map(|user| ("the user's name", user)));
        named.extend(meta.config.model.map(|model| ("the model's name", model)));
        named.extend(meta.config.persona.map(|persona| ("the persona's name", persona)));
        for header in self.store().threads(id)? {
            named.push(("a thread's name", header.thread.to_string()));
            named.extend(header.label.map(|label| ("a thread's label", label)));
        }
        for row in self.store().branches(id, BranchFilter::All)? {
            named.extend(row.held_by.map(|held| ("the name of the process that holds a thread", held)));
        }
        named.retain(|(_, text)| pattern.is_match(text));
        Ok(named.into_iter().map(|(what, _)| what.to_owned()).collect())
    }

    /// Takes `what` out of a session, for `reason`.
    pub fn redact(&self, id: &SessionId, what: &RedactTarget, reason: &str) -> Result<RedactResult> {
        let headers = self.store().threads(id)?;
        let root = self.store().open(id, &ThreadId::root(), OpenMode::Amend)?;
        let mut held = Held { engine: self, id, headers, root };
        let done = match what {
            RedactTarget::Entry(thread, seq) => held.redact_entry(thread, *seq, reason)?,
            RedactTarget::Matching(pattern) => held.redact_matching(pattern, reason)?,
        };
        // After the journals, and whatever was found: an attempt that was cut short may have come no further.
        self.store().search_index(id)?.clear()?;
        self.retell(id)?;
        // The reason of a failure stands in the table, too.
        let closed = View::fold(&*held.root, held.root.last())?.closed();
        let close = closed.map(|at| EntrySource::record(&*held.root, at)).transpose()?;
        drop(held);
        if let (Some(close), true) = (close, done.entries > 0) {
            self.follow(id, &close)?;
        }
        Ok(done)
    }

    /// The table of spawned threads says again what their journals say now: what was done in each stands there, too.
    fn retell(&self, id: &SessionId) -> Result<()> {
        let headers = self.store().threads(id)?;
        for row in self.store().branches(id, BranchFilter::All)? {
            let Some(header) = headers.iter().find(|header| header.thread == row.thread) else { continue };
            let journal = self.store().open(id, &row.thread, OpenMode::Read)?;
            let now = Branch { told: row.told, ..branch(header, &*journal)? };
            if now != row {
                self.store().put_branch(&now)?;
            }
        }
        Ok(())
    }
}

/// A session that no other process writes, because its root is held.
struct Held<'a> {
    engine: &'a Engine,
    id: &'a SessionId,
    headers: Vec<Header>,
    root: Box<dyn Journal>,
}

/// Gives the line of an entry another text.
type Change<'c> = dyn FnMut(&ThreadId, Seq, &str) -> Option<Vec<u8>> + 'c;

/// Gives a thread another label, or none.
type Label<'c> = dyn Fn(&Header) -> Option<Option<String>> + 'c;

impl Held<'_> {
    fn redact_entry(&mut self, thread: &ThreadId, seq: Seq, reason: &str) -> Result<RedactResult> {
        let Self { engine, id, .. } = *self;
        let record = engine.open(id, thread, OpenMode::Read)?.record(seq)?;
        let owner = lineage::owner(&self.headers, thread, seq);
        let note = self.note(reason);
        // What an anchor says is made of the child's label, and would come back at its next change.
        let child = match &record.entry {
            Entry::Anchor(anchor) => Some(anchor.thread.clone()),
            _ => None,
        };
        let is_named = |header: &Header| header.label.is_some() && child.as_ref() == Some(&header.thread);
        let label = |header: &Header| is_named(header).then_some(None::<String>);
        let entries = self.rewrite(&label, &mut |thread, at, line| {
            let record = (at == seq && *thread == owner).then(|| decode(line).ok()).flatten();
            record.and_then(emptied).map(|record| scrub::line(&record, line, None, &note))
        })?;
        let mut loose = HashSet::new();
        if let Entry::Message(message, _) = &record.entry {
            blobs_of(message, &mut loose);
        }
        if !loose.is_empty() {
            let named = engine.named_blobs(id)?;
            loose.retain(|blob| !named.contains(blob));
        }
        let swept = engine.store().sweep(id, &|blob| !loose.contains(blob))?;
        Ok(RedactResult { entries, blobs: swept.blobs })
    }

    fn redact_matching(&mut self, pattern: &Regex, reason: &str) -> Result<RedactResult> {
        if pattern.is_match("") {
            return Err(Error::MatchesAll(pattern.to_string()));
        }
        let blobs = self.clean_blobs(pattern)?;
        let note = self.note(&pattern.replace_all(reason, REDACTED));
        let mut scrub = Scrub::new(pattern, &blobs);
        let label = |header: &Header| {
            let label = header.label.as_deref().filter(|label| pattern.is_match(label))?;
            Some(Some(pattern.replace_all(label, REDACTED).into_owned()))
        };
        let entries = self.rewrite(&label, &mut |_, _, line| {
            let mut record = decode(line).ok()?;
            scrub.record(&mut record).then(|| scrub::line(&record, line, Some(&scrub), &note))
        })?;
        self.engine.store().sweep(self.id, &|blob| !blobs.contains_key(blob))?;
        Ok(RedactResult { entries, blobs: blobs.len() as u64 })
    }

    /// When and why, as it stands in a changed line.
    fn note(&self, reason: &str) -> String {
        serde_json::json!({ "at": self.engine.now(), "reason": reason }).to_string()
    }

    /// Changes lines in all threads and makes again what is derived from them. A fork comes after the thread it left, and
    /// a child after its parent, and so is opened when the lines that it shares or sees have been changed.
    fn rewrite(&mut self, label: &Label<'_>, change: &mut Change<'_>) -> Result<u64> {
        let mut entries = 0;
        for header in &self.headers {
            let thread = &header.thread;
            let mut opened;
            let journal: &mut dyn Journal = if thread.is_root() {
                &mut *self.root
            } else {
                opened = self.engine.store().open(self.id, thread, OpenMode::Amend)?;
                &mut *opened
            };
            entries += journal.rewrite(&mut |seq, line| change(thread, seq, line))?;
            if let Some(label) = label(header) {
                journal.relabel(label.as_deref())?;
                entries += 1;
            }
            let view = View::fold(journal, journal.last())?;
            journal.settle(&view)?;
        }
        Ok(entries)
    }

    /// Writes blobs that hold the secret again without it; gives old names and new blobs. Blobs that nothing names are
    /// searched, too: an attempt that was cut short may have left one.
    fn clean_blobs(&self, pattern: &Regex) -> Result<BTreeMap<String, BlobRef>> {
        let store = self.engine.store();
        let mut cleaned = BTreeMap::new();
        for blob in self.engine.blobs(self.id)? {
            let mut bytes = Vec::new();
            store.blob(self.id, &blob)?.read_to_end(&mut bytes)?;
            if let Some(clean) = clean_bytes(&bytes, pattern) {
                cleaned.insert(blob, store.put_blob(self.id, &mut &clean[..])?);
            }
        }
        Ok(cleaned)
    }
}

/// The bytes without what matches in any text among them; `None` when nothing does.
fn clean_bytes(bytes: &[u8], pattern: &Regex) -> Option<Vec<u8>> {
    let mut clean = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        clean.extend_from_slice(pattern.replace_all(chunk.valid(), REDACTED).as_bytes());
        clean.extend_from_slice(chunk.invalid());
    }
    (clean != bytes).then_some(clean)
}
