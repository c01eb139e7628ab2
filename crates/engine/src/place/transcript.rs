//! A thread, opened to look which of a client's requests it has been sent and what was answered.
//!
//! Only heads are walked, and only the entries around one request are read: neither grows with the journal.

use crate::engine::Engine;
use crate::error::Result;
use crate::exchange::{RecallTools, ToolAnswerer};
use crate::relay::{BILLING, names, text as body_text};
use crate::thread::Thread;
use komado_core::head::Kind;
use komado_core::journal::{Entry, Setup, TranscriptMark};
use komado_core::message::{Call, Message, MessagePart};
use komado_core::session::MetaConfig;
use komado_core::{Seq, SessionId, ThreadId};
use komado_provider::{Dialect, ElementAuthor, ScannedRequest, same_words};
use komado_store::{Error as StoreError, OpenMode};
use std::collections::HashSet;
use std::fs::File;
use std::ops::{Deref, Range};

/// Most entries after a reply that are looked at for words that were never sent.
const MOST_UNSENT: usize = 64;

/// A thread, opened to look.
pub(super) struct ThreadMatch<'e>(Thread<'e>);

impl<'e> Deref for ThreadMatch<'e> {
    type Target = Thread<'e>;

    fn deref(&self) -> &Thread<'e> {
        &self.0
    }
}

/// What was answered to a request.
pub(super) struct ThreadAnswer {
    /// The replies, those to our own calls included; none when none came.
    pub(super) replies: Vec<Message>,
    /// The last entry of it; the request itself when nothing came.
    pub(super) end: Seq,
    /// Calls that are not ours, whatever they are called: the client brings such a tool, or answered one itself.
    theirs: HashSet<String>,
    /// Calls that we answered.
    ours: HashSet<String>,
}

impl ThreadAnswer {
    /// True when nothing was answered.
    pub(super) fn is_missing(&self) -> bool {
        self.replies.is_empty()
    }

