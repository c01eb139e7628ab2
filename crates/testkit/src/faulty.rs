//! A store that fails on purpose.
//!
//! Wraps another store and fails one call, counted over everything that touches the disk or the wire. Running the
//! conformance suite once for each call shows what a failure at that very place leaves behind. The error is one that a
//! real store gives ([`Error::Table`]), so nothing that ships knows of this one.

use komado_core::session::{Meta, Session};
use komado_core::thread::{Branch, Header};
use komado_core::{Head, Seq, SessionId, ThreadId, View};
use komado_store::queue::{JobOutcome, Queue, QueuedJob, TakenJob};
use komado_store::request_file::RequestFile;
use komado_store::search_index::{
    IndexedEntry, IndexedUpto, SearchFilter, SearchFor, SearchHit, SearchIndex, TermCounts,
};
use komado_store::tables::{
    BranchFilter, BranchTable, Lessons, StoreFigures, StoreHealthFigures, ThreadMail, TranscriptPlace,
    TranscriptPlaces,
};
use komado_store::watch::{WatchStore, Watcher};
use komado_store::{
    BlobRef, BlobSweep, Blobs, Error, Holder, Journal, JournalRepair, JournalRow, OpenMode, ReadSeek, Result,
    SessionChange, SessionQuery, Store,
};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What an injected error says, before the number of the call.
const INJECTED: &str = "injected fault at call ";

/// The call at which `error` was injected; `None` for an error that a real store gave.
pub fn injected_at(error: &Error) -> Option<u64> {
    match error {
        Error::Table(why) => why.strip_prefix(INJECTED)?.parse().ok(),
        _ => None,
    }
}

/// Fails the n-th call: once, or with all that follow.
pub struct Faulty<S> {
    inner: S,
    count: Arc<Counter>,
}

#[derive(Default)]
struct Counter {
    calls: AtomicU64,
    /// Times that rows of sessions were read.
    rows: AtomicU64,
    /// Appends to journals.
    appends: AtomicU64,
    fails_at: u64,
    /// Calls from the first that fails to the last that does.
    upto: u64,
}

impl Counter {
    fn call(&self) -> Result<()> {
        let n = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if self.fails_at != 0 && (self.fails_at..=self.upto).contains(&n) {
            Err(Error::Table(format!("{INJECTED}{n}")))
        } else {
            Ok(())
        }
    }
}

impl<S> Faulty<S> {
    /// Wraps `inner`; call number `fails_at` fails before it does anything. 0 for none.
    pub fn new(inner: S, fails_at: u64) -> Self {
        Self { inner, count: Arc::new(Counter { fails_at, upto: fails_at, ..Counter::default() }) }
    }

    /// Wraps `inner`; call number `fails_from` and all that follow fail, as when the process ends there. 0 for none.
    pub fn down_from(inner: S, fails_from: u64) -> Self {
        let count = Counter { fails_at: fails_from, upto: u64::MAX, ..Counter::default() };
        Self { inner, count: Arc::new(count) }
    }

    /// Calls made so far.
    pub fn calls(&self) -> u64 {
        self.count.calls.load(Ordering::SeqCst)
    }

    /// How often rows of sessions were read, and how often a journal was appended to.
    pub fn rows_and_appends(&self) -> (u64, u64) {
        (self.count.rows.load(Ordering::SeqCst), self.count.appends.load(Ordering::SeqCst))
    }

    /// The store inside.
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: Store> Blobs for Faulty<S> {
    fn put_blob(&self, id: &SessionId, bytes: &mut dyn Read) -> Result<BlobRef> {
        self.count.call()?;
        self.inner.put_blob(id, bytes)
    }

    fn blob(&self, id: &SessionId, blob: &str) -> Result<Box<dyn ReadSeek>> {
        self.count.call()?;
        self.inner.blob(id, blob)
    }

    fn sweep(&self, id: &SessionId, keep: &dyn Fn(&str) -> bool) -> Result<BlobSweep> {
        self.count.call()?;
        self.inner.sweep(id, keep)
    }
}

impl<S: Store> Lessons for Faulty<S> {
    fn lesson(&self, about: &str) -> Result<Option<String>> {
        self.count.call()?;
        self.inner.lesson(about)
    }

