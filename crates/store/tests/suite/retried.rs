//! A store whose n-th call fails, in front of a caller who tries again.
//!
//! Before the failing call and after it, everything in the store is read by someone who opens it anew: the two must be
//! the same. Then the call is made again, and whoever made it goes on as if nothing had happened.

use komado_core::session::{Meta, Session};
use komado_core::thread::{Branch, Header};
use komado_core::{Head, Seq, SessionId, ThreadId, View};
use komado_store::search_index::{IndexedEntry, IndexedUpto, SearchFilter, SearchFor, SearchHit, TermCounts};
use komado_store::{
    BlobRef, BlobSweep, Blobs, BranchFilter, BranchTable, Holder, JobOutcome, JobStage, Journal,
    JournalRepair, JournalRow, Lessons, OpenMode, Queue, QueuedJob, ReadSeek, RequestFile, Result,
    SearchIndex, SessionChange, SessionQuery, Store, StoreFigures, StoreHealthFigures, TakenJob, ThreadMail,
    TranscriptPlace, TranscriptPlaces, WatchStore, Watcher,
};
use komado_testkit::{Faulty, injected_at};
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Opens what is stored anew.
pub(crate) type Reopen = Box<dyn Fn() -> Box<dyn Store> + Send + Sync>;

/// Fails at one call, and tries it again.
pub(crate) struct Retried<S>(Arc<Inner<S>>);

struct Inner<S> {
    store: Faulty<S>,
    at: u64,
    reopen: Reopen,
}

impl<S: Store> Retried<S> {
    pub(crate) fn new(store: S, at: u64, reopen: Reopen) -> Self {
        Self(Arc::new(Inner { store: Faulty::new(store, at), at, reopen }))
    }

    pub(crate) fn calls(&self) -> u64 {
        self.0.store.calls()
    }
}

impl<S: Store> Inner<S> {
    fn go<T>(&self, mut call: impl FnMut() -> Result<T>) -> Result<T> {
        if self.store.calls() + 1 != self.at {
            return call();
        }
        let before = everything(&*(self.reopen)());
        match call() {
            Err(error) if injected_at(&error) == Some(self.at) => {}
            _ => panic!("call {} was to fail", self.at),
        }
        assert_eq!(
            everything(&*(self.reopen)()),
            before,
            "call {} failed and left something behind",
            self.at
        );
        call()
    }
}

/// All that a store holds, as text.
fn everything(store: &dyn Store) -> Vec<String> {
    let mut all = Vec::new();
    for queued in store.jobs(None, 0).unwrap() {
        // Whether somebody still holds it is a matter of time.
        let is_dead = queued.stage == JobStage::Dead;
        all.push(format!("{:?} {} {:?} {is_dead}", queued.job, queued.tries, queued.why));
    }
    for session in store.sessions(&SessionQuery::default()).unwrap() {
        all.push(format!("{session:?}"));
        let id = SessionId::new(session.meta.uuid).unwrap();
        for header in store.threads(&id).unwrap() {
            all.push(format!("{header:?}"));
            let journal = store.open(&id, &header.thread, OpenMode::Read).unwrap();
            for seq in 1..=journal.last() {
                all.push(format!("{:?} {:?}", journal.head(seq).unwrap(), journal.line(seq).unwrap()));
            }
        }
        all.extend(
            store.branches(&id, BranchFilter::All).unwrap().iter().map(|branch| format!("{branch:?}")),
        );
        for to in ["a", "z", "to"] {
            all.push(format!("{:?}", store.mail(&id, &ThreadId::new(to).unwrap()).unwrap()));
        }
        for name in ["n", "n2"] {
            all.push(format!("{:?}", store.spots(name).unwrap()));
        }
        let blobs = Mutex::new(Vec::new());
        let keep = |blob: &str| {
            blobs.lock().unwrap().push(blob.to_owned());
            true
        };
        store.sweep(&id, &keep).unwrap();
        let mut blobs = blobs.into_inner().unwrap();
        blobs.sort();
        all.extend(blobs);
        let shelf = store.search_index(&id).unwrap();
        for header in store.threads(&id).unwrap() {
            all.push(format!("{:?}", shelf.upto(&header.thread).unwrap()));
        }
        for hit in shelf.holding(&[], &SearchFilter::default(), None).unwrap() {
            all.push(format!("{hit:?}"));
        }
    }
    all
}

