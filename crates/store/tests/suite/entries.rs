//! Entries: appended, read, counted on, changed.

use super::threads::{header, same};
use super::{make, root, tid};
use crate::suite::play::{self, NOW, said};
use komado_core::head::EntrySource;
use komado_core::journal::{Entry, encode};
use komado_core::{Message, Record, Role, ThreadId};
use komado_store::{Error, JournalRow, OpenMode, Store};
use komado_testkit::Book;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) fn what_is_appended_is_there_line_for_line(store: &dyn Store) {
    let id = make(store, "s");
    let book = play::book(3, 30);
    let mut writer = root(store, &id, OpenMode::Write);
    assert_eq!(writer.last(), 0);
    for row in play::rows(&book, 0) {
        let seq = writer.last() + 1;
        writer.append(seq - 1, &[row]).unwrap();
        assert_eq!(writer.last(), seq);
    }
    same(&*writer, &book);
    drop(writer);
    same(&*root(store, &id, OpenMode::Read), &book);
    let reader = root(store, &id, OpenMode::Read);
    for record in book.records() {
        assert_eq!(EntrySource::record(&*reader, record.seq).unwrap(), *record);
    }
    for nowhere in [book.view().last() + 1, u32::MAX] {
        assert!(reader.line(nowhere).is_err() && reader.head(nowhere).is_err(), "{nowhere}");
    }
    assert!(reader.line(0).is_err());
}

pub(crate) fn an_append_says_what_it_comes_after(store: &dyn Store) {
    let id = make(store, "s");
    let rows = play::rows(&play::book(4, 6), 0);
    let mut writer = root(store, &id, OpenMode::Write);
    writer.append(0, &rows[..3]).unwrap();
    for wrong in [0, 2, 4, u32::MAX] {
        let moved = writer.append(wrong, &rows[3..4]);
        assert!(matches!(moved, Err(Error::Moved { expected, found: 3 }) if expected == wrong));
    }
    assert_eq!(writer.last(), 3);
    writer.append(3, &rows[3..]).unwrap();
    let mut reader = root(store, &id, OpenMode::Read);
    assert!(matches!(reader.append(6, &rows[..1]), Err(Error::ReadOnly)));
    assert!(matches!(reader.rewrite(&mut |_, _| None), Err(Error::ReadOnly)));
    assert_eq!(reader.last(), 6);
}

pub(crate) fn a_batch_is_appended_whole_or_not_at_all(store: &dyn Store) {
    let id = make(store, "s");
    let book = play::book(5, 40);
    let rows = play::rows(&book, 0);
    let mut writer = root(store, &id, OpenMode::Write);
    writer.append(0, &[]).unwrap();
    writer.append(0, &rows[..15]).unwrap();
    for bad in [&b"{\"seq\":16}"[..], b"{}\n{}\n", b"\n{}", b""] {
        let torn = JournalRow { line: bad.to_vec(), head: rows[16].head };
        let mixed = [rows[15].clone(), torn, rows[17].clone()];
        assert!(writer.append(15, &mixed).is_err(), "{bad:?} is not one line");
        assert_eq!(writer.last(), 15);
    }
    writer.append(15, &rows[15..]).unwrap();
    same(&*writer, &book);
    drop(writer);
    same(&*root(store, &id, OpenMode::Read), &book);
}

pub(crate) fn a_second_writer_is_told_who_the_first_is(store: &dyn Store) {
    let id = make(store, "s");
    store.spawn(&header(&id, "t", None, 1)).unwrap();
    let first = root(store, &id, OpenMode::Write);
    for mode in [OpenMode::Write, OpenMode::Amend] {
        match store.open(&id, &ThreadId::root(), mode) {
            Err(Error::Busy { session, holder }) => {
                assert_eq!((session, holder.pid), (id.clone(), std::process::id()));
                assert!(!holder.program.is_empty());
            }
            _ => panic!("two writers"),
        }
    }
    // Another thread of the session is another matter, and another session all the more.
    let other = store.open(&id, &tid("t"), OpenMode::Write).unwrap();
    drop(first);
    let again = root(store, &id, OpenMode::Write);
    drop((other, again));
    drop(root(store, &id, OpenMode::Write));
}

/// Not for a store that fails on purpose: which call is the n-th depends on who is faster.
pub(crate) fn many_read_a_whole_beginning_while_one_writes(store: &dyn Store) {
    let id = make(store, "s");
    let book = play::book(6, 120);
    let rows = play::rows(&book, 0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut longest = 0;
                while !done.load(Ordering::SeqCst) || longest < 120 {
                    let reader = root(store, &id, OpenMode::Read);
                    let last = reader.last();
                    assert!(last >= longest, "a reader saw @{longest}, a later one only @{last}");
                    for seq in (1..=last).rev().take(10) {
                        assert_eq!(reader.line(seq).unwrap(), rows[seq as usize - 1].line);
                        assert_eq!(reader.head(seq).unwrap(), rows[seq as usize - 1].head);
                    }
                    let view = komado_core::View::fold(&*reader, last).unwrap();
                    assert_eq!(view, book.view_at(last));
                    longest = last;
                }
            });
        }
        let mut at = 0;
        while at < 120 {
            // The writer comes and goes.
            let mut writer = root(store, &id, OpenMode::Write);
            for n in [1, 3, 1, 5] {
                let next = (at + n).min(120);
                writer.append(at, &rows[at as usize..next as usize]).unwrap();
                at = next;
            }
        }
        done.store(true, Ordering::SeqCst);
    });
}

