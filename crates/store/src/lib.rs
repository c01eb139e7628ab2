//! Where journals are kept.
//!
//! Narrow traits: sessions, their blobs, a thread's journal, a session's index of words. Every store runs the same
//! conformance suite; nothing in a store decides what a model sees. Calls block: a durable append is a write and a
//! sync, which block on every system; an asynchronous caller moves the handle to a thread of its own.

pub mod connect;
pub mod error;
pub mod files;
mod lease;
pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod queue;
#[cfg(feature = "redis")]
pub mod redis;
pub mod request_file;
pub mod search_index;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod server_calls;
pub mod tables;
pub mod watch;

pub use connect::{ConnectOptions, connect};
pub use error::{Error, Holder};
pub use files::FileStore;
pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use queue::{Job, JobOutcome, JobStage, Queue, QueuedJob, TakenJob};
#[cfg(feature = "redis")]
pub use redis::RedisStore;
pub use request_file::RequestFile;
pub use search_index::SearchIndex;
pub use tables::{
    BranchFilter, BranchTable, Learning, Lessons, MOST_SPOTS, StoreFigures, StoreHealthFigures, ThreadMail,
    ToldWords, TranscriptPlace, TranscriptPlaces, spot_of,
};
pub use watch::{ThreadNews, WatchEvent, WatchStore, Watcher};

use files::FileJournal;
use komado_core::head::EntrySource;
use komado_core::journal::{Record, decode};
use komado_core::session::{Counters, Meta, Session, State};
use komado_core::thread::Header;
use komado_core::{Head, Seq, SessionId, ThreadId, View};
use std::collections::HashSet;
use std::io;
use std::io::{Read, Seek, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What stores give back.
pub type Result<T> = std::result::Result<T, Error>;

/// How a thread is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// To look; any number of readers, also while someone writes.
    Read,
    /// To append; one process at a time.
    Write,
    /// To take a secret out; like writing, and also where a session has ended.
    Amend,
}

/// Which sessions to list.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// Only this one, or those whose id begins so.
    pub prefix: Option<String>,
    /// Only the one of exactly this id.
    pub id: Option<SessionId>,
    /// Only in this state.
    pub status: Option<State>,
    /// Only this user's.
    pub user: Option<String>,
    /// Only those that ended before this time (RFC 3339).
    pub ended_before: Option<String>,
    /// Only those that changed then or later (RFC 3339).
    pub changed_from: Option<String>,
    /// Only those made before this time (RFC 3339).
    pub made_before: Option<String>,
    /// Only those after this one in the order of making.
    pub after: Option<(String, SessionId)>,
    /// At most so many; 0 for all.
    pub limit: usize,
}

impl SessionQuery {
    /// What is asked of a row but its place in the order, in SQL: each condition with its value. `user` is the column with a
    /// session's user.
    fn conditions(&self, user: &str) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let mut want = |condition: &str, value: Option<String>| {
            all.extend(value.map(|value| (condition.to_owned(), value)));
        };
        let prefix = self.prefix.as_ref().filter(|prefix| !prefix.is_empty());
        want("uuid >= ?", prefix.cloned());
        // A range, so that the key's own index serves it. The last character there is stands in no id.
        want("uuid < ?", prefix.map(|prefix| format!("{prefix}\u{10ffff}")));
        want("uuid = ?", self.id.as_ref().map(ToString::to_string));
        want("status = ?", self.status.map(|status| status.name().to_owned()));
        want(&format!("{user} = ?"), self.user.clone());
        want("completed_at < ?", self.ended_before.clone());
        want("updated_at >= ?", self.changed_from.clone());
        want("created_at < ?", self.made_before.clone());
        all
    }
}

/// What may change about a session.
#[derive(Clone, Debug)]
pub enum SessionChange {
    /// It entered another state.
    State {
        /// The state.
        to: State,
        /// When.
        at: String,
        /// Why, for a failure or a stop.
        why: Option<String>,
    },
    /// Its counters grew.
    Count {
        /// By how much.
        by: Counters,
        /// When.
        at: String,
    },
    /// All that is known of it, as another store had it: state, times and counters. What it was made with stays.
    Row(Box<Session>),
}

/// A stored blob.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlobRef {
    /// Digest of its bytes.
    pub id: String,
    /// Its size.
    pub byte_size: u64,
    /// Its number of lines.
    pub line_count: u64,
}

/// What a sweep freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlobSweep {
    /// Blobs removed.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A blob's bytes, to be read from anywhere.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// Writes bytes as base64, a little at a time.
pub fn write_base64(bytes: &mut dyn Read, out: &mut dyn Write) -> io::Result<()> {
    let mut encoder = base64::write::EncoderWriter::new(out, &base64::engine::general_purpose::STANDARD);
    io::copy(bytes, &mut encoder)?;
    encoder.finish().map(|_| ())
}

