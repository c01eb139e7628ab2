//! A thread's journal in Redis.
//!
//! A fork has only its own entries; those before it are read from the threads it goes on from, which are all named when it
//! is opened. An append is one script: it looks at the lease and at the last entry, and writes all rows or none.

use super::lease::RedisLease;
use super::scripts::read;
use super::sessions::read_header;
use super::tables::read_session;
use super::{Inner, RedisStore, scripts};
use crate::files::{head_bytes, read_head};
use crate::lease::ThreadLease;
use crate::request_file::RequestFile;
use crate::server_calls::ReadAhead;
use crate::{Error, Journal, JournalRow, OpenMode, Result, Store, check_rewritten, check_rows};
use komado_core::thread::Header;
use komado_core::{Head, Seq, SessionId, ThreadId};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A line may not be longer: the server takes no more in one piece.
const LONGEST: usize = 500 << 20;
/// Who only reads puts off the session's end this often.
const A_WHILE: Duration = Duration::from_secs(60);
/// How many lines and heads are read when nothing is known of what comes next.
const LINES: u32 = 8;
const HEADS: u32 = 64;
/// The most bytes that are read ahead.
const MOST_BYTES: u64 = 1 << 20;

/// A thread's own entries: those after `base`, up to `last`.
struct Leg {
    thread: ThreadId,
    base: Seq,
    last: Seq,
}

pub(super) struct RedisJournal {
    store: Arc<Inner>,
    header: Header,
    /// The thread itself, then those it goes on from.
    legs: Vec<Leg>,
    /// Absent for a reader.
    ticket: Option<ThreadLease<RedisLease>>,
    lines: RefCell<ReadAhead>,
    heads: RefCell<ReadAhead>,
    renewed: Cell<Instant>,
}

impl RedisJournal {
    pub(super) fn open(
        store: &Arc<Inner>,
        id: &SessionId,
        thread: &ThreadId,
        mode: OpenMode,
    ) -> Result<Self> {
        let (said, ticket) = store.opened(id, thread, mode)?;
        if mode == OpenMode::Write {
            store.list_again(id, &read_session(id, &said.text(1))?.meta);
        }
        let mut headers = Vec::new();
        for i in (2..said.rest.len()).step_by(2) {
            headers.push((read_header(id, &said.text(i))?, said.number(i + 1) as Seq));
        }
        let mut legs: Vec<Leg> = Vec::with_capacity(headers.len());
        for (header, last) in &headers {
            let last = legs.last().map_or(*last, |above| above.base);
            legs.push(Leg { thread: header.thread.clone(), base: header.base_seq(), last });
        }
        let (header, _) = headers
            .into_iter()
            .next()
            .ok_or_else(|| Error::damaged(id.as_str(), "a thread has no header"))?;
        let (lines, heads) = (RefCell::default(), RefCell::default());
        let renewed = Cell::new(Instant::now());
        Ok(Self { store: Arc::clone(store), header, legs, ticket, lines, heads, renewed })
    }

    fn no_entry(&self, seq: Seq) -> Error {
        Error::no_entry(&self.header.session, &self.header.thread, seq)
    }

    /// The thread that has entry `seq`.
    fn leg(&self, seq: Seq) -> Result<usize> {
        let found = self.legs.iter().position(|leg| seq > leg.base);
        found.filter(|_| seq > 0 && seq <= self.last()).ok_or_else(|| self.no_entry(seq))
    }

    /// The end of the session, when it is to be put off by reading.
    fn puts_off(&self) -> String {
        if self.renewed.get().elapsed() < A_WHILE {
            return String::new();
        }
        self.renewed.set(Instant::now());
        self.store.ttl()
    }

