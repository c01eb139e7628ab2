//! A thread in memory: the smallest thing that journals, admits and folds.
//!
//! It keeps every entry, so it is for conversations that fit; a store keeps the same two columns on disk.

use komado_core::head::{EntrySource, Head};
use komado_core::journal::{Entry, Record};
use komado_core::{EntryRefusal, Seq, ThreadId, View, admit};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Entries and their heads, and the view they fold to.
#[derive(Clone, Debug, Default)]
pub struct Book {
    rows: BookRows,
    view: View,
}

/// The two columns, and those of the threads above.
#[derive(Clone, Debug, Default)]
pub struct BookRows(Vec<(Record, Head)>, BTreeMap<ThreadId, BookRows>);

impl EntrySource for BookRows {
    type Error = Infallible;

    fn last(&self) -> Seq {
        Seq::try_from(self.0.len()).unwrap_or(Seq::MAX)
    }

    fn head(&self, seq: Seq) -> Result<Head, Infallible> {
        Ok(seq.checked_sub(1).and_then(|i| self.0.get(i as usize)).map_or(Head::START, |(_, head)| *head))
    }

    fn record(&self, seq: Seq) -> Result<Record, Infallible> {
        let row = seq.checked_sub(1).and_then(|i| self.0.get(i as usize));
        Ok(row.map_or_else(nothing, |(record, _)| record.clone()))
    }

    /// A thread that the book was not told of has no entries.
    fn above(&self, thread: &ThreadId) -> Result<Box<dyn EntrySource<Error = Infallible> + '_>, Infallible> {
        Ok(Box::new(self.1.get(thread).cloned().unwrap_or_default()))
    }
}

/// What stands where no entry is; the fold asks for none such.
fn nothing() -> Record {
    Record { seq: 0, timestamp: String::new(), tokens: 0, entry: Entry::Rewind { to: 0 } }
}

impl Book {
    /// Admits `entry` and appends it; gives its number.
    pub fn push(&mut self, entry: Entry, tokens: u32, timestamp: &str) -> Result<Seq, EntryRefusal> {
        let Ok(verdict) = admit(&self.view, &entry, &self.rows);
        verdict?;
        Ok(self.push_unchecked(entry, tokens, timestamp))
    }

    /// Appends `entry` without asking; for journals that were admitted before, and for tests of what must not be.
    pub fn push_unchecked(&mut self, entry: Entry, tokens: u32, timestamp: &str) -> Seq {
        let record = Record { seq: self.rows.last() + 1, timestamp: timestamp.into(), tokens, entry };
        let Ok(head) = self.view.head_of(&record, &self.rows);
        self.rows.0.push((record.clone(), head));
        let Ok(()) = self.view.apply(&record, &self.rows);
        record.seq
    }

    /// What the model sees now.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// What the model saw at `seq`.
    pub fn view_at(&self, seq: Seq) -> View {
        let Ok(view) = View::fold(&self.rows, seq.min(self.rows.last()));
        view
    }

    /// The entries and heads.
    pub fn rows(&self) -> &BookRows {
        &self.rows
    }

    /// All entries, oldest first.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.rows.0.iter().map(|(record, _)| record)
    }

    /// Tells the book of a thread above it, as that is now.
    pub fn below(&mut self, thread: ThreadId, above: &Self) {
        self.rows.1.insert(thread, above.rows.clone());
    }

    /// A book that goes on from `seq` of this one, number for number.
    pub fn fork(&self, seq: Seq) -> Self {
        let kept = self.rows.0[..(seq as usize).min(self.rows.0.len())].to_vec();
        Self { rows: BookRows(kept, self.rows.1.clone()), view: self.view_at(seq) }
    }
}
