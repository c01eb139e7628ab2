//! A thread in the tables, open.
//!
//! Opening is one query, whatever the thread's length. Reading goes ahead in pages of a bounded size. An append is one
//! statement and so one commit: it compares the last number and the lease's token under their locks and adds all rows, or
//! none.

use super::lease::PostgresLease as LeaseRow;
use super::server::{PostgresServer, PostgresTransaction, StatementValues, pause, values};
use super::{PostgresStore, seconds, seq};
use crate::files::{head_bytes, read_head};
use crate::lease::{LeasePurpose, ThreadLease};
use crate::request_file::RequestFile;
use crate::server_calls::{ReadAhead, ReadPlan};
use crate::{Error, Journal, JournalRow, OpenMode, Result, Store, check_rewritten, check_rows};
use komado_core::session::State;
use komado_core::thread::Header;
use komado_core::{Head, Seq, SessionId, ThreadId};
use std::cell::{OnceCell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};
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
    ticket: Option<ThreadLease<LeaseRow>>,
    pages: PostgresReader,
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
    mode: OpenMode,
) -> Result<PostgresJournal> {
    let server = store.server();
    let (ticket, opened) = match mode {
        OpenMode::Read => (None, look(server, id, thread, None)?),
        OpenMode::Write | OpenMode::Amend => {
            let take = |known: Option<(i64, i64)>| match known {
                Some((_, token)) => Ok((None, look(server, id, thread, Some((token, mode)))?)),
                None => {
                    let (token, opened) = take(server, id, thread, mode)?;
                    let key = (opened.number, token);
                    Ok((Some(LeaseRow { server: Arc::clone(server), key }), opened))
                }
            };
            let (ticket, opened) = server.leases.take((id, thread), LeasePurpose::Write, take)?;
            (Some(ticket), opened)
        }
    };
    let Opened { number, header, last } = opened;
    let pages = PostgresReader::new(Arc::clone(server), number, &header);
    Ok(PostgresJournal { store: store.clone(), header, last, ticket, pages, is_unsure: false })
}

/// Opens a thread of a session to look, or under a lease that this process has.
fn look(
    server: &PostgresServer,
    id: &SessionId,
    thread: &ThreadId,
    lease: Option<(i64, OpenMode)>,
) -> Result<Opened> {
    let rows = server.ask(LOOK, values![id.to_string(), thread.to_string()])?;
    let row = rows.first().ok_or_else(|| Error::NoSession(id.clone()))?;
    if let Some((_, mode)) = lease {
        check_state(id, row, mode)?;
    }
    let opened = read(id, thread, row)?;
    match lease {
        Some((ours, _)) if ours != row.get::<_, i64>(4) => Err(Error::TakenOver(id.clone())),
        _ => Ok(opened),
    }
}

