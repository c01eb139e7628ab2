//! A thread in the tables, open.
//!
//! Opening is one query, whatever the thread's length. Reading goes ahead in pages of a bounded size. An append is one
//! statement and so one commit: it compares the last number and the lease's token under their locks and adds all rows, or
//! none.

use super::PostgresStore;
use super::append::{Append, Outcome};
use super::lease::Ticket;
use super::link::values;
use super::pages::Pages;
use super::server::{Server, Work};
use crate::letter::Letter;
use crate::{Error, Journal, Mode, Result, Row, Store, check_rewritten, check_rows};
use komado_core::session::State;
use komado_core::thread::Header;
use komado_core::{Head, Seq, SessionId, ThreadId};
use std::sync::Arc;
use tokio_postgres::Row as Found;

const LOOK: &str = "SELECT s.number, s.status, t.header, t.last, l.token \
    FROM sessions s JOIN leases l ON l.session = s.number \
    LEFT JOIN threads t ON t.session = s.number AND t.thread = $2 WHERE s.uuid = $1";

/// Takes the lease where it is free, and only then looks at the thread: what an earlier holder wrote last is seen.
const TAKE: &str = "WITH taken AS ( \
        UPDATE leases SET token = token + 1, holder = $3, claimant = $6, claim = $7, \
            expires = clock_timestamp() + $4::DOUBLE PRECISION * INTERVAL '1 second' \
        WHERE session = (SELECT number FROM sessions WHERE uuid = $1) AND ($5 OR NOT ended) \
            AND (holder IS NULL OR expires < clock_timestamp() OR claimant = $6) \
            AND (claimant <> $6 OR claim < $7) \
            AND EXISTS (SELECT 1 FROM threads t JOIN sessions s ON s.number = t.session \
                WHERE s.uuid = $1 AND t.thread = $2) \
        RETURNING session, token), \
    thread AS ( \
        SELECT header, last FROM threads WHERE session = (SELECT session FROM taken) AND thread = $2 FOR UPDATE) \
    SELECT s.number, s.status, COALESCE(n.header, t.header), COALESCE(n.last, t.last), taken.token \
    FROM sessions s \
    LEFT JOIN threads t ON t.session = s.number AND t.thread = $2 \
    LEFT JOIN taken ON TRUE LEFT JOIN thread n ON TRUE WHERE s.uuid = $1";

/// A thread, open.
pub(super) struct PostgresJournal {
    store: PostgresStore,
    header: Header,
    last: Seq,
    ticket: Option<Ticket>,
    pages: Pages,
    /// True when an append was sent and no answer came: its lines may be there.
    is_unsure: bool,
}

/// What opening found.
struct Opened {
    number: i64,
    header: Header,
    last: Seq,
}

pub(super) fn open(
    store: &PostgresStore,
    (id, thread): (&SessionId, &ThreadId),
    mode: Mode,
) -> Result<PostgresJournal> {
    let server = store.server();
    let (ticket, opened) = match mode {
        Mode::Read => (None, look(server, id, thread, None)?.1),
        Mode::Write | Mode::Amend => {
            let take = |known: Option<i64>| {
                let (token, opened) = match known {
                    Some(token) => look(server, id, thread, Some((token, mode)))?,
                    None => take(server, id, thread, mode)?,
                };
                Ok((opened.number, token, opened))
            };
            let (ticket, opened) = Ticket::take(server, (id, thread), take)?;
            (Some(ticket), opened)
        }
    };
    let Opened { number, header, last } = opened;
    let pages = Pages::new(Arc::clone(server), number, &header);
    Ok(PostgresJournal { store: store.clone(), header, last, ticket, pages, is_unsure: false })
}

/// Opens a thread of a session to look, or under a lease that this process has.
fn look(
    server: &Server,
    id: &SessionId,
    thread: &ThreadId,
    lease: Option<(i64, Mode)>,
) -> Result<(i64, Opened)> {
    let rows = server.ask(LOOK, values![id.to_string(), thread.to_string()])?;
    let row = rows.first().ok_or_else(|| Error::NoSession(id.clone()))?;
    if let Some((_, mode)) = lease {
        check_state(id, row, mode)?;
    }
    let opened = read(id, thread, row)?;
    let token: i64 = row.get(4);
    match lease {
        Some((ours, _)) if ours != token => Err(Error::TakenOver(id.clone())),
        _ => Ok((token, opened)),
    }
}

/// Opens a thread with a lease of its own.
fn take(server: &Server, id: &SessionId, thread: &ThreadId, mode: Mode) -> Result<(i64, Opened)> {
    let holder = serde_json::to_string(&server.how.holder).unwrap_or_default();
    let ask = || {
        let (claimant, claim) = server.leases.claim();
        let (id, thread, is_amending) = (id.to_string(), thread.to_string(), mode == Mode::Amend);
        let given =
            values![id, thread, holder.clone(), server.leases.seconds(), is_amending, claimant, claim];
        server.once(TAKE, given)
    };
    // Where an answer is lost the lease may be ours without our knowing: another claim takes it again.
    let rows = ask().or_else(|error| if error.is_away() { ask() } else { Err(error) })?;
    let row = rows.first().ok_or_else(|| Error::NoSession(id.clone()))?;
    if let Some(token) = row.get(4) {
        return Ok((token, read(id, thread, row)?));
    }
    check_state(id, row, mode)?;
    read(id, thread, row)?;
    Err(server.why_not(id))
}

fn check_state(id: &SessionId, row: &Found, mode: Mode) -> Result<()> {
    match State::named(row.get(1)) {
        Some(state) if state.is_ended() && mode == Mode::Write => Err(Error::Ended(id.clone(), state.name())),
        _ => Ok(()),
    }
}

