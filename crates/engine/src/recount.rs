//! Counters that tell the truth after a process was killed.
//!
//! A thread tells the table of sessions what it took when it settles. A process that ends without a word in between has
//! journaled more than it told. Whoever takes the session up counts again what the journals say, one entry
//! at a time, and tells the rest.

use crate::engine::Engine;
use crate::error::Result;
use komado_core::SessionId;
use komado_core::head::Source;
use komado_core::session::{Counters, Session};
use komado_store::{Change, Mode};

impl Engine {
    /// Counts a session's journals again and puts its row right. For whoever holds the session, before saying anything.
    pub fn recount(&self, id: &SessionId) -> Result<Session> {
        let mut counted = Counters::default();
        for header in self.store().threads(id)? {
            let journal = self.store().open(id, &header.thread, Mode::Read)?;
            for seq in header.base_seq() + 1..=journal.last() {
                counted += Counters::of(&Source::record(&*journal, seq)?.entry);
            }
        }
        let session = self.session(id)?;
        let by = counted.since(&session.counters);
        if by == Counters::default() {
            return Ok(session);
        }
        Ok(self.store().change(id, &Change::Count { by, at: self.now() })?)
    }
}
