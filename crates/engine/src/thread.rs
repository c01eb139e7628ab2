//! A handle on one thread. Every verb appends; nothing else changes anything.
//!
//! Journal first, view second: an entry is admitted, written and synced before the view takes it in.

use crate::arrive::{Keep, arrive, interruptions};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lineage;
use crate::staged::Staged;
use crate::stelis::{Elder, Recovered};
use komado_core::clip::Limits;
use komado_core::head::{Head, Kind, Source};
use komado_core::journal::{
    Cause, Close, Edit, EditKind, Ending, Entry, Record, Replace, Reply, Setup, Show, ShowKind,
};
use komado_core::message::{Message, Role};
use komado_core::session::{Counters, MetaConfig};
use komado_core::thread::{Header, Moment};
use komado_core::{Meter, Seq, SessionId, Span, ThreadId, View};
use komado_store::{Change, Journal, Mode, Note, ReadSeek, Store};

pub use crate::staged::Work;

/// What to do when someone speaks while calls wait for results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnOpenCalls {
    /// Answer them with a result that says they were interrupted.
    #[default]
    Answer,
    /// Refuse the message.
    Refuse,
}

/// A handle on one thread.
pub struct Thread<'e> {
    engine: &'e Engine,
    journal: Box<dyn Journal>,
    view: View,
    /// What the session was made with, as its row says.
    config: MetaConfig,
    meter: Meter,
    counters: Counters,
    /// When the last entry was appended that the table of sessions has not heard of.
    untold: Option<String>,
    pub(crate) on_open_calls: OnOpenCalls,
    clip: Option<Limits>,
    mode: Mode,
    /// The open anchors in the part that a fork shares, once they were looked for.
    pub(crate) elders: Option<Vec<Elder>>,
    /// Threads that were broken off when this one was opened.
    pub(crate) recovered: Vec<Recovered>,
}

impl<'e> Thread<'e> {
    pub(crate) fn new(
        engine: &'e Engine,
        journal: Box<dyn Journal>,
        config: MetaConfig,
        mode: Mode,
    ) -> Result<Self> {
        let view = View::fold(&*journal, journal.last())?;
        // A session that names no known meter is counted with the default one.
        let meter = Meter::named(&config.meter).unwrap_or(Meter::O200k);
        Ok(Self {
            engine,
            journal,
            view,
            config,
            meter,
            counters: Counters::default(),
            untold: None,
            on_open_calls: OnOpenCalls::default(),
            clip: Some(Limits::default()),
            mode,
            elders: None,
            recovered: Vec::new(),
        })
    }

    /// Chooses what happens when someone speaks while calls wait.
    #[must_use]
    pub fn on_open_calls(mut self, choice: OnOpenCalls) -> Self {
        self.on_open_calls = choice;
        self
    }

    /// Chooses how much of a tool's output is shown; `None` for all of it, as a replay wants it.
    #[must_use]
    pub fn clipping(mut self, limits: Option<Limits>) -> Self {
        self.clip = limits;
        self
    }

    /// How much of a tool's output is shown.
    pub fn clip(&self) -> Option<Limits> {
        self.clip
    }

