//! A thread, opened to look which of a client's requests it has been sent and what was answered.
//!
//! Only heads are walked, and only the entries around one request are read: neither grows with the journal.

use crate::converse::{Library, Toolbox};
use crate::engine::Engine;
use crate::error::Result;
use crate::relay::names;
use crate::thread::Thread;
use komado_core::head::Kind;
use komado_core::journal::{Entry, Mark};
use komado_core::message::{Call, Message};
use komado_core::session::MetaConfig;
use komado_core::{Seq, SessionId, ThreadId};
use komado_store::{Error as StoreError, Mode};
use std::collections::HashSet;
use std::ops::Deref;

/// Most entries after a reply that are looked at for words that were never sent.
const MOST_UNSENT: usize = 64;

/// A thread, opened to look.
pub(super) struct Strand<'e>(Thread<'e>);

impl<'e> Deref for Strand<'e> {
    type Target = Thread<'e>;

    fn deref(&self) -> &Thread<'e> {
        &self.0
    }
}

/// What was answered to a request.
pub(super) struct Answer {
    /// The replies, those to our own calls included; none when none came.
    pub(super) replies: Vec<Message>,
    /// The last entry of it; the request itself when nothing came.
    pub(super) end: Seq,
    /// Calls that are not ours, whatever they are called: the client brings such a tool, or answered one itself.
    theirs: HashSet<String>,
    /// Calls that we answered.
    ours: HashSet<String>,
}

impl Answer {
    /// True when nothing was answered.
    pub(super) fn is_missing(&self) -> bool {
        self.replies.is_empty()
    }

    /// True for a call that the client never saw: we answered it, or it has the name of a tool of ours and none of theirs.
    pub(super) fn is_own(&self, call: &Call) -> bool {
        Library.knows(&call.name) && !self.theirs.contains(&call.id)
    }

    /// True for a call that we answered.
    pub(super) fn was_answered(&self, call: &Call) -> bool {
        self.ours.contains(&call.id)
    }
}

/// Results of calls that have the name of a tool of ours, of which it is not known yet who gave them.
#[derive(Default)]
struct Pending(Vec<(Seq, String)>);

impl Pending {
    /// The first `n` are ours: they belong to the answer. The others came with the client's next request.
    fn settle(&mut self, n: usize, answer: &mut Answer) {
        for (at, (seq, id)) in self.0.drain(..).enumerate() {
            match at < n {
                true => {
                    answer.end = seq;
                    answer.ours.insert(id);
                }
                false => {
                    answer.theirs.insert(id);
                }
            }
        }
    }
}

impl<'e> Strand<'e> {
    /// Opens a thread; `None` when it is no more, or takes no more words.
    pub(super) fn open(engine: &'e Engine, session: &SessionId, thread: &ThreadId) -> Result<Option<Self>> {
        let journal = match engine.store().open(session, thread, Mode::Read) {
            Err(StoreError::NoSession(_) | StoreError::NoThread(..)) => return Ok(None),
            opened => opened?,
        };
        // Nothing is counted here: what the session was made with does not matter.
        let strand = Self(Thread::new(engine, journal, MetaConfig::default(), Mode::Read)?);
        Ok(Some(strand).filter(|strand| strand.view().closed().is_none()))
    }

    pub(super) fn on_path(&self, seq: Seq) -> bool {
        self.view().on_path(seq)
    }

    fn kind(&self, seq: Seq) -> Result<Kind> {
        Ok(self.source().head(seq)?.kind)
    }

    /// True when nobody has said anything.
    pub(super) fn is_blank(&self) -> Result<bool> {
        Ok(!self.goes_on_after(0)?)
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
        for entry in self.view().forth(self.source(), seq + 1) {
            let (at, _) = entry?;
            if let Some(mark) = self.mark(at)? {
                return Ok(Some((at, mark)));
            }
        }
        Ok(None)
    }

    /// The first of the requests on the path that asked for the same as the one at `sent`, with nothing between them. Who
    /// asks again goes back there: however often it is done, it leaves one gap.
    pub(super) fn first_asked(&self, sent: Seq) -> Result<Seq> {
        let Some(mark) = self.mark(sent)? else { return Ok(sent) };
        let mut first = sent;
        for entry in self.view().back(self.source(), sent.saturating_sub(1)) {
            let (at, head) = entry?;
            match head.kind {
                Kind::Rewind => {}
                Kind::Sent if self.mark(at)?.is_some_and(|before| asks_the_same(&before, &mark)) => {
                    first = at
                }
                _ => break,
            }
        }
        Ok(first)
    }

