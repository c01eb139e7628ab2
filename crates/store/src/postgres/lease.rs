//! One process writes a session at a time.
//!
//! A row for each session says who, under which token and, by the server's clock, until when. Each holder gets a larger
//! token, and an append names its own: who was taken over finds that theirs is no longer good, and nothing of it is
//! written. Who was only slow, and was not taken over, goes on. The lease is renewed while this process writes a thread of
//! the session.

use super::server::{PostgresLink, PostgresServer, values};
use crate::Result;
use crate::lease::{Lease, Leases};
use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Tells this store's claims to leases from all others.
pub(super) struct LeaseClaims {
    claimant: i64,
    made: AtomicI64,
}

impl LeaseClaims {
    pub(super) fn new() -> Self {
        let claimant = RandomState::new().build_hasher().finish() as i64;
        Self { claimant, made: AtomicI64::new(0) }
    }

    /// Another claim to a lease that this process has not: one that it took without hearing of it is its own again.
    pub(super) fn next(&self) -> (i64, i64) {
        (self.claimant, self.made.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

/// A session of ours: its number and our token. A server that does not answer is not waited for long when it is given
/// back: the lease ends by itself.
pub(super) struct PostgresLease {
    pub(super) server: Arc<PostgresServer>,
    pub(super) key: (i64, i64),
}

impl Lease for PostgresLease {
    type Token = (i64, i64);

    fn token(&self) -> (i64, i64) {
        self.key
    }
}

impl Drop for PostgresLease {
    fn drop(&mut self) {
        let sql = "UPDATE leases SET holder = NULL, expires = NULL WHERE session = $1 AND token = $2";
        let short = self.server.how.patience.min(Duration::from_secs(1));
        let _ = self.server.ask_for(short, sql, values![self.key.0, self.key.1]);
    }
}

/// Passes over locked rows: one long transaction must not keep all others from being renewed.
const RENEW: &str = "UPDATE leases l SET expires = clock_timestamp() + $3::DOUBLE PRECISION * INTERVAL '1 second' \
    FROM (SELECT h.session FROM leases h JOIN unnest($1::BIGINT[], $2::BIGINT[]) AS ours(session, token) \
            ON h.session = ours.session AND h.token = ours.token \
        WHERE h.holder IS NOT NULL FOR UPDATE OF h SKIP LOCKED) AS free \
    WHERE l.session = free.session RETURNING l.session";
/// How often those that were passed over are tried again: an append has its lease locked for a moment only.
const TRIES: u32 = 8;

/// Renews what this process holds, for as long as the store is open, on a connection of its own.
pub(super) async fn renew(leases: Weak<Leases<PostgresLease>>, link: PostgresLink, span: Duration) {
    loop {
        tokio::time::sleep((span / 3).max(Duration::from_millis(10))).await;
        let Some(leases) = leases.upgrade() else { return };
        let mut held = leases.tokens().into_iter().map(|(_, key)| key).collect();
        drop(leases);
        // When it fails the next one may not; and an append tells who was taken over.
        let _ = tokio::time::timeout(span / 3, renew_all(&link, &mut held, span)).await;
    }
}

async fn renew_all(link: &PostgresLink, held: &mut Vec<(i64, i64)>, span: Duration) -> Result<()> {
    for _ in 0..TRIES {
        if held.is_empty() {
            break;
        }
        let (numbers, tokens): (Vec<i64>, Vec<i64>) = held.iter().copied().unzip();
        let values = values![numbers, tokens, super::seconds(span)];
        let rows = link.ask_again(RENEW, &values).await?;
        let renewed: HashSet<i64> = rows.iter().map(|row| row.get(0)).collect();
        held.retain(|(number, _)| !renewed.contains(number));
        tokio::time::sleep(span / 60).await;
    }
    Ok(())
}
