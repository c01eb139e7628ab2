//! Reading the few words that a result is told with, one message or one passage at a time.

use super::text::{said_by, text_of};
use crate::engine::Engine;
use crate::error::Result;
use komado_core::head::Source;
use komado_core::{Message, Seq, SessionId, ThreadId};
use komado_store::shelf::{Hit, Passage};
use komado_store::{Error as StoreError, Journal, Mode};
use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

/// Journals that are held open at once.
const MOST: usize = 16;

/// Reads passages; keeps a few journals open on the way.
pub(super) struct Reader<'e> {
    engine: &'e Engine,
    open: HashMap<(SessionId, ThreadId), Box<dyn Journal>>,
}

impl<'e> Reader<'e> {
    pub(super) fn new(engine: &'e Engine) -> Self {
        Self { engine, open: HashMap::new() }
    }

    /// What one entry says; `None` for what says nothing.
    pub(super) fn message(
        &mut self,
        session: &SessionId,
        thread: &ThreadId,
        seq: Seq,
    ) -> Result<Option<Message>> {
        let key = (session.clone(), thread.clone());
        if self.open.len() >= MOST && !self.open.contains_key(&key) {
            self.open.clear();
        }
        // Others may have put entries on the shelf that came after the journal was opened here.
        if self.open.get(&key).is_none_or(|journal| journal.last() < seq) {
            self.open.insert(key.clone(), self.engine.store().open(session, thread, Mode::Read)?);
        }
        let Some(journal) = self.open.get(&key) else { return Ok(None) };
        Ok(said_by(Source::record(&**journal, seq)?.entry))
    }

    /// The words of a passage.
    pub(super) fn passage(&mut self, session: &SessionId, hit: &Hit) -> Result<String> {
        let Some(message) = self.message(session, &hit.thread, hit.seq)? else { return Ok(String::new()) };
        let Passage { at, bytes, in_output, .. } = hit.passage;
        if !in_output {
            let text = text_of(&message);
            let from = usize::try_from(at).unwrap_or(usize::MAX);
            let piece = text.get(from..from.saturating_add(bytes as usize));
            return Ok(piece.map_or(text.clone(), str::to_owned));
        }
        let Some(whole) = message.outcome().and_then(|outcome| outcome.output_ref.as_ref()) else {
            return Ok(String::new());
        };
        let mut blob = match self.engine.store().blob(session, &whole.id) {
            Ok(blob) => blob,
            Err(StoreError::NoBlob(..)) => return Ok(String::new()),
            Err(other) => return Err(other.into()),
        };
        let mut piece = Vec::with_capacity(bytes as usize);
        blob.seek(SeekFrom::Start(at))?;
        blob.take(u64::from(bytes)).read_to_end(&mut piece)?;
        Ok(String::from_utf8_lossy(&piece).into_owned())
    }
}