    pub(crate) fn engine(&self) -> &'e Engine {
        self.engine
    }

    pub(crate) fn store(&self) -> &'e dyn Store {
        self.engine.store()
    }

    /// Refuses what needs a writer, before anything is written anywhere.
    pub(crate) fn check_writer(&self) -> Result<()> {
        match self.mode {
            Mode::Read => Err(komado_store::Error::ReadOnly.into()),
            Mode::Write | Mode::Amend => Ok(()),
        }
    }

    /// The thread's name.
    pub fn id(&self) -> &ThreadId {
        &self.journal.header().thread
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.journal.header().session
    }

    /// The thread's header.
    pub fn header(&self) -> &Header {
        self.journal.header()
    }

    /// What the session was made with: it never changes, so it need not be read again.
    pub fn config(&self) -> &MetaConfig {
        &self.config
    }

    /// How tokens are counted here.
    pub fn meter(&self) -> Meter {
        self.meter
    }

    /// What the model sees now.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// What the model saw at `seq`.
    pub fn view_at(&self, seq: Seq) -> Result<View> {
        self.check_moment(seq)?;
        Ok(View::fold(&*self.journal, seq)?)
    }

    /// The entries and heads, to be looked up.
    pub fn source(&self) -> &(dyn Journal + 'static) {
        &*self.journal
    }

    /// Number of the last entry.
    pub fn last(&self) -> Seq {
        self.journal.last()
    }

    /// One entry.
    pub fn record(&self, seq: Seq) -> Result<Record> {
        if seq == 0 {
            return Err(self.no_moment(seq));
        }
        self.check_moment(seq)?;
        Ok(Source::record(&*self.journal, seq)?)
    }

    /// Entries on the path to now with their heads, the newest first: no more is read than is taken.
    pub fn back(&self) -> impl Iterator<Item = Result<(Seq, Head)>> + '_ {
        self.view.back(self.source(), self.last()).map(|found| Ok(found?))
    }

    /// What `read` finds in the newest entry of a kind, or else in the one before it, on the path to now. Only entries of
    /// that kind are read.
    pub fn newest<T>(
        &self,
        is_kind: impl Fn(Kind) -> bool,
        mut read: impl FnMut(Record) -> Option<T>,
    ) -> Result<Option<T>> {
        for found in self.back() {
            let (seq, head) = found?;
            if is_kind(head.kind)
                && let Some(found) = read(self.record(seq)?)
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The words of the newest message of one of these kinds that says any.
    pub fn last_words(&self, is_kind: impl Fn(Kind) -> bool) -> Result<Option<String>> {
        self.newest(is_kind, |record| match record.entry {
            Entry::Message(message, _) => Some(message.words()).filter(|words| !words.trim().is_empty()),
            _ => None,
        })
    }

    /// What had to be put right when the thread was opened.
    pub fn notes(&self) -> &[Note] {
        self.journal.notes()
    }

    /// Threads of processes that ended, which were broken off when this one was opened to write.
    pub fn recovered(&self) -> &[Recovered] {
        &self.recovered
    }

    fn check_moment(&self, seq: Seq) -> Result<()> {
        if seq <= self.last() { Ok(()) } else { Err(self.no_moment(seq)) }
    }

    pub(crate) fn no_moment(&self, seq: Seq) -> Error {
        let Header { session, thread, .. } = self.header();
        Error::NoMoment { thread: format!("{session}/{thread}"), seq, last: self.last() }
    }

    /// Admits and journals one entry; gives its number once it is durable.
    pub fn append(&mut self, entry: Entry) -> Result<Seq> {
        let mut staged = self.stage();
        let seq = staged.push(entry, self.engine.now())?;
        let work = staged.finish();
        self.commit(work)?;
        Ok(seq)
    }

    pub(crate) fn stage(&self) -> Staged<'_> {
        Staged::new(&*self.journal, self.view.clone(), self.meter)
    }

    /// Journals one message; calls that wait are answered first, unless they are to be refused.
    pub fn say(&mut self, message: Message) -> Result<Seq> {
        Ok(self.say_all(vec![(message, None)])?.pop().unwrap_or_default())
    }

    /// Journals what a provider answered.
    pub fn reply(&mut self, message: Message, reply: Reply) -> Result<Seq> {
        Ok(self.say_all(vec![(message, Some(reply))])?.pop().unwrap_or_default())
    }

    /// Journals messages as one durable append, all or none; gives the number of each.
    pub fn say_all(&mut self, messages: Vec<(Message, Option<Reply>)>) -> Result<Vec<Seq>> {
        let mut batch = self.batch();
        for (message, reply) in messages {
            batch.say(message, reply)?;
        }
        let (said, work) = batch.finish();
        self.commit(work)?;
        Ok(said)
    }

    /// Begins a batch of messages.
    pub fn batch(&self) -> Batch<'_> {
        Batch { thread: self, staged: self.stage(), said: Vec::new() }
    }

    /// Makes a batch durable: one write, one sync.
    pub fn commit(&mut self, work: Work) -> Result<()> {
        self.journal.append(work.after, &work.rows)?;
        self.view = work.view;
        self.counters += work.counters;
        self.untold = work.at.or(self.untold.take());
        Ok(())
    }

    /// Answers the calls that wait with a result that says they were interrupted: before a request that cannot wait.
    pub fn answer_open_calls(&mut self) -> Result<()> {
        let answers = interruptions(self.view.open());
        if answers.is_empty() {
            return Ok(());
        }
        self.say_all(answers.into_iter().map(|answer| (answer, None)).collect()).map(|_| ())
    }

    /// The bytes of one of the session's blobs.
    pub fn blob(&self, id: &str) -> Result<Box<dyn ReadSeek>> {
        Ok(self.engine.store().blob(self.session(), id)?)
    }

    /// Sets system prompt, tools and parameters.
    pub fn set_up(&mut self, setup: Setup) -> Result<Seq> {
        self.said_again(Entry::Setup(setup))
    }

    /// Goes on as if nothing after `to` had happened.
    pub fn rewind(&mut self, to: Seq) -> Result<Seq> {
        self.check_writer()?;
        self.unsettle_children()?;
        let seq = self.said_again(Entry::Rewind { to })?;
        self.elders = None;
        // The rewind stands whatever becomes of this; the children stay marked until it is done.
        let _ = self.tend();
        Ok(seq)
    }

    /// Undoes one edit (or one revert) and keeps everything said since.
    pub fn revert(&mut self, target: Seq) -> Result<Seq> {
        self.append(Entry::Revert { target })
    }

    /// Keeps the unit around `seq` in the view through every edit.
    pub fn pin(&mut self, seq: Seq) -> Result<Seq> {
        let span = self.view.unit(&*self.journal, seq)?.unwrap_or(Span::new(seq, seq));
        self.append(Entry::Pin { span })
    }

    /// Takes the pin around `seq` back.
    pub fn unpin(&mut self, seq: Seq) -> Result<Seq> {
        let span = self.view.pins().iter().find(|pin| pin.holds(seq)).copied();
        self.append(Entry::Unpin { span: span.unwrap_or(Span::new(seq, seq)) })
    }

    /// Shows `text` in place of `hide`.
    pub fn condense(&mut self, hide: Vec<Span>, text: &str, rule: &str) -> Result<Seq> {
        self.hide(EditKind::Condense, ShowKind::Summary, hide, text, rule)
    }

    /// Shows a marker in place of `hide`.
    pub fn truncate(&mut self, hide: Vec<Span>, marker: &str, rule: &str) -> Result<Seq> {
        self.hide(EditKind::Truncate, ShowKind::Marker, hide, marker, rule)
    }

    fn hide(
        &mut self,
        kind: EditKind,
        shown: ShowKind,
        hide: Vec<Span>,
        text: &str,
        rule: &str,
    ) -> Result<Seq> {
        let show = vec![Show { kind: shown, text: text.to_owned(), tokens: self.meter.said(text) }];
        self.edit(Edit { kind, hide, show, replace: Vec::new(), cause: because(rule) })
    }

    /// Shows placeholders in place of what single entries say.
    pub fn trim(&mut self, places: Vec<(Seq, String)>, rule: &str) -> Result<Seq> {
        let mut replace = Vec::with_capacity(places.len());
        for (seq, text) in places {
            let tokens = match self.record(seq)?.entry {
                Entry::Message(message, _) => self.meter.message(&message.saying(&text)),
                // Nothing else can be trimmed; the gate says so.
                _ => 0,
            };
            replace.push(Replace { seq, text, tokens });
        }
        self.edit(Edit {
            kind: EditKind::Trim,
            hide: Vec::new(),
            show: Vec::new(),
            replace,
            cause: because(rule),
        })
    }

    /// Appends an edit with its true numbers: tokens of the view before and after. One that frees nothing is refused, and
    /// so is one that hides the anchor of a child that has not ended.
    pub fn edit(&mut self, mut edit: Edit) -> Result<Seq> {
        let mut trial = self.stage();
        trial.push(Entry::Edit(edit.clone()), String::new())?;
        self.check_anchors(&edit.hide)?;
        edit.cause.before = self.view.tokens();
        edit.cause.after = trial.view().tokens();
        check_gain(&edit)?;
        self.append(Entry::Edit(edit))
    }

    /// Ends or pauses the thread, and says nothing more about it: see [`Thread::finish`] for a spawned one.
    pub fn close(&mut self, ending: Ending, result: Option<String>) -> Result<Seq> {
        if self.header().parent.is_none() {
            return self.append(Entry::Close(Close { ending, result }));
        }
        self.check_writer()?;
        self.put_row()?;
        let seq = self.append(Entry::Close(Close { ending, result }))?;
        self.put_row()?;
        Ok(seq)
    }

    /// Goes on as if the thread had never been closed. What else happened to it since (a pin, a child's end) happens
    /// again. Gives the time of the change, if one was needed.
    pub(crate) fn reopen(&mut self) -> Result<Option<String>> {
        let Some(staged) = self.reopened()? else { return Ok(None) };
        let work = staged.finish();
        let at = work.at.clone();
        self.commit(work)?;
        Ok(at)
    }

    /// The batch that reopens the thread; `None` when it is not closed.
    pub(crate) fn reopened(&self) -> Result<Option<Staged<'_>>> {
        let Some(mut first) = self.view.closed() else { return Ok(None) };
        while let Some(earlier) = self.view_at(first - 1)?.closed() {
            first = earlier;
        }
        let mut again: Vec<(Seq, Entry)> = Vec::new();
        for seq in (first + 1..=self.last()).filter(|seq| self.view.on_path(*seq)) {
            match self.record(seq)?.entry {
                Entry::Revert { target } if target > first => again.retain(|(seq, _)| *seq != target),
                entry if entry.is_op() && !matches!(entry, Entry::Close(_)) => again.push((seq, entry)),
                _ => {}
            }
        }
        let mut staged = self.stage();
        staged.push(Entry::Rewind { to: first - 1 }, self.engine.now())?;
        for (_, entry) in again {
            staged.push(entry, self.engine.now())?;
        }
        Ok(Some(staged))
    }

    /// Makes a thread that shares everything up to `at` with this one. A fork of a spawned thread gets an anchor of its own,
    /// for which its parent must be free to be written.
    pub fn fork(&self, at: Seq, name: ThreadId, label: Option<String>) -> Result<Header> {
        self.check_moment(at)?;
        let (own, store) = (self.header(), self.engine.store());
        // A fork of the shared part goes on from the thread that owns it.
        let thread = match own.base_seq() {
            base if at <= base && base > 0 => lineage::owner(&store.threads(&own.session)?, &own.thread, at),
            _ => own.thread.clone(),
        };
        let header = Header {
            session: own.session.clone(),
            thread: name,
            base: Some(Moment { thread, seq: at }),
            parent: own.parent.clone(),
            label,
            timestamp: self.engine.now(),
        };
        if let Some(parent) = &own.parent {
            return self.fork_child(header, parent);
        }
        store.spawn(&header)?;
        Ok(header)
    }

    /// The last entry that this thread and `other` share, number for number; 0 for none.
    pub fn shared_with(&self, other: &Thread<'_>) -> Result<Seq> {
        if self.session() != other.session() {
            return Ok(0);
        }
        let now = |thread: &Thread<'_>| Moment { thread: thread.header().thread.clone(), seq: thread.last() };
        Ok(lineage::shared(&self.engine.store().threads(self.session())?, now(self), now(other)))
    }

    /// What the table of sessions has not heard of yet, for whoever settles later through another handle.
    pub(crate) fn debt(&mut self) -> (Counters, Option<String>) {
        (std::mem::take(&mut self.counters), self.untold.take())
    }

    /// Takes over what another handle had not told the table of sessions.
    pub(crate) fn owe(&mut self, counters: Counters, at: Option<String>) {
        self.counters += counters;
        self.untold = self.untold.take().or(at);
    }

    /// Brings counters and everything derived up to date.
    pub fn settle(&mut self) -> Result<()> {
        self.journal.settle(&self.view)?;
        self.tell_debt()
    }

    /// Tells the table of sessions what it has not heard of yet; what is derived from the journal is left as it is.
    pub fn tell_debt(&mut self) -> Result<()> {
        if let Some(at) = &self.untold {
            let change = Change::Count { by: self.counters, at: at.clone() };
            self.engine.store().change(self.session(), &change)?;
            (self.counters, self.untold) = (Counters::default(), None);
        }
        Ok(())
    }
}

