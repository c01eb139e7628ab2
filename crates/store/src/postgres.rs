//! The store on PostgreSQL, or on a server that speaks as it does.
//!
//! A journal is rows: one for each entry, its line byte for byte, under (session, thread, number). An append is one
//! statement and one commit. It compares the thread's last number and the token of the session's lease, both under their
//! locks, so of two who append after the same entry one succeeds, and who was taken over writes nothing. What was
//! acknowledged is as durable as the server's commits are; [`vitals`](crate::StoreFigures::vitals) tells what the server says of that.
//!
//! Nothing here needs PL/pgSQL, large objects or advisory locks, and the way of an append nothing but rows, CTEs and row
//! locks: CockroachDB and YugabyteDB have all of that (neither was tried). What differs there: without LISTEN a watcher is told to look at
//! everything every second; `FOR SHARE` is what CockroachDB's own isolation already gives.

mod address;
mod blobs;
mod journal;
mod lease;
mod news;
mod queue;
mod schema;
mod search_index;
mod server;
mod sessions;
mod tables;

use crate::connect::ConnectOptions;
use crate::tables::{StoreFigures, StoreHealthFigures};
use crate::{Result, Store};
use komado_core::{Seq, SessionId, ThreadId};
use server::{PostgresServer, values};
use std::sync::Arc;
use std::time::Duration;

/// Opens the store at `url`.
pub fn open(url: &str, how: &ConnectOptions) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(PostgresStore::open(url, how)?))
}

/// Sessions on a server. Clones share its connections and leases.
#[derive(Clone)]
pub struct PostgresStore(Arc<PostgresServer>);

impl PostgresStore {
    /// Opens the store at `postgres://user:password@host:port/database?sslmode=…&schema=…`, making or updating its tables.
    pub fn open(url: &str, how: &ConnectOptions) -> Result<Self> {
        Ok(Self(Arc::new(PostgresServer::open(url, how)?)))
    }

    fn server(&self) -> &Arc<PostgresServer> {
        &self.0
    }

    /// Tells watchers that a session changed.
    fn ring(&self, id: &SessionId) {
        self.0.teller.ring(id, &ThreadId::root(), 0);
    }
}

/// A text as the server can hold it: without zero bytes.
fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A pause as the server can add it to a time; one of centuries is as good as any longer one.
fn seconds(pause: Duration) -> f64 {
    pause.as_secs_f64().min(1e10)
}

/// A number of an entry from its column.
fn seq(number: i64) -> Seq {
    Seq::try_from(number).unwrap_or(Seq::MAX)
}

// How the server is doing, by its own account.

/// Few sessions are counted, many are estimated; so are all other rows.
const LOOK: &str = "SELECT (SELECT count(*) FROM (SELECT 1 FROM sessions LIMIT 10000) AS few)::BIGINT, \
    COALESCE((SELECT reltuples FROM pg_class WHERE oid = 'sessions'::REGCLASS), 0)::BIGINT, \
    (SELECT sum(pg_stat_get_live_tuples(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname = $1::TEXT AND c.relkind = 'r')::BIGINT, \
    (SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname = $1::TEXT AND c.relkind = 'r')::BIGINT, \
    COALESCE(current_setting('synchronous_commit', TRUE), 'on'), \
    COALESCE(current_setting('fsync', TRUE), 'on'), \
    COALESCE(current_setting('synchronous_standby_names', TRUE), '') <> ''";

impl StoreFigures for PostgresStore {
    fn vitals(&self) -> Result<StoreHealthFigures> {
        let server = self.server();
        let rows = server.ask(LOOK, values![server.schema.clone()])?;
        let mut vitals = StoreHealthFigures {
            kind: "postgres",
            place: server.wire.place().to_owned(),
            connections: Some(server.link.connections() as u64),
            leases: Some(server.leases.count() as u64),
            ..StoreHealthFigures::default()
        };
        let Some(row) = rows.first() else { return Ok(vitals) };
        let number = |column: usize| row.get::<_, Option<i64>>(column).map(|n| n.max(0) as u64);
        let counted = number(0);
        vitals.sessions = if counted < Some(10_000) { counted } else { number(1).max(counted) };
        (vitals.keys, vitals.disk_bytes) = (number(2), number(3));
        let (commit, sync): (&str, &str) = (row.get(4), row.get(5));
        (vitals.durability, vitals.may_lose) = durability((commit, sync), row.get(6));
        Ok(vitals)
    }
}

/// What an acknowledged entry outlives, and whether it may be lost with the server's machine.
fn durability((commit, sync): (&str, &str), has_standby: bool) -> (String, bool) {
    match (commit, sync) {
        (_, "off") => ("outlives the server's process, not its machine (fsync is off)".to_owned(), true),
        ("off", _) => ("outlives nothing for a moment (synchronous_commit is off)".to_owned(), true),
        ("on" | "remote_apply" | "remote_write", _) if has_standby => {
            (format!("outlives the loss of one machine (synchronous_commit is {commit})"), false)
        }
        _ => {
            (format!("outlives the server's process and a power cut (synchronous_commit is {commit})"), false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::durability;

    #[test]
    fn what_may_be_lost_is_said_to_be() {
        assert!(durability(("on", "off"), true).1 && durability(("off", "on"), true).1);
        for commit in ["on", "local", "remote_apply"] {
            let (words, may_lose) = durability((commit, "on"), false);
            assert!(!may_lose && words.contains(commit) && words.contains("power cut"), "{words}");
        }
        assert!(durability(("remote_apply", "on"), true).0.contains("loss of one machine"));
        assert!(durability(("local", "on"), true).0.contains("power cut"));
    }
}