/// A session's bytes that are not words.
pub trait Blobs: Send + Sync {
    /// Keeps bytes under their digest; the same bytes are kept once.
    fn put_blob(&self, id: &SessionId, bytes: &mut dyn Read) -> Result<BlobRef>;

    /// Reads a blob.
    fn blob(&self, id: &SessionId, blob: &str) -> Result<Box<dyn ReadSeek>>;

    /// Removes the blobs that `keep` does not want.
    fn sweep(&self, id: &SessionId, keep: &dyn Fn(&str) -> bool) -> Result<BlobSweep>;
}

/// Sessions and threads.
pub trait Store:
    Blobs + Lessons + TranscriptPlaces + BranchTable + Queue + WatchStore + StoreFigures
{
    /// Makes a session with an empty root thread.
    fn create(&self, meta: &Meta) -> Result<()>;

    /// Lists sessions in the order they were made.
    fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>>;

    /// Changes what is known of a session.
    fn change(&self, id: &SessionId, change: &SessionChange) -> Result<Session>;

    /// Removes a session with everything in it. Refused while someone writes to it.
    fn remove(&self, id: &SessionId) -> Result<()>;

    /// The session's threads, the root first, then by age.
    fn threads(&self, id: &SessionId) -> Result<Vec<Header>>;

    /// Makes a thread: a fork, or a spawned child.
    fn spawn(&self, header: &Header) -> Result<()>;

    /// Opens a thread's journal.
    fn open(&self, id: &SessionId, thread: &ThreadId, mode: OpenMode) -> Result<Box<dyn Journal>>;

    /// Who writes the session now, if anyone. A store that can tell only looks; another one tries, for a moment.
    fn writer(&self, id: &SessionId) -> Result<Option<Holder>> {
        match self.open(id, &ThreadId::root(), OpenMode::Amend) {
            Ok(_) => Ok(None),
            Err(Error::Busy { holder, .. }) => Ok(Some(holder)),
            Err(other) => Err(other),
        }
    }

    /// Opens the session's index of words, making it when there is none. It is derived: it may be behind the journals,
    /// and losing it loses nothing.
    fn search_index(&self, id: &SessionId) -> Result<Box<dyn SearchIndex>>;
}

/// One line to append, with its head.
#[derive(Clone, Debug)]
pub struct JournalRow {
    /// The line as [`komado_core::journal::encode`] writes it.
    pub line: Vec<u8>,
    /// Its head.
    pub head: Head,
}

/// What was put right when a journal was opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalRepair {
    /// A last line without an end was cut off; it was never acknowledged.
    #[error("cut {bytes} bytes of a last line that was never finished")]
    Torn {
        /// Bytes cut.
        bytes: u64,
    },
    /// The index was behind or broken and was made again from the journal.
    #[error("the index was made again for {entries} entries")]
    Reindexed {
        /// Entries read.
        entries: u64,
    },
}

/// A thread's journal, open.
pub trait Journal: Send {
    /// Its first line.
    fn header(&self) -> &Header;

    /// Number of its last entry.
    fn last(&self) -> Seq;

    /// The head of an entry; for a fork also of those before its base.
    fn head(&self, seq: Seq) -> Result<Head>;

    /// An entry's line, line break included.
    fn line(&self, seq: Seq) -> Result<Vec<u8>>;

    /// Appends lines after entry `after`, which must be the last: one write, one sync. When it returns, they are
    /// durable; when it fails, none is there. Only a power cut may leave the first few of several.
    fn append(&mut self, after: Seq, rows: &[JournalRow]) -> Result<()>;

    /// Begins a request made from this thread; only a writer sends one.
    fn request_file(&self) -> Result<RequestFile>;

    /// Brings what is derived (views and lists for people) in line with `view`. Losing it loses nothing.
    fn settle(&mut self, _view: &View) -> Result<()> {
        Ok(())
    }

    /// Replaces lines for which `change` gives another text, all or none; the one way to take a secret out. The new
    /// line must have the same number, kind, operands and tokens. Gives the number of lines changed.
    fn rewrite(&mut self, change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>) -> Result<u64>;

    /// Gives the thread another label; the one way to take a secret out of its header.
    fn relabel(&mut self, label: Option<&str>) -> Result<()>;

    /// Another thread of the session, to look: one that this thread was spawned from.
    fn above(&self, thread: &ThreadId) -> Result<Box<dyn Journal>>;

    /// What was put right at opening.
    fn notes(&self) -> &[JournalRepair] {
        &[]
    }
}