    fn put_lesson(&self, about: &str, old: Option<&str>, new: &str) -> Result<bool> {
        self.count.call()?;
        self.inner.put_lesson(about, old, new)
    }

    fn lessons(&self) -> Result<Vec<(String, String)>> {
        self.count.call()?;
        self.inner.lessons()
    }

    fn forget(&self, about: &str) -> Result<bool> {
        self.count.call()?;
        self.inner.forget(about)
    }
}

impl<S: Store> TranscriptPlaces for Faulty<S> {
    fn note(&self, spots: &[TranscriptPlace]) -> Result<()> {
        self.count.call()?;
        self.inner.note(spots)
    }

    fn spots(&self, name: &str) -> Result<Vec<TranscriptPlace>> {
        self.count.call()?;
        self.inner.spots(name)
    }
}

impl<S: Store> BranchTable for Faulty<S> {
    fn put_branch(&self, branch: &Branch) -> Result<()> {
        self.count.call()?;
        self.inner.put_branch(branch)
    }

    fn branches(&self, id: &SessionId, which: BranchFilter) -> Result<Vec<Branch>> {
        self.count.call()?;
        self.inner.branches(id, which)
    }

    fn unsettle(&self, id: &SessionId, parent: &ThreadId) -> Result<()> {
        self.count.call()?;
        self.inner.unsettle(id, parent)
    }

    fn drop_branch(&self, id: &SessionId, thread: &ThreadId) -> Result<()> {
        self.count.call()?;
        self.inner.drop_branch(id, thread)
    }

    fn post(&self, id: &SessionId, to: &ThreadId, mail: &ThreadMail) -> Result<()> {
        self.count.call()?;
        self.inner.post(id, to, mail)
    }

    fn mail(&self, id: &SessionId, to: &ThreadId) -> Result<Vec<ThreadMail>> {
        self.count.call()?;
        self.inner.mail(id, to)
    }

    fn taken(&self, id: &SessionId, to: &ThreadId, from: &ThreadId, upto: Seq) -> Result<()> {
        self.count.call()?;
        self.inner.taken(id, to, from, upto)
    }
}

impl<S: Store> Queue for Faulty<S> {
    fn adopt(&self, queued: &QueuedJob) -> Result<bool> {
        self.count.call()?;
        self.inner.adopt(queued)
    }

    fn take(&self, holder: &Holder, hidden: Duration) -> Result<Option<TakenJob>> {
        self.count.call()?;
        self.inner.take(holder, hidden)
    }

    fn keep(&self, taken: &TakenJob, hidden: Duration) -> Result<()> {
        self.count.call()?;
        self.inner.keep(taken, hidden)
    }

    fn finish(&self, taken: &TakenJob, outcome: &JobOutcome) -> Result<()> {
        self.count.call()?;
        self.inner.finish(taken, outcome)
    }

    fn jobs(&self, after: Option<&SessionId>, limit: usize) -> Result<Vec<QueuedJob>> {
        self.count.call()?;
        self.inner.jobs(after, limit)
    }

    fn requeue(&self, id: &SessionId) -> Result<bool> {
        self.count.call()?;
        self.inner.requeue(id)
    }

    fn withdraw(&self, id: &SessionId) -> Result<bool> {
        self.count.call()?;
        self.inner.withdraw(id)
    }
}

impl<S: Store> WatchStore for Faulty<S> {
    fn watch(&self) -> Result<Box<dyn Watcher>> {
        self.count.call()?;
        self.inner.watch()
    }
}

impl<S: Store> StoreFigures for Faulty<S> {
    fn vitals(&self) -> Result<StoreHealthFigures> {
        self.count.call()?;
        self.inner.vitals()
    }
}

impl<S: Store> Store for Faulty<S> {
    fn create(&self, meta: &Meta) -> Result<()> {
        self.count.call()?;
        self.inner.create(meta)
    }

    fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        self.count.rows.fetch_add(1, Ordering::SeqCst);
        self.count.call()?;
        self.inner.sessions(query)
    }

    fn change(&self, id: &SessionId, change: &SessionChange) -> Result<Session> {
        self.count.call()?;
        self.inner.change(id, change)
    }

    fn remove(&self, id: &SessionId) -> Result<()> {
        self.count.call()?;
        self.inner.remove(id)
    }

    fn threads(&self, id: &SessionId) -> Result<Vec<Header>> {
        self.count.call()?;
        self.inner.threads(id)
    }

    fn spawn(&self, header: &Header) -> Result<()> {
        self.count.call()?;
        self.inner.spawn(header)
    }

    fn open(&self, id: &SessionId, thread: &ThreadId, mode: OpenMode) -> Result<Box<dyn Journal>> {
        self.count.call()?;
        let inner = self.inner.open(id, thread, mode)?;
        Ok(Box::new(FaultyJournal { inner, count: Arc::clone(&self.count) }))
    }

    fn writer(&self, id: &SessionId) -> Result<Option<Holder>> {
        self.count.call()?;
        self.inner.writer(id)
    }

    fn search_index(&self, id: &SessionId) -> Result<Box<dyn SearchIndex>> {
        self.count.call()?;
        Ok(Box::new(FaultyShelf { inner: self.inner.search_index(id)?, count: Arc::clone(&self.count) }))
    }
}

struct FaultyJournal {
    inner: Box<dyn Journal>,
    count: Arc<Counter>,
}

impl Journal for FaultyJournal {
    fn header(&self) -> &Header {
        self.inner.header()
    }

    fn last(&self) -> Seq {
        self.inner.last()
    }

    fn head(&self, seq: Seq) -> Result<Head> {
        self.count.call()?;
        self.inner.head(seq)
    }

    fn line(&self, seq: Seq) -> Result<Vec<u8>> {
        self.count.call()?;
        self.inner.line(seq)
    }

    fn append(&mut self, after: Seq, rows: &[JournalRow]) -> Result<()> {
        self.count.appends.fetch_add(1, Ordering::SeqCst);
        self.count.call()?;
        self.inner.append(after, rows)
    }

    fn request_file(&self) -> Result<RequestFile> {
        self.count.call()?;
        self.inner.request_file()
    }

    fn settle(&mut self, view: &View) -> Result<()> {
        self.count.call()?;
        self.inner.settle(view)
    }

    fn rewrite(&mut self, change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>) -> Result<u64> {
        self.count.call()?;
        self.inner.rewrite(change)
    }

    fn relabel(&mut self, label: Option<&str>) -> Result<()> {
        self.count.call()?;
        self.inner.relabel(label)
    }

    fn above(&self, thread: &ThreadId) -> Result<Box<dyn Journal>> {
        self.count.call()?;
        let inner = self.inner.above(thread)?;
        Ok(Box::new(Self { inner, count: Arc::clone(&self.count) }))
    }

    fn notes(&self) -> &[JournalRepair] {
        self.inner.notes()
    }
}

struct FaultyShelf {
    inner: Box<dyn SearchIndex>,
    count: Arc<Counter>,
}

impl SearchIndex for FaultyShelf {
    fn upto(&self, thread: &ThreadId) -> Result<IndexedUpto> {
        self.count.call()?;
        self.inner.upto(thread)
    }

    fn add(
        &mut self,
        thread: &ThreadId,
        after: IndexedUpto,
        upto: IndexedUpto,
        sheets: &[IndexedEntry],
    ) -> Result<()> {
        self.count.call()?;
        self.inner.add(thread, after, upto, sheets)
    }

    fn tally(&self, terms: &[String]) -> Result<TermCounts> {
        self.count.call()?;
        self.inner.tally(terms)
    }

    fn hits(&self, wanted: SearchFor<'_>, filter: &SearchFilter) -> Result<Vec<(i32, SearchHit)>> {
        self.count.call()?;
        self.inner.hits(wanted, filter)
    }

    fn clear(&mut self) -> Result<()> {
        self.count.call()?;
        self.inner.clear()
    }
}
