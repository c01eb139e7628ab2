//! The jobs of the queue, one after another, read a page at a time.

use crate::engine::Engine;
use komado_core::SessionId;
use komado_store::{Queued, Result, Store};
use std::collections::VecDeque;

/// Jobs that are read at once.
const PAGE: usize = 200;

/// The jobs of a queue, in its order. One that was handed out may be withdrawn before the next is asked for.
pub struct Jobs<'s> {
    store: &'s dyn Store,
    /// What was read and not handed out yet.
    read: VecDeque<Queued>,
    has_more: bool,
}

impl<'s> Jobs<'s> {
    /// Those of a store.
    pub fn of(store: &'s dyn Store) -> Self {
        Self { store, read: VecDeque::new(), has_more: true }
    }
}

impl Iterator for Jobs<'_> {
    type Item = Result<Queued>;

    fn next(&mut self) -> Option<Result<Queued>> {
        // A page begins after a job that is in the queue: it is read before the last one is handed out.
        if self.has_more && self.read.len() <= 1 {
            match self.store.jobs(self.read.back().map(|last| &last.job.session), PAGE) {
                Ok(page) => {
                    self.has_more = page.len() == PAGE;
                    self.read.extend(page);
                }
                Err(error) => {
                    (self.has_more, self.read) = (false, VecDeque::new());
                    return Some(Err(error));
                }
            }
        }
        self.read.pop_front().map(Ok)
    }
}

impl Engine {
    /// The jobs in the queue, in order.
    pub fn jobs(&self) -> Jobs<'_> {
        Jobs::of(self.store())
    }

    /// True when a job of this session waits, is worked on or was laid aside.
    pub fn is_queued(&self, id: &SessionId) -> Result<bool> {
        let mut found =
            self.jobs().filter(|queued| queued.as_ref().map_or(true, |queued| queued.job.session == *id));
        found.next().transpose().map(|found| found.is_some())
    }
}
