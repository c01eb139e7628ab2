//! A thread, opened to look which of a client's requests it has been sent and what was answered.
//!
//! Only heads are walked, and only the entries around one request are read: neither grows with the journal.

use crate::converse::{Library, Toolbox};
use crate::engine::Engine;
use crate::error::Result;
use komado_core::head::{Kind, Source};
use komado_core::journal::{Entry, Mark, Record};
use komado_core::message::Message;
use komado_core::{Seq, SessionId, ThreadId, View};
use komado_store::{Error as StoreError, Journal, Mode};
use std::collections::HashSet;

/// Most entries after a reply that are looked at for words that were never sent.
const MOST_UNSENT: usize = 64;

/// A thread, opened to look.
pub(super) struct Strand {
    journal: Box<dyn Journal>,
    view: View,
}

/// What was answered to a request.
pub(super) struct Answer {
    /// The replies, those to our own calls included; none when none came.
    pub(super) replies: Vec<Message>,
    /// The last entry of it; the request itself when nothing came.
    pub(super) end: Seq,
}

impl Answer {
    /// True when nothing was answered.
    pub(super) fn is_missing(&self) -> bool {
        self.replies.is_empty()
    }
}

impl Strand {
    /// Opens a thread; `None` when it is no more, or takes no more words.
    pub(super) fn open(engine: &Engine, session: &SessionId, thread: &ThreadId) -> Result<Option<Self>> {
        let journal = match engine.store().open(session, thread, Mode::Read) {
            Err(StoreError::NoSession(_) | StoreError::NoThread(..)) => return Ok(None),
            opened => opened?,
        };
        let view = View::fold(&*journal, journal.last())?;
        let strand = Self { journal, view };
        Ok(Some(strand).filter(|strand| strand.view.closed().is_none()))
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.journal.header().session
    }

    pub(super) fn thread(&self) -> &ThreadId {
        &self.journal.header().thread
    }

    pub(super) fn view(&self) -> &View {
        &self.view
    }

    pub(super) fn last(&self) -> Seq {
        self.journal.last()
    }

    pub(super) fn on_path(&self, seq: Seq) -> bool {
        self.view.on_path(seq)
    }

    pub(super) fn record(&self, seq: Seq) -> Result<Record> {
        Ok(Source::record(&*self.journal, seq)?)
    }

    fn kind(&self, seq: Seq) -> Result<Kind> {
        Ok(self.journal.head(seq)?.kind)
    }

    /// True when nobody has said anything.
    pub(super) fn is_blank(&self) -> Result<bool> {
        for seq in (1..=self.last()).filter(|seq| self.on_path(*seq)) {
            if self.kind(seq)?.is_item() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The mark of the request at `seq`; `None` when there is none that a client sent.
    pub(super) fn mark(&self, seq: Seq) -> Result<Option<Mark>> {
        if seq == 0 || seq > self.last() || self.kind(seq)? != Kind::Sent {
            return Ok(None);
        }
        let Entry::Sent(sent) = self.record(seq)?.entry else { return Ok(None) };
        Ok(sent.mark.filter(|mark| !mark.inner))
    }

    /// The next request of the client on the path after `seq`.
    pub(super) fn next_mark(&self, seq: Seq) -> Result<Option<(Seq, Mark)>> {
        for at in (seq + 1..=self.last()).filter(|at| self.on_path(*at)) {
            if let Some(mark) = self.mark(at)? {
                return Ok(Some((at, mark)));
            }
        }
        Ok(None)
    }

    /// What was answered to the request at `sent`: also where the thread has gone back since.
    pub(super) fn answer(&self, sent: Seq) -> Result<Answer> {
        let mut answer = Answer { replies: Vec::new(), end: sent };
        let mut own = HashSet::new();
        for seq in sent + 1..=self.last() {
            match self.kind(seq)? {
                Kind::Assistant => {
                    let Entry::Message(message, Some(_)) = self.record(seq)?.entry else { break };
                    let calls = message.calls().filter(|call| Library.knows(&call.name));
                    own.extend(calls.map(|call| call.id.clone()));
                    answer.replies.push(message);
                    answer.end = seq;
                }
                // Answers to our own calls belong to it; another's are the beginning of the next request.
                Kind::Tool if self.answers(seq, &own)? => answer.end = seq,
                Kind::Sent if self.mark(seq)?.is_none() => {}
                Kind::Lost | Kind::Condense | Kind::Truncate | Kind::Trim | Kind::Revert => {}
                Kind::Setup | Kind::Pin | Kind::Unpin | Kind::AnchorUpdate | Kind::Anchor => {}
                Kind::Share | Kind::Chronicle | Kind::Tell | Kind::Heard => {}
                _ => break,
            }
        }
        Ok(answer)
    }

    fn answers(&self, seq: Seq, own: &HashSet<String>) -> Result<bool> {
        let Entry::Message(message, _) = self.record(seq)?.entry else { return Ok(false) };
        Ok(message.outcome().is_some_and(|outcome| own.contains(&outcome.call_id)))
    }

    /// Messages on the path after `seq`, which no request has told the model of yet.
    pub(super) fn unsent(&self, seq: Seq) -> Result<Vec<Message>> {
        let mut found = Vec::new();
        for at in (seq + 1..=self.last()).filter(|at| self.on_path(*at)) {
            if found.len() == MOST_UNSENT {
                break;
            }
            if matches!(self.kind(at)?, Kind::System | Kind::User | Kind::Assistant | Kind::Tool)
                && let Entry::Message(message, _) = self.record(at)?.entry
            {
                found.push(message);
            }
        }
        Ok(found)
    }

    /// The reply called `name` at `seq`, with the end of its answer; `None` when it is another entry.
    pub(super) fn reply(&self, seq: Seq, name: &str) -> Result<Option<Seq>> {
        if seq == 0 || seq > self.last() || self.kind(seq)? != Kind::Assistant {
            return Ok(None);
        }
        let Entry::Message(_, Some(reply)) = self.record(seq)?.entry else { return Ok(None) };
        if reply.id.as_deref() != Some(name) {
            return Ok(None);
        }
        Ok(Some(self.answer(reply.to.unwrap_or(seq - 1)).map_or(seq, |answer| answer.end.max(seq))))
    }

    /// True when somebody said something on the path after `seq`.
    pub(super) fn goes_on_after(&self, seq: Seq) -> Result<bool> {
        for at in (seq + 1..=self.last()).filter(|at| self.on_path(*at)) {
            if self.kind(at)?.is_item() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
