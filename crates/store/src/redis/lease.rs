//! One process writes a session at a time, for as long as it is heard of.
//!
//! A lease is a token that grows, a time by the server's clock, and who has it. This process has at most one per session,
//! shared by all its writers; it is renewed at a third of its time and given back with the last of them. Who was not heard
//! of may be replaced; the next one's token is larger, and nothing is written under a smaller one.

use super::link::RedisLink;
use super::scripts::{RedisCall, ScriptReply};
use super::{Inner, scripts};
use crate::lease::{Lease, LeasePurpose, ThreadLease};
use crate::{OpenMode, Result};
use komado_core::{SessionId, ThreadId};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::task::JoinSet;

/// How long is waited at most for a lease to be given back; it ends by itself otherwise.
const FAREWELL: Duration = Duration::from_secs(1);

/// A session of ours.
pub(super) struct RedisLease {
    link: Arc<RedisLink>,
    number: u64,
    /// Gives it back.
    release: Option<RedisCall>,
}

impl Lease for RedisLease {
    type Token = u64;

    fn token(&self) -> u64 {
        self.number
    }

    fn disarm(&mut self) {
        self.release = None;
    }
}

impl Drop for RedisLease {
    fn drop(&mut self) {
        if let Some(ask) = self.release.take() {
            let _ = self.link.ask_for(FAREWELL.min(self.link.patience), ask);
        }
    }
}

impl Inner {
    /// Calls with our claim when this process does not write the session, and lets none of its threads be taken meanwhile: a
    /// lease that could not be given back hinders only other processes. Calls with none when it does.
    pub(super) fn while_idle<T>(&self, id: &SessionId, call: impl FnOnce(&str) -> Result<T>) -> Result<T> {
        self.leases.while_idle(id, |is_idle| call(if is_idle { &self.claim } else { "" }))
    }

    /// Opens a thread, and takes it for writing where that is meant.
    pub(super) fn opened(
        self: &Arc<Self>,
        id: &SessionId,
        thread: &ThreadId,
        mode: OpenMode,
    ) -> Result<(ScriptReply, Option<ThreadLease<RedisLease>>)> {
        if mode == OpenMode::Read {
            return Ok((self.opening(id, thread, mode)?, None));
        }
        let (ticket, said) = self.leases.take((id, thread), LeasePurpose::Write, |known| {
            let said = self.opening(id, thread, mode)?;
            let number = said.number(0);
            let new = (known != Some(number)).then(|| {
                let release = Some(self.about(id, &scripts::RELEASE, number));
                RedisLease { link: Arc::clone(&self.link), number, release }
            });
            Ok((new, said))
        })?;
        // All leases are renewed from the first on, for as long as the store is there.
        if !self.is_renewing.swap(true, Ordering::SeqCst) {
            self.link.wire.spawn(renewing(Arc::downgrade(self), self.lease / 3));
        }
        Ok((said, Some(ticket)))
    }

    fn opening(&self, id: &SessionId, thread: &ThreadId, mode: OpenMode) -> Result<ScriptReply> {
        let mode = match mode {
            OpenMode::Read => "read",
            OpenMode::Write => "write",
            OpenMode::Amend => "amend",
        };
        let holder = serde_json::to_string(&self.leases.holder).unwrap_or_default();
        let lease = self.lease.as_millis() as u64;
        let args = (mode, thread.as_str(), &self.claim, holder, lease, self.ttl());
        self.run(id, &scripts::OPEN, args)
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
            // The next append tells what became of it.
            renewals.spawn(async move { link.answer(&ask, pause).await.map(drop) });
        }
        while renewals.join_next().await.is_some() {}
    }
}