/// Opens a thread with a lease of its own.
fn take(server: &PostgresServer, id: &SessionId, thread: &ThreadId, mode: OpenMode) -> Result<(i64, Opened)> {
    let holder = serde_json::to_string(&server.how.holder).unwrap_or_default();
    let ask = || {
        let (claimant, claim) = server.claims.next();
        let (id, thread, is_amending) = (id.to_string(), thread.to_string(), mode == OpenMode::Amend);
        let span = seconds(server.how.lease);
        let given = values![id, thread, holder.clone(), span, is_amending, claimant, claim];
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

fn check_state(id: &SessionId, row: &Found, mode: OpenMode) -> Result<()> {
    match State::named(row.get(1)) {
        Some(state) if state.is_ended() && mode == OpenMode::Write => {
            Err(Error::Ended(id.clone(), state.name()))
        }
        _ => Ok(()),
    }
}

fn read(id: &SessionId, thread: &ThreadId, row: &Found) -> Result<Opened> {
    let header: Option<&[u8]> = row.get(2);
    let header = header.ok_or_else(|| Error::NoThread(id.clone(), thread.clone()))?;
    let last: Option<i64> = row.get(3);
    let header = super::sessions::read_header(&format!("{id}/{thread}"), header)?;
    Ok(Opened { number: row.get(0), header, last: super::seq(last.unwrap_or(0)) })
}

impl PostgresJournal {
    fn no_entry(&self, seq: Seq) -> Error {
        Error::no_entry(&self.header.session, &self.header.thread, seq)
    }

    /// The session's number and our token.
    fn key(&self) -> Result<(i64, i64)> {
        self.ticket.as_ref().ok_or(Error::ReadOnly)?.token()
    }

    /// Says that the thread is as long as `last` now.
    fn grown(&mut self, last: Seq) {
        self.last = last;
        self.is_unsure = false;
        let Header { session, thread, .. } = &self.header;
        self.store.server().teller.ring(session, thread, last);
    }

    /// Begins a change of what is there, under the lease.
    fn begin(&self) -> Result<(PostgresTransaction<'_>, i64)> {
        let (number, token) = self.key()?;
        let mut work = self.store.server().begin()?;
        let sql = "SELECT 1 FROM leases WHERE session = $1 AND token = $2 FOR SHARE";
        match work.ask(sql, values![number, token])?.is_empty() {
            true => Err(Error::TakenOver(self.header.session.clone())),
            false => Ok((work, number)),
        }
    }

    /// Puts changed lines in their places, a page at a time.
    fn change_lines(
        &self,
        (work, number): (&mut PostgresTransaction<'_>, i64),
        change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>,
    ) -> Result<u64> {
        let thread = self.header.thread.to_string();
        let (mut changed, mut seq) = (0, self.header.base_seq() + 1);
        while seq <= self.last {
            let rows = work.ask(AHEAD, values![number, thread.clone(), i64::from(seq), 256i64])?;
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

    fn append(&mut self, after: Seq, rows: &[JournalRow]) -> Result<()> {
        let key = self.key()?;
        if after != self.last {
            return Err(Error::Moved { expected: after, found: self.last });
        }
        check_rows(after, rows)?;
        if rows.is_empty() {
            return Ok(());
        }
        let append = Append { server: self.store.server(), key, header: &self.header, after };
        let done = append.run(rows, self.is_unsure);
        match &done {
            Ok(()) => self.grown(after + rows.len() as Seq),
            Err(Error::Moved { found, .. }) => self.grown(*found),
            Err(error) => self.is_unsure |= error.is_away(),
        }
        done
    }

    fn request_file(&self) -> Result<RequestFile> {
        self.key().and_then(|_| RequestFile::passing())
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
        self.store.open(&self.header.session, thread, OpenMode::Read)
    }
}

// An append, also where the answer to it is lost.
//
// The statement compares and adds, so sending it again can never add anything twice: when it was done, the thread has
// moved on, and whether by us is seen from the lines themselves. So after a lost connection it is sent again, until the
// store's patience ends; and an append that was given up is settled by the next one with the same lines.

/// Adds rows after entry $4 under token $3, or none. Gives how many were added, whether the token is good, and the last
/// entry that was there before.
const APPEND: &str = "WITH lease AS ( \
        SELECT session FROM leases WHERE session = $1 AND token = $3 FOR SHARE), \
    grown AS ( \
        UPDATE threads SET last = $4 + cardinality($5::SMALLINT[]) \
        WHERE session = (SELECT session FROM lease) AND thread = $2 AND last = $4 RETURNING session), \
    added AS ( \
        INSERT INTO entries (session, thread, seq, kind, size, head, line) \
        SELECT grown.session, $2, $4 + n.number, n.kind, octet_length(n.line), n.head, n.line \
        FROM grown, unnest($5::SMALLINT[], $6::BYTEA[], $7::BYTEA[]) WITH ORDINALITY AS n(kind, head, line, number) \
        RETURNING 1) \
    SELECT (SELECT count(*) FROM added), EXISTS (SELECT 1 FROM lease), \
        (SELECT last FROM threads WHERE session = $1 AND thread = $2)";

/// What goes to the server in one statement.
const MOST_ROWS: usize = 4096;
const MOST_BYTES: usize = 8 << 20;

/// An append to a thread.
struct Append<'a> {
    server: &'a PostgresServer,
    key: (i64, i64),
    header: &'a Header,
    after: Seq,
}

/// What one try came to.
enum Tried {
    Added,
    NotOurs,
    At(Seq),
}

impl Append<'_> {
    /// Appends `rows`; `is_unsure` when an earlier append may have left its lines there.
    fn run(&self, rows: &[JournalRow], mut is_unsure: bool) -> Result<()> {
        let until = Instant::now() + self.server.how.patience;
        for tries in 0.. {
            let left = until.saturating_duration_since(Instant::now());
            let tried = match batches(rows).len() {
                1 => self.try_at_once(rows, left),
                _ => self.try_in_steps(rows),
            };
            match tried {
                Ok(Tried::Added) => return Ok(()),
                Ok(tried) => match self.settled(tried, rows, is_unsure) {
                    Err(error) if error.is_away() && Instant::now() < until => is_unsure = true,
                    settled => return settled,
                },
                Err(error) if !error.is_away() || Instant::now() + pause(tries) >= until => {
                    return Err(error);
                }
                Err(_) => is_unsure = true,
            }
            std::thread::sleep(pause(tries));
        }
        Err(Error::Poisoned)
    }

    /// What it means that nothing was added.
    fn settled(&self, tried: Tried, rows: &[JournalRow], is_unsure: bool) -> Result<()> {
        if is_unsure && self.has(rows)? {
            return Ok(());
        }
        match tried {
            Tried::At(found) if found == self.after => {
                // An append of our own that was given up was done between the look and the locks.
                let place = self.server.wire.place();
                Err(Error::away(place, "another append was under way".to_owned()))
            }
            Tried::At(found) => Err(Error::Moved { expected: self.after, found }),
            Tried::NotOurs | Tried::Added => Err(Error::TakenOver(self.header.session.clone())),
        }
    }

    fn try_at_once(&self, rows: &[JournalRow], left: Duration) -> Result<Tried> {
        let answer = self.server.once_for(left, APPEND, self.values(self.after, rows))?;
        Ok(tried(&answer, rows.len()))
    }

    /// Many rows, or long ones: several statements, one commit.
    fn try_in_steps(&self, rows: &[JournalRow]) -> Result<Tried> {
        let mut work = self.server.begin()?;
        let mut after = self.after;
        for batch in batches(rows) {
            let answer = work.ask(APPEND, self.values(after, batch))?;
            match tried(&answer, batch.len()) {
                Tried::Added => after += batch.len() as Seq,
                other => return work.leave().map(|()| other),
            }
        }
        work.commit().map(|()| Tried::Added)
    }

    fn values(&self, after: Seq, rows: &[JournalRow]) -> StatementValues {
        let kinds: Vec<i16> = rows.iter().map(|row| row.head.kind as i16).collect();
        let heads: Vec<Vec<u8>> = rows.iter().map(|row| head_bytes(&row.head).to_vec()).collect();
        let lines: Vec<Vec<u8>> = rows.iter().map(|row| row.line.clone()).collect();
        let thread = self.header.thread.to_string();
        values![self.key.0, thread, self.key.1, i64::from(after), kinds, heads, lines]
    }

    /// True when exactly these lines stand after entry `after`.
    fn has(&self, rows: &[JournalRow]) -> Result<bool> {
        let mut at = 0;
        while at < rows.len() {
            let from = i64::from(self.after) + 1 + at as i64;
            let thread = self.header.thread.to_string();
            let found = self.server.ask(AHEAD, values![self.key.0, thread, from, 256i64])?;
            let same = found.iter().zip(&rows[at..]).all(|(found, row)| found.get::<_, &[u8]>(1) == row.line);
            if found.is_empty() || !same {
                return Ok(false);
            }
            at += found.len();
        }
        Ok(true)
    }
}

fn tried(answer: &[tokio_postgres::Row], rows: usize) -> Tried {
    let Some(row) = answer.first() else { return Tried::NotOurs };
    let (added, is_ours, last): (i64, bool, Option<i64>) = (row.get(0), row.get(1), row.get(2));
    match last {
        _ if added == rows as i64 => Tried::Added,
        Some(last) if is_ours => Tried::At(seq(last)),
        _ => Tried::NotOurs,
    }
}

/// Rows in as few pieces as the bounds allow.
fn batches(rows: &[JournalRow]) -> Vec<&[JournalRow]> {
    let (mut pieces, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (i, row) in rows.iter().enumerate() {
        if i > begin && (i - begin >= MOST_ROWS || bytes + row.line.len() > MOST_BYTES) {
            pieces.push(&rows[begin..i]);
            (begin, bytes) = (i, 0);
        }
        bytes += row.line.len();
    }
    pieces.push(&rows[begin..]);
    pieces
}

// What is read of a thread, a little ahead of the reader.
//
// A page is bounded in entries and in bytes. A fork reads what came before it where it stands, in the
// threads it goes on from.

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
pub(super) struct PostgresReader {
    server: Arc<PostgresServer>,
    session: i64,
    own: (String, Seq),
    place: String,
    /// Threads, each with the number before its first own entry: this one, then those it goes on from.
    chain: OnceCell<Vec<(String, Seq)>>,
    heads: RefCell<ReadAhead>,
    lines: RefCell<ReadAhead>,
}

impl PostgresReader {
    pub(super) fn new(server: Arc<PostgresServer>, session: i64, header: &Header) -> Self {
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
        page: &RefCell<ReadAhead>,
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
            plan = ReadPlan { count: LEAST, is_backward: true, ..plan };
        }
        let sql = if plan.is_backward { back } else { ahead };
        let name = self.name(thread)?.0.clone();
        let rows = self.server.ask(sql, values![self.session, name, i64::from(at), i64::from(plan.count)])?;
        let read = |row: &Found| (seq(row.get(0)), row.get::<_, Vec<u8>>(1));
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
