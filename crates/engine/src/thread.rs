//! A handle on one thread. Every verb appends; nothing else changes anything.
//!
//! Journal first, view second: an entry is admitted, written and synced before the view takes it in.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::late;
use crate::output::is_reader;
use crate::stelis::{RecoveredThread, SharedAnchor};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use komado_core::clip::{ClipLimits, clip};
use komado_core::head::EntrySource;
use komado_core::journal::{Entry, Record, Reply, encode};
use komado_core::message::{ImageSource, Message, MessagePart, Opaque, OutputRef, Role, ToolOutcome};
use komado_core::picture::{PictureRule, PictureSize};
use komado_core::session::{Counters, MetaConfig};
use komado_core::thread::Header;
use komado_core::view::{OpenUnit, WaitingCall};
use komado_core::{EntryRefusal, Head, Kind, Meter, Seq, SessionId, ThreadId, View, admit};
use komado_store::{
    Error as StoreError, Journal, JournalRepair, JournalRow, OpenMode, ReadSeek, SessionChange, Store,
};
use std::sync::Arc;

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
    /// How its model counts pictures.
    pictures: PictureRule,
    counters: Counters,
    /// When the last entry was appended that the table of sessions has not heard of.
    untold: Option<String>,
    pub(crate) on_open_calls: OnOpenCalls,
    clip: Option<ClipLimits>,
    mode: OpenMode,
    /// The open anchors in the part that a fork shares, once they were looked for.
    pub(crate) elders: Option<Vec<SharedAnchor>>,
    /// Threads that were broken off when this one was opened.
    pub(crate) recovered: Vec<RecoveredThread>,
}

impl Engine {
    /// Opens a thread. Opening to write also puts right what a process that ended left of spawned threads.
    pub fn open(&self, id: &SessionId, thread: &ThreadId, mode: OpenMode) -> Result<Thread<'_>> {
        self.open_known(id, thread, mode, None)
    }

    /// The same, for a session whose row was read already: `config` is what it was made with.
    pub fn open_known(
        &self,
        id: &SessionId,
        thread: &ThreadId,
        mode: OpenMode,
        config: Option<MetaConfig>,
    ) -> Result<Thread<'_>> {
        let journal = self.store().open(id, thread, mode)?;
        let config = config.map_or_else(|| Ok(self.session(id)?.meta.config), Ok::<_, Error>)?;
        let mut opened = Thread::new(self, journal, config, mode)?;
        if mode == OpenMode::Write {
            self.look_after(&mut opened)?;
        }
        Ok(opened)
    }

    /// Opens a thread, and leaves everything else as it is.
    pub(crate) fn open_as_left(
        &self,
        id: &SessionId,
        thread: &ThreadId,
        mode: OpenMode,
    ) -> Result<Thread<'_>> {
        let journal = self.store().open(id, thread, mode)?;
        Thread::new(self, journal, self.session(id)?.meta.config, mode)
    }
}