    fn entry(&self, pages: &RefCell<ReadAhead>, sort: &str, seq: Seq, start: u32) -> Result<Vec<u8>> {
        let at = self.leg(seq)?;
        let mut page = pages.borrow_mut();
        if let Some(value) = page.get(at, seq) {
            return Ok(value.to_vec());
        }
        let (leg, id) = (&self.legs[at], &self.header.session);
        let plan = page.plan(at, seq, (leg.base + 1, leg.last), start);
        let step = if plan.is_backward { -1 } else { 1 };
        let args = (leg.thread.as_str(), sort, plan.from, plan.count, step, MOST_BYTES, self.puts_off());
        let said = self.store.run(id, &scripts::PAGE, args)?;
        let values = said.rest.into_iter().map(read).collect::<Result<Vec<Vec<u8>>>>()?;
        let first = values.first().cloned().ok_or_else(|| self.no_entry(seq))?;
        page.keep(plan, values, start);
        Ok(first)
    }

    fn token(&self) -> Result<u64> {
        self.ticket.as_ref().ok_or(Error::ReadOnly)?.token()
    }

    /// Replaces fields of the session's heart in one step.
    fn replace(&self, fields: Vec<(String, Vec<u8>)>) -> Result<()> {
        let args = (self.token()?, self.store.ttl(), fields);
        self.store.write(&self.header.session, &scripts::REWRITE, args).map(drop)
    }
}

impl Journal for RedisJournal {
    fn header(&self) -> &Header {
        &self.header
    }

    fn last(&self) -> Seq {
        self.legs.first().map_or(0, |leg| leg.last)
    }

    fn head(&self, seq: Seq) -> Result<Head> {
        if seq == 0 {
            return Ok(Head::START);
        }
        let bytes = self.entry(&self.heads, "#", seq, HEADS)?;
        let Header { session, thread, .. } = &self.header;
        let wrong = || Error::damaged(format!("{session}/{thread}@{seq}"), "its head cannot be read");
        read_head(&bytes).ok_or_else(wrong)
    }

    fn line(&self, seq: Seq) -> Result<Vec<u8>> {
        self.entry(&self.lines, "@", seq, LINES)
    }

    fn append(&mut self, after: Seq, rows: &[JournalRow]) -> Result<()> {
        let token = self.token()?;
        if after != self.last() {
            return Err(Error::Moved { expected: after, found: self.last() });
        }
        check_rows(after, rows)?;
        if let Some(row) = rows.iter().find(|row| row.line.len() > LONGEST) {
            return Err(Error::TooMuch(format!("a line of {} bytes; 500 MiB is the most", row.line.len())));
        }
        let (id, store) = (&self.header.session, &self.store);
        let call = (store.nonce(), store.ttl(), store.keys.news(), id.as_str());
        let mut ask = store.about(id, &scripts::APPEND, (token, self.header.thread.as_str(), after, call));
        for row in rows {
            ask = ask.arg((&head_bytes(&row.head)[..], &row.line[..]));
        }
        let said = store.said(ask.spread())?;
        let found = (said.word == "moved").then(|| said.number(0) as Seq);
        if found.is_none() {
            said.fine(id)?;
        }
        let own = &mut self.legs[0];
        own.last = found.unwrap_or(after + rows.len() as Seq);
        match found {
            Some(found) => Err(Error::Moved { expected: after, found }),
            None => Ok(()),
        }
    }

    fn request_file(&self) -> Result<RequestFile> {
        self.token().and_then(|_| RequestFile::passing())
    }

    fn rewrite(&mut self, change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>) -> Result<u64> {
        self.token()?;
        let mut fields = Vec::new();
        for seq in self.header.base_seq() + 1..=self.last() {
            let line = self.line(seq)?;
            if let Some(new) = change(seq, &String::from_utf8_lossy(&line)) {
                check_rewritten(&line, &new)?;
                fields.push((format!("{}@{seq}", self.header.thread), new));
            }
        }
        let count = fields.len() as u64;
        if count > 0 {
            self.replace(fields)?;
            self.lines.take();
        }
        Ok(count)
    }

    fn relabel(&mut self, label: Option<&str>) -> Result<()> {
        self.token()?;
        let header = Header { label: label.map(str::to_owned), ..self.header.clone() };
        self.replace(vec![(format!("thread:{}", header.thread), header.encode())])?;
        self.header = header;
        Ok(())
    }

    fn above(&self, thread: &ThreadId) -> Result<Box<dyn Journal>> {
        RedisStore(Arc::clone(&self.store)).open(&self.header.session, thread, OpenMode::Read)
    }
}
