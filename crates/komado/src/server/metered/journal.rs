//! A journal whose writes are timed, and whose failures are counted.

use super::{Gauge, Need};
use komado_core::thread::Header;
use komado_core::{Head, Seq, ThreadId, View};
use komado_store::{Journal, Letter, Note, Result, Row};
use std::sync::Arc;

/// A journal that is open.
pub(super) struct MeteredJournal {
    pub(super) inner: Box<dyn Journal>,
    pub(super) gauge: Arc<Gauge>,
}

impl Journal for MeteredJournal {
    fn header(&self) -> &Header {
        self.inner.header()
    }

    fn last(&self) -> Seq {
        self.inner.last()
    }

    fn head(&self, seq: Seq) -> Result<Head> {
        self.gauge.read("head", || self.inner.head(seq))
    }

    fn line(&self, seq: Seq) -> Result<Vec<u8>> {
        self.gauge.read("line", || self.inner.line(seq))
    }

    fn append(&mut self, after: Seq, rows: &[Row]) -> Result<()> {
        self.gauge.time("append", Need::Write, || self.inner.append(after, rows))
    }

    fn letter(&self) -> Result<Letter> {
        self.gauge.time("letter", Need::Nothing, || self.inner.letter())
    }

    fn settle(&mut self, view: &View) -> Result<()> {
        self.gauge.time("settle", Need::Nothing, || self.inner.settle(view))
    }

    fn rewrite(&mut self, change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>) -> Result<u64> {
        self.gauge.time("rewrite", Need::Maybe, || self.inner.rewrite(change))
    }

    fn relabel(&mut self, label: Option<&str>) -> Result<()> {
        self.gauge.time("relabel", Need::Write, || self.inner.relabel(label))
    }

    fn above(&self, thread: &ThreadId) -> Result<Box<dyn Journal>> {
        let inner = self.gauge.read("above", || self.inner.above(thread))?;
        Ok(Box::new(Self { inner, gauge: Arc::clone(&self.gauge) }))
    }

    fn notes(&self) -> &[Note] {
        self.inner.notes()
    }
}
