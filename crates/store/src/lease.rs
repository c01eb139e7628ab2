//! Which threads this process writes, session by session.
//!
//! A store says with a lease (a lock on a file, a row or a field with a token) that this process writes a session. The
//! process has one for all threads of a session that it writes: it is taken with the first and given back, by being dropped,
//! with the last. While that is under way, callers that want the same session wait.

use crate::{Error, Holder, Result, locked};
use komado_core::{SessionId, ThreadId};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a store has of a session that this process writes. Dropping it gives the session back.
pub(crate) trait Lease: Send {
    /// What an append names.
    type Token: Copy + Send;

    fn token(&self) -> Self::Token;
}

impl Lease for () {
    type Token = ();

    fn token(&self) {}
}

/// What a thread is held for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LeasePurpose {
    /// To append, for as long as its holder likes.
    Write,
    /// To bring something derived forward; over in a moment, so others of this process wait.
    Repair,
}

/// The sessions this process holds.
pub(crate) struct Leases<L> {
    pub(crate) holder: Holder,
    held: Mutex<HashMap<SessionId, Held<L>>>,
    changed: Condvar,
}

struct Held<L> {
    /// None while it is taken or given back.
    lease: Option<L>,
    threads: HashMap<ThreadId, LeasePurpose>,
}

type Table<'a, L> = MutexGuard<'a, HashMap<SessionId, Held<L>>>;

impl<L: Lease> Leases<L> {
    /// `holder` is who others of this process are told writes.
    pub(crate) fn new(holder: Holder) -> Arc<Self> {
        Arc::new(Self { holder, held: Mutex::default(), changed: Condvar::new() })
    }

    /// How many sessions are held.
    pub(crate) fn count(&self) -> usize {
        locked(&self.held).len()
    }

    /// Every session that is held, with its token. One that is taken or given back just now needs no renewal.
    #[cfg(any(feature = "postgres", feature = "redis"))]
    pub(crate) fn tokens(&self) -> Vec<(SessionId, L::Token)> {
        let table = locked(&self.held);
        table.iter().filter_map(|(id, held)| Some((id.clone(), held.lease.as_ref()?.token()))).collect()
    }

    /// That a thread of the session has a writer in this process.
    pub(crate) fn busy(&self, id: &SessionId) -> Error {
        Error::Busy { session: id.clone(), holder: self.holder.clone() }
    }

    /// The table, once `is_passing` is no longer true of the session.
    fn wait(&self, id: &SessionId, is_passing: impl Fn(&Held<L>) -> bool) -> Table<'_, L> {
        let mut table = locked(&self.held);
        while table.get(id).is_some_and(|held| held.lease.is_none() || is_passing(held)) {
            table = self.changed.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
        table
    }

    /// Takes `thread`, or says that it has a writer. `take` gets the token of the lease that is held already; it gives a new
    /// lease where there is none, or another is to be in its place, and what else it found.
    pub(crate) fn take<T>(
        self: &Arc<Self>,
        (id, thread): (&SessionId, &ThreadId),
        purpose: LeasePurpose,
        take: impl FnOnce(Option<L::Token>) -> Result<(Option<L>, T)>,
    ) -> Result<(ThreadLease<L>, T)> {
        let is_repaired = |held: &Held<L>| held.threads.get(thread) == Some(&LeasePurpose::Repair);
        let mut table = self.wait(id, |held| purpose == LeasePurpose::Write && is_repaired(held));
        let entry = table.entry(id.clone());
        let held = entry.or_insert_with(|| Held { lease: None, threads: HashMap::new() });
        if held.threads.contains_key(thread) {
            return Err(self.busy(id));
        }
        held.threads.insert(thread.clone(), purpose);
        let known = held.lease.as_ref().map(Lease::token);
        drop(table);
        // Dropped where `take` fails: then the thread is given back.
        let mut ticket =
            ThreadLease { leases: Arc::clone(self), id: id.clone(), thread: thread.clone(), token: known };
        let (new, found) = take(known)?;
        if let Some(lease) = new {
            ticket.token = Some(lease.token());
            let mut table = locked(&self.held);
            let old = table.get_mut(id).and_then(|held| held.lease.replace(lease));
            drop(table);
            drop(old);
            self.changed.notify_all();
        }
        Ok((ticket, found))
    }

    /// Calls with true when no thread of the session is held here, and lets none be taken meanwhile; with false when one is.
    /// Repairs are waited for.
    pub(crate) fn while_idle<T>(&self, id: &SessionId, call: impl FnOnce(bool) -> T) -> T {
        let only_repairs =
            |held: &Held<L>| held.threads.values().all(|purpose| *purpose == LeasePurpose::Repair);
        let mut table = self.wait(id, only_repairs);
        if table.contains_key(id) {
            drop(table);
            return call(false);
        }
        table.insert(id.clone(), Held { lease: None, threads: HashMap::new() });
        drop(table);
        let done = call(true);
        self.forget(id);
        done
    }

    fn forget(&self, id: &SessionId) {
        locked(&self.held).remove(id);
        self.changed.notify_all();
    }
}

/// One thread's share of a session's lease; given back when dropped.
pub(crate) struct ThreadLease<L: Lease> {
    leases: Arc<Leases<L>>,
    id: SessionId,
    thread: ThreadId,
    /// What an append names.
    token: Option<L::Token>,
}

#[cfg(any(feature = "postgres", feature = "redis"))]
impl<L: Lease> ThreadLease<L> {
    /// What an append names.
    pub(crate) fn token(&self) -> Result<L::Token> {
        self.token.ok_or(Error::ReadOnly)
    }
}

impl<L: Lease> Drop for ThreadLease<L> {
    fn drop(&mut self) {
        let mut table = locked(&self.leases.held);
        let Some(held) = table.get_mut(&self.id) else { return };
        held.threads.remove(&self.thread);
        if !held.threads.is_empty() {
            self.leases.changed.notify_all();
            return;
        }
        // The last one gives the lease back, and the next caller waits for that.
        let lease = held.lease.take();
        drop(table);
        drop(lease);
        self.leases.forget(&self.id);
    }
}
