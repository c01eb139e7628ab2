//! Finding, making, ending and reopening sessions.

use crate::error::{Error, Result};
use crate::thread::Thread;
use komado_core::head::EntrySource;
use komado_core::journal::{Close, Ending, Entry, Record};
use komado_core::session::{Counters, Meta, Session, State};
use komado_core::{Address, Seq, SessionId, ThreadId};
use komado_store::{Error as StoreError, OpenMode, QueuedJob, ReadSeek, SessionChange, SessionQuery, Store};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Now, as RFC 3339 in UTC with microseconds.
    fn now(&self) -> String;
}

/// A store and a clock.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Threads that end with this process carry it, for people: whether their holder lives is told by the store's lock.
    name: Arc<str>,
    /// Names given to sessions so far: no two are the same, though they come at the same time.
    given: Arc<AtomicU64>,
}

/// Where an address leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedAddress {
    /// The session.
    pub session: SessionId,
    /// The thread.
    pub thread: ThreadId,
    /// The moment, when one was named.
    pub seq: Option<Seq>,
}

impl Engine {
    /// An engine on `store`.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let name = format!("{}-{}", std::process::id(), clock.now()).into();
        Self { store, clock, name, given: Arc::default() }
    }

    /// The same engine over what `wrap` makes of its store.
    #[must_use]
    pub fn over(&self, wrap: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>) -> Self {
        Self { store: wrap(Arc::clone(&self.store)), ..self.clone() }
    }

    /// The name by which threads that end with this engine know it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A name for a session to be made. It needs no chance: no other engine has this one's name.
    pub(crate) fn fresh(&self, seed: &str) -> Result<SessionId> {
        let nth = self.given.fetch_add(1, Ordering::SeqCst);
        session_of(&format!("{}\n{nth}\n{}\n{seed}", self.name, self.now()))
    }

    /// The store.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// The time.
    pub fn now(&self) -> String {
        self.clock.now()
    }

    /// Makes a session.
    pub fn create(&self, meta: &Meta) -> Result<SessionId> {
        let id = SessionId::new(meta.uuid.as_str())?;
        self.store.create(meta)?;
        Ok(id)
    }

    /// A session's attributes.
    pub fn session(&self, id: &SessionId) -> Result<Session> {
        let query = SessionQuery { id: Some(id.clone()), ..SessionQuery::default() };
        match self.store.sessions(&query)?.pop() {
            Some(session) => Ok(session),
            // A session that the table has lost gets its row back with the first change, be it none.
            None => Ok(self
                .store
                .change(id, &SessionChange::Count { by: Counters::default(), at: self.now() })?),
        }
    }

    /// A blob of a session; `None` for one that is not there. An entry may name an output that never was: a transcript that
    /// was brought along.
    pub(crate) fn blob(&self, id: &SessionId, blob: &str) -> Result<Option<Box<dyn ReadSeek>>> {
        match self.store.blob(id, blob) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StoreError::NoBlob(..)) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    /// Completes the prefixes of an address.
    pub fn find(&self, address: &Address) -> Result<ResolvedAddress> {
        let session = self.find_session(&address.session)?;
        let thread = match &address.thread {
            None => ThreadId::root(),
            Some(thread) => {
                let all = self.store.threads(&session)?;
                let fits =
                    all.iter().map(|h| h.thread.to_string()).filter(|t| t.starts_with(thread.as_str()));
                let hint = "`komado sessions SESSION` lists its threads";
                ThreadId::new(only("thread", thread.as_str(), fits.collect(), hint)?)?
            }
        };
        Ok(ResolvedAddress { session, thread, seq: address.seq })
    }

    /// The exact name is asked for first: it may be the beginning of many others.
    fn find_session(&self, given: &SessionId) -> Result<SessionId> {
        if self.store.threads(given).is_ok() {
            return Ok(given.clone());
        }
        let query = SessionQuery { prefix: Some(given.to_string()), limit: 5, ..SessionQuery::default() };
        let fits = self.store.sessions(&query)?.into_iter().map(|s| s.meta.uuid).collect();
        Ok(SessionId::new(only("session", given.as_str(), fits, "`komado sessions` lists them")?)?)
    }

    /// Ends a session well.
    pub fn complete(&self, id: &SessionId, result: Option<String>) -> Result<Session> {
        self.end(id, Ending::Completed, result)
    }

    /// Ends a session with a reason.
    pub fn fail(&self, id: &SessionId, reason: &str) -> Result<Session> {
        self.end(id, Ending::Failed, Some(reason.to_owned()))
    }

    /// Ends a session because its user wants it so.
    pub fn stop(&self, id: &SessionId, reason: Option<String>) -> Result<Session> {
        self.end(id, Ending::Stopped, reason)
    }

    /// Lets a session wait.
    pub fn pause(&self, id: &SessionId, reason: Option<String>) -> Result<Session> {
        self.end(id, Ending::Paused, reason)
    }

    /// The journal says it first; the table and the folder follow.
    fn end(&self, id: &SessionId, ending: Ending, result: Option<String>) -> Result<Session> {
        let mut root = match self.open(id, &ThreadId::root(), OpenMode::Write) {
            // Its folder moved, and the process that moved it was killed before the table heard of it.
            Err(Error::Store(refused @ StoreError::Ended(..))) => return self.end_moved(id, ending, refused),
            root => root?,
        };
        if ending != Ending::Paused {
            self.abort_all(&mut root)?;
        }
        let at = match self.unfollowed(&root, ending)? {
            Some(at) => at,
            None => root.close(ending, result)?,
        };
        root.settle()?;
        let close = root.record(at)?;
        drop(root);
        self.follow(id, &close)
    }

    /// Lets the table follow the end of a session that cannot be written any more.
    fn end_moved(&self, id: &SessionId, ending: Ending, refused: StoreError) -> Result<Session> {
        let root = self.open(id, &ThreadId::root(), OpenMode::Read)?;
        let Some(at) = self.unfollowed(&root, ending)? else { return Err(refused.into()) };
        let close = root.record(at)?;
        drop(root);
        self.follow(id, &close)
    }

    /// The journal may have said it before, when the table could not follow.
    fn unfollowed(&self, root: &Thread<'_>, ending: Ending) -> Result<Option<Seq>> {
        let Some(at) = root.view().closed() else { return Ok(None) };
        let said = matches!(root.record(at)?.entry, Entry::Close(close) if close.ending == ending);
        Ok((said && self.session(root.session())?.status != State::from(ending)).then_some(at))
    }

    /// The table and the folder follow what the journal says of the session's end.
    pub(crate) fn follow(&self, id: &SessionId, record: &Record) -> Result<Session> {
        let Entry::Close(Close { ending, result }) = &record.entry else { return self.session(id) };
        let to = State::from(*ending);
        let why = result.clone().filter(|_| matches!(to, State::Failed | State::Stopped));
        Ok(self.store.change(id, &SessionChange::State { to, at: record.timestamp.clone(), why })?)
    }

    /// Lets a paused session go on, or opens an ended one again: as if it had never been closed.
    pub fn resume(&self, id: &SessionId) -> Result<Session> {
        let status = self.session(id)?.status;
        let mut root = self.open(id, &ThreadId::root(), OpenMode::Amend)?;
        let reopened = root.reopen()?;
        if reopened.is_none() && status == State::Running {
            let why = "there is nothing to resume";
            return Err(Error::WrongState { session: id.to_string(), state: "running", why });
        }
        root.settle()?;
        drop(root);
        let at = reopened.unwrap_or_else(|| self.now());
        Ok(self.store.change(id, &SessionChange::State { to: State::Running, at, why: None })?)
    }
}

