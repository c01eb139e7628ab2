//! The store as the server uses it: every call is timed and counted, and does what it always does.
//!
//! What a journal reads from is counted only when it fails: an entry that is read from memory takes less time than
//! measuring it would.

#[cfg(test)]
mod tests;

use super::circuit::{StoreCircuit, StoreNeed};
use super::metrics::Metrics;
use komado_core::session::{Meta, Session};
use komado_core::thread::{Branch, Header};
use komado_core::{Head, Seq, SessionId, ThreadId, View};
use komado_store::{
    BlobRef, BlobSweep, Blobs, BranchFilter, BranchTable, Holder, JobOutcome, Journal, JournalRepair,
    JournalRow, Lessons, OpenMode, Queue, QueuedJob, ReadSeek, RequestFile, Result, SearchIndex,
    SessionChange, SessionQuery, Store, StoreFigures, StoreHealthFigures, TakenJob, ThreadMail,
    TranscriptPlace, TranscriptPlaces, WatchStore, Watcher,
};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Sessions that are remembered as opened here; then it begins anew, and some count as restored once more.
const MOST_KNOWN: usize = 65_536;

/// A store whose calls are counted.
pub(crate) struct MeteredStore {
    inner: Arc<dyn Store>,
    gauge: Arc<StoreGauge>,
}

/// What is told how calls went.
struct StoreGauge {
    meters: Arc<Metrics>,
    circuit: Arc<StoreCircuit>,
    known: Mutex<HashSet<u64>>,
}

impl StoreGauge {
    /// Makes a call, and tells how it went.
    fn time<T>(&self, call: &'static str, need: StoreNeed, op: impl FnOnce() -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let span = tracing::debug_span!("store", call).entered();
        let done = op();
        drop(span);
        let error = done.as_ref().err();
        self.circuit.told(need, begun.elapsed(), error);
        self.meters.store_call(call, begun.elapsed(), error);
        done
    }

    /// Reads part of a history; told only when it fails.
    fn read<T>(&self, call: &'static str, op: impl FnOnce() -> Result<T>) -> Result<T> {
        op().inspect_err(|error| {
            self.meters.store_error(call, error);
            self.meters.unread(error);
        })
    }

    /// Remembers a session; true when it was not known here.
    fn meet(&self, id: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(hasher.finish())
    }
}

impl MeteredStore {
    /// `inner`, with what it does told to `meters` and `circuit`.
    pub(crate) fn new(inner: Arc<dyn Store>, meters: Arc<Metrics>, circuit: Arc<StoreCircuit>) -> Self {
        Self { inner, gauge: Arc::new(StoreGauge { meters, circuit, known: Mutex::default() }) }
    }

    fn read<T>(&self, call: &'static str, op: impl FnOnce(&dyn Store) -> Result<T>) -> Result<T> {
        self.gauge.time(call, StoreNeed::Read, || op(&*self.inner))
    }

    /// A call that reads part of a history.
    fn history<T>(&self, call: &'static str, op: impl FnOnce(&dyn Store) -> Result<T>) -> Result<T> {
        self.read(call, op).inspect_err(|error| self.gauge.meters.unread(error))
    }

    /// A call that writes, unless there turns out to be nothing to write.
    fn settle<T>(&self, call: &'static str, op: impl FnOnce(&dyn Store) -> Result<T>) -> Result<T> {
        self.gauge.time(call, StoreNeed::Maybe, || op(&*self.inner))
    }

    fn write<T>(&self, call: &'static str, op: impl FnOnce(&dyn Store) -> Result<T>) -> Result<T> {
        self.gauge.time(call, StoreNeed::Write, || op(&*self.inner))
    }

    fn tell_ended(&self, session: &Session, change: &SessionChange) {
        let SessionChange::State { to, .. } = change else { return };
        if !to.is_ended() {
            return;
        }
        self.gauge.meters.ended(*to);
        let counters = &session.counters;
        tracing::info!(
            session = session.meta.uuid,
            user = session.meta.user,
            state = to.name(),
            turns = counters.llm_call_count,
            tool_calls = counters.tool_call_count,
            tokens = counters.total_tokens,
            edits = counters.compression_count,
            "session ended"
        );
    }
}

impl Store for MeteredStore {
    fn create(&self, meta: &Meta) -> Result<()> {
        let done = self.write("create", |store| store.create(meta));
        self.gauge.meters.created(done.as_ref().err());
        if done.is_ok() {
            self.gauge.meet(&meta.uuid);
        }
        done
    }

    fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        self.read("sessions", |store| store.sessions(query))
    }

    fn change(&self, id: &SessionId, change: &SessionChange) -> Result<Session> {
        let session = self.write("change", |store| store.change(id, change))?;
        self.tell_ended(&session, change);
        Ok(session)
    }

    fn remove(&self, id: &SessionId) -> Result<()> {
        self.write("remove", |store| store.remove(id))
    }

    fn threads(&self, id: &SessionId) -> Result<Vec<Header>> {
        self.history("threads", |store| store.threads(id))
    }

    fn spawn(&self, header: &Header) -> Result<()> {
        self.write("spawn", |store| store.spawn(header))
    }

    fn open(&self, id: &SessionId, thread: &ThreadId, mode: OpenMode) -> Result<Box<dyn Journal>> {
        let need = if mode == OpenMode::Read { StoreNeed::Read } else { StoreNeed::Maybe };
        let done = self.gauge.time("open", need, || self.inner.open(id, thread, mode));
        let meters = &self.gauge.meters;
        match &done {
            Ok(_) if self.gauge.meet(id.as_str()) => meters.restored(None),
            Ok(_) => {}
            Err(error) => {
                meters.restored(Some(error));
                meters.unread(error);
            }
        }
        Ok(Box::new(MeteredJournal { inner: done?, gauge: Arc::clone(&self.gauge) }))
    }

    fn writer(&self, id: &SessionId) -> Result<Option<Holder>> {
        self.read("writer", |store| store.writer(id))
    }

    fn search_index(&self, id: &SessionId) -> Result<Box<dyn SearchIndex>> {
        self.read("search_index", |store| store.search_index(id))
    }
}

