//! The store as the server uses it: every call is timed and counted, and does what it always does.
//!
//! What a journal reads from is counted only when it fails: an entry that is read from memory takes less time than
//! measuring it would.

mod journal;
#[cfg(test)]
mod tests;

use super::circuit::{Circuit, Need};
use super::metrics::Meters;
use journal::MeteredJournal;
use komado_core::session::{Meta, Session};
use komado_core::thread::{Branch, Header};
use komado_core::{Seq, SessionId, ThreadId};
use komado_store::{
    BlobRef, Blobs, Change, Holder, Journal, Lessons, Mail, Mode, Outcome, Places, Pulse, Query, Queue,
    Queued, ReadSeek, Result, Shelf, Spot, Store, Swept, Taken, Tree, Vitals, Watch, Watcher, Which,
};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Sessions that are remembered as opened here; then it begins anew, and some count as restored once more.
const MOST_KNOWN: usize = 65_536;

/// A store whose calls are counted.
pub(crate) struct Metered {
    inner: Arc<dyn Store>,
    gauge: Arc<Gauge>,
}

/// Who is told.
pub(crate) struct Gauge {
    meters: Arc<Meters>,
    circuit: Arc<Circuit>,
    known: Mutex<HashSet<u64>>,
}

impl Gauge {
    /// Makes a call, and tells how it went.
    fn time<T>(&self, call: &'static str, need: Need, op: impl FnOnce() -> Result<T>) -> Result<T> {
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

impl Metered {
    /// `inner`, with what it does told to `meters` and `circuit`.
    pub(crate) fn new(inner: Arc<dyn Store>, meters: Arc<Meters>, circuit: Arc<Circuit>) -> Self {
        Self { inner, gauge: Arc::new(Gauge { meters, circuit, known: Mutex::default() }) }
    }

    fn read<T>(&self, call: &'static str, op: impl FnOnce(&dyn Store) -> Result<T>) -> Result<T> {
        self.gauge.time(call, Need::Read, || op(&*self.inner))
    }

    /// A call that writes, unless there turns out to be nothing to write.
    fn settle<T>(&self, call: &'static str, op: impl FnOnce(&dyn Store) -> Result<T>) -> Result<T> {
        self.gauge.time(call, Need::Maybe, || op(&*self.inner))
    }

    fn write<T>(&self, call: &'static str, op: impl FnOnce(&dyn Store) -> Result<T>) -> Result<T> {
        self.gauge.time(call, Need::Write, || op(&*self.inner))
    }

    fn tell_ended(&self, session: &Session, change: &Change) {
        let Change::State { to, .. } = change else { return };
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

impl Store for Metered {
    fn create(&self, meta: &Meta) -> Result<()> {
        let done = self.write("create", |store| store.create(meta));
        self.gauge.meters.created(done.as_ref().err());
        if done.is_ok() {
            self.gauge.meet(&meta.uuid);
        }
        done
    }

    fn sessions(&self, query: &Query) -> Result<Vec<Session>> {
        self.read("sessions", |store| store.sessions(query))
    }

    fn change(&self, id: &SessionId, change: &Change) -> Result<Session> {
        let session = self.write("change", |store| store.change(id, change))?;
        self.tell_ended(&session, change);
        Ok(session)
    }

    fn remove(&self, id: &SessionId) -> Result<()> {
        self.write("remove", |store| store.remove(id))
    }

    fn threads(&self, id: &SessionId) -> Result<Vec<Header>> {
        self.read("threads", |store| store.threads(id)).inspect_err(|error| self.gauge.meters.unread(error))
    }

    fn spawn(&self, header: &Header) -> Result<()> {
        self.write("spawn", |store| store.spawn(header))
    }

    fn open(&self, id: &SessionId, thread: &ThreadId, mode: Mode) -> Result<Box<dyn Journal>> {
        let need = if mode == Mode::Read { Need::Read } else { Need::Maybe };
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

    fn shelf(&self, id: &SessionId) -> Result<Box<dyn Shelf>> {
        self.read("shelf", |store| store.shelf(id))
    }
}

impl Blobs for Metered {
    fn put_blob(&self, id: &SessionId, bytes: &mut dyn Read) -> Result<BlobRef> {
        self.write("put_blob", |store| store.put_blob(id, bytes))
    }

    fn blob(&self, id: &SessionId, blob: &str) -> Result<Box<dyn ReadSeek>> {
        self.read("blob", |store| store.blob(id, blob)).inspect_err(|error| self.gauge.meters.unread(error))
    }

    fn sweep(&self, id: &SessionId, keep: &dyn Fn(&str) -> bool) -> Result<Swept> {
        self.settle("sweep", |store| store.sweep(id, keep))
    }
}

impl Lessons for Metered {
    fn lesson(&self, about: &str) -> Result<Option<String>> {
        self.read("lesson", |store| store.lesson(about))
    }

    fn put_lesson(&self, about: &str, old: Option<&str>, new: &str) -> Result<bool> {
        self.settle("learn", |store| store.put_lesson(about, old, new))
    }

    fn lessons(&self) -> Result<Vec<(String, String)>> {
        self.read("lessons", |store| store.lessons())
    }

    fn forget(&self, about: &str) -> Result<bool> {
        self.settle("forget", |store| store.forget(about))
    }
}

impl Places for Metered {
    fn note(&self, spots: &[Spot]) -> Result<()> {
        self.write("note", |store| store.note(spots))
    }

    fn spots(&self, name: &str) -> Result<Vec<Spot>> {
        self.read("spots", |store| store.spots(name))
    }
}

impl Tree for Metered {
    fn put_branch(&self, branch: &Branch) -> Result<()> {
        self.write("put_branch", |store| store.put_branch(branch))
    }

    fn branches(&self, id: &SessionId, which: Which) -> Result<Vec<Branch>> {
        self.read("branches", |store| store.branches(id, which))
    }

    fn unsettle(&self, id: &SessionId, parent: &ThreadId) -> Result<()> {
        self.settle("unsettle", |store| store.unsettle(id, parent))
    }

    fn drop_branch(&self, id: &SessionId, thread: &ThreadId) -> Result<()> {
        self.settle("drop_branch", |store| store.drop_branch(id, thread))
    }

    fn post(&self, id: &SessionId, to: &ThreadId, mail: &Mail) -> Result<()> {
        self.write("post", |store| store.post(id, to, mail))
    }

    fn mail(&self, id: &SessionId, to: &ThreadId) -> Result<Vec<Mail>> {
        self.read("mail", |store| store.mail(id, to))
    }

    fn taken(&self, id: &SessionId, to: &ThreadId, from: &ThreadId, upto: Seq) -> Result<()> {
        self.settle("taken", |store| store.taken(id, to, from, upto))
    }
}

impl Queue for Metered {
    fn adopt(&self, queued: &Queued) -> Result<bool> {
        self.settle("enqueue", |store| store.adopt(queued))
    }

    fn take(&self, holder: &Holder, hidden: Duration) -> Result<Option<Taken>> {
        self.settle("take", |store| store.take(holder, hidden))
    }

    fn keep(&self, taken: &Taken, hidden: Duration) -> Result<()> {
        self.write("keep", |store| store.keep(taken, hidden))
    }

    fn finish(&self, taken: &Taken, outcome: &Outcome) -> Result<()> {
        self.write("finish", |store| store.finish(taken, outcome))
    }

    fn jobs(&self, after: Option<&SessionId>, limit: usize) -> Result<Vec<Queued>> {
        self.read("jobs", |store| store.jobs(after, limit))
    }

    fn requeue(&self, id: &SessionId) -> Result<bool> {
        self.settle("requeue", |store| store.requeue(id))
    }

    fn withdraw(&self, id: &SessionId) -> Result<bool> {
        self.settle("withdraw", |store| store.withdraw(id))
    }
}

impl Watch for Metered {
    fn watch(&self) -> Result<Box<dyn Watcher>> {
        self.read("watch", |store| store.watch())
    }
}

impl Pulse for Metered {
    fn vitals(&self) -> Result<Vitals> {
        self.read("vitals", |store| store.vitals())
    }
}