impl<S: Store + 'static> Blobs for Retried<S> {
    fn put_blob(&self, id: &SessionId, bytes: &mut dyn Read) -> Result<BlobRef> {
        self.0.go(|| self.0.store.put_blob(id, bytes))
    }

    fn blob(&self, id: &SessionId, blob: &str) -> Result<Box<dyn ReadSeek>> {
        self.0.go(|| self.0.store.blob(id, blob))
    }

    fn sweep(&self, id: &SessionId, keep: &dyn Fn(&str) -> bool) -> Result<BlobSweep> {
        self.0.go(|| self.0.store.sweep(id, keep))
    }
}

impl<S: Store + 'static> Lessons for Retried<S> {
    fn lesson(&self, about: &str) -> Result<Option<String>> {
        self.0.go(|| self.0.store.lesson(about))
    }

    fn put_lesson(&self, about: &str, old: Option<&str>, new: &str) -> Result<bool> {
        self.0.go(|| self.0.store.put_lesson(about, old, new))
    }

    fn lessons(&self) -> Result<Vec<(String, String)>> {
        self.0.go(|| self.0.store.lessons())
    }

    fn forget(&self, about: &str) -> Result<bool> {
        self.0.go(|| self.0.store.forget(about))
    }
}

impl<S: Store + 'static> TranscriptPlaces for Retried<S> {
    fn note(&self, spots: &[TranscriptPlace]) -> Result<()> {
        self.0.go(|| self.0.store.note(spots))
    }

    fn spots(&self, name: &str) -> Result<Vec<TranscriptPlace>> {
        self.0.go(|| self.0.store.spots(name))
    }
}

impl<S: Store + 'static> BranchTable for Retried<S> {
    fn put_branch(&self, branch: &Branch) -> Result<()> {
        self.0.go(|| self.0.store.put_branch(branch))
    }

    fn branches(&self, id: &SessionId, which: BranchFilter) -> Result<Vec<Branch>> {
        self.0.go(|| self.0.store.branches(id, which.clone()))
    }

    fn unsettle(&self, id: &SessionId, parent: &ThreadId) -> Result<()> {
        self.0.go(|| self.0.store.unsettle(id, parent))
    }

    fn drop_branch(&self, id: &SessionId, thread: &ThreadId) -> Result<()> {
        self.0.go(|| self.0.store.drop_branch(id, thread))
    }

    fn post(&self, id: &SessionId, to: &ThreadId, mail: &ThreadMail) -> Result<()> {
        self.0.go(|| self.0.store.post(id, to, mail))
    }

    fn mail(&self, id: &SessionId, to: &ThreadId) -> Result<Vec<ThreadMail>> {
        self.0.go(|| self.0.store.mail(id, to))
    }

    fn taken(&self, id: &SessionId, to: &ThreadId, from: &ThreadId, upto: Seq) -> Result<()> {
        self.0.go(|| self.0.store.taken(id, to, from, upto))
    }
}

impl<S: Store + 'static> Queue for Retried<S> {
    fn adopt(&self, queued: &QueuedJob) -> Result<bool> {
        self.0.go(|| self.0.store.adopt(queued))
    }

    fn take(&self, holder: &Holder, hidden: Duration) -> Result<Option<TakenJob>> {
        self.0.go(|| self.0.store.take(holder, hidden))
    }

    fn keep(&self, taken: &TakenJob, hidden: Duration) -> Result<()> {
        self.0.go(|| self.0.store.keep(taken, hidden))
    }

    fn finish(&self, taken: &TakenJob, outcome: &JobOutcome) -> Result<()> {
        self.0.go(|| self.0.store.finish(taken, outcome))
    }

    fn jobs(&self, after: Option<&SessionId>, limit: usize) -> Result<Vec<QueuedJob>> {
        self.0.go(|| self.0.store.jobs(after, limit))
    }

    fn requeue(&self, id: &SessionId) -> Result<bool> {
        self.0.go(|| self.0.store.requeue(id))
    }

    fn withdraw(&self, id: &SessionId) -> Result<bool> {
        self.0.go(|| self.0.store.withdraw(id))
    }
}

impl<S: Store + 'static> WatchStore for Retried<S> {
    fn watch(&self) -> Result<Box<dyn Watcher>> {
        self.0.go(|| self.0.store.watch())
    }
}

