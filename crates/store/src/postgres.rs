//! The store on PostgreSQL, or on a server that speaks as it does.
//!
//! A journal is rows: one for each entry, its line byte for byte, under (session, thread, number). An append is one
//! statement and one commit. It compares the thread's last number and the token of the session's lease, both under their
//! locks, so of two who append after the same entry one succeeds, and who was taken over writes nothing. What was
//! acknowledged is as durable as the server's commits are; [`vitals`](crate::Pulse::vitals) tells what the server says of that.
//!
//! Nothing here needs PL/pgSQL, large objects or advisory locks, and the way of an append nothing but rows, CTEs and row
//! locks: CockroachDB and YugabyteDB have all of that (neither was tried). What differs there: without LISTEN whoever watches is told to look at
//! everything every second; `FOR SHARE` is what CockroachDB's own isolation already gives.

mod address;
mod append;
mod blobs;
mod fault;
mod filling;
mod journal;
mod lease;
mod link;
mod news;
mod pages;
mod places;
mod queue;
mod schema;
mod server;
mod sessions;
mod shelf;
mod threads;
mod tree;
mod vitals;
mod watch;

use crate::connect::Connecting;
use crate::{Result, Store};
use komado_core::{Seq, SessionId, ThreadId};
use server::Server;
use std::sync::Arc;

/// Opens the store at `url`.
pub fn open(url: &str, how: &Connecting) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(PostgresStore::open(url, how)?))
}

/// Sessions on a server. Clones share its connections and leases.
#[derive(Clone)]
pub struct PostgresStore(Arc<Server>);

impl PostgresStore {
    /// Opens the store at `postgres://user:password@host:port/database?sslmode=…&schema=…`, making or updating its tables.
    pub fn open(url: &str, how: &Connecting) -> Result<Self> {
        Ok(Self(Arc::new(Server::open(url, how)?)))
    }

    fn server(&self) -> &Arc<Server> {
        &self.0
    }

    /// Tells whoever watches that a session changed.
    fn ring(&self, id: &SessionId) {
        self.0.teller.ring(id, &ThreadId::root(), 0);
    }
}

/// A text as the server can hold it: without zero bytes.
fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A number of an entry from its column.
fn seq(number: i64) -> Seq {
    Seq::try_from(number).unwrap_or(Seq::MAX)
}