    /// True for a call that the client never saw: we answered it, or it has the name of a tool of ours and none of theirs.
    pub(super) fn is_own(&self, call: &Call) -> bool {
        RecallTools.knows(&call.name) && !self.theirs.contains(&call.id)
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
    fn settle(&mut self, n: usize, answer: &mut ThreadAnswer) {
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

impl<'e> ThreadMatch<'e> {
    /// Opens a thread; `None` when it is no more, or takes no more words.
    pub(super) fn open(engine: &'e Engine, session: &SessionId, thread: &ThreadId) -> Result<Option<Self>> {
        let journal = match engine.store().open(session, thread, OpenMode::Read) {
            Err(StoreError::NoSession(_) | StoreError::NoThread(..)) => return Ok(None),
            opened => opened?,
        };
        // Nothing is counted here: what the session was made with does not matter.
        let strand = Self(Thread::new(engine, journal, MetaConfig::default(), OpenMode::Read)?);
        Ok(Some(strand).filter(|strand| strand.view().closed().is_none()))
    }

    pub(super) fn on_path(&self, seq: Seq) -> bool {
        self.view().on_path(seq)
    }

    fn kind(&self, seq: Seq) -> Result<Kind> {
        Ok(self.source().head(seq)?.kind)
    }

    /// True when nothing was said.
    pub(super) fn is_blank(&self) -> Result<bool> {
        Ok(!self.goes_on_after(0)?)
    }

    /// The mark of the request at `seq`; `None` when there is none that a client sent.
    pub(super) fn mark(&self, seq: Seq) -> Result<Option<TranscriptMark>> {
        if seq == 0 || seq > self.last() || self.kind(seq)? != Kind::Sent {
            return Ok(None);
        }
        let Entry::Sent(sent) = self.record(seq)?.entry else { return Ok(None) };
        Ok(sent.mark.filter(|mark| !mark.inner))
    }

    /// The next request of the client on the path after `seq`.
    pub(super) fn next_mark(&self, seq: Seq) -> Result<Option<(Seq, TranscriptMark)>> {
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
    pub(super) fn answer(&self, sent: Seq) -> Result<ThreadAnswer> {
        let mut answer =
            ThreadAnswer { replies: Vec::new(), end: sent, theirs: HashSet::new(), ours: HashSet::new() };
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
    fn settle(&self, mut pending: Pending, answer: &mut ThreadAnswer) -> Result<()> {
        if answer.replies.iter().flat_map(Message::calls).all(|call| !RecallTools.knows(&call.name)) {
            return Ok(());
        }
        let brought = self.brought()?;
        let calls = answer.replies.iter().flat_map(Message::calls);
        let theirs: Vec<String> =
            calls.filter(|call| brought.contains(&call.name)).map(|call| call.id.clone()).collect();
        let untold = |mark: &TranscriptMark| {
            mark.groups.first().filter(|group| group.elements == 0).map(|g| g.entries)
        };
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
    fn answered(&self, seq: Seq, answer: &ThreadAnswer) -> Result<Option<String>> {
        let Entry::Message(message, _) = self.record(seq)?.entry else { return Ok(None) };
        let Some(outcome) = message.outcome().filter(|outcome| !outcome.interrupted) else { return Ok(None) };
        let mut calls = answer.replies.iter().flat_map(Message::calls);
        let call = calls.find(|call| call.id == outcome.call_id && RecallTools.knows(&call.name));
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
            if head.kind.is_said()
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

    /// True when something was said on the path after `seq`.
    pub(super) fn goes_on_after(&self, seq: Seq) -> Result<bool> {
        for entry in self.view().forth(self.source(), seq + 1) {
            if entry?.1.kind.is_item() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn asks_the_same(one: &TranscriptMark, other: &TranscriptMark) -> bool {
    one.elements == other.elements && one.digest == other.digest
}

// A transcript as its client tells it: what it says is read from the spooled body, and only where something is compared.

/// A transcript.
#[derive(Clone, Copy)]
pub(super) struct ClientTranscript<'a> {
    /// Where everything stands.
    pub(super) skim: &'a ScannedRequest,
    /// The body.
    pub(super) body: &'a File,
}

impl ClientTranscript<'_> {
    /// Its elements.
    pub(super) fn len(&self) -> usize {
        self.skim.elements.len()
    }

    /// True when the model has said something in it.
    pub(super) fn is_answered(&self) -> bool {
        self.skim.elements.iter().any(|element| element.by == ElementAuthor::Model)
    }

    /// The digest over the first `n` elements is this one.
    pub(super) fn begins(&self, n: usize, digest: &str) -> bool {
        self.skim.digest(n).is_some_and(|own| own == digest)
    }

    /// Beginnings that may have been a request, the longest first: none ends with words of the model, but for the whole.
    pub(super) fn beginnings(&self) -> impl Iterator<Item = usize> + '_ {
        let elements = &self.skim.elements;
        let asks = move |n: &usize| *n == elements.len() || elements[n - 1].by != ElementAuthor::Model;
        (1..=elements.len()).rev().filter(asks)
    }

    /// Elements from `n` on that the model said, as the client tells it; what only the dialect knows may stand between.
    pub(super) fn told(&self, n: usize) -> usize {
        let rest = self.skim.elements.get(n..).unwrap_or_default();
        let run = rest
            .iter()
            .take_while(|element| matches!(element.by, ElementAuthor::Model | ElementAuthor::Other))
            .count();
        rest[..run].iter().rposition(|element| element.by == ElementAuthor::Model).map_or(0, |last| last + 1)
    }

    /// True when `count` elements from `n` on say what was answered. Our own calls are not the client's; of one that no client
    /// has answered the client knows best whether it was shown.
    pub(super) fn tells(&self, n: usize, count: usize, answer: &ThreadAnswer) -> bool {
        let Some(returned) = self.read(n..n + count, &[]) else { return false };
        let returned: Vec<&Message> = returned.iter().collect();
        let says = |is_own: &dyn Fn(&Call) -> bool| {
            let told: Vec<Message> = answer.replies.iter().map(|reply| without(reply, is_own)).collect();
            same_words(&told.iter().collect::<Vec<_>>(), &|_| false, &returned)
        };
        says(&|call| answer.is_own(call)) || says(&|call| answer.was_answered(call))
    }

    /// True when the elements from `n` on begin with these messages; `open` are the calls that wait before them.
    pub(super) fn goes_on_with(&self, n: usize, open: &[Call], messages: &[Message]) -> bool {
        // Each element is a message at the least, but for a few that say nothing.
        let end = self.len().min(n + messages.len());
        let Some(read) = self.read(n..end, open) else { return false };
        let same = |a: &Message, b: &Message| a.role == b.role && a.words() == b.words();
        read.len() >= messages.len() && messages.iter().zip(&read).all(|(a, b)| same(a, b))
    }

    /// True when the elements from `n` on say what the thread says after `at`, and go on, but for results: one that was given
    /// up there, or came late, is told here in its place or in another. So a client that puts its results right goes on.
    pub(super) fn retells(&self, n: usize, open: &[Call], strand: &ThreadMatch<'_>, at: Seq) -> Result<bool> {
        let known = strand.unsent(at)?;
        let is_given_up = |message: &Message| message.outcome().is_some_and(|outcome| outcome.interrupted);
        if known.len() >= MOST_UNSENT || !known.iter().any(is_given_up) {
            return Ok(false);
        }
        // Each element is a message at the least, but for a few that say nothing, and a late result is one more.
        let end = self.len().min(n + 2 * MOST_UNSENT);
        let Some(told) = self.read(n..end, open) else { return Ok(false) };
        let (known_results, known_words): (Vec<&Message>, Vec<&Message>) =
            known.iter().partition(|message| message.outcome().is_some());
        let (results, words): (Vec<&Message>, Vec<&Message>) =
            told.iter().partition(|message| message.outcome().is_some());
        let calls = |message: &Message| -> Vec<(String, String)> {
            message.calls().map(|call| (call.name.clone(), call.arguments.clone())).collect()
        };
        let same =
            |a: &Message, b: &Message| a.role == b.role && a.words() == b.words() && calls(a) == calls(b);
        let answers = |a: &Message, b: &Message| {
            let ids = [a, b].map(|message| message.outcome().map(|outcome| outcome.call_id.clone()));
            ids[0] == ids[1] && a.words() == b.words()
        };
        let says_them = words.len() >= known_words.len()
            && known_words.iter().zip(&words).all(|(known, told)| same(known, told));
        let mut given = known_results.iter().filter(|known| !is_given_up(known));
        Ok(says_them && given.all(|known| results.iter().any(|told| answers(known, told))))
    }

    /// What elements say; `None` when they cannot be read, which is reported when they are taken in.
    fn read(&self, range: Range<usize>, open: &[Call]) -> Option<Vec<Message>> {
        let elements = self.skim.elements.get(range)?;
        if elements.is_empty() {
            return Some(Vec::new());
        }
        let texts = elements.iter().map(|element| self.text(&element.span)).collect::<Option<Vec<_>>>()?;
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Some(self.skim.dialect.read_elements(&texts, open).ok()?.messages)
    }

    fn text(&self, span: &Range<u64>) -> Option<String> {
        body_text(self.body, span).ok()
    }

    /// True for a request beside the conversation of a thread: it offers no tools where the thread has some, or none under
    /// another system prompt.
    pub(super) fn is_aside(&self, strand: &ThreadMatch<'_>) -> Result<bool> {
        if self.skim.has_tools() {
            return Ok(false);
        }
        let Some(at) = strand.view().setup() else { return Ok(false) };
        let Entry::Setup(setup) = strand.record(at)?.entry else { return Ok(false) };
        Ok(has_tools(&setup) || self.has_other_system(&setup))
    }

    /// A system prompt among the elements is part of their digest; only one in a field of its own may be another.
    fn has_other_system(&self, setup: &Setup) -> bool {
        let (Some(before), Some(now)) = (&setup.system, self.system()) else { return false };
        !is_same_prompt(unbilled(before), unbilled(&now))
    }

    fn system(&self) -> Option<String> {
        let (key, list) = match self.skim.dialect {
            Dialect::Messages => ("system", "messages"),
            Dialect::Responses => ("instructions", "input"),
            Dialect::Chat | Dialect::Ollama => return None,
        };
        let text = self.text(&self.skim.field(key)?)?;
        let alone = format!("{{\"model\":\"\",\"max_tokens\":1,\"{key}\":{text},\"{list}\":[]}}");
        self.skim.dialect.read(&alone).ok()?.setup.system
    }
}

/// A reply without some of its calls.
fn without(reply: &Message, is_out: &dyn Fn(&Call) -> bool) -> Message {
    let is_out = |part: &&MessagePart| matches!(part, MessagePart::Call(call) if is_out(call));
    let parts = reply.parts.iter().filter(|part| !is_out(part)).cloned().collect();
    Message { parts, ..reply.clone() }
}

fn has_tools(setup: &Setup) -> bool {
    setup.tools.as_ref().is_some_and(|tools| tools.get().trim_start_matches('[').trim_start() != "]")
}

/// True when `now` is the prompt that was there `before`, or one that differs in a few words only: a clock, a folder. So it is
/// when beginning and end that they share are half of it at the least.
fn is_same_prompt(before: &str, now: &str) -> bool {
    if before.contains(now) {
        return true;
    }
    let shared = |a: &mut dyn Iterator<Item = (u8, u8)>| a.take_while(|(a, b)| a == b).count();
    let (before, now) = (before.as_bytes(), now.as_bytes());
    let start = shared(&mut before.iter().copied().zip(now.iter().copied()));
    let (rest, other) = (&before[start..], &now[start..]);
    let end = shared(&mut rest.iter().rev().copied().zip(other.iter().rev().copied()));
    (start + end) * 2 >= before.len().max(now.len())
}

/// A system prompt without the line that is another each time.
fn unbilled(system: &str) -> &str {
    let rest = system.strip_prefix(BILLING).map(|rest| rest.split_once('\n').map_or("", |(_, rest)| rest));
    rest.unwrap_or(system).trim()
}
