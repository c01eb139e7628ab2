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
    type Token: Copy + Ord + Send;

    fn token(&self) -> Self::Token;

    /// Called where this very lease is held already: dropping it must not give the session back.
    fn disarm(&mut self) {}
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
        if let Some(mut lease) = new {
            ticket.token = Some(lease.token());
            let mut table = locked(&self.held);
            let held = table.get_mut(id).map(|held| &mut held.lease);
            // Several threads may have found the same lease lost, and have been given the same new one.
            let old = match held {
                Some(Some(current)) if current.token() >= lease.token() => {
                    if current.token() == lease.token() {
                        lease.disarm();
                    }
                    Some(lease)
                }
                Some(current) => current.replace(lease),
                None => Some(lease),
            };
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
        // Also where `call` panics.
        let _idle = Idle { leases: self, id };
        call(true)
    }

    fn forget(&self, id: &SessionId) {
        locked(&self.held).remove(id);
        self.changed.notify_all();
    }
}

/// A session that no thread can be taken of, until this is dropped.
struct Idle<'a, L: Lease> {
    leases: &'a Leases<L>,
    id: &'a SessionId,
}

impl<L: Lease> Drop for Idle<'_, L> {
    fn drop(&mut self) {
        self.leases.forget(self.id);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A lease that counts how often its session was given back.
    struct Counted(u64, Option<Arc<AtomicU64>>);

    impl Lease for Counted {
        type Token = u64;

        fn token(&self) -> u64 {
            self.0
        }

        fn disarm(&mut self) {
            self.1 = None;
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            if let Some(released) = &self.1 {
                released.store(self.0, Ordering::SeqCst);
            }
        }
    }

    fn table() -> (Arc<Leases<Counted>>, SessionId, Arc<AtomicU64>) {
        let holder = Holder { pid: 1, host: "h".into(), program: "test".into(), since: "now".into() };
        (Leases::new(holder), SessionId::new("s").unwrap(), Arc::default())
    }

    #[test]
    fn threads_that_are_given_the_same_new_lease_do_not_give_it_back() {
        let (leases, id, released) = table();
        let take = |name: &str, number: u64, wait: &dyn Fn()| {
            let thread = ThreadId::new(name).unwrap();
            let new = |_: Option<u64>| {
                wait();
                Ok((Some(Counted(number, Some(Arc::clone(&released)))), ()))
            };
            leases.take((&id, &thread), LeasePurpose::Write, new).unwrap().0
        };
        // The first holds lease 1, which is lost; two others find that out at once, and both are given lease 2.
        let first = take("first", 1, &|| {});
        let both = Barrier::new(2);
        let wait = || {
            both.wait();
        };
        let kept: Vec<_> = std::thread::scope(|scope| {
            let takers = ["a", "b"].map(|name| scope.spawn(|| take(name, 2, &wait)));
            takers.into_iter().map(|taker| taker.join().unwrap()).collect()
        });
        assert_eq!(released.load(Ordering::SeqCst), 1, "the lost one alone");
        // One that comes late with an older lease changes nothing.
        let late = take("late", 1, &|| {});
        assert_eq!(leases.tokens(), [(id.clone(), 2)]);
        drop((first, kept));
        assert_eq!(released.load(Ordering::SeqCst), 1);
        drop(late);
        assert_eq!(released.load(Ordering::SeqCst), 2, "the last thread gives it back");
    }

    #[test]
    fn a_call_that_panics_leaves_no_session_behind() {
        let (leases, id, _) = table();
        let call = || leases.while_idle(&id, |_| panic!("in the middle"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err());
        assert!(leases.while_idle(&id, |is_idle| is_idle));
    }
}