/// The one that fits: the exact name, or the only name that begins so.
fn only(what: &'static str, given: &str, mut fits: Vec<String>, hint: &'static str) -> Result<String> {
    if let Some(exact) = fits.iter().position(|name| name == given) {
        return Ok(fits.swap_remove(exact));
    }
    match fits.len() {
        0 => Err(Error::Unknown { what, given: given.to_owned(), hint }),
        1 => Ok(fits.swap_remove(0)),
        _ => Err(Error::Ambiguous { given: given.to_owned(), fits }),
    }
}

/// The name of a session that follows from `seed`, formed like a UUID of the kind that leaves its digits to its maker.
pub(crate) fn session_of(seed: &str) -> Result<SessionId> {
    let hex = blake3::hash(seed.as_bytes()).to_hex();
    let name = [&hex[..8], "-", &hex[8..12], "-8", &hex[13..16], "-a", &hex[17..20], "-", &hex[20..32]];
    Ok(SessionId::new(name.concat())?)
}

impl Engine {
    /// Counts a session's journals again and puts its row right. For the holder of the session, before it appends.
    pub fn recount(&self, id: &SessionId) -> Result<Session> {
        let mut counted = Counters::default();
        for header in self.store().threads(id)? {
            let journal = self.store().open(id, &header.thread, OpenMode::Read)?;
            for seq in header.base_seq() + 1..=journal.last() {
                counted += Counters::of(&EntrySource::record(&*journal, seq)?.entry);
            }
        }
        let session = self.session(id)?;
        let by = counted.since(&session.counters);
        if by == Counters::default() {
            return Ok(session);
        }
        Ok(self.store().change(id, &SessionChange::Count { by, at: self.now() })?)
    }
}

// The jobs of the queue, one after another, read a page at a time.

/// Jobs that are read at once.
const PAGE: usize = 200;

/// The jobs of a queue, in its order. One that was handed out may be withdrawn before the next is asked for.
pub struct QueuedJobs<'s> {
    store: &'s dyn Store,
    /// What was read and not handed out yet.
    read: VecDeque<QueuedJob>,
    has_more: bool,
}

impl<'s> QueuedJobs<'s> {
    /// Those of a store.
    pub fn of(store: &'s dyn Store) -> Self {
        Self { store, read: VecDeque::new(), has_more: true }
    }
}

impl Iterator for QueuedJobs<'_> {
    type Item = komado_store::Result<QueuedJob>;

    fn next(&mut self) -> Option<Self::Item> {
        // A page begins after a job that is in the queue: it is read before the last one is handed out.
        if self.has_more && self.read.len() <= 1 {
            match self.store.jobs(self.read.back().map(|last| &last.job.session), PAGE) {
                Ok(page) => {
                    self.has_more = page.len() == PAGE;
                    self.read.extend(page);
                }
                Err(error) => {
                    (self.has_more, self.read) = (false, VecDeque::new());
                    return Some(Err(error));
                }
            }
        }
        self.read.pop_front().map(Ok)
    }
}

impl Engine {
    /// The jobs in the queue, in order.
    pub fn jobs(&self) -> QueuedJobs<'_> {
        QueuedJobs::of(self.store())
    }

    /// True when a job of this session waits, is worked on or was laid aside.
    pub fn is_queued(&self, id: &SessionId) -> Result<bool> {
        let mut found =
            self.jobs().filter(|queued| queued.as_ref().map_or(true, |queued| queued.job.session == *id));
        Ok(found.next().transpose()?.is_some())
    }
}
