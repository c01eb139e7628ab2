//! Leases: held by one process, given up by a dead one, and useless to who lost them.

use super::{fresh, how, lines, make, open, root, talk};
use komado_core::{Role, ThreadId};
use komado_store::{Error, OpenMode, PostgresStore, Store};
use komado_testkit::Book;
use std::time::Duration;
use talk::said;

/// Waits until `id` can be written through `store`.
fn taken_over(store: &PostgresStore, id: &komado_core::SessionId) -> Box<dyn komado_store::Journal> {
    for _ in 0..200 {
        match store.open(id, &ThreadId::root(), OpenMode::Write) {
            Ok(journal) => return journal,
            Err(Error::Busy { .. }) => std::thread::sleep(Duration::from_millis(50)),
            Err(other) => panic!("{other}"),
        }
    }
    panic!("the lease never ended");
}

#[test]
fn another_process_is_told_who_writes_and_goes_on_once_it_is_done() {
    let url = fresh();
    let (here, there) = (open(&url), PostgresStore::open(&url, &how("別", 10_000, 6_000)).unwrap());
    let id = make(&here, "s");
    let writer = root(&here, &id, OpenMode::Write);
    for refused in [there.open(&id, &ThreadId::root(), OpenMode::Write).err(), there.remove(&id).err()] {
        assert!(
            matches!(&refused, Some(Error::Busy { holder, .. }) if holder.program == "the tests" && holder.host == "窓"),
            "{refused:?}"
        );
    }
    drop(writer);
    drop(root(&there, &id, OpenMode::Write));
    there.remove(&id).unwrap();
}

#[test]
fn who_was_taken_over_writes_nothing_more() {
    let url = fresh();
    // Its leases are over at once, and its renewals come later than that.
    let (slow, quick) = (PostgresStore::open(&url, &how("slow", 10_000, 1)), open(&url));
    let slow = slow.unwrap();
    let id = make(&slow, "s");
    let (mut book, mut old) = (Book::default(), root(&slow, &id, OpenMode::Write));
    talk::write(&mut book, &mut *old, said(Role::User, "一"), 1);
    // Nobody took it: who was only slow goes on.
    talk::write(&mut book, &mut *old, said(Role::User, "二"), 1);
    let mut new = taken_over(&quick, &id);
    assert_eq!(new.last(), 2);
    let mut lost = book.fork(2);
    lost.push(said(Role::User, "lost"), 1, talk::NOW).unwrap();
    let refused = old.append(2, &talk::rows(&lost, 2));
    assert!(matches!(&refused, Err(Error::TakenOver(taken)) if *taken == id), "{refused:?}");
    assert!(matches!(old.rewrite(&mut |_, _| None), Err(Error::TakenOver(_))));
    talk::write(&mut book, &mut *new, said(Role::User, "三"), 1);
    assert!(matches!(old.append(2, &talk::rows(&lost, 2)), Err(Error::TakenOver(_))));
    drop(old);
    talk::write(&mut book, &mut *new, said(Role::User, "四"), 1);
    let expected: Vec<Vec<u8>> = talk::rows(&book, 0).into_iter().map(|row| row.line).collect();
    assert_eq!(lines(&quick, &id), expected);
}

#[test]
fn a_lease_is_renewed_while_its_process_lives() {
    let url = fresh();
    let (holder, other) = (PostgresStore::open(&url, &how("holder", 10_000, 900)).unwrap(), open(&url));
    let id = make(&holder, "s");
    let writer = root(&holder, &id, OpenMode::Write);
    let before = super::sql(&url, "SELECT expires FROM leases");
    let renewed = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        super::sql(&url, "SELECT expires FROM leases") > before
    });
    assert!(
        renewed && matches!(other.open(&id, &ThreadId::root(), OpenMode::Write), Err(Error::Busy { .. }))
    );
    drop(writer);
}

#[test]
fn of_many_who_take_a_session_at_once_one_has_it() {
    let url = fresh();
    let stores: Vec<PostgresStore> = (0..4).map(|_| open(&url)).collect();
    let id = make(&stores[0], "s");
    let open = |store: &PostgresStore| store.open(&id, &ThreadId::root(), OpenMode::Write);
    let all: Vec<_> = std::thread::scope(|scope| {
        let hands: Vec<_> = stores.iter().map(|store| scope.spawn(|| open(store))).collect();
        hands.into_iter().map(|hand| hand.join().unwrap()).collect()
    });
    assert_eq!(all.iter().filter(|opened| opened.is_ok()).count(), 1);
    assert!(all.iter().all(|opened| matches!(opened, Ok(_) | Err(Error::Busy { .. }))));
}

#[test]
fn a_lease_whose_taking_was_not_answered_is_taken_again() {
    let url = fresh();
    let proxy = crate::postgres::servers::proxy::Proxy::before(&url);
    let store = open(&proxy.url);
    let id = make(&store, "s");
    for _ in 0..6 {
        drop(root(&store, &id, OpenMode::Write));
        proxy.lose_the_answer();
        drop(root(&store, &id, OpenMode::Write));
    }
}