impl<S: Store + 'static> StoreFigures for Retried<S> {
    fn vitals(&self) -> Result<StoreHealthFigures> {
        self.0.go(|| self.0.store.vitals())
    }
}

impl<S: Store + 'static> Store for Retried<S> {
    fn create(&self, meta: &Meta) -> Result<()> {
        self.0.go(|| self.0.store.create(meta))
    }

    fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        self.0.go(|| self.0.store.sessions(query))
    }

    fn change(&self, id: &SessionId, change: &SessionChange) -> Result<Session> {
        self.0.go(|| self.0.store.change(id, change))
    }

    fn remove(&self, id: &SessionId) -> Result<()> {
        self.0.go(|| self.0.store.remove(id))
    }

    fn threads(&self, id: &SessionId) -> Result<Vec<Header>> {
        self.0.go(|| self.0.store.threads(id))
    }

    fn spawn(&self, header: &Header) -> Result<()> {
        self.0.go(|| self.0.store.spawn(header))
    }

    fn open(&self, id: &SessionId, thread: &ThreadId, mode: OpenMode) -> Result<Box<dyn Journal>> {
        let journal = self.0.go(|| self.0.store.open(id, thread, mode))?;
        Ok(Box::new(RetriedJournal { journal, store: Arc::clone(&self.0) }))
    }

    fn search_index(&self, id: &SessionId) -> Result<Box<dyn SearchIndex>> {
        let search_index = self.0.go(|| self.0.store.search_index(id))?;
        Ok(Box::new(RetriedShelf { shelf: search_index, store: Arc::clone(&self.0) }))
    }
}

struct RetriedJournal<S> {
    journal: Box<dyn Journal>,
    store: Arc<Inner<S>>,
}

impl<S: Store + 'static> Journal for RetriedJournal<S> {
    fn header(&self) -> &Header {
        self.journal.header()
    }

    fn last(&self) -> Seq {
        self.journal.last()
    }

    fn head(&self, seq: Seq) -> Result<Head> {
        self.store.go(|| self.journal.head(seq))
    }

    fn line(&self, seq: Seq) -> Result<Vec<u8>> {
        self.store.go(|| self.journal.line(seq))
    }

    fn append(&mut self, after: Seq, rows: &[JournalRow]) -> Result<()> {
        self.store.go(|| self.journal.append(after, rows))
    }

    fn request_file(&self) -> Result<RequestFile> {
        self.store.go(|| self.journal.request_file())
    }

    fn settle(&mut self, view: &View) -> Result<()> {
        self.store.go(|| self.journal.settle(view))
    }

    fn rewrite(&mut self, change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>) -> Result<u64> {
        self.store.go(|| self.journal.rewrite(change))
    }

    fn relabel(&mut self, label: Option<&str>) -> Result<()> {
        self.store.go(|| self.journal.relabel(label))
    }

    fn above(&self, thread: &ThreadId) -> Result<Box<dyn Journal>> {
        let journal = self.store.go(|| self.journal.above(thread))?;
        Ok(Box::new(Self { journal, store: Arc::clone(&self.store) }))
    }

    fn notes(&self) -> &[JournalRepair] {
        self.journal.notes()
    }
}

struct RetriedShelf<S> {
    shelf: Box<dyn SearchIndex>,
    store: Arc<Inner<S>>,
}

impl<S: Store> SearchIndex for RetriedShelf<S> {
    fn upto(&self, thread: &ThreadId) -> Result<IndexedUpto> {
        self.store.go(|| self.shelf.upto(thread))
    }

    fn add(
        &mut self,
        thread: &ThreadId,
        after: IndexedUpto,
        upto: IndexedUpto,
        sheets: &[IndexedEntry],
    ) -> Result<()> {
        self.store.go(|| self.shelf.add(thread, after, upto, sheets))
    }

    fn tally(&self, terms: &[String]) -> Result<TermCounts> {
        self.store.go(|| self.shelf.tally(terms))
    }

    fn hits(&self, wanted: SearchFor<'_>, filter: &SearchFilter) -> Result<Vec<(i32, SearchHit)>> {
        self.store.go(|| self.shelf.hits(wanted, filter))
    }

    fn clear(&mut self) -> Result<()> {
        self.store.go(|| self.shelf.clear())
    }
}
