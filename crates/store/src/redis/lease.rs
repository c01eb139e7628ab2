//! One process writes a session at a time, for as long as it is heard of.
//!
//! A lease is a token that grows, a time by the server's clock, and who has it. This process has at most one per session,
//! shared by all its writers; it is renewed at a third of its time and given back with the last of them. Who was not heard
//! of may be replaced; the next one's token is larger, and nothing is written under a smaller one.

use super::scripts::Said;
use super::{Inner, scripts};
use crate::{Error, Holder, Mode, Result, locked};
use komado_core::{SessionId, ThreadId};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::task::JoinSet;

/// How long is waited at most for a lease to be given back; it ends by itself otherwise.
const FAREWELL: Duration = Duration::from_secs(1);

/// The sessions this process writes.
#[derive(Default)]
pub(super) struct Leases {
    held: Mutex<HashMap<SessionId, Arc<Mutex<Held>>>>,
    is_renewing: AtomicBool,
}

#[derive(Default)]
struct Held {
    token: u64,
    threads: HashSet<ThreadId>,
}

impl Leases {
    fn of(&self, id: &SessionId) -> Arc<Mutex<Held>> {
        Arc::clone(locked(&self.held).entry(id.clone()).or_default())
    }

    /// Forgets a session that nobody here writes or is about to.
    fn forget(&self, id: &SessionId, held: &Arc<Mutex<Held>>) {
        let mut table = locked(&self.held);
        // The table's own and ours: whoever wants one takes it under the table's lock.
        if Arc::strong_count(held) == 2 && locked(held).threads.is_empty() {
            table.remove(id);
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        locked(&self.held).len()
    }

    fn tokens(&self) -> Vec<(SessionId, u64)> {
        let table: Vec<_> =
            locked(&self.held).iter().map(|(id, held)| (id.clone(), Arc::clone(held))).collect();
        // One that is being opened or closed just now needs no renewal.
        let token = |held: &Mutex<Held>| {
            held.try_lock().ok().filter(|held| !held.threads.is_empty()).map(|held| held.token)
        };
        table.iter().filter_map(|(id, held)| Some((id.clone(), token(held)?))).collect()
    }
}

/// One thread's share of a session's lease; given back when dropped.
pub(super) struct Ticket {
    store: Arc<Inner>,
    id: SessionId,
    thread: ThreadId,
    held: Option<Arc<Mutex<Held>>>,
    pub(super) token: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some(shared) = self.held.take() else { return };
        let mut held = locked(&shared);
        held.threads.remove(&self.thread);
        if held.threads.is_empty() {
            let ask = self.store.about(&self.id, &scripts::RELEASE, held.token);
            let _ = self.store.link.ask_for(FAREWELL.min(self.store.link.patience), ask);
        }
        drop(held);
        self.store.leases.forget(&self.id, &shared);
    }
}

impl Inner {
    /// Calls with our claim when nobody here writes the session, and lets nobody begin meanwhile: a lease that could not be
    /// given back hinders only others. Calls with none when somebody does.
    pub(super) fn while_idle<T>(&self, id: &SessionId, call: impl FnOnce(&str) -> Result<T>) -> Result<T> {
        let shared = self.leases.of(id);
        let held = locked(&shared);
        let done = if held.threads.is_empty() {
            let done = call(&self.claim);
            drop(held);
            done
        } else {
            // Whoever writes must be able to go on, and its lease to be renewed.
            drop(held);
            call("")
        };
        self.leases.forget(id, &shared);
        done
    }

    /// Who writes the session, whichever thread of it; only looks.
    pub(super) fn writer(&self, id: &SessionId) -> Result<Option<Holder>> {
        let said = self.while_idle(id, |claim| self.run(id, &scripts::WRITER, claim))?;
        Ok(Some(said.text(0)).filter(|text| !text.is_empty()).map(|text| Holder::read(text.as_bytes())))
    }

    /// Opens a thread, and takes it for writing where that is meant.
    pub(super) fn opened(
        self: &Arc<Self>,
        id: &SessionId,
        thread: &ThreadId,
        mode: Mode,
    ) -> Result<(Said, Option<Ticket>)> {
        if mode == Mode::Read {
            return Ok((self.opening(id, thread, mode)?, None));
        }
        let shared = self.leases.of(id);
        let taken = self.taken(id, thread, mode, &shared);
        if taken.is_err() {
            self.leases.forget(id, &shared);
        }
        let (said, token) = taken?;
        self.renew_leases();
        let ticket = Ticket {
            store: Arc::clone(self),
            id: id.clone(),
            thread: thread.clone(),
            held: Some(shared),
            token,
        };
        Ok((said, Some(ticket)))
    }

    fn taken(
        &self,
        id: &SessionId,
        thread: &ThreadId,
        mode: Mode,
        shared: &Mutex<Held>,
    ) -> Result<(Said, u64)> {
        let mut held = locked(shared);
        if held.threads.contains(thread) {
            return Err(Error::Busy { session: id.clone(), holder: self.holder.clone() });
        }
        let said = self.opening(id, thread, mode)?;
        held.token = said.number(0);
        held.threads.insert(thread.clone());
        Ok((said, held.token))
    }

    fn opening(&self, id: &SessionId, thread: &ThreadId, mode: Mode) -> Result<Said> {
        let mode = match mode {
            Mode::Read => "read",
            Mode::Write => "write",
            Mode::Amend => "amend",
        };
        let holder = serde_json::to_string(&self.holder).unwrap_or_default();
        let lease = self.lease.as_millis() as u64;
        let args = (mode, thread.as_str(), &self.claim, holder, lease, self.ttl());
        self.run(id, &scripts::OPEN, args)
    }

    /// Renews all leases from now on, for as long as the store is there.
    fn renew_leases(self: &Arc<Self>) {
        if !self.leases.is_renewing.swap(true, Ordering::SeqCst) {
            self.link.wire.spawn(renewing(Arc::downgrade(self), self.lease / 3));
        }
    }
}

async fn renewing(store: Weak<Inner>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        let Some(store) = store.upgrade() else { return };
        // All at once: a slow one must not cost the next its lease.
        let mut renewals = JoinSet::new();
        for (id, token) in store.leases.tokens() {
            let args = (token, store.lease.as_millis() as u64, store.ttl());
            let ask = store.about(&id, &scripts::KEEP, args);
            let link = Arc::clone(&store.link);
            // Whoever writes next learns what became of it.
            renewals.spawn(async move { link.answer(&ask, pause).await.map(drop) });
        }
        while renewals.join_next().await.is_some() {}
    }
}
