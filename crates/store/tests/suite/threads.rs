//! Threads: spawned, listed, forked.

use super::{make, root, tid};
use crate::suite::dice::Dice;
use crate::suite::play::{self, said};
use komado_core::thread::{Header, Moment};
use komado_core::{Role, Seq, SessionId};
use komado_store::{Error, Journal, OpenMode, Store};
use komado_testkit::Book;

pub(crate) fn header(id: &SessionId, thread: &str, base: Option<(&str, Seq)>, minute: u32) -> Header {
    Header {
        session: id.clone(),
        thread: tid(thread),
        base: base.map(|(thread, seq)| Moment { thread: tid(thread), seq }),
        parent: None,
        label: Some("別案".into()),
        timestamp: format!("2024-01-15T10:{minute:02}:00Z"),
    }
}

fn names(store: &dyn Store, id: &SessionId) -> Vec<String> {
    store.threads(id).unwrap().iter().map(|header| header.thread.to_string()).collect()
}

/// Every line and head of `journal` is that of `book`.
pub(crate) fn same(journal: &dyn Journal, book: &Book) {
    assert_eq!(journal.last(), book.view().last());
    for (row, seq) in play::rows(book, 0).iter().zip(1..) {
        assert_eq!(journal.head(seq).unwrap(), row.head, "head @{seq}");
        assert_eq!(journal.line(seq).unwrap(), row.line, "line @{seq}");
    }
    assert_eq!(journal.head(0).unwrap(), komado_core::Head::START);
}

pub(crate) fn threads_are_listed_by_age_with_the_root_first(store: &dyn Store) {
    let id = make(store, "s");
    for (name, minute) in [("zeta", 40), ("alpha", 50), ("beta", 50), ("early", 1)] {
        store.spawn(&header(&id, name, None, minute)).unwrap();
    }
    assert_eq!(names(store, &id), ["root", "early", "zeta", "alpha", "beta"]);
    let listed = store.threads(&id).unwrap();
    assert_eq!(listed[2], header(&id, "zeta", None, 40));
    let spawned = store.open(&id, &tid("zeta"), OpenMode::Read).unwrap();
    assert_eq!((spawned.header(), spawned.last()), (&listed[2], 0));
}

pub(crate) fn no_thread_is_listed_before_one_it_goes_on_from(store: &dyn Store) {
    let id = make(store, "s");
    // All at the same moment, by a clock that stands still.
    store.spawn(&header(&id, "z", Some(("root", 0)), 7)).unwrap();
    store.spawn(&header(&id, "m", Some(("z", 0)), 7)).unwrap();
    store.spawn(&header(&id, "a", Some(("m", 0)), 7)).unwrap();
    let child = Header { parent: Some(Moment { thread: tid("a"), seq: 0 }), ..header(&id, "0", None, 7) };
    store.spawn(&child).unwrap();
    store.spawn(&header(&id, "b", None, 7)).unwrap();
    assert_eq!(names(store, &id), ["root", "b", "z", "m", "a", "0"]);
}

pub(crate) fn a_thread_name_is_given_once_and_its_base_must_be_there(store: &dyn Store) {
    let id = make(store, "s");
    store.spawn(&header(&id, "t", None, 1)).unwrap();
    play::write(
        &mut Book::default(),
        &mut *store.open(&id, &tid("t"), OpenMode::Write).unwrap(),
        said(Role::User, "x"),
        1,
    );
    for taken in ["t", "root"] {
        let again = store.spawn(&header(&id, taken, None, 2));
        assert!(matches!(again, Err(Error::ThreadExists(_, thread)) if thread == tid(taken)));
    }
    let lost = store.spawn(&header(&id, "u", Some(("none", 0)), 2));
    assert!(matches!(lost, Err(Error::NoThread(_, thread)) if thread == tid("none")));
    let own = store.spawn(&header(&id, "v", Some(("v", 0)), 2));
    assert!(matches!(own, Err(Error::NoThread(..))), "no thread goes on from itself");
    let early = store.spawn(&header(&id, "w", Some(("t", 2)), 2)).unwrap_err();
    assert!(early.to_string().contains("s/t") && early.to_string().contains("@2"), "{early}");
    assert_eq!(names(store, &id), ["root", "t"]);
    assert_eq!(store.open(&id, &tid("t"), OpenMode::Read).unwrap().last(), 1);
}

pub(crate) fn a_fork_shares_what_came_before_number_for_number(store: &dyn Store) {
    let id = make(store, "s");
    let (mut trunk, mut dice) = (Book::default(), Dice::new(5));
    play::go_on(&mut trunk, &mut dice, 12);
    let mut writer = root(store, &id, OpenMode::Write);
    writer.append(0, &play::rows(&trunk, 0)).unwrap();

    store.spawn(&header(&id, "fork", Some(("root", 7)), 1)).unwrap();
    let mut fork = trunk.fork(7);
    let mut journal = store.open(&id, &tid("fork"), OpenMode::Write).unwrap();
    same(&*journal, &fork);
    play::go_on(&mut fork, &mut dice, 9);
    journal.append(7, &play::rows(&fork, 7)).unwrap();
    same(&*journal, &fork);

    // The trunk goes on; the fork does not see it. A fork of the fork sees both.
    play::go_on(&mut trunk, &mut dice, 9);
    writer.append(12, &play::rows(&trunk, 12)).unwrap();
    for (name, at) in [("late", 11), ("early", 3), ("first", 0)] {
        store.spawn(&header(&id, name, Some(("fork", at)), 2)).unwrap();
        let mut book = fork.fork(at);
        let mut journal = store.open(&id, &tid(name), OpenMode::Write).unwrap();
        same(&*journal, &book);
        play::go_on(&mut book, &mut dice, 5);
        journal.append(at, &play::rows(&book, at)).unwrap();
        same(&*journal, &book);
        same(&*store.open(&id, &tid(name), OpenMode::Read).unwrap(), &book);
    }
    same(&*store.open(&id, &tid("fork"), OpenMode::Read).unwrap(), &fork);
    same(&*root(store, &id, OpenMode::Read), &trunk);
}
