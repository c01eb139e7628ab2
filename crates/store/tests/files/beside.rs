//! What stands beside the sessions: the queue, which follows from nothing else, and the bell, which nobody misses.

use crate::files::room::{Room, open_store, sid};
use komado_core::session::Counters;
use komado_store::{
    Error, Holder, Job, Queue, SessionChange, Store, ThreadNews, WatchEvent, WatchStore, Watcher,
};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(3600);

fn job(name: &str) -> Job {
    let (session, key) = (sid(name), format!("key {name}"));
    Job { session, key, user: None, body: "{\"題\":\"窓\"}".into(), at: "2024-01-15T10:30:00Z".into() }
}

fn worker() -> Holder {
    Holder { pid: 1, host: "here".into(), program: "komado task work".into(), since: "now".into() }
}

/// Changes the session without a trace but the news.
fn touch(store: &dyn Store) {
    let change = SessionChange::Count { by: Counters::default(), at: "2024-01-15T11:00:00Z".into() };
    store.change(&sid("s"), &change).unwrap();
}

/// What is heard next, however long the machine takes.
fn next(watcher: &mut dyn Watcher) -> WatchEvent {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        match watcher.next(Duration::from_millis(500)).unwrap() {
            WatchEvent::Quiet => {}
            heard => return heard,
        }
    }
    panic!("nothing was heard")
}

fn changed() -> WatchEvent {
    WatchEvent::News(ThreadNews { session: sid("s"), thread: komado_core::ThreadId::root(), last: 0 })
}

#[test]
fn the_queue_outlives_a_rebuild_and_is_its_owners_alone() {
    let room = Room::new();
    let path = room.base().join("queue.db");
    assert!(room.store.take(&worker(), LONG).unwrap().is_none() && !room.store.requeue(&sid("a")).unwrap());
    assert!(!path.exists(), "looking makes none");
    assert!(room.store.enqueue(&job("a")).unwrap() && room.store.enqueue(&job("b")).unwrap());
    let taken = room.store.take(&worker(), LONG).unwrap().unwrap();
    room.store.rebuild().unwrap();
    fs::remove_file(room.base().join("tasks.db")).unwrap();
    let again = open_store(&room.base());
    assert_eq!(again.jobs(None, 0).unwrap().len(), 2);
    assert_eq!(again.take(&worker(), LONG).unwrap().unwrap().job, job("b"));
    again.keep(&taken, LONG).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_queue_that_is_none_or_a_newer_ones_is_refused_and_left_as_it_is() {
    let room = Room::new();
    let path = room.base().join("queue.db");
    fs::write(&path, "これはデータベースではない".repeat(100)).unwrap();
    let before = fs::read(&path).unwrap();
    let error = room.store.enqueue(&job("a")).unwrap_err().to_string();
    assert!(error.contains("queue.db") && error.contains("move it away"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    fs::remove_file(&path).unwrap();
    room.store.enqueue(&job("a")).unwrap();
    let db = rusqlite::Connection::open(&path).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    let error = open_store(&room.base()).jobs(None, 0).unwrap_err();
    assert!(matches!(&error, Error::Refused { why, .. } if why.contains("version 99")), "{error}");
}

#[test]
fn a_queue_that_was_moved_away_is_begun_anew() {
    let room = Room::new();
    let path = room.base().join("queue.db");
    room.store.enqueue(&job("a")).unwrap();
    fs::rename(&path, room.base().join("kept.db")).unwrap();
    assert_eq!(room.store.jobs(None, 0).unwrap(), []);
    assert!(room.store.enqueue(&job("b")).unwrap());
    assert_eq!(open_store(&room.base()).jobs(None, 0).unwrap()[0].job, job("b"));
}

#[test]
fn there_is_a_bell_only_where_somebody_listens() {
    let room = Room::new();
    let path = room.base().join("bell");
    touch(&room.store);
    assert!(!path.exists());
    let mut watcher = open_store(&room.base()).watch().unwrap();
    touch(&room.store);
    assert_eq!(next(&mut *watcher), changed());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // One that was left behind goes when it is long, and nobody makes it again.
    drop(watcher);
    fs::write(&path, "x".repeat(1 << 20)).unwrap();
    touch(&room.store);
    touch(&room.store);
    assert!(!path.exists());
}

#[test]
fn what_is_done_here_is_heard_once_though_others_listen() {
    let room = Room::new();
    let other = open_store(&room.base());
    let (mut here, mut there) = (room.store.watch().unwrap(), other.watch().unwrap());
    touch(&room.store);
    assert_eq!((next(&mut *here), next(&mut *there)), (changed(), changed()));
    let quiet = Duration::from_millis(300);
    assert_eq!(
        (here.next(quiet).unwrap(), there.next(quiet).unwrap()),
        (WatchEvent::Quiet, WatchEvent::Quiet)
    );
}

#[test]
fn whoever_listens_is_told_when_the_bell_was_thrown_away_or_cannot_be_read() {
    let room = Room::new();
    let path = room.base().join("bell");
    let other = open_store(&room.base());
    let mut watcher = room.store.watch().unwrap();
    fs::remove_file(&path).unwrap();
    touch(&other);
    assert_eq!(next(&mut *watcher), WatchEvent::Gap);
    touch(&other);
    assert_eq!(next(&mut *watcher), changed());
    let mut bell = fs::OpenOptions::new().append(true).open(&path).unwrap();
    bell.write_all(b"0123 half a li\n").unwrap();
    assert_eq!(next(&mut *watcher), WatchEvent::Gap);
    touch(&other);
    assert_eq!(next(&mut *watcher), changed());
}
