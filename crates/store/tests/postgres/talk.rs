//! Something to say, in a book and in a journal.

use komado_core::head::EntrySource;
use komado_core::journal::{Entry, encode};
use komado_core::{Message, Record, Role, Seq};
use komado_store::{Journal, JournalRow};
use komado_testkit::Book;

/// When everything here is said.
pub(crate) const NOW: &str = "2024-01-15T10:30:00Z";

/// Somebody says `text`.
pub(crate) fn said(role: Role, text: &str) -> Entry {
    Entry::Message(Message::text(role, text), None)
}

/// The rows of a book after entry `after`, as they go into a store.
pub(crate) fn rows(book: &Book, after: Seq) -> Vec<JournalRow> {
    let row = |record: &Record| {
        let Ok(head) = book.rows().head(record.seq);
        JournalRow { line: encode(record), head }
    };
    book.records().skip(after as usize).map(row).collect()
}

/// Says something in the book and in the journal.
pub(crate) fn write(book: &mut Book, journal: &mut dyn Journal, entry: Entry, tokens: u32) {
    let seq = book.push(entry, tokens, NOW).unwrap();
    journal.append(seq - 1, &rows(book, seq - 1)).unwrap();
}
