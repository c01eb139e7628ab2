//! What only the store on Redis promises: time to live, leases by the server's clock, calls whose answer was lost, and the
//! many ways to a server.

mod between;
mod doors;
mod leases;
mod life;
use crate::servers;
#[allow(dead_code)]
use crate::suite::play;
mod unsure;
mod worth;

use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{Role, SessionId, ThreadId};
use komado_store::{ConnectOptions, Holder, Journal, JournalRow, OpenMode, RedisStore, Store};
use komado_testkit::Book;
use servers::{Kind, Server};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How a store is opened by somebody called `program`.
fn how(program: &str) -> ConnectOptions {
    let holder =
        Holder { pid: std::process::id(), host: "here".into(), program: program.into(), since: "now".into() };
    ConnectOptions { patience: Duration::from_secs(20), ..ConnectOptions::new(holder) }
}

/// A place of its own on the server that the tests here share.
fn place() -> String {
    static PLACES: AtomicU32 = AtomicU32::new(0);
    let n = PLACES.fetch_add(1, Ordering::SeqCst);
    format!("{}?prefix=own{n}", Server::shared(Kind::Redis).url)
}

fn open(url: &str, how: &ConnectOptions) -> RedisStore {
    RedisStore::open(url, how).unwrap()
}

fn make(store: &dyn Store, id: &str) -> SessionId {
    let id = SessionId::new(id).unwrap();
    let meta = Meta {
        uuid: id.to_string(),
        task_key: TaskKey::local(&id),
        created_at: "2024-01-15T10:00:00.000000Z".into(),
        process_id: 7,
        hostname: "窓".into(),
        config: MetaConfig::default(),
        user: Some("安".into()),
        queued: false,
    };
    store.create(&meta).unwrap();
    id
}

fn writer(store: &dyn Store, id: &SessionId) -> Box<dyn Journal> {
    store.open(id, &ThreadId::root(), OpenMode::Write).unwrap()
}

fn reader(store: &dyn Store, id: &SessionId) -> Box<dyn Journal> {
    store.open(id, &ThreadId::root(), OpenMode::Read).unwrap()
}

/// Rows that say these texts, from the first entry on.
fn rows(texts: &[&str]) -> Vec<JournalRow> {
    let mut book = Book::default();
    for text in texts {
        book.push(play::said(Role::User, text), 1, play::NOW).unwrap();
    }
    play::rows(&book, 0)
}

/// One entry that says `text`, after entry `after` of the same kind.
fn row(after: u32, text: &str) -> JournalRow {
    let mut texts = vec!["前"; after as usize];
    texts.push(text);
    rows(&texts).pop().unwrap()
}
