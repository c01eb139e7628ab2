//! One process writes a session at a time.
//!
//! A row for each session says who, under which token and, by the server's clock, until when. Each holder gets a larger
//! token, and an append names its own: who was taken over finds that theirs is no longer good, and nothing of it is
//! written. Who was only slow, and was not taken over, goes on. Within the process a table says which threads have a
//! writer; the lease is renewed while there is one, and given back with the last.

use super::link::{Link, values};
use super::server::Server;
use crate::{Error, Holder, Result, locked};
use komado_core::{SessionId, ThreadId};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The sessions that this process holds.
pub(super) struct Leases {
    held: Mutex<HashMap<SessionId, Held>>,
    settled: Condvar,
    span: Duration,
    /// What tells this store from all others, and how often it asked for a lease.
    claimant: i64,
    claims: AtomicI64,
}

/// A session with a writer.
struct Held {
    number: i64,
    token: i64,
    threads: HashSet<ThreadId>,
    /// True while the server is asked for it, or given it back: others wait.
    is_moving: bool,
}

impl Leases {
    pub(super) fn new(span: Duration) -> Self {
        let claimant = RandomState::new().build_hasher().finish() as i64;
        Self { held: Mutex::default(), settled: Condvar::new(), span, claimant, claims: AtomicI64::new(0) }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<SessionId, Held>> {
        locked(&self.held)
    }

    /// How many this process holds.
    pub(super) fn count(&self) -> usize {
        self.table().len()
    }

    /// Another claim to a lease that this process has not: one that it took without hearing of it is its own again.
    pub(super) fn claim(&self) -> (i64, i64) {
        (self.claimant, self.claims.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// How long a lease lasts, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.span.as_secs_f64().min(1e10)
    }

    /// Enters `thread` as one with a writer. Gives the lease that is held already; without one it is for the caller to
    /// take it, and to say what came of it with [`Self::settle`].
    fn enter(
        &self,
        (id, thread): (&SessionId, &ThreadId),
        holder: &Holder,
        patience: Duration,
    ) -> Result<Option<(i64, i64)>> {
        let mut table = self.table();
        let until = Instant::now() + patience;
        while table.get(id).is_some_and(|held| held.is_moving) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Busy { session: id.clone(), holder: holder.clone() });
            }
            table = self.settled.wait_timeout(table, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let Some(held) = table.get_mut(id) else {
            let threads = HashSet::from([thread.clone()]);
            table.insert(id.clone(), Held { number: 0, token: 0, threads, is_moving: true });
            return Ok(None);
        };
        if !held.threads.insert(thread.clone()) {
            return Err(Error::Busy { session: id.clone(), holder: holder.clone() });
        }
        Ok(Some((held.number, held.token)))
    }

    /// Says what came of asking the server.
    fn settle(&self, id: &SessionId, lease: Option<(i64, i64)>) {
        let mut table = self.table();
        match (lease, table.get_mut(id)) {
            (Some((number, token)), Some(held)) => {
                (held.number, held.token, held.is_moving) = (number, token, false);
            }
            _ => drop(table.remove(id)),
        }
        self.settled.notify_all();
    }

    /// Takes `thread` out; gives the lease that is to be given back when it was the last.
    fn leave(&self, id: &SessionId, thread: &ThreadId) -> Option<(i64, i64)> {
        let mut table = self.table();
        let held = table.get_mut(id)?;
        held.threads.remove(thread);
        held.is_moving = held.threads.is_empty();
        held.is_moving.then_some((held.number, held.token))
    }

    fn all(&self) -> Vec<(i64, i64)> {
        self.table().values().filter(|held| !held.is_moving).map(|held| (held.number, held.token)).collect()
    }
}

/// A thread's share of a lease; given back when dropped.
pub(super) struct Ticket {
    server: Arc<Server>,
    id: SessionId,
    thread: ThreadId,
    /// The session's number.
    pub(super) number: i64,
    /// What an append names.
    pub(super) token: i64,
}

impl Ticket {
    /// Takes `thread`, asking the server with `ask` where the session is not ours already: it gives the session's number and
    /// the new token, and what else it found.
    pub(super) fn take<T>(
        server: &Arc<Server>,
        (id, thread): (&SessionId, &ThreadId),
        ask: impl FnOnce(Option<i64>) -> Result<(i64, i64, T)>,
    ) -> Result<(Self, T)> {
        let leases = &server.leases;
        let known = leases.enter((id, thread), &server.how.holder, server.how.patience)?;
        let asked = ask(known.map(|(_, token)| token));
        if known.is_none() {
            leases.settle(id, asked.as_ref().ok().map(|(number, token, _)| (*number, *token)));
        }
        let (number, token, found) = match asked {
            Ok(asked) => asked,
            Err(error) => {
                if known.is_some() {
                    give_back(server, id, thread);
                }
                return Err(error);
            }
        };
        let ticket =
            Self { server: Arc::clone(server), id: id.clone(), thread: thread.clone(), number, token };
        Ok((ticket, found))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        give_back(&self.server, &self.id, &self.thread);
    }
}

/// Takes a thread out, and gives the lease back with the last one. A server that does not answer is not waited for long:
/// the lease ends by itself.
fn give_back(server: &Server, id: &SessionId, thread: &ThreadId) {
    let Some((number, token)) = server.leases.leave(id, thread) else { return };
    let sql = "UPDATE leases SET holder = NULL, expires = NULL WHERE session = $1 AND token = $2";
    let short = server.how.patience.min(Duration::from_secs(1));
    let _ = server.ask_for(short, sql, values![number, token]);
    server.leases.settle(id, None);
}

/// Passes over the rows that somebody has locked: one long transaction must not keep all others from being renewed.
const RENEW: &str = "UPDATE leases l SET expires = clock_timestamp() + $3::DOUBLE PRECISION * INTERVAL '1 second' \
    FROM (SELECT h.session FROM leases h JOIN unnest($1::BIGINT[], $2::BIGINT[]) AS ours(session, token) \
            ON h.session = ours.session AND h.token = ours.token \
        WHERE h.holder IS NOT NULL FOR UPDATE OF h SKIP LOCKED) AS free \
    WHERE l.session = free.session RETURNING l.session";
/// How often those that were passed over are tried again: an append has its lease locked for a moment only.
const TRIES: u32 = 8;

/// Renews what this process holds, for as long as the store is open, on a connection that nobody else takes.
pub(super) async fn renew(leases: Weak<Leases>, link: Link, span: Duration) {
    loop {
        tokio::time::sleep((span / 3).max(Duration::from_millis(10))).await;
        let Some(mut held) = leases.upgrade().map(|leases| leases.all()) else { return };
        // When it fails the next one may not; and an append tells who was taken over.
        let _ = tokio::time::timeout(span / 3, renew_all(&link, &mut held, span)).await;
    }
}

async fn renew_all(link: &Link, held: &mut Vec<(i64, i64)>, span: Duration) -> Result<()> {
    for _ in 0..TRIES {
        if held.is_empty() {
            break;
        }
        let (numbers, tokens): (Vec<i64>, Vec<i64>) = held.iter().copied().unzip();
        let values = values![numbers, tokens, span.as_secs_f64().min(1e10)];
        let rows = link.ask_again(RENEW, &values).await?;
        let renewed: HashSet<i64> = rows.iter().map(|row| row.get(0)).collect();
        held.retain(|(number, _)| !renewed.contains(number));
        tokio::time::sleep(span / 60).await;
    }
    Ok(())
}
