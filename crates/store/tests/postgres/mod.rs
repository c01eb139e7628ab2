//! What only a store on PostgreSQL can get wrong: servers that end, connections that break, leases that run out.

mod away;
mod leases;
mod outputs;
mod races;
use crate::servers;
mod tables;
mod talk;

use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{SessionId, ThreadId};
use komado_store::{ConnectOptions, Holder, Journal, OpenMode, PostgresStore, Store};
use servers::{Kind, Server};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The URL of a schema that nobody else uses, on the server that all share.
fn fresh() -> String {
    static SCHEMAS: AtomicUsize = AtomicUsize::new(0);
    let n = SCHEMAS.fetch_add(1, Ordering::SeqCst);
    format!("{}?schema=own_{n}", Server::shared(Kind::Postgres).url)
}

/// How a process called `program` connects, which waits `patience` and whose leases last `lease`.
fn how(program: &str, patience: u64, lease: u64) -> ConnectOptions {
    let holder =
        Holder { pid: std::process::id(), host: "窓".into(), program: program.into(), since: "now".into() };
    let (patience, lease) = (Duration::from_millis(patience), Duration::from_millis(lease));
    ConnectOptions { patience, lease, connections: 4, ..ConnectOptions::new(holder) }
}

fn open(url: &str) -> PostgresStore {
    PostgresStore::open(url, &how("the tests", 10_000, 6_000)).unwrap()
}

fn sid(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

fn make(store: &PostgresStore, id: &str) -> SessionId {
    store
        .create(&Meta {
            uuid: id.into(),
            task_key: TaskKey::local(&sid(id)),
            created_at: talk::NOW.into(),
            process_id: 7,
            hostname: "機械".into(),
            config: MetaConfig { model: Some("m".into()), meter: "o200k".into(), ..MetaConfig::default() },
            user: Some("安".into()),
            queued: false,
        })
        .unwrap();
    sid(id)
}

fn root(store: &PostgresStore, id: &SessionId, mode: OpenMode) -> Box<dyn Journal> {
    store.open(id, &ThreadId::root(), mode).unwrap()
}

/// Every line of the first thread.
fn lines(store: &PostgresStore, id: &SessionId) -> Vec<Vec<u8>> {
    let journal = root(store, id, OpenMode::Read);
    (1..=journal.last()).map(|seq| journal.line(seq).unwrap()).collect()
}

/// What plain SQL finds, as texts, in the schema that the URL names.
fn sql(url: &str, query: &str) -> Vec<Vec<Option<String>>> {
    let (server, schema) = url.split_once("?schema=").unwrap();
    let text = format!("SET search_path TO {schema}; {query}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(server, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let mut rows = Vec::new();
        for message in client.simple_query(&text).await.unwrap() {
            if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
                rows.push((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect());
            }
        }
        rows
    })
}