/// Calls that are passed on and counted: a trait, and for each call how it is counted (see [`MeteredStore::read`] and those beside it).
macro_rules! passed_on {
    ($($trait:ident {
        $($kind:ident $call:literal $name:ident($($arg:ident: $type:ty),*) -> $output:ty;)+
    })+) => {
        $(impl $trait for MeteredStore {
            $(fn $name(&self, $($arg: $type),*) -> Result<$output> {
                self.$kind($call, |store| store.$name($($arg),*))
            })+
        })+
    };
}

passed_on! {
    Blobs {
        write "put_blob" put_blob(id: &SessionId, bytes: &mut dyn Read) -> BlobRef;
        history "blob" blob(id: &SessionId, blob: &str) -> Box<dyn ReadSeek>;
        settle "sweep" sweep(id: &SessionId, keep: &dyn Fn(&str) -> bool) -> BlobSweep;
    }
    Lessons {
        read "lesson" lesson(about: &str) -> Option<String>;
        settle "learn" put_lesson(about: &str, old: Option<&str>, new: &str) -> bool;
        read "lessons" lessons() -> Vec<(String, String)>;
        settle "forget" forget(about: &str) -> bool;
    }
    TranscriptPlaces {
        write "note" note(spots: &[TranscriptPlace]) -> ();
        read "spots" spots(name: &str) -> Vec<TranscriptPlace>;
    }
    BranchTable {
        write "put_branch" put_branch(branch: &Branch) -> ();
        read "branches" branches(id: &SessionId, which: BranchFilter) -> Vec<Branch>;
        settle "unsettle" unsettle(id: &SessionId, parent: &ThreadId) -> ();
        settle "drop_branch" drop_branch(id: &SessionId, thread: &ThreadId) -> ();
        write "post" post(id: &SessionId, to: &ThreadId, mail: &ThreadMail) -> ();
        read "mail" mail(id: &SessionId, to: &ThreadId) -> Vec<ThreadMail>;
        settle "taken" taken(id: &SessionId, to: &ThreadId, from: &ThreadId, upto: Seq) -> ();
    }
    Queue {
        settle "enqueue" adopt(queued: &QueuedJob) -> bool;
        settle "take" take(holder: &Holder, hidden: Duration) -> Option<TakenJob>;
        write "keep" keep(taken: &TakenJob, hidden: Duration) -> ();
        write "finish" finish(taken: &TakenJob, outcome: &JobOutcome) -> ();
        read "jobs" jobs(after: Option<&SessionId>, limit: usize) -> Vec<QueuedJob>;
        settle "requeue" requeue(id: &SessionId) -> bool;
        settle "withdraw" withdraw(id: &SessionId) -> bool;
    }
    WatchStore {
        read "watch" watch() -> Box<dyn Watcher>;
    }
    StoreFigures {
        read "vitals" vitals() -> StoreHealthFigures;
    }
}

/// A journal that is open: its writes are timed, and its failures are counted.
struct MeteredJournal {
    inner: Box<dyn Journal>,
    gauge: Arc<StoreGauge>,
}

impl Journal for MeteredJournal {
    fn header(&self) -> &Header {
        self.inner.header()
    }

    fn last(&self) -> Seq {
        self.inner.last()
    }

    fn head(&self, seq: Seq) -> Result<Head> {
        self.gauge.read("head", || self.inner.head(seq))
    }

    fn line(&self, seq: Seq) -> Result<Vec<u8>> {
        self.gauge.read("line", || self.inner.line(seq))
    }

    fn append(&mut self, after: Seq, rows: &[JournalRow]) -> Result<()> {
        self.gauge.time("append", StoreNeed::Write, || self.inner.append(after, rows))
    }

    fn request_file(&self) -> Result<RequestFile> {
        self.gauge.time("request_file", StoreNeed::Nothing, || self.inner.request_file())
    }

    fn settle(&mut self, view: &View) -> Result<()> {
        self.gauge.time("settle", StoreNeed::Nothing, || self.inner.settle(view))
    }

    fn rewrite(&mut self, change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>) -> Result<u64> {
        self.gauge.time("rewrite", StoreNeed::Maybe, || self.inner.rewrite(change))
    }

    fn relabel(&mut self, label: Option<&str>) -> Result<()> {
        self.gauge.time("relabel", StoreNeed::Write, || self.inner.relabel(label))
    }

    fn above(&self, thread: &ThreadId) -> Result<Box<dyn Journal>> {
        let inner = self.gauge.read("above", || self.inner.above(thread))?;
        Ok(Box::new(Self { inner, gauge: Arc::clone(&self.gauge) }))
    }

    fn notes(&self) -> &[JournalRepair] {
        self.inner.notes()
    }
}