/// An edit that makes the view no smaller is none.
pub(crate) fn check_gain(edit: &Edit) -> Result<()> {
    let Cause { before, after, .. } = edit.cause;
    if after < before { Ok(()) } else { Err(Error::NoGain { edit: edit.kind.name(), before, after }) }
}

fn because(rule: &str) -> Cause {
    Cause { rule: rule.to_owned(), ..Cause::default() }
}

/// Messages that will be journaled together.
pub struct Batch<'t> {
    thread: &'t Thread<'t>,
    staged: Staged<'t>,
    said: Vec<Seq>,
}

impl Batch<'_> {
    /// Takes one message in; gives its number. What is refused leaves the batch as it was.
    pub fn say(&mut self, message: Message, reply: Option<Reply>) -> Result<Seq> {
        let waiting = self.staged.view().open();
        let answers = match self.thread.on_open_calls {
            OnOpenCalls::Answer if message.role != Role::Tool => interruptions(waiting),
            _ => Vec::new(),
        };
        if answers.is_empty() {
            return self.take(message, reply);
        }
        let before = self.staged.mark();
        let mut answers = answers.into_iter();
        let answered = answers.try_for_each(|answer| self.enter(Entry::Message(answer, None)).map(|_| ()));
        let said = answered.and_then(|()| self.take(message, reply));
        if said.is_err() {
            self.staged.back_to(before);
        }
        said
    }

    fn take(&mut self, message: Message, reply: Option<Reply>) -> Result<Seq> {
        let keep = Keep { store: self.thread.store(), id: self.thread.session(), clip: self.thread.clip };
        let message = arrive(&keep, self.staged.last() + 1, self.staged.view().open(), message)?;
        let seq = self.enter(Entry::Message(message, reply))?;
        self.said.push(seq);
        Ok(seq)
    }

    /// Takes in an entry as it is, in its place among the messages.
    pub(crate) fn enter(&mut self, entry: Entry) -> Result<Seq> {
        self.staged.push(entry, self.thread.engine.now())
    }

    /// The view with the batch so far.
    pub(crate) fn view(&self) -> &View {
        self.staged.view()
    }

    /// Bytes that wait to be written.
    pub fn bytes(&self) -> usize {
        self.staged.bytes()
    }

    /// Messages taken in so far.
    pub fn len(&self) -> usize {
        self.said.len()
    }

    /// True when nothing was taken in yet.
    pub fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// The numbers of the messages, and the work for [`Thread::commit`].
    pub fn finish(self) -> (Vec<Seq>, Work) {
        (self.said, self.staged.finish())
    }
}
