//! What it costs, counted by the system: one write and one sync to append, a few kilobytes to open.

use crate::files::play::{self, said};
use crate::files::room::Room;
use komado_core::{Role, View};
use komado_store::files::JournalWork;
use komado_store::{Journal, OpenMode};
use komado_testkit::Book;
use std::fs;

/// A counter of this thread, as the system keeps it; `None` where it keeps none.
pub(crate) fn counted(what: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/io").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(": "))?;
    line.parse().ok()
}

#[test]
fn an_append_is_one_write_and_one_sync() {
    let mut room = Room::new();
    let mut book = Book::default();
    for n in 0..1100 {
        book.push(said(if n % 2 == 0 { Role::User } else { Role::Assistant }, "word"), 3, play::NOW).unwrap();
    }
    let rows = play::rows(&book, 0);
    let mut journal = room.write();
    assert_eq!(journal.work(), JournalWork::default());
    let before = counted("syscw");
    for (row, after) in rows[..1000].iter().zip(0..) {
        journal.append(after, std::slice::from_ref(row)).unwrap();
    }
    if let (Some(before), Some(after)) = (before, counted("syscw")) {
        assert_eq!(after - before, 1000, "calls to write, all files taken together");
    }
    assert_eq!(journal.work(), JournalWork { writes: 1000, syncs: 1000 });
    let before = counted("syscw");
    journal.append(1000, &rows[1000..]).unwrap();
    if let (Some(before), Some(after)) = (before, counted("syscw")) {
        assert_eq!(after - before, 1, "a hundred at once");
    }
    assert_eq!(journal.work(), JournalWork { writes: 1001, syncs: 1001 });
    assert_eq!(room.store.work(), journal.work());
    assert_eq!(journal.byte_size(), fs::metadata(room.path("messages.jsonl")).unwrap().len());
    room.book = book;
    crate::files::room::same(&journal, &room.book);
}

#[test]
fn opening_does_not_read_the_journal() {
    let mut room = Room::new();
    let mut journal = room.write();
    let words = "window ".repeat(9_000);
    for _ in 0..8 {
        for n in 0..100 {
            let role = if n % 2 == 0 { Role::User } else { Role::Assistant };
            room.book.push(said(role, &words), 9_000, play::NOW).unwrap();
        }
        let last = Journal::last(&journal);
        journal.append(last, &play::rows(&room.book, last)).unwrap();
    }
    drop(journal);
    let size = fs::metadata(room.path("messages.jsonl")).unwrap().len();
    assert!(size > 50_000_000, "{size}");
    for mode in [OpenMode::Read, OpenMode::Write, OpenMode::Amend] {
        let before = counted("rchar");
        let journal = room.open(mode).unwrap();
        let view = View::fold(&journal, Journal::last(&journal)).unwrap();
        if let (Some(before), Some(after)) = (before, counted("rchar")) {
            // The last message is read, because it may have calls that wait.
            let read = after - before - u64::try_from(words.len()).unwrap();
            assert!(read < 20_000, "{read} bytes were read to open {size}");
        }
        assert_eq!(view, *room.book.view());
    }
}
