//! Retention: what ended long ago goes, with its row, its folder and its blobs.
//!
//! One of the two ways anything ever leaves a store (the other is [`redact`](crate::redact)). It takes whole sessions
//! that have ended, failed ones too, and never one that may still go on. Blobs of sessions that stay are removed when
//! nothing names them any more, never because of their age.

use crate::engine::Engine;
use crate::error::Result;
use komado_core::SessionId;
use komado_core::head::EntrySource;
use komado_core::journal::Entry;
use komado_core::message::{ImageSource, Message, MessagePart};
use komado_core::session::{Session, State};
use komado_store::{BlobSweep, OpenMode, SessionQuery};
use std::cell::RefCell;
use std::collections::HashSet;
use std::io::{Seek, SeekFrom};

/// What a clean-up did, or would do.
#[derive(Clone, Debug, Default)]
pub struct CleanupResult {
    /// Sessions removed.
    pub sessions: Vec<Session>,
    /// Blobs that nothing named.
    pub swept: BlobSweep,
    /// Sessions that could not be removed or read, each with the reason; they did not keep the others.
    pub failed: Vec<(String, String)>,
}

/// Whether to do it or only to say what would be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CleanupMode {
    /// Only say.
    Dry,
    /// Do it.
    Real,
}

const PAGE: usize = 500;
const ENDED: [State; 3] = [State::Completed, State::Failed, State::Stopped];

impl Engine {
    /// Removes the sessions that ended before `before` (RFC 3339).
    pub fn cleanup(
        &self,
        before: &str,
        run: CleanupMode,
        mut each: impl FnMut(&Session),
    ) -> Result<CleanupResult> {
        let mut cleaned = CleanupResult::default();
        let mut seen = HashSet::new();
        for state in ENDED {
            let query = SessionQuery {
                status: Some(state),
                ended_before: Some(before.to_owned()),
                ..SessionQuery::default()
            };
            self.each_session(query, |session| {
                each(session);
                seen.insert(session.meta.uuid.clone());
                let id = SessionId::new(session.meta.uuid.as_str())?;
                match if run == CleanupMode::Real { self.store().remove(&id) } else { Ok(()) } {
                    Ok(()) => cleaned.sessions.push(session.clone()),
                    Err(error) => cleaned.failed.push((id.to_string(), error.to_string())),
                }
                Ok(())
            })?;
        }
        for state in ENDED {
            self.each_session(SessionQuery { status: Some(state), ..SessionQuery::default() }, |session| {
                if seen.contains(&session.meta.uuid) {
                    return Ok(());
                }
                let id = SessionId::new(session.meta.uuid.as_str())?;
                match self.sweep(&id, run) {
                    Ok(BlobSweep { blobs, bytes }) => {
                        cleaned.swept.blobs += blobs;
                        cleaned.swept.bytes += bytes;
                    }
                    Err(error) => cleaned.failed.push((id.to_string(), error.to_string())),
                }
                Ok(())
            })?;
        }
        Ok(cleaned)
    }

    /// Calls `each` for every session of a query, a page at a time.
    pub fn each_session(
        &self,
        mut query: SessionQuery,
        mut each: impl FnMut(&Session) -> Result<()>,
    ) -> Result<()> {
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
    pub fn sweep(&self, id: &SessionId, run: CleanupMode) -> Result<BlobSweep> {
        let mut loose: HashSet<String> = self.blobs(id)?.into_iter().collect();
        if !loose.is_empty() {
            let named = self.named_blobs(id)?;
            loose.retain(|blob| !named.contains(blob));
        }
        if run == CleanupMode::Real {
            return Ok(self.store().sweep(id, &|blob| !loose.contains(blob))?);
        }
        let mut swept = BlobSweep::default();
        for blob in &loose {
            swept.blobs += 1;
            swept.bytes += self.store().blob(id, blob)?.seek(SeekFrom::End(0))?;
        }
        Ok(swept)
    }

    /// Every blob the session keeps, named or not.
    pub(crate) fn blobs(&self, id: &SessionId) -> Result<Vec<String>> {
        let found = RefCell::new(Vec::new());
        self.store().sweep(id, &|blob| {
            found.borrow_mut().push(blob.to_owned());
            true
        })?;
        Ok(found.into_inner())
    }

    /// Every blob that some entry of the session names.
    pub fn named_blobs(&self, id: &SessionId) -> Result<HashSet<String>> {
        let mut named = HashSet::new();
        for header in self.store().threads(id)? {
            let journal = self.store().open(id, &header.thread, OpenMode::Read)?;
            for seq in header.base_seq() + 1..=journal.last() {
                if journal.head(seq)?.kind.is_item()
                    && let Entry::Message(message, _) = EntrySource::record(&*journal, seq)?.entry
                {
                    blobs_of(&message, &mut named);
                }
            }
        }
        Ok(named)
    }
}

/// Adds the blobs that `message` names.
pub(crate) fn blobs_of(message: &Message, named: &mut HashSet<String>) {
    let mut parts: Vec<&MessagePart> = message.parts.iter().collect();
    while let Some(part) = parts.pop() {
        match part {
            MessagePart::Image { source: ImageSource::Blob { blob, .. }, .. } => {
                named.insert(blob.clone());
            }
            MessagePart::Result(outcome) => {
                named.extend(outcome.output_ref.iter().map(|r| r.id.clone()));
                parts.extend(&outcome.content);
            }
            _ => {}
        }
    }
}
