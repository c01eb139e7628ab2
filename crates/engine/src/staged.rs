//! Entries on their way: admitted one after the other, journaled together.
//!
//! A batch is one append, one write, one sync. Until it is durable nothing of it may change the thread's view, so it
//! is folded into a copy over a source that holds the journal and the entries not yet in it.

use komado_core::head::Source;
use komado_core::journal::{Entry, Record, encode};
use komado_core::session::Counters;
use komado_core::{Head, Meter, Refusal, Seq, ThreadId, View, admit};
use komado_store::{Error, Journal, Row};

/// The journal, with the batch after it.
pub struct Staged<'a> {
    rows: Rows<'a>,
    view: View,
    /// How tokens are counted.
    pub(crate) meter: Meter,
    bytes: usize,
    counters: Counters,
}

/// The journal, and the entries that are not in it yet.
pub struct Rows<'a> {
    journal: &'a dyn Journal,
    after: Seq,
    new: Vec<(Record, Row)>,
}

/// A batch that is ready to be made durable.
pub struct Work {
    pub(crate) after: Seq,
    pub(crate) rows: Vec<Row>,
    /// The view once it is durable.
    pub(crate) view: View,
    /// What it adds to the session's counters.
    pub(crate) counters: Counters,
    /// When its last entry was made; `None` for an empty batch.
    pub(crate) at: Option<String>,
}

impl Work {
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
pub(crate) struct Mark(usize, View, usize, Counters);

impl Rows<'_> {
    fn new_at(&self, seq: Seq) -> Option<&(Record, Row)> {
        self.new.get(seq.checked_sub(self.after + 1)? as usize)
    }
}

impl Source for Rows<'_> {
    type Error = Error;

    fn last(&self) -> Seq {
        self.after + self.new.len() as Seq
    }

    fn head(&self, seq: Seq) -> Result<Head, Error> {
        self.new_at(seq).map_or_else(|| self.journal.head(seq), |(_, row)| Ok(row.head))
    }

    fn record(&self, seq: Seq) -> Result<Record, Error> {
        self.new_at(seq).map_or_else(|| Source::record(self.journal, seq), |(record, _)| Ok(record.clone()))
    }

    fn above(&self, thread: &ThreadId) -> Result<Box<dyn Source<Error = Error> + '_>, Error> {
        Source::above(self.journal, thread)
    }
}

impl<'a> Staged<'a> {
    /// Begins a batch after what `view` has taken in.
    pub fn new(journal: &'a dyn Journal, view: View, meter: Meter) -> Self {
        let rows = Rows { journal, after: journal.last(), new: Vec::new() };
        Self { rows, view, meter, bytes: 0, counters: Counters::default() }
    }

    /// The view with the batch so far.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The journal with the batch after it, to be looked up.
    pub fn source(&self) -> &Rows<'a> {
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
    pub fn push(&mut self, entry: Entry, timestamp: String) -> crate::Result<Seq> {
        let tokens = match &entry {
            Entry::Message(message, _) => self.meter.message(message),
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
    pub fn push_line(&mut self, record: Record, line: Vec<u8>) -> Result<Result<Seq, Refusal>, Error> {
        if let Err(refusal) = admit(&self.view, &record.entry, &self.rows)? {
            return Ok(Err(refusal));
        }
        let head = self.view.head_of(&record, &self.rows)?;
        let (seq, bytes, counters) = (record.seq, line.len(), Counters::of(&record.entry));
        self.rows.new.push((record, Row { line, head }));
        if let Some((record, _)) = self.rows.new.last() {
            self.view.apply(record, &self.rows)?;
        }
        self.bytes += bytes;
        self.counters += counters;
        Ok(Ok(seq))
    }

    /// The batch as it is, to go [back](Self::back_to) to.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.rows.new.len(), self.view.clone(), self.bytes, self.counters)
    }

    /// Forgets what came in since `mark`.
    pub(crate) fn back_to(&mut self, Mark(rows, view, bytes, counters): Mark) {
        self.rows.new.truncate(rows);
        (self.view, self.bytes, self.counters) = (view, bytes, counters);
    }

    /// The batch, ready to be made durable.
    pub fn finish(self) -> Work {
        let Self { rows: Rows { after, new, .. }, view, counters, .. } = self;
        let at = new.last().map(|(record, _)| record.timestamp.clone());
        Work { after, rows: new.into_iter().map(|(_, row)| row).collect(), view, counters, at }
    }
}
