//! What a session is about, in a few words.
//!
//! The title is the user's own first line. It is read from the journal each time, so that a session from before there were
//! titles has one, and one whose first words were redacted has none of them.

use crate::engine::Engine;
use komado_core::harness::title_of;
use komado_core::{Entry, EntrySource, Kind, MessagePart, SessionId, ThreadId};
use komado_store::OpenMode;

/// Entries at the beginning of a session that are looked at. An agent sends a few messages of its own before the user's.
const FIRST: u32 = 24;

/// Messages of them that are read: each may be large.
const MESSAGES: u32 = 4;

impl Engine {
    /// The first line that the user wrote in a session. None where there is none among its first entries, or where they cannot
    /// be read: a list says all else of it.
    pub fn title(&self, id: &SessionId) -> Option<String> {
        let journal = self.store().open(id, &ThreadId::root(), OpenMode::Read).ok()?;
        let is_users = |seq: &u32| journal.head(*seq).is_ok_and(|head| head.kind == Kind::User);
        let said = (1..=journal.last().min(FIRST)).filter(is_users).take(MESSAGES as usize);
        said.filter_map(|seq| EntrySource::record(&*journal, seq).ok()).find_map(|record| {
            match record.entry {
                Entry::Message(message, _) => message.parts.iter().find_map(|part| match part {
                    MessagePart::Text { text, .. } => title_of(text),
                    _ => None,
                }),
                _ => None,
            }
        })
    }
}
