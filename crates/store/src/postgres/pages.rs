//! What is read of a thread, a little ahead of whoever reads it.
//!
//! A page is bounded in entries and in bytes. A fork reads what came before it where it stands, in the
//! threads it goes on from.

use super::link::values;
use super::seq;
use super::server::Server;
use crate::files::read_head;
use crate::page::{Page, Plan};
use crate::{Error, Result};
use komado_core::thread::Header;
use komado_core::{Head, Seq};
use std::cell::{OnceCell, RefCell};
use std::sync::Arc;
use tokio_postgres::Row;

/// Lines from an entry on, at most so many, and, after the first, no more than 1 MiB.
pub(super) const AHEAD: &str = "SELECT seq, line FROM ( \
    SELECT seq, line, sum(size) OVER (ORDER BY seq) - size AS before FROM ( \
        SELECT seq, line, size FROM entries WHERE session = $1 AND thread = $2 AND seq >= $3 \
        ORDER BY seq LIMIT $4) AS few) AS page \
    WHERE before < 1048576 OR seq = $3 ORDER BY seq";

/// The same backwards.
const BACK: &str = "SELECT seq, line FROM ( \
    SELECT seq, line, sum(size) OVER (ORDER BY seq DESC) - size AS before FROM ( \
        SELECT seq, line, size FROM entries WHERE session = $1 AND thread = $2 AND seq <= $3 \
        ORDER BY seq DESC LIMIT $4) AS few) AS page \
    WHERE before < 1048576 OR seq = $3 ORDER BY seq DESC";

const HEADS_AHEAD: &str = "SELECT seq, head FROM entries WHERE session = $1 AND thread = $2 AND seq >= $3 \
    ORDER BY seq LIMIT $4";

const HEADS_BACK: &str = "SELECT seq, head FROM entries WHERE session = $1 AND thread = $2 AND seq <= $3 \
    ORDER BY seq DESC LIMIT $4";

/// The threads that a fork goes on from, the nearest first.
const CHAIN: &str = "WITH RECURSIVE chain AS ( \
        SELECT thread, base_thread, base_seq, 0 AS depth FROM threads WHERE session = $1 AND thread = $2 \
        UNION ALL \
        SELECT t.thread, t.base_thread, t.base_seq, c.depth + 1 FROM chain c \
        JOIN threads t ON t.session = $1 AND t.thread = c.base_thread) \
    SELECT thread, base_seq FROM chain ORDER BY depth";

/// Entries of the first page.
const LEAST: u32 = 16;

/// Reads a thread and what it goes on from.
pub(super) struct Pages {
    server: Arc<Server>,
    session: i64,
    own: (String, Seq),
    place: String,
    /// Threads, each with the number before its first own entry: this one, then those it goes on from.
    chain: OnceCell<Vec<(String, Seq)>>,
    heads: RefCell<Page>,
    lines: RefCell<Page>,
}

impl Pages {
    pub(super) fn new(server: Arc<Server>, session: i64, header: &Header) -> Self {
        let own = (header.thread.to_string(), header.base_seq());
        let place = format!("{}/{}", header.session, header.thread);
        let (heads, lines) = (RefCell::default(), RefCell::default());
        Self { server, session, own, place, chain: OnceCell::new(), heads, lines }
    }

    pub(super) fn head(&self, at: Seq, last: Seq) -> Result<Option<Head>> {
        let found = self.find(&self.heads, [HEADS_AHEAD, HEADS_BACK], at, last)?;
        let wrong = || Error::damaged(format!("{}@{at}", self.place), "its head cannot be read");
        found.map(|bytes| read_head(&bytes).ok_or_else(wrong)).transpose()
    }

    pub(super) fn line(&self, at: Seq, last: Seq) -> Result<Option<Vec<u8>>> {
        self.find(&self.lines, [AHEAD, BACK], at, last)
    }

    /// Lets go of lines that may have been changed.
    pub(super) fn forget(&self) {
        self.lines.take();
    }

    fn find(
        &self,
        page: &RefCell<Page>,
        [ahead, back]: [&'static str; 2],
        at: Seq,
        last: Seq,
    ) -> Result<Option<Vec<u8>>> {
        let thread = self.owner(at)?;
        if let Some(found) = page.borrow().get(thread, at) {
            return Ok(Some(found.to_vec()));
        }
        let mut plan = page.borrow().plan(thread, at, (1, last.max(at)), LEAST);
        if plan.is_apart && at == last {
            // Who begins with the last entry goes back from there.
            plan = Plan { count: LEAST, is_backward: true, ..plan };
        }
        let sql = if plan.is_backward { back } else { ahead };
        let name = self.name(thread)?.0.clone();
        let rows = self.server.ask(sql, values![self.session, name, i64::from(at), i64::from(plan.count)])?;
        let read = |row: &Row| (seq(row.get(0)), row.get::<_, Vec<u8>>(1));
        let (seqs, items): (Vec<Seq>, Vec<Vec<u8>>) = rows.iter().map(read).unzip();
        let is_whole = seqs.windows(2).all(|pair| pair[0].abs_diff(pair[1]) == 1);
        if !is_whole || seqs.first() != Some(&at) {
            return Ok(None);
        }
        page.borrow_mut().keep(plan, items, LEAST);
        Ok(page.borrow().get(thread, at).map(<[u8]>::to_vec))
    }

    /// Which thread of the chain an entry is of.
    fn owner(&self, at: Seq) -> Result<usize> {
        if at > self.own.1 {
            return Ok(0);
        }
        let owner = self.chain()?.iter().position(|(_, base)| at > *base);
        owner.ok_or_else(|| Error::damaged(self.place.as_str(), format!("it has no entry @{at}")))
    }

    fn name(&self, thread: usize) -> Result<&(String, Seq)> {
        if thread == 0 {
            return Ok(&self.own);
        }
        let lost = || Error::damaged(self.place.as_str(), "what it goes on from is not there");
        self.chain()?.get(thread).ok_or_else(lost)
    }

    fn chain(&self) -> Result<&[(String, Seq)]> {
        if self.chain.get().is_none() {
            let rows = self.server.ask(CHAIN, values![self.session, self.own.0.clone()])?;
            let found = rows.iter().map(|row| (row.get(0), seq(row.get(1)))).collect();
            let _ = self.chain.set(found);
        }
        Ok(self.chain.get().map_or(&[], Vec::as_slice))
    }
}
