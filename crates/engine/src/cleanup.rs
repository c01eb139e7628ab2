//! Retention: what ended long ago goes, with its row, its folder and its blobs.
//!
//! One of the two ways anything ever leaves a store (the other is [`redact`](crate::redact)). It takes whole sessions
//! that have ended, failed ones too, and never one that may still go on. Blobs of sessions that stay are removed when
//! nothing names them any more, never because of their age.

use crate::engine::Engine;
use crate::error::Result;
use komado_core::head::Source;
use komado_core::journal::Entry;
use komado_core::message::{ImageSource, Message, Part};
use komado_core::session::{Session, State};
use komado_core::SessionId;
use komado_store::{Journal, Mode, Query, Swept};
use std::cell::Cell;
use std::collections::HashSet;

/// What a clean-up did, or would do.
#[derive(Clone, Debug, Default)]
pub struct Cleaned {
    /// Sessions removed.
    pub sessions: Vec<Session>,
    /// Blobs that nothing named.
    pub swept: Swept,
}

/// Whether to do it or only to say what would be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Run {
    /// Only say.
    Dry,
    /// Do it.
    Real,
}

const PAGE: usize = 500;

impl Engine {
    /// Removes the sessions that ended before `before` (RFC 3339).
    pub fn cleanup(&self, before: &str, run: Run, mut each: impl FnMut(&Session)) -> Result<Cleaned> {
        let mut cleaned = Cleaned::default();
        for state in [State::Completed, State::Failed, State::Stopped] {
            let query = Query { status: Some(state), ended_before: Some(before.to_owned()), ..Query::default() };
            self.each_session(query, |session| {
                each(session);
                if run == Run::Real {
                    self.store().remove(&SessionId::new(session.meta.uuid.as_str())?)?;
                }
                cleaned.sessions.push(session.clone());
                Ok(())
            })?;
        }
        let gone: HashSet<String> = cleaned.sessions.iter().map(|s| s.meta.uuid.clone()).collect();
        self.each_session(Query::default(), |session| {
            if gone.contains(&session.meta.uuid) || !session.status.is_ended() {
                return Ok(());
            }
            let swept = self.sweep(&SessionId::new(session.meta.uuid.as_str())?, run)?;
            cleaned.swept.blobs += swept.blobs;
            cleaned.swept.bytes += swept.bytes;
            Ok(())
        })?;
        Ok(cleaned)
    }

    /// Calls `each` for every session of a query, a page at a time.
    pub fn each_session(&self, mut query: Query, mut each: impl FnMut(&Session) -> Result<()>) -> Result<()> {
        query.limit = PAGE;
        loop {
            let page = self.store().sessions(&query)?;
            for session in &page {
                each(session)?;
            }
            match page.last() {
                Some(last) if page.len() == PAGE => {
                    let id = SessionId::new(last.meta.uuid.as_str())?;
                    query.after = Some((last.meta.created_at.clone(), id));
                }
                _ => return Ok(()),
            }
        }
    }

    /// Removes the blobs of a session that none of its entries names.
    pub fn sweep(&self, id: &SessionId, run: Run) -> Result<Swept> {
        let named = self.named_blobs(id)?;
        let would = Cell::new(0);
        let keep = |blob: &str| {
            let kept = named.contains(blob);
            would.set(would.get() + u64::from(!kept));
            kept || run == Run::Dry
        };
        let swept = self.store().sweep(id, &keep)?;
        Ok(if run == Run::Dry { Swept { blobs: would.get(), bytes: 0 } } else { swept })
    }

    /// Every blob that some entry of the session names.
    pub fn named_blobs(&self, id: &SessionId) -> Result<HashSet<String>> {
        let mut named = HashSet::new();
        for header in self.store().threads(id)? {
            let journal = self.store().open(id, &header.thread, Mode::Read)?;
            collect(&*journal, &mut named)?;
        }
        Ok(named)
    }
}

fn collect(journal: &dyn Journal, named: &mut HashSet<String>) -> Result<()> {
    for seq in journal.header().base_seq() + 1..=journal.last() {
        if !journal.head(seq)?.kind.is_item() {
            continue;
        }
        if let Entry::Message(message, _) = Source::record(journal, seq)?.entry {
            blobs_of(&message, named);
        }
    }
    Ok(())
}

/// Adds the blobs that `message` names.
pub(crate) fn blobs_of(message: &Message, named: &mut HashSet<String>) {
    let mut parts: Vec<&Part> = message.parts.iter().collect();
    while let Some(part) = parts.pop() {
        match part {
            Part::Image { source: ImageSource::Blob { blob, .. }, .. } => {
                named.insert(blob.clone());
            }
            Part::Result(outcome) => {
                named.extend(outcome.output_ref.iter().map(|r| r.id.clone()));
                parts.extend(&outcome.content);
            }
            _ => {}
        }
    }
}