impl<'e> Thread<'e> {
    pub(crate) fn new(
        engine: &'e Engine,
        journal: Box<dyn Journal>,
        config: MetaConfig,
        mode: OpenMode,
    ) -> Result<Self> {
        let view = View::fold(&*journal, journal.last())?;
        // A session that names no known meter is counted with the default one.
        let meter = Meter::named(&config.meter).unwrap_or(Meter::O200k);
        let pictures = config.model.as_deref().map(PictureRule::for_model).unwrap_or_default();
        Ok(Self {
            engine,
            journal,
            view,
            config,
            meter,
            pictures,
            counters: Counters::default(),
            untold: None,
            on_open_calls: OnOpenCalls::default(),
            clip: Some(ClipLimits::default()),
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
    pub fn clipping(mut self, limits: Option<ClipLimits>) -> Self {
        self.clip = limits;
        self
    }

    /// How much of a tool's output is shown.
    pub fn clip(&self) -> Option<ClipLimits> {
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
            OpenMode::Read => Err(komado_store::Error::ReadOnly.into()),
            OpenMode::Write | OpenMode::Amend => Ok(()),
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
        self.check_entry(seq)?;
        Ok(EntrySource::record(&*self.journal, seq)?)
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
    pub fn notes(&self) -> &[JournalRepair] {
        self.journal.notes()
    }

    /// Threads of processes that ended, which were broken off when this one was opened to write.
    pub fn recovered(&self) -> &[RecoveredThread] {
        &self.recovered
    }

    pub(crate) fn check_moment(&self, seq: Seq) -> Result<()> {
        if seq <= self.last() { Ok(()) } else { Err(self.no_moment(seq)) }
    }

    /// Refuses the number of an entry that is not there; 0 is a moment, but no entry.
    pub(crate) fn check_entry(&self, seq: Seq) -> Result<()> {
        if seq == 0 { Err(self.no_moment(seq)) } else { self.check_moment(seq) }
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
        Staged::new(&*self.journal, self.view.clone(), self.meter, self.pictures)
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
    pub fn batch(&self) -> MessageBatch<'_> {
        MessageBatch { thread: self, staged: self.stage(), said: Vec::new() }
    }

    /// Makes a batch durable: one write, one sync.
    pub fn commit(&mut self, work: StagedBatch) -> Result<()> {
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

    /// What the table of sessions has not heard of yet, for another handle that settles later.
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
            let change = SessionChange::Count { by: self.counters, at: at.clone() };
            self.engine.store().change(self.session(), &change)?;
            (self.counters, self.untold) = (Counters::default(), None);
        }
        Ok(())
    }
}

/// Messages that will be journaled together.
pub struct MessageBatch<'t> {
    thread: &'t Thread<'t>,
    staged: Staged<'t>,
    said: Vec<Seq>,
}

impl MessageBatch<'_> {
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

    fn take(&mut self, mut message: Message, reply: Option<Reply>) -> Result<Seq> {
        late::place(self.staged.view(), self.staged.source(), &mut message)?;
        let message = arrive(self.thread, self.staged.last() + 1, self.staged.view().open(), message)?;
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
    pub fn finish(self) -> (Vec<Seq>, StagedBatch) {
        (self.said, self.staged.finish())
    }
}

// Entries on their way: admitted one after the other, journaled together.
//
// A batch is one append, one write, one sync. Until it is durable nothing of it may change the thread's view, so it
// is folded into a copy over a source that holds the journal and the entries not yet in it.

/// The journal, with the batch after it.
pub struct Staged<'a> {
    rows: StagedRows<'a>,
    view: View,
    /// How tokens are counted.
    pub(crate) meter: Meter,
    pictures: PictureRule,
    bytes: usize,
    counters: Counters,
}

/// The journal, and the entries that are not in it yet.
pub struct StagedRows<'a> {
    journal: &'a dyn Journal,
    after: Seq,
    new: Vec<(Record, JournalRow)>,
}

/// A batch that is ready to be made durable.
pub struct StagedBatch {
    pub(crate) after: Seq,
    pub(crate) rows: Vec<JournalRow>,
    /// The view once it is durable.
    pub(crate) view: View,
    /// What it adds to the session's counters.
    pub(crate) counters: Counters,
    /// When its last entry was made; `None` for an empty batch.
    pub(crate) at: Option<String>,
}

impl StagedBatch {
    /// The lines as they will stand in the journal, in order.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.rows.iter().map(|row| row.line.as_slice())
    }

    /// Tokens of one of its entries.
    pub fn tokens_of(&self, seq: Seq) -> u32 {
        let row = seq.checked_sub(self.after + 1).and_then(|i| self.rows.get(i as usize));
        row.map_or(0, |row| row.head.tokens)
    }

    /// Tokens of the view once it is durable.
    pub fn tokens(&self) -> u64 {
        self.view.tokens()
    }
}

/// A batch as it was, to go back to: its rows, its view, its bytes and what it counts for.
pub(crate) struct StageUndo(usize, View, usize, Counters);

impl StagedRows<'_> {
    fn new_at(&self, seq: Seq) -> Option<&(Record, JournalRow)> {
        self.new.get(seq.checked_sub(self.after + 1)? as usize)
    }
}

impl EntrySource for StagedRows<'_> {
    type Error = StoreError;

    fn last(&self) -> Seq {
        self.after + self.new.len() as Seq
    }

    fn head(&self, seq: Seq) -> komado_store::Result<Head> {
        self.new_at(seq).map_or_else(|| self.journal.head(seq), |(_, row)| Ok(row.head))
    }

    fn record(&self, seq: Seq) -> komado_store::Result<Record> {
        self.new_at(seq)
            .map_or_else(|| EntrySource::record(self.journal, seq), |(record, _)| Ok(record.clone()))
    }

    fn above(
        &self,
        thread: &ThreadId,
    ) -> komado_store::Result<Box<dyn EntrySource<Error = StoreError> + '_>> {
        EntrySource::above(self.journal, thread)
    }
}

