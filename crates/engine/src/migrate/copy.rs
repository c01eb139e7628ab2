//! A session's threads, line by line.
//!
//! What the target holds is read beside the source and must be its beginning; the rest follows in batches. The outputs that
//! a batch names go first: no line at the target ever names what is not there.

use super::{CopyProgress, Error, Result, row};
use crate::cleanup::blobs_of;
use komado_core::head::{EntrySource, Kind};
use komado_core::journal::{Entry, Record};
use komado_core::session::Session;
use komado_core::thread::Header;
use komado_core::{Seq, SessionId, ThreadId, View, journal};
use komado_store::spot_of;
use komado_store::{Journal, JournalRow, OpenMode, Store, TranscriptPlace};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::io::Read;

/// Bytes of lines written at once.
const BATCH: usize = 1 << 20;
/// Lines written at once.
const LINES: usize = 2048;

/// One session on its way.
pub(super) struct Copier<'c> {
    pub(super) from: &'c dyn Store,
    pub(super) to: &'c dyn Store,
    pub(super) id: &'c SessionId,
    pub(super) added: &'c mut CopyProgress,
    pub(super) each: &'c mut dyn FnMut(&CopyProgress),
    /// The outputs that are known to be at the target.
    pub(super) blobs: HashSet<String>,
}

/// Lines that are written together, and what goes with them.
#[derive(Default)]
struct Batch {
    rows: Vec<JournalRow>,
    bytes: usize,
    spots: Vec<TranscriptPlace>,
    blobs: HashSet<String>,
}

impl Copier<'_> {
    /// Every thread, each after those it goes on from. The root's handle keeps everyone else out until all are there.
    pub(super) fn threads(&mut self, mut root: Box<dyn Journal>) -> Result<()> {
        let there: BTreeMap<ThreadId, Header> =
            self.to.threads(self.id)?.into_iter().map(|header| (header.thread.clone(), header)).collect();
        for header in self.from.threads(self.id)? {
            if header.thread.is_root() {
                self.thread(&header, &mut *root)?;
                continue;
            }
            if !there.contains_key(&header.thread) {
                self.to.spawn(&header)?;
            }
            let mut journal = self.to.open(self.id, &header.thread, OpenMode::Amend)?;
            self.thread(&header, &mut *journal)?;
        }
        self.check_no_more(&there)
    }

    /// A thread that only the target has was made there.
    fn check_no_more(&self, there: &BTreeMap<ThreadId, Header>) -> Result<()> {
        let here: HashSet<ThreadId> = self.from.threads(self.id)?.into_iter().map(|h| h.thread).collect();
        match there.values().find(|header| !here.contains(&header.thread)) {
            Some(header) => Err(self.differs(&header.thread, header.base_seq())),
            None => Ok(()),
        }
    }

    fn differs(&self, thread: &ThreadId, seq: Seq) -> Error {
        Error::Differs { session: self.id.clone(), thread: thread.clone(), seq }
    }

    fn thread(&mut self, header: &Header, target: &mut dyn Journal) -> Result<()> {
        if *target.header() != *header {
            // A store makes the root itself, and without a label.
            let label = header.label.as_deref().filter(|_| header.thread.is_root());
            let same = Header { label: None, ..header.clone() } == *target.header();
            match label.filter(|_| same) {
                Some(label) => target.relabel(Some(label))?,
                None => return Err(self.differs(&header.thread, header.base_seq())),
            }
        }
        let source = self.from.open(self.id, &header.thread, OpenMode::Read)?;
        let (base, last) = (header.base_seq(), source.last());
        self.compare(&*source, target)?;
        let mut after = target.last().max(base);
        let grew = after < last;
        while after < last {
            after = self.batch(&*source, target, after, last)?;
        }
        if grew {
            // Views for people show pictures, so they are made when everything is there.
            target.settle(&View::fold(&*target, target.last())?)?;
        }
        Ok(())
    }

    /// The target's lines must be the first of the source's. What goes with them may be missing: it was interrupted.
    fn compare(&mut self, source: &dyn Journal, target: &dyn Journal) -> Result<()> {
        let header = source.header();
        let mut batch = Batch::default();
        for seq in header.base_seq() + 1..=target.last() {
            if seq > source.last() || source.line(seq)? != target.line(seq)? {
                return Err(self.differs(&header.thread, seq));
            }
            batch.spot_and_blobs(source, seq)?;
            if batch.spots.len() + batch.blobs.len() >= LINES {
                self.companions(std::mem::take(&mut batch))?;
            }
        }
        self.companions(batch)
    }

    /// Copies the lines after `after`, at most up to `last`, as many as go together; gives the number of the last one.
    fn batch(
        &mut self,
        source: &dyn Journal,
        target: &mut dyn Journal,
        after: Seq,
        last: Seq,
    ) -> Result<Seq> {
        let mut batch = Batch::default();
        let mut upto = after;
        while upto < last && batch.bytes < BATCH && batch.rows.len() < LINES {
            upto += 1;
            let line = source.line(upto)?;
            batch.spot_and_blobs(source, upto)?;
            batch.bytes += line.len();
            batch.rows.push(JournalRow { line, head: source.head(upto)? });
        }
        let (rows, bytes) = (std::mem::take(&mut batch.rows), batch.bytes);
        for blob in std::mem::take(&mut batch.blobs) {
            self.blob(&blob)?;
        }
        target.append(after, &rows)?;
        self.companions(batch)?;
        self.added.entries += rows.len() as u64;
        self.added.bytes += bytes as u64;
        (self.each)(self.added);
        Ok(upto)
    }

    /// What goes with lines that are there.
    fn companions(&mut self, batch: Batch) -> Result<()> {
        for blob in &batch.blobs {
            self.blob(blob)?;
        }
        if !batch.spots.is_empty() {
            self.to.note(&batch.spots)?;
        }
        Ok(())
    }

    /// Copies an output, unless the target has it.
    fn blob(&mut self, blob: &str) -> Result<()> {
        if !self.blobs.insert(blob.to_owned()) || is_there(self.to.blob(self.id, blob))?.is_some() {
            return Ok(());
        }
        // An entry may name an output that was never here: a transcript that was brought along.
        let Some(mut bytes) = is_there(self.from.blob(self.id, blob))? else { return Ok(()) };
        let kept = self.to.put_blob(self.id, &mut bytes)?;
        if kept.id != blob {
            let (session, blob, found) = (self.id.clone(), blob.to_owned(), kept.id);
            return Err(Error::Blob { session, blob, found, place: "the source" });
        }
        self.added.blobs += 1;
        self.added.bytes += kept.byte_size;
        (self.each)(self.added);
        Ok(())
    }

    /// The name by which a client finds the session again.
    pub(super) fn note_alias(&self, source: &Session) -> Result<()> {
        let Some(name) = source.meta.config.alias.clone() else { return Ok(()) };
        let (session, thread) = (self.id.clone(), ThreadId::root());
        Ok(self.to.note(&[TranscriptPlace { name, session, thread, seq: 0 }])?)
    }
}

