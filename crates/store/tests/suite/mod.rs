//! What every store must do, as functions over `&dyn Store`.
//!
//! A new store joins with one line in `conformance.rs`. Nothing here knows which store it is given.

pub(crate) mod blobs;
pub(crate) mod dice;
pub(crate) mod entries;
pub(crate) mod folding;
pub(crate) mod kinds;
pub(crate) mod letters;
pub(crate) mod places;
pub(crate) mod play;
pub(crate) mod queue;
pub(crate) mod retried;
pub(crate) mod rows;
pub(crate) mod sessions;
pub(crate) mod shares;
pub(crate) mod shelves;
pub(crate) mod threads;
pub(crate) mod tree;
pub(crate) mod vitals;
pub(crate) mod watch;

use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{SessionId, ThreadId};
use komado_store::{Journal, OpenMode, Store};
use std::time::{Duration, Instant};

pub(crate) fn sid(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

pub(crate) fn tid(id: &str) -> ThreadId {
    ThreadId::new(id).unwrap()
}

/// What a session is made with, at minute `minute`.
pub(crate) fn meta(id: &str, minute: u32) -> Meta {
    Meta {
        uuid: id.into(),
        task_key: TaskKey::local(&sid(id)),
        created_at: format!("2024-01-15T10:{minute:02}:00.000000Z"),
        process_id: 7,
        hostname: "host".into(),
        config: MetaConfig {
            model: Some("m".into()),
            meter: "o200k".into(),
            agent: Some("claude-code".into()),
            project: Some("/home/ann/窓".into()),
            ..MetaConfig::default()
        },
        user: None,
        queued: false,
    }
}

/// Makes a session.
pub(crate) fn make(store: &dyn Store, id: &str) -> SessionId {
    store.create(&meta(id, 0)).unwrap();
    sid(id)
}

/// Opens the first thread.
pub(crate) fn root(store: &dyn Store, id: &SessionId, mode: OpenMode) -> Box<dyn Journal> {
    store.open(id, &ThreadId::root(), mode).unwrap()
}

/// Asks until there is an answer; a store has its own clock, and may be slow.
pub(crate) fn eventually<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "it never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}