impl<'a> Staged<'a> {
    /// Begins a batch after what `view` has taken in.
    pub fn new(journal: &'a dyn Journal, view: View, meter: Meter, pictures: PictureRule) -> Self {
        let rows = StagedRows { journal, after: journal.last(), new: Vec::new() };
        Self { rows, view, meter, pictures, bytes: 0, counters: Counters::default() }
    }

    /// The view with the batch so far.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The journal with the batch after it, to be looked up.
    pub fn source(&self) -> &StagedRows<'a> {
        &self.rows
    }

    /// Number of the last entry, the batch included.
    pub fn last(&self) -> Seq {
        self.rows.last()
    }

    /// Bytes of the batch so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Admits `entry`, weighs it, and takes it into the batch.
    pub fn push(&mut self, entry: Entry, timestamp: String) -> Result<Seq> {
        let tokens = match &entry {
            Entry::Message(message, _) => self.meter.message_for(message, self.pictures),
            Entry::Setup(setup) => self.meter.setup(setup),
            Entry::Edit(edit) => edit.shown_tokens(),
            Entry::Anchor(anchor) => self.meter.said(&anchor.text),
            Entry::Share(share) => share.tokens(),
            _ => 0,
        };
        let record = Record { seq: self.last() + 1, timestamp, tokens, entry };
        let line = encode(&record);
        Ok(self.push_line(record, line)??)
    }

    /// Admits an entry that has a line already, and takes both into the batch. What is refused leaves it as it was.
    pub fn push_line(
        &mut self,
        record: Record,
        line: Vec<u8>,
    ) -> komado_store::Result<std::result::Result<Seq, EntryRefusal>> {
        if let Err(refusal) = admit(&self.view, &record.entry, &self.rows)? {
            return Ok(Err(refusal));
        }
        let head = self.view.head_of(&record, &self.rows)?;
        let (seq, bytes, counters) = (record.seq, line.len(), Counters::of(&record.entry));
        self.rows.new.push((record, JournalRow { line, head }));
        if let Some((record, _)) = self.rows.new.last() {
            self.view.apply(record, &self.rows)?;
        }
        self.bytes += bytes;
        self.counters += counters;
        Ok(Ok(seq))
    }

    /// The batch as it is, to go [back](Self::back_to) to.
    pub(crate) fn mark(&self) -> StageUndo {
        StageUndo(self.rows.new.len(), self.view.clone(), self.bytes, self.counters)
    }

    /// Forgets what came in since `mark`.
    pub(crate) fn back_to(&mut self, StageUndo(rows, view, bytes, counters): StageUndo) {
        self.rows.new.truncate(rows);
        (self.view, self.bytes, self.counters) = (view, bytes, counters);
    }

    /// The batch, ready to be made durable.
    pub fn finish(self) -> StagedBatch {
        let Self { rows: StagedRows { after, new, .. }, view, counters, .. } = self;
        let at = new.last().map(|(record, _)| record.timestamp.clone());
        StagedBatch { after, rows: new.into_iter().map(|(_, row)| row).collect(), view, counters, at }
    }
}

// What arrives, made fit to be journaled.
//
// Pictures that travel inside a message go to a blob, and so does a tool's output that is too long to be shown: the
// message keeps the view of it and names the whole. A call without an id gets one; a result without one is given to
// the call it fits. Nothing is lost, and what fits is not changed in any byte.

/// What a result says when its tool never answered.
pub const INTERRUPTED: &str = "[no result: the call was interrupted]";

/// Makes `message`, which will be entry `seq`, fit to be journaled.
fn arrive(thread: &Thread<'_>, seq: Seq, open: &OpenUnit, mut message: Message) -> Result<Message> {
    for (i, part) in message.parts.iter_mut().enumerate() {
        match part {
            MessagePart::Call(call) if call.id.is_empty() => call.id = format!("call_{seq}_{i}"),
            MessagePart::Result(outcome) => {
                if outcome.replaces.is_none() {
                    pair(outcome, open)?;
                }
                outcome.content.iter_mut().try_for_each(|part| keep_image(thread, part))?;
                keep_output(thread, outcome)?;
            }
            other => keep_image(thread, other)?,
        }
    }
    Ok(message)
}

