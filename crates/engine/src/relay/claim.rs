//! Who is at work in which thread.
//!
//! Two requests at once in one thread would write over each other. A claim is held for as long as a request is under way,
//! and ends with it, however that ends. It knows this process alone; between processes the store's lease decides.

use komado_core::{SessionId, ThreadId};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

type Name = (SessionId, ThreadId);

/// Rows in which ends are counted: enough that sessions rarely share one.
const ROWS: usize = 64;

/// The threads in which a request is under way.
#[derive(Debug, Default)]
pub(super) struct Claims {
    held: Mutex<Held>,
    /// Said when a thread was tidied up.
    tidied: Condvar,
}

#[derive(Debug)]
struct Held {
    names: HashSet<Name>,
    /// Threads that are being tidied up: a request waits for that, it does not go elsewhere.
    tidying: HashSet<Name>,
    /// How many claims ended, by session.
    ended: Ended,
}

/// How many claims had ended at a moment, by session.
pub(super) type Ended = [u64; ROWS];

impl Default for Held {
    fn default() -> Self {
        Self { names: HashSet::new(), tidying: HashSet::new(), ended: [0; ROWS] }
    }
}

fn row(session: &SessionId) -> usize {
    let mut hasher = DefaultHasher::new();
    session.as_str().hash(&mut hasher);
    (hasher.finish() % ROWS as u64) as usize
}

impl Claims {
    fn held(&self) -> MutexGuard<'_, Held> {
        // A panic elsewhere leaves the set as it was: claims end when they are dropped.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_busy(&self, session: &SessionId, thread: &ThreadId) -> bool {
        self.held().names.contains(&(session.clone(), thread.clone()))
    }

    /// What has ended so far.
    pub(super) fn ended(&self) -> Ended {
        self.held().ended
    }

    /// True when a request in the session ended since `before` was taken: what was found out then may be old.
    pub(super) fn moved_on(&self, session: &SessionId, before: &Ended) -> bool {
        let row = row(session);
        self.held().ended[row] != before[row]
    }

    /// Claims a thread; `None` when someone else was faster.
    pub(super) fn claim(&self, session: &SessionId, thread: &ThreadId) -> Option<Claim<'_>> {
        let name = (session.clone(), thread.clone());
        let mut held = self.held();
        while held.tidying.contains(&name) {
            held = self.tidied.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        // A claim that is none must not be made at all: dropping it would end the other one.
        held.names.insert(name.clone()).then(|| Claim { claims: self, name, works: false })
    }

    /// Claims a thread to tidy it up; `None` when someone is at work there.
    pub(super) fn tidy(&self, session: &SessionId, thread: &ThreadId) -> Option<Tidying<'_>> {
        let name = (session.clone(), thread.clone());
        let mut held = self.held();
        let is_free = !held.names.contains(&name) && held.tidying.insert(name.clone());
        is_free.then(|| Tidying { claims: self, name })
    }
}

/// A thread that is ours until this is dropped.
#[derive(Debug)]
pub(super) struct Claim<'c> {
    claims: &'c Claims,
    name: Name,
    /// True once something may have been done with it.
    works: bool,
}

impl Claim<'_> {
    /// From now on the thread may change: others must look again when the claim ends. One that was given up before
    /// says nothing to anyone.
    pub(super) fn work(&mut self) {
        self.works = true;
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut held = self.claims.held();
        held.names.remove(&self.name);
        held.ended[row(&self.name.0)] += u64::from(self.works);
    }
}

/// A thread that is being tidied up until this is dropped.
#[derive(Debug)]
pub(super) struct Tidying<'c> {
    claims: &'c Claims,
    name: Name,
}

impl Drop for Tidying<'_> {
    fn drop(&mut self) {
        self.claims.held().tidying.remove(&self.name);
        self.claims.tidied.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_claimed_once_and_free_again_when_the_claim_is_dropped() {
        let (claims, session) = (Claims::default(), SessionId::new("s").unwrap());
        let root = ThreadId::root();
        let claim = claims.claim(&session, &root);
        assert!(
            claim.is_some() && claims.claim(&session, &root).is_none() && claims.is_busy(&session, &root)
        );
        drop(claim);
        assert!(claims.claim(&session, &root).is_some());
    }

    #[test]
    fn only_a_claim_that_worked_makes_others_look_again() {
        let (claims, session) = (Claims::default(), SessionId::new("s").unwrap());
        let before = claims.ended();
        drop(claims.claim(&session, &ThreadId::root()));
        assert!(!claims.moved_on(&session, &before), "it was given up");
        let mut claim = claims.claim(&session, &ThreadId::root()).unwrap();
        claim.work();
        assert!(!claims.moved_on(&session, &before), "it has not ended");
        drop(claim);
        assert!(claims.moved_on(&session, &before));
    }

    #[test]
    fn a_thread_that_is_tidied_up_is_waited_for_and_is_not_busy() {
        let (claims, session) = (Claims::default(), SessionId::new("s").unwrap());
        let root = ThreadId::root();
        let tidying = claims.tidy(&session, &root);
        assert!(tidying.is_some() && !claims.is_busy(&session, &root));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| claims.claim(&session, &root).is_some());
            drop(tidying);
            assert!(waiting.join().unwrap());
        });
        let claim = claims.claim(&session, &root);
        assert!(claim.is_some() && claims.tidy(&session, &root).is_none());
    }
}