/// Every journal is a source of its entries.
macro_rules! entry_source {
    ($of:ty, $own:ident => $journal:expr) => {
        impl EntrySource for $of {
            type Error = Error;

            fn last(&$own) -> Seq {
                Journal::last($journal)
            }

            fn head(&$own, seq: Seq) -> Result<Head> {
                Journal::head($journal, seq)
            }

            fn record(&$own, seq: Seq) -> Result<Record> {
                read_record($journal, seq)
            }

            fn above(&$own, thread: &ThreadId) -> Result<Box<dyn EntrySource<Error = Error> + '_>> {
                Ok(Box::new(Above(Journal::above($journal, thread)?)))
            }
        }
    };
}

/// A thread above another, to be looked up.
struct Above(Box<dyn Journal>);

entry_source!(dyn Journal + '_, self => self);
entry_source!(FileJournal, self => self);
entry_source!(Above, self => &*self.0);

/// What a mutex holds; a thread that panicked with it left it whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The id of a session that is to be made.
fn id_of(meta: &Meta) -> Result<SessionId> {
    SessionId::new(meta.uuid.as_str()).map_err(|e| Error::damaged("the session's id", e))
}

/// The root first, then by age, and whatever the clock said: no thread before one it goes on from.
fn by_age(mut headers: Vec<Header>) -> Vec<Header> {
    headers.sort_by_cached_key(|h| (!h.thread.is_root(), h.timestamp.clone(), h.thread.clone()));
    let mut waiting: HashSet<ThreadId> = headers.iter().map(|h| h.thread.clone()).collect();
    let mut sorted = Vec::with_capacity(headers.len());
    while !headers.is_empty() {
        let before = sorted.len();
        let mut rest = Vec::new();
        for header in headers {
            if header.base.iter().chain(&header.parent).any(|moment| waiting.contains(&moment.thread)) {
                rest.push(header);
            } else {
                waiting.remove(&header.thread);
                sorted.push(header);
            }
        }
        headers = rest;
        if sorted.len() == before {
            sorted.append(&mut headers); // They go round in a circle; opening one says so.
        }
    }
    sorted
}

/// Refuses what would not stand in a journal as one numbered line each.
fn check_rows(after: Seq, rows: &[JournalRow]) -> Result<()> {
    // The last number is never given: who looks for what comes after an entry may add one to it.
    let room = Seq::MAX - 1 - after.min(Seq::MAX - 1);
    if rows.len() > room as usize {
        return Err(Error::TooMuch(format!(
            "{} more entries after @{after}; go on in a new session",
            rows.len()
        )));
    }
    rows.iter().try_for_each(|row| check_line(&row.line))
}

fn check_line(line: &[u8]) -> Result<()> {
    if u32::try_from(line.len()).is_err() {
        return Err(Error::TooMuch(format!("a line of {} bytes; 4 GiB is the most", line.len())));
    }
    if line.iter().position(|b| *b == b'\n').is_none_or(|at| at + 1 != line.len()) {
        return Err(Error::damaged("what was to be written", "it is not one line"));
    }
    Ok(())
}

/// A line may be replaced by one that says something else, never by one that counts for something else: the heads of
/// everything after it, in this thread and in its forks, stand on what it counts for.
fn check_rewritten(old: &[u8], new: &[u8]) -> Result<()> {
    check_line(new)?;
    let place = "a line in place of another";
    let read = |line: &[u8]| record_in(line).map_err(|why| Error::damaged(place, why));
    let (old, new) = (read(old)?, read(new)?);
    let weight = |record: &Record| (record.seq, Head::next((0, &Head::START), record, 0));
    if weight(&old) == weight(&new) {
        return Ok(());
    }
    Err(Error::damaged(place, format!("it is not of the kind, number or size of @{}", old.seq)))
}

fn read_record<J: Journal + ?Sized>(journal: &J, seq: Seq) -> Result<Record> {
    let Header { session, thread, .. } = journal.header();
    record_in(&journal.line(seq)?).map_err(|why| Error::damaged(format!("{session}/{thread}@{seq}"), why))
}

/// What a line says, or why it says nothing.
fn record_in(line: &[u8]) -> std::result::Result<Record, String> {
    decode(std::str::from_utf8(line).map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_never_given() {
        let row = JournalRow { line: b"{}\n".to_vec(), head: Head::START };
        let rows = vec![row; 3];
        assert!(check_rows(Seq::MAX - 4, &rows).is_ok());
        for after in [Seq::MAX - 3, Seq::MAX - 1, Seq::MAX] {
            let error = check_rows(after, &rows).unwrap_err();
            assert!(error.to_string().contains(&format!("3 more entries after @{after}")), "{error}");
        }
        assert!(check_rows(Seq::MAX, &[]).is_ok());
    }
}