/// Gives a result without an id to the call it fits: the first one of its tool, or the only one that waits.
fn pair(outcome: &mut ToolOutcome, open: &OpenUnit) -> Result<()> {
    if outcome.call_id.is_empty() {
        let by_name = open.calls.iter().find(|call| outcome.name.as_ref() == Some(&call.name));
        let call = by_name.or(if open.calls.len() == 1 { open.calls.first() } else { None });
        let Some(call) = call else {
            let why = match open.calls.len() {
                0 => "no call waits for one".to_owned(),
                1 => format!("the call that waits is not to {:?}", outcome.name.as_deref().unwrap_or("?")),
                n => format!("{n} calls wait, none of them to {:?}", outcome.name.as_deref().unwrap_or("?")),
            };
            return Err(Error::NoCallFits(why));
        };
        outcome.call_id.clone_from(&call.id);
    }
    if outcome.name.is_none() {
        outcome.name =
            open.calls.iter().find(|call| call.id == outcome.call_id).map(|call| call.name.clone());
    }
    Ok(())
}

/// Moves a picture's bytes to a blob, when they can be written back exactly as they came.
fn keep_image(thread: &Thread<'_>, part: &mut MessagePart) -> Result<()> {
    let MessagePart::Image { source, .. } = part else { return Ok(()) };
    let ImageSource::Url { url } = &*source else { return Ok(()) };
    let Some((media_type, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"))
    else {
        return Ok(());
    };
    // What is no plain media type would have to be escaped on its way back; it stays where it is.
    let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\');
    let Ok(bytes) = STANDARD.decode(data) else { return Ok(()) };
    if !media_type.bytes().all(plain) {
        return Ok(());
    }
    let blob = thread.store().put_blob(thread.session(), &mut &bytes[..])?;
    let pixels = PictureSize::read(&bytes);
    *source = ImageSource::Blob {
        blob: blob.id,
        media_type: media_type.to_owned(),
        byte_size: blob.byte_size,
        pixels,
    };
    Ok(())
}

/// Moves an output that is too long to a blob; its view stands where its first text stood. Whatever is no text stays.
fn keep_output(thread: &Thread<'_>, outcome: &mut ToolOutcome) -> Result<()> {
    let (Some(mut limits), None) = (thread.clip, &outcome.output_ref) else { return Ok(()) };
    if outcome.name.as_deref().is_some_and(is_reader) {
        // A model that asked for a part of a line is to get it, not a part of the part.
        limits.max_line_length = usize::MAX;
    }
    let text = texts(&outcome.content).map(|(text, _)| text).collect::<Vec<_>>().join("\n");
    // The name of the blob takes no part in whether there has to be one.
    if clip(&text, &limits, "").is_none() {
        return Ok(());
    }
    let blob = thread.store().put_blob(thread.session(), &mut text.as_bytes())?;
    let extra = texts(&outcome.content).find_map(|(_, extra)| extra.cloned());
    let mut view = clip(&text, &limits, &blob.id).map(|text| MessagePart::Text { text, extra });
    outcome.content = std::mem::take(&mut outcome.content)
        .into_iter()
        .filter_map(|part| if matches!(part, MessagePart::Text { .. }) { view.take() } else { Some(part) })
        .collect();
    let (byte_size, line_count) = (Some(blob.byte_size), Some(blob.line_count));
    outcome.output_ref = Some(OutputRef { id: blob.id, byte_size, line_count });
    Ok(())
}

fn texts(parts: &[MessagePart]) -> impl Iterator<Item = (&str, Option<&Opaque>)> {
    parts.iter().filter_map(|part| match part {
        MessagePart::Text { text, extra } => Some((text.as_str(), extra.as_ref())),
        _ => None,
    })
}

/// Results for calls that will never be answered.
fn interruptions(open: &OpenUnit) -> Vec<Message> {
    let result = |call: &Arc<WaitingCall>| {
        let outcome = ToolOutcome::text(&call.id, Some(call.name.clone()), INTERRUPTED);
        let outcome = ToolOutcome { is_error: true, interrupted: true, ..outcome };
        Message::of(Role::Tool, vec![MessagePart::Result(outcome)])
    };
    open.calls.iter().map(result).collect()
}
