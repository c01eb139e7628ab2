//! What is written: entry `n` of a session follows from the session and `n` alone, so that whoever reads knows what is due.

use komado_core::head::EntrySource;
use komado_core::journal::{Entry, encode};
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{Message, Role, Seq, SessionId};
use komado_store::{JournalRow, Store};
use komado_testkit::Book;

/// When everything here happens.
const NOW: &str = "2024-01-15T10:30:00Z";

/// A session as it is to be.
pub(crate) struct Conversation {
    session: String,
    book: Book,
}

impl Conversation {
    pub(crate) fn new(session: &str) -> Self {
        Self { session: session.to_owned(), book: Book::default() }
    }

    /// Entry `n`.
    pub(crate) fn row(&mut self, n: Seq) -> JournalRow {
        for next in self.book.view().last() + 1..=n {
            let filler = "窓 window ".repeat(next as usize * 7 % 40);
            let text = format!("{} entry {next} {filler}", self.session);
            let entry = Entry::Message(Message::text(Role::User, text), None);
            self.book.push(entry, 9, NOW).unwrap();
        }
        let record = self.book.records().nth(n as usize - 1).unwrap();
        let Ok(head) = self.book.rows().head(n);
        JournalRow { line: encode(record), head }
    }
}

/// The number that a line says it is.
pub(crate) fn number(line: &[u8]) -> Option<Seq> {
    let text = std::str::from_utf8(line).ok()?;
    text.split_once(" entry ")?.1.split_once(' ')?.0.parse().ok()
}

pub(crate) fn sid(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// Makes the sessions.
pub(crate) fn make(store: &dyn Store, sessions: &[&str]) {
    for name in sessions {
        let meta = Meta {
            uuid: (*name).into(),
            task_key: TaskKey::local(&sid(name)),
            created_at: NOW.into(),
            process_id: 7,
            hostname: "host".into(),
            config: MetaConfig { meter: "o200k".into(), ..MetaConfig::default() },
            user: None,
            queued: false,
        };
        store.create(&meta).unwrap();
    }
}
