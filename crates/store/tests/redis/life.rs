//! A session's time to live.

use super::{how, make, open, place, reader, rows, writer};
use komado_core::thread::{Branch, Header, Moment, ThreadStatus};
use komado_core::{SessionId, ThreadId};
use komado_store::search_index::{IndexedEntry, IndexedPassage, IndexedUpto, Passage};
use komado_store::{
    Blobs, BranchFilter, BranchTable, ConnectOptions, Error, OpenMode, RedisStore, SessionQuery, Store,
    StoreFigures, TranscriptPlace, TranscriptPlaces,
};
use std::time::{Duration, Instant};

fn brief(ttl: Duration) -> ConnectOptions {
    ConnectOptions { ttl: Some(ttl), ..how("briefly") }
}

/// A session with everything that a session can have.
fn whole(store: &RedisStore) -> (SessionId, String) {
    let id = make(store, "s");
    let mut root = writer(store, &id);
    root.append(0, &rows(&["一", "二"])).unwrap();
    let (thread, base) = (ThreadId::new("fork").unwrap(), Moment { thread: ThreadId::root(), seq: 1 });
    let header = Header { thread: thread.clone(), base: Some(base), ..Header::root(id.clone(), "2024") };
    store.spawn(&header).unwrap();
    let blob = store.put_blob(&id, &mut "出力".repeat(200_000).as_bytes()).unwrap().id;
    let branch = Branch {
        session: id.clone(),
        thread,
        parent: Some(ThreadId::root()),
        depth: 1,
        window_ratio: 0.8,
        status: ThreadStatus::Active,
        label: Some("枝".into()),
        chronicle_summary: None,
        held_by: None,
        told: false,
        created_at: "2024".into(),
        completed_at: None,
    };
    store.put_branch(&branch).unwrap();
    let doc = IndexedPassage { passage: Passage::default(), words: 1, terms: vec![("窓".into(), 1)] };
    let role = komado_core::Role::User;
    let sheet =
        IndexedEntry { seq: 1, role, tools: vec![], files: vec![], timestamp: "t".into(), docs: vec![doc] };
    let upto = IndexedUpto { seq: 1, part: 0 };
    store.search_index(&id).unwrap().add(&ThreadId::root(), IndexedUpto::default(), upto, &[sheet]).unwrap();
    (id, blob)
}

/// Asks for each part of a session on its own; true for what is there.
fn parts(store: &dyn Store, id: &SessionId, blob: &str) -> [bool; 5] {
    let is_there = |error: Option<Error>| match error {
        None => true,
        Some(Error::NoSession(gone)) => {
            assert_eq!(gone, *id);
            false
        }
        Some(other) => panic!("half a session: {other}"),
    };
    let fork = ThreadId::new("fork").unwrap();
    [
        is_there(store.open(id, &ThreadId::root(), OpenMode::Read).and_then(|root| root.line(2)).err()),
        is_there(store.open(id, &fork, OpenMode::Read).and_then(|fork| fork.line(1)).err()),
        is_there(store.blob(id, blob).err()),
        is_there(store.branches(id, BranchFilter::All).map(|all| assert_eq!(all.len(), 1)).err()),
        is_there(
            store
                .search_index(id)
                .and_then(|shelf| shelf.tally(&["窓".into()]))
                .map(|tally| assert_eq!(tally.holding, [1]))
                .err(),
        ),
    ]
}

#[test]
fn a_session_is_whole_until_it_is_gone_and_then_nothing_of_it_is_left() {
    let url = place();
    let store = open(&url, &how("patient"));
    let (id, blob) = whole(&store);
    store
        .note(&[TranscriptPlace {
            name: "名".into(), session: id.clone(), thread: ThreadId::root(), seq: 1
        }])
        .unwrap();
    assert_eq!(parts(&store, &id, &blob), [true; 5]);
    // Somebody else uses it and lets it go soon; whoever looks without using sees all of it or nothing.
    let soon = open(&url, &brief(Duration::from_millis(300)));
    drop(reader(&soon, &id));
    let start = Instant::now();
    let mut was_gone = false;
    while !was_gone {
        assert!(start.elapsed() < Duration::from_secs(60), "it never ended");
        let found = store.branches(&id, BranchFilter::All);
        was_gone = matches!(found, Err(Error::NoSession(_)));
        assert!(was_gone || found.unwrap().len() == 1);
    }
    assert_eq!(parts(&store, &id, &blob), [false; 5]);
    assert_eq!(store.spots("名").unwrap(), []);
    assert_eq!(store.sessions(&SessionQuery::default()).unwrap(), []);
    let vitals = store.vitals().unwrap();
    assert_eq!((vitals.expired, vitals.sessions), (Some(1), Some(0)));
    // Its name is free, and the new one has inherited nothing.
    make(&store, "s");
    assert_eq!(reader(&store, &id).last(), 0);
    assert!(matches!(store.blob(&id, &blob), Err(Error::NoBlob(..))));
    assert_eq!(store.spots("名").unwrap(), []);
}

#[test]
fn use_puts_off_the_end_of_everything() {
    let url = place();
    let soon = open(&url, &brief(Duration::from_secs(30)));
    let (id, blob) = whole(&soon);
    let ends = || {
        let client = redis::Client::open(url.split('?').next().unwrap()).unwrap();
        let mut line = client.get_connection().unwrap();
        let prefix = url.split("prefix=").nth(1).unwrap();
        let keys: Vec<String> = redis::cmd("KEYS").arg(format!("{{{prefix}:s}}*")).query(&mut line).unwrap();
        assert_eq!(keys.len(), 5, "{keys:?}");
        let end = |key: &String| redis::cmd("PEXPIRETIME").arg(key).query::<i64>(&mut line).unwrap();
        let mut ends: Vec<i64> = keys.iter().map(end).collect();
        ends.dedup();
        assert_eq!(ends.len(), 1, "one end for all keys");
        ends[0]
    };
    let mut last = ends();
    let uses: [&dyn Fn(); 5] = [
        &|| drop(reader(&soon, &id)),
        &|| writer(&soon, &id).append(2, &[super::row(2, "三")]).unwrap(),
        &|| drop(soon.put_blob(&id, &mut &b"more"[..]).unwrap()),
        &|| drop(soon.blob(&id, &blob).unwrap()),
        &|| {
            let by = komado_core::session::Counters::default();
            drop(soon.change(&id, &komado_store::SessionChange::Count { by, at: "t".into() }).unwrap());
        },
    ];
    for used in uses {
        std::thread::sleep(Duration::from_millis(5));
        used();
        let now = ends();
        assert!(now > last, "not put off: {now} after {last}");
        last = now;
    }
    drop(reader(&open(&url, &ConnectOptions { ttl: None, ..how("for ever") }), &id));
    assert_eq!(ends(), -1, "kept for ever");
}