fn read(id: &SessionId, thread: &ThreadId, row: &Found) -> Result<Opened> {
    let header: Option<&[u8]> = row.get(2);
    let header = header.ok_or_else(|| Error::NoThread(id.clone(), thread.clone()))?;
    let last: Option<i64> = row.get(3);
    let header = super::threads::read_header(&format!("{id}/{thread}"), header)?;
    Ok(Opened { number: row.get(0), header, last: super::seq(last.unwrap_or(0)) })
}

impl PostgresJournal {
    fn no_entry(&self, seq: Seq) -> Error {
        Error::no_entry(&self.header.session, &self.header.thread, seq)
    }

    /// Says that the thread is as long as `last` now.
    fn grown(&mut self, last: Seq) {
        self.last = last;
        self.is_unsure = false;
        let Header { session, thread, .. } = &self.header;
        self.store.server().teller.ring(session, thread, last);
    }

    /// Begins a change of what is there, under the lease.
    fn begin(&self) -> Result<(Work<'_>, i64)> {
        let ticket = self.ticket.as_ref().ok_or(Error::ReadOnly)?;
        let mut work = self.store.server().begin()?;
        let sql = "SELECT 1 FROM leases WHERE session = $1 AND token = $2 FOR SHARE";
        match work.ask(sql, values![ticket.number, ticket.token])?.is_empty() {
            true => Err(Error::TakenOver(self.header.session.clone())),
            false => Ok((work, ticket.number)),
        }
    }

    /// Puts changed lines in their places, a page at a time.
    fn change_lines(
        &self,
        (work, number): (&mut Work<'_>, i64),
        change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>,
    ) -> Result<u64> {
        let thread = self.header.thread.to_string();
        let (mut changed, mut seq) = (0, self.header.base_seq() + 1);
        while seq <= self.last {
            let rows =
                work.ask(super::pages::AHEAD, values![number, thread.clone(), i64::from(seq), 256i64])?;
            if rows.is_empty() {
                return Err(self.no_entry(seq));
            }
            let (mut seqs, mut lines) = (Vec::new(), Vec::new());
            for row in &rows {
                let line: &[u8] = row.get(1);
                if let Some(new) = change(seq, &String::from_utf8_lossy(line)) {
                    check_rewritten(line, &new)?;
                    seqs.push(i64::from(seq));
                    lines.push(new);
                }
                seq += 1;
            }
            changed += seqs.len() as u64;
            if !seqs.is_empty() {
                let sql = "UPDATE entries e SET line = n.line, size = octet_length(n.line) \
                    FROM unnest($3::BIGINT[], $4::BYTEA[]) AS n(seq, line) \
                    WHERE e.session = $1 AND e.thread = $2 AND e.seq = n.seq";
                work.ask(sql, values![number, thread.clone(), seqs, lines])?;
            }
        }
        Ok(changed)
    }
}

impl Journal for PostgresJournal {
    fn header(&self) -> &Header {
        &self.header
    }

    fn last(&self) -> Seq {
        self.last
    }

    fn head(&self, seq: Seq) -> Result<Head> {
        match seq {
            0 => Ok(Head::START),
            _ if seq > self.last => Err(self.no_entry(seq)),
            _ => self.pages.head(seq, self.last)?.ok_or_else(|| self.no_entry(seq)),
        }
    }

    fn line(&self, seq: Seq) -> Result<Vec<u8>> {
        if seq == 0 || seq > self.last {
            return Err(self.no_entry(seq));
        }
        self.pages.line(seq, self.last)?.ok_or_else(|| self.no_entry(seq))
    }

    fn append(&mut self, after: Seq, rows: &[Row]) -> Result<()> {
        let Some(ticket) = &self.ticket else { return Err(Error::ReadOnly) };
        if after != self.last {
            return Err(Error::Moved { expected: after, found: self.last });
        }
        check_rows(after, rows)?;
        if rows.is_empty() {
            return Ok(());
        }
        let append = Append { server: self.store.server(), ticket, header: &self.header, after };
        match append.run(rows, self.is_unsure) {
            Ok(Outcome::There) => {
                self.grown(after + rows.len() as Seq);
                Ok(())
            }
            Ok(Outcome::Moved(found)) => {
                self.grown(found);
                Err(Error::Moved { expected: after, found })
            }
            Err(error) => {
                self.is_unsure |= error.is_away();
                Err(error)
            }
        }
    }

    fn letter(&self) -> Result<Letter> {
        self.ticket.as_ref().ok_or(Error::ReadOnly).and_then(|_| Letter::passing())
    }

    fn rewrite(&mut self, change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>) -> Result<u64> {
        let (mut work, number) = self.begin()?;
        let changed = self.change_lines((&mut work, number), change);
        match changed {
            Ok(0) | Err(_) => work.leave()?,
            Ok(_) => work.commit()?,
        }
        self.pages.forget();
        changed
    }

    fn relabel(&mut self, label: Option<&str>) -> Result<()> {
        let header = Header { label: label.map(str::to_owned), ..self.header.clone() };
        let (mut work, number) = self.begin()?;
        let sql = "UPDATE threads SET header = $3 WHERE session = $1 AND thread = $2";
        work.ask(sql, values![number, header.thread.to_string(), header.encode()])?;
        work.commit()?;
        self.header = header;
        Ok(())
    }

    fn above(&self, thread: &ThreadId) -> Result<Box<dyn Journal>> {
        self.store.open(&self.header.session, thread, Mode::Read)
    }
}
