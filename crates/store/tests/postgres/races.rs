//! Two who change the same session at the same moment, one of them in a transaction held open by hand.

use super::{fresh, how, make, open, root, sql};
use komado_store::{Blobs, Error, OpenMode, PostgresStore, Store};
use std::time::Duration;
use tokio_postgres::Client;

/// Runs `held` in a transaction, then `meanwhile` until it waits for that, then commits; gives what `meanwhile` gave.
fn waiting_for<T: Send>(url: &str, held: &str, meanwhile: impl FnOnce() -> T + Send) -> T {
    let (server, schema) = url.split_once("?schema=").unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let connect = || -> Client {
        let both = runtime.block_on(tokio_postgres::connect(server, tokio_postgres::NoTls)).unwrap();
        runtime.spawn(both.1);
        both.0
    };
    let (holder, looker) = (connect(), connect());
    let begin = format!("SET search_path TO {schema}; BEGIN; {held}");
    runtime.block_on(holder.batch_execute(&begin)).unwrap();
    let pid: i32 = runtime.block_on(holder.query_one("SELECT pg_backend_pid()", &[])).unwrap().get(0);
    let look = "SELECT 1 FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))";
    std::thread::scope(|scope| {
        let hand = scope.spawn(meanwhile);
        while !hand.is_finished() && runtime.block_on(looker.query(look, &[&pid])).unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        runtime.block_on(holder.batch_execute("COMMIT")).unwrap();
        hand.join().unwrap()
    })
}

fn count(url: &str, table: &str) -> String {
    sql(url, &format!("SELECT count(*) FROM {table}"))[0][0].clone().unwrap()
}

#[test]
fn a_shelf_is_cleared_of_what_a_filling_under_way_puts_in() {
    let url = fresh();
    let store = open(&url);
    let id = make(&store, "s");
    let mut shelf = store.search_index(&id).unwrap();
    let filling = "SELECT 1 FROM shelves FOR UPDATE; \
        INSERT INTO shelf_fields SELECT session, 'term:secret', '1 1' FROM shelves; \
        INSERT INTO shelf_fields SELECT session, 'mark:root', '1 0' FROM shelves";
    waiting_for(&url, filling, || shelf.clear()).unwrap();
    assert_eq!(count(&url, "shelf_fields"), "0");
}

#[test]
fn a_session_is_removed_with_what_was_being_added_to_it() {
    let url = fresh();
    let store = open(&url);
    let id = make(&store, "s");
    let adding = "SELECT 1 FROM leases FOR SHARE; \
        INSERT INTO entries SELECT session, 'root', n, 2, 1, '', 'x' FROM leases, generate_series(1, 4500) AS n; \
        INSERT INTO blob_chunks SELECT session, 'b', n, 'x' FROM leases, generate_series(0, 2100) AS n";
    waiting_for(&url, adding, || store.remove(&id)).unwrap();
    for table in ["sessions", "leases", "threads", "entries", "blob_chunks"] {
        assert_eq!(count(&url, table), "0", "{table}");
    }
}

#[test]
fn an_output_of_a_session_that_is_being_removed_is_not_acknowledged() {
    let url = fresh();
    let store = open(&url);
    let id = make(&store, "s");
    let put = waiting_for(&url, "DELETE FROM sessions", || store.put_blob(&id, &mut &b"bytes"[..]));
    assert!(matches!(put, Err(Error::NoSession(_))), "{put:?}");
    assert_eq!((count(&url, "blobs"), count(&url, "blob_chunks")), ("0".into(), "0".into()));
}

#[test]
fn who_looks_for_the_writer_of_a_session_takes_nothing() {
    let url = fresh();
    let (here, there) = (open(&url), open(&url));
    let id = make(&here, "s");
    assert_eq!(there.writer(&id).unwrap(), None);
    assert_eq!(sql(&url, "SELECT token FROM leases"), [[Some("0".to_owned())]]);
    let writer = root(&here, &id, OpenMode::Write);
    assert_eq!(there.writer(&id).unwrap().unwrap().program, "the tests");
    drop(writer);
    assert_eq!(there.writer(&id).unwrap(), None);
}

#[test]
fn a_lease_that_somebody_has_locked_does_not_keep_others_from_being_renewed() {
    let url = fresh();
    let store = PostgresStore::open(&url, &how("holder", 10_000, 900)).unwrap();
    let writers = ["a", "b"].map(|id| root(&store, &make(&store, id), OpenMode::Write));
    let expires = || sql(&url, "SELECT expires FROM leases ORDER BY session DESC LIMIT 1");
    let renewed = || {
        let before = expires();
        (0..60).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            expires() > before
        })
    };
    let lock = "SELECT 1 FROM leases WHERE session = (SELECT min(session) FROM leases) FOR UPDATE";
    assert!(waiting_for(&url, lock, renewed));
    drop(writers);
}