    /// What was answered to the request at `sent`: also where the thread has gone back since.
    ///
    /// A tool of the client's may have the name of one of ours. Its results are ours when the gateway asked on with them, or
    /// when the client's next request says that it does not tell them.
    pub(super) fn answer(&self, sent: Seq) -> Result<Answer> {
        let mut answer =
            Answer { replies: Vec::new(), end: sent, theirs: HashSet::new(), ours: HashSet::new() };
        let mut pending = Pending::default();
        for seq in sent + 1..=self.last() {
            match self.kind(seq)? {
                Kind::Assistant => {
                    let Entry::Message(message, Some(_)) = self.record(seq)?.entry else { break };
                    answer.replies.push(message);
                    answer.end = seq;
                }
                Kind::Tool => match self.answered(seq, &answer)? {
                    Some(id) => pending.0.push((seq, id)),
                    None => break,
                },
                Kind::Sent if self.is_inner(seq)? => pending.settle(usize::MAX, &mut answer),
                Kind::Sent if self.mark(seq)?.is_none() => {}
                Kind::Lost | Kind::Condense | Kind::Truncate | Kind::Trim | Kind::Revert => {}
                Kind::Setup | Kind::Pin | Kind::Unpin | Kind::AnchorUpdate | Kind::Anchor => {}
                Kind::Share | Kind::Chronicle | Kind::Tell | Kind::Heard | Kind::Note => {}
                _ => break,
            }
        }
        self.settle(pending, &mut answer)?;
        Ok(answer)
    }

    /// Whose the last results are: the next request says it; without one the tools that the client brings do.
    fn settle(&self, mut pending: Pending, answer: &mut Answer) -> Result<()> {
        if answer.replies.iter().flat_map(Message::calls).all(|call| !Library.knows(&call.name)) {
            return Ok(());
        }
        let brought = self.brought()?;
        let calls = answer.replies.iter().flat_map(Message::calls);
        let theirs: Vec<String> =
            calls.filter(|call| brought.contains(&call.name)).map(|call| call.id.clone()).collect();
        let untold = |mark: &Mark| mark.groups.first().filter(|group| group.elements == 0).map(|g| g.entries);
        let mut next = None;
        let first = pending.0.first().map_or(Seq::MAX, |(first, _)| *first);
        for seq in first..=self.last() {
            next = self.mark(seq)?;
            if next.is_some() {
                break;
            }
        }
        let ours = match &next {
            Some(mark) => untold(mark).unwrap_or(0) as usize,
            None => pending.0.iter().take_while(|(_, id)| !theirs.contains(id)).count(),
        };
        pending.settle(ours, answer);
        answer.theirs.extend(theirs);
        Ok(())
    }

    /// The names of the tools that the client brings.
    fn brought(&self) -> Result<HashSet<String>> {
        let Some(at) = self.view().setup() else { return Ok(HashSet::new()) };
        let Entry::Setup(setup) = self.record(at)?.entry else { return Ok(HashSet::new()) };
        Ok(names(&setup).into_iter().collect())
    }

    /// True for a request that the client knows nothing of: it tells the model what our tools found.
    fn is_inner(&self, seq: Seq) -> Result<bool> {
        Ok(
            matches!(self.record(seq)?.entry, Entry::Sent(sent) if sent.mark.as_ref().is_some_and(|mark| mark.inner)),
        )
    }

    /// The call that the result at `seq` answers, if it is one in `answer` that may be ours. One that was made up because
    /// nothing came is the client's.
    fn answered(&self, seq: Seq, answer: &Answer) -> Result<Option<String>> {
        let Entry::Message(message, _) = self.record(seq)?.entry else { return Ok(None) };
        let Some(outcome) = message.outcome().filter(|outcome| !outcome.interrupted) else { return Ok(None) };
        let mut calls = answer.replies.iter().flat_map(Message::calls);
        let call = calls.find(|call| call.id == outcome.call_id && Library.knows(&call.name));
        Ok(call.map(|call| call.id.clone()))
    }

    /// Messages on the path after `seq`, which no request has told the model of yet.
    pub(super) fn unsent(&self, seq: Seq) -> Result<Vec<Message>> {
        let mut found = Vec::new();
        for entry in self.view().forth(self.source(), seq + 1) {
            let (at, head) = entry?;
            if found.len() == MOST_UNSENT {
                break;
            }
            if matches!(head.kind, Kind::System | Kind::User | Kind::Assistant | Kind::Tool)
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
        for entry in self.view().forth(self.source(), seq + 1) {
            if entry?.1.kind.is_item() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn asks_the_same(one: &Mark, other: &Mark) -> bool {
    one.elements == other.elements && one.digest == other.digest
}