pub(crate) fn a_rewritten_line_is_changed_and_no_other(store: &dyn Store) {
    let id = make(store, "s");
    let mut book = Book::default();
    let mut writer = root(store, &id, OpenMode::Write);
    for text in ["public", "the secret", "public too", "secret again"] {
        play::write(&mut book, &mut *writer, said(Role::User, text), 4);
    }
    let old = play::rows(&book, 0);
    let without = |seq: u32, text: &str| {
        let entry = Entry::Message(Message::text(Role::User, text), None);
        encode(&Record { seq, timestamp: NOW.into(), tokens: 4, entry })
    };
    assert_eq!(writer.rewrite(&mut |_, _| None).unwrap(), 0);
    let mut asked = Vec::new();
    let changed = writer.rewrite(&mut |seq, line| {
        assert_eq!(line.as_bytes(), old[seq as usize - 1].line);
        asked.push(seq);
        line.contains("secret").then(|| without(seq, "[redacted], which is longer"))
    });
    assert_eq!((changed.unwrap(), asked), (2, vec![1, 2, 3, 4]));
    let expect = |journal: &dyn komado_store::Journal| {
        for seq in 1..=4 {
            let line = journal.line(seq).unwrap();
            let changed = without(seq, "[redacted], which is longer");
            assert_eq!(line, if seq % 2 == 0 { changed } else { old[seq as usize - 1].line.clone() });
            assert_eq!(journal.head(seq).unwrap(), old[seq as usize - 1].head);
        }
    };
    expect(&*writer);
    // The handle goes on.
    play::write(&mut book, &mut *writer, said(Role::User, "after"), 1);
    expect(&*root(store, &id, OpenMode::Read));
    drop(writer);
    expect(&*root(store, &id, OpenMode::Amend));
    assert_eq!(root(store, &id, OpenMode::Read).last(), 5);
}

pub(crate) fn a_line_is_not_rewritten_to_something_else(store: &dyn Store) {
    let id = make(store, "s");
    let mut book = Book::default();
    let mut writer = root(store, &id, OpenMode::Write);
    for text in ["one", "two"] {
        play::write(&mut book, &mut *writer, said(Role::User, text), 4);
    }
    let line =
        |seq, tokens, role| encode(&Record { seq, timestamp: NOW.into(), tokens, entry: said(role, "x") });
    let mut two = line(2, 4, Role::User);
    two.extend_from_within(..);
    let bad = [
        b"not json\n".to_vec(),
        b"\xff\n".to_vec(),
        line(2, 4, Role::User)[..10].to_vec(),
        line(3, 4, Role::User),
        line(2, 5, Role::User),
        line(2, 4, Role::Assistant),
        encode(&Record { seq: 2, timestamp: NOW.into(), tokens: 4, entry: Entry::Rewind { to: 0 } }),
        two,
    ];
    for bad in bad {
        let changed =
            writer.rewrite(&mut |seq, _| Some(if seq == 1 { line(1, 4, Role::User) } else { bad.clone() }));
        assert!(changed.is_err(), "{:?}", String::from_utf8_lossy(&bad));
        same(&*writer, &book);
    }
    play::write(&mut book, &mut *writer, said(Role::User, "three"), 4);
    drop(writer);
    same(&*root(store, &id, OpenMode::Read), &book);
}

pub(crate) fn a_fork_sees_the_rewritten_line(store: &dyn Store) {
    let id = make(store, "s");
    let mut book = Book::default();
    let mut writer = root(store, &id, OpenMode::Write);
    for text in ["a secret", "b"] {
        play::write(&mut book, &mut *writer, said(Role::User, text), 4);
    }
    store.spawn(&header(&id, "fork", Some(("root", 2)), 1)).unwrap();
    let mut fork = store.open(&id, &tid("fork"), OpenMode::Write).unwrap();
    play::write(&mut book, &mut *fork, said(Role::User, "c"), 4);
    drop(fork);
    let clean =
        encode(&Record { seq: 1, timestamp: NOW.into(), tokens: 4, entry: said(Role::User, "[redacted]") });
    assert_eq!(writer.rewrite(&mut |seq, _| (seq == 1).then(|| clean.clone())).unwrap(), 1);
    let fork = store.open(&id, &tid("fork"), OpenMode::Read).unwrap();
    assert_eq!(fork.line(1).unwrap(), clean);
    assert_eq!(fork.line(3).unwrap(), play::rows(&book, 2)[0].line);
    assert_eq!(komado_core::View::fold(&*fork, 3).unwrap(), *book.view());
}
