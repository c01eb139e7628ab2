//! Figures of a store: what it tells of itself is so.

use super::{make, meta, root, sid};
use komado_store::{OpenMode, Store};

pub(crate) fn a_store_tells_what_it_holds(store: &dyn Store) {
    let empty = store.vitals().unwrap();
    assert!(["file", "memory", "postgres", "redis"].contains(&empty.kind), "{empty:?}");
    assert!(!empty.place.is_empty() && !empty.durability.is_empty(), "{empty:?}");
    assert_eq!(empty.sessions, Some(0));
    for n in 0..3 {
        store.create(&meta(&format!("s{n}"), n)).unwrap();
    }
    store.remove(&sid("s1")).unwrap();
    let filled = store.vitals().unwrap();
    assert_eq!(filled.sessions, Some(2));
    assert_eq!((filled.kind, filled.place, filled.may_lose), (empty.kind, empty.place, empty.may_lose));
}

pub(crate) fn a_store_tells_how_many_sessions_this_process_writes(store: &dyn Store) {
    assert_eq!(store.vitals().unwrap().leases, Some(0));
    let (a, b) = (make(store, "a"), make(store, "b"));
    let journals = (root(store, &a, OpenMode::Write), root(store, &b, OpenMode::Write));
    let reader = root(store, &a, OpenMode::Read);
    assert_eq!(store.vitals().unwrap().leases, Some(2));
    drop(journals);
    super::eventually(|| (store.vitals().unwrap().leases == Some(0)).then_some(()));
    drop(reader);
}