/// `None` for an output that a store does not have.
pub(super) fn is_there<T>(found: komado_store::Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(komado_store::Error::NoBlob(..)) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

impl Batch {
    /// Takes in what an entry names: the place a transcript may go on at, and its outputs.
    fn spot_and_blobs(&mut self, source: &dyn Journal, seq: Seq) -> Result<()> {
        let kind = source.head(seq)?.kind;
        if kind != Kind::Sent && !kind.is_item() {
            return Ok(());
        }
        let record = EntrySource::record(source, seq)?;
        if let Some(name) = spot_of(&record.entry) {
            let Header { session, thread, .. } = source.header();
            let (name, session, thread) = (name.to_owned(), session.clone(), thread.clone());
            self.spots.push(TranscriptPlace { name, session, thread, seq });
        }
        add_blobs(&record, &mut self.blobs);
        Ok(())
    }
}

fn add_blobs(record: &Record, blobs: &mut HashSet<String>) {
    if let Entry::Message(message, _) = &record.entry {
        blobs_of(message, blobs);
    }
}

/// Adds the outputs that a line names.
pub(super) fn blobs_of_line(line: &[u8], blobs: &mut HashSet<String>) {
    if let Some(record) = std::str::from_utf8(line).ok().and_then(|text| journal::decode(text).ok()) {
        add_blobs(&record, blobs);
    }
}

// What a store holds of a session, as one digest.
//
// Row, headers, lines and outputs, read back from the store; never what was just written, as it is in memory.

/// Digest and size of a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionDigest {
    /// BLAKE3 over everything.
    pub digest: String,
    /// Its threads.
    pub threads: u64,
    /// Its entries.
    pub entries: u64,
    /// Its outputs.
    #[serde(rename = "outputs")]
    pub blobs: u64,
    /// Bytes of lines and outputs.
    pub bytes: u64,
}

impl SessionDigest {
    /// Reads a session of `store` from its first line to its last output.
    pub fn of(store: &dyn Store, id: &SessionId) -> Result<Self> {
        let mut hasher = blake3::Hasher::new();
        let mut seal = Self { digest: String::new(), threads: 0, entries: 0, blobs: 0, bytes: 0 };
        let session = row(store, id)?.ok_or_else(|| komado_store::Error::NoSession(id.clone()))?;
        hasher.update(&serde_json::to_vec(&session).map_err(std::io::Error::from)?);
        let mut named = HashSet::new();
        for header in store.threads(id)? {
            let journal = store.open(id, &header.thread, OpenMode::Read)?;
            hasher.update(&header.encode());
            for seq in header.base_seq() + 1..=journal.last() {
                let line = journal.line(seq)?;
                hasher.update(&line);
                seal.entries += 1;
                seal.bytes += line.len() as u64;
                if journal.head(seq)?.kind.is_item() {
                    blobs_of_line(&line, &mut named);
                }
            }
            seal.threads += 1;
        }
        let mut named: Vec<String> = named.into_iter().collect();
        named.sort();
        for blob in named {
            if let Some(bytes) = is_there(store.blob(id, &blob))? {
                seal.bytes += check_blob(id, &blob, bytes)?;
                seal.blobs += 1;
                hasher.update(blob.as_bytes());
            }
        }
        seal.digest = hasher.finalize().to_hex().to_string();
        Ok(seal)
    }
}

/// An output is called what its bytes come to; gives its size.
fn check_blob(id: &SessionId, blob: &str, mut bytes: impl Read) -> Result<u64> {
    let mut hasher = blake3::Hasher::new();
    let size = std::io::copy(&mut bytes, &mut hasher)?;
    let found = hasher.finalize().to_hex()[..blob.len().min(64)].to_owned();
    if found == blob {
        return Ok(size);
    }
    let (session, blob) = (id.clone(), blob.to_owned());
    Err(Error::Blob { session, blob, found, place: "a store" })
}
