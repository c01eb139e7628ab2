//! The table of sessions: made, listed, changed, removed.

use super::search_index::PostgresFields;
use super::server::{PostgresServer, StatementValues, values};
use super::{PostgresStore, clean, journal, seq};
use crate::search_index::keyed::KeyedSearchIndex;
use crate::{
    Error, Holder, Journal, OpenMode, Result, SearchIndex, SessionChange, SessionQuery, Store, by_age, id_of,
};
use komado_core::session::{Counters, Meta, Session, State};
use komado_core::thread::Header;
use komado_core::{SessionId, ThreadId};
use std::path::PathBuf;
use tokio_postgres::Row;

/// Sessions of one page, where all are asked for.
const PAGE: usize = 500;

/// What a session is read from; the counters follow.
const COLUMNS: &str = "meta, queued, status, started_at, completed_at, updated_at, error_message";

const CREATE: &str = "WITH made AS ( \
        INSERT INTO sessions (uuid, task_source, owner, repo, task_type, task_id, status, created_at, started_at, \
            process_id, hostname, llm_provider, model, context_length, user_id, updated_at, queued, meta) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $8, $16, $17) \
        ON CONFLICT (uuid) DO NOTHING RETURNING number), \
    lease AS (INSERT INTO leases (session) SELECT number FROM made), \
    root AS (INSERT INTO threads (session, thread, header, last) SELECT number, 'root', $18, 0 FROM made) \
    SELECT number FROM made";

/// Ending a session, or opening it again, wants it free, and no earlier holder may write after that.
const ENTER: &str = "WITH free AS ( \
        UPDATE leases SET ended = $2, \
            token = token + CASE WHEN ended = $2 THEN 0 ELSE 1 END, \
            holder = CASE WHEN ended = $2 THEN holder END, \
            expires = CASE WHEN ended = $2 THEN expires END \
        WHERE session = (SELECT number FROM sessions WHERE uuid = $1) \
            AND (ended = $2 OR holder IS NULL OR expires < clock_timestamp()) RETURNING session) \
    UPDATE sessions SET ";

/// Rows that are removed in one statement, where there may be very many or very large ones.
const PIECE: i64 = 2000;

/// The session's lease, unless a process writes it; no append succeeds after that.
const RELEASE: &str = "DELETE FROM leases WHERE session = (SELECT number FROM sessions WHERE uuid = $1) \
    AND (holder IS NULL OR expires < clock_timestamp()) RETURNING session";

/// Tables of what belongs to a session. The first two statements that remove it wait for writers that hold their locks; each
/// statement after them sees what those had added.
const TABLES: [&str; 7] = ["shelves", "threads", "branches", "mail", "places", "blobs", "shelf_fields"];

/// Tables that are emptied a piece at a time, each after the last row of the one before, by the two columns of their key.
const LARGE: [[&str; 3]; 2] = [["entries", "thread", "seq"], ["blob_chunks", "id", "number"]];

/// Removes the next piece of a table; gives the key of its last row.
fn remove_piece([table, name, at]: [&str; 3]) -> String {
    format!(
        "WITH piece AS (SELECT {name}, {at} FROM {table} WHERE session = $1 AND ({name}, {at}) > ($2, $3) \
            ORDER BY {name}, {at} LIMIT $4), \
        gone AS (DELETE FROM {table} t USING piece \
            WHERE t.session = $1 AND t.{name} = piece.{name} AND t.{at} = piece.{at}) \
        SELECT {name}, {at} FROM piece ORDER BY {name} DESC, {at} DESC LIMIT 1"
    )
}

impl Store for PostgresStore {
    fn create(&self, meta: &Meta) -> Result<()> {
        let id = id_of(meta)?;
        let (session, key, config) = (Session::new(meta), &meta.task_key, &meta.config);
        let rows = self.server().once(
            CREATE,
            values![
                meta.uuid.clone(),
                clean(&key.task_source),
                clean(&key.owner),
                clean(&key.repo),
                clean(&key.task_type),
                clean(&key.task_id),
                session.status.name(),
                clean(&meta.created_at),
                session.started_at.as_deref().map(clean),
                i64::from(meta.process_id),
                clean(&meta.hostname),
                config.llm_provider.as_deref().map(clean),
                config.model.as_deref().map(clean),
                config.context_length.map(i64::from),
                meta.user.as_deref().map(clean),
                meta.queued,
                serde_json::to_string(meta).unwrap_or_default(),
                Header::root(id.clone(), &meta.created_at).encode(),
            ],
        )?;
        if rows.is_empty() {
            return Err(Error::SessionExists(id));
        }
        self.ring(&id);
        Ok(())
    }

    /// Lists sessions; where all are asked for, page by page.
    fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        let mut found: Vec<Session> = Vec::new();
        let mut after = query.after.as_ref().map(|(at, id)| (at.clone(), id.to_string()));
        loop {
            let left = if query.limit == 0 { PAGE } else { (query.limit - found.len()).min(PAGE) };
            let (sql, values) = listing(query, after.as_ref(), left);
            let rows = self.server().ask(sql, values)?;
            let page = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
            after = page.last().map(|last| (last.meta.created_at.clone(), last.meta.uuid.clone()));
            let is_last = page.len() < left;
            found.extend(page);
            if is_last || found.len() == query.limit {
                return Ok(found);
            }
        }
    }

    fn change(&self, id: &SessionId, change: &SessionChange) -> Result<Session> {
        let (sql, values) = match change {
            SessionChange::Count { by, at } => count(id, by, at),
            SessionChange::State { to, at, why } => enter(id, *to, at, why.as_deref()),
            SessionChange::Row(row) => put(id, row),
        };
        let rows = self.server().once(sql, values)?;
        let session = rows.first().map_or_else(|| Err(self.server().why_not(id)), read)?;
        self.ring(id);
        Ok(session)
    }

    fn remove(&self, id: &SessionId) -> Result<()> {
        let mut work = self.server().begin()?;
        let rows = work.ask(RELEASE, values![id.to_string()])?;
        let Some(number) = rows.first().map(|row| row.get::<_, i64>(0)) else {
            return work.leave().and_then(|()| Err(self.server().why_not(id)));
        };
        work.ask("DELETE FROM sessions WHERE number = $1", values![number])?;
        for table in TABLES {
            work.ask(format!("DELETE FROM {table} WHERE session = $1"), values![number])?;
        }
        for sql in LARGE.map(remove_piece) {
            let mut after = Some((String::new(), -1i64));
            while let Some((name, at)) = after {
                let rows = work.ask(sql.as_str(), values![number, name, at, PIECE])?;
                after = rows.first().map(|row| (row.get(0), row.get(1)));
            }
        }
        work.commit()?;
        self.ring(id);
        Ok(())
    }

    /// Who writes a session now; only looks.
    fn writer(&self, id: &SessionId) -> Result<Option<Holder>> {
        let sql = "SELECT CASE WHEN l.expires >= clock_timestamp() THEN l.holder END \
            FROM sessions s JOIN leases l ON l.session = s.number WHERE s.uuid = $1";
        let rows = self.server().ask(sql, values![id.to_string()])?;
        let row = rows.first().ok_or_else(|| Error::NoSession(id.clone()))?;
        Ok(row.get::<_, Option<&str>>(0).map(|holder| Holder::read(holder.as_bytes())))
    }

    fn threads(&self, id: &SessionId) -> Result<Vec<Header>> {
        self.server().threads(id)
    }

    fn spawn(&self, header: &Header) -> Result<()> {
        self.server().spawn(header)
    }

    fn open(&self, id: &SessionId, thread: &ThreadId, mode: OpenMode) -> Result<Box<dyn Journal>> {
        Ok(Box::new(journal::open(self, (id, thread), mode)?))
    }

    fn search_index(&self, id: &SessionId) -> Result<Box<dyn SearchIndex>> {
        Ok(Box::new(KeyedSearchIndex::open(PostgresFields::open(self.server(), id)?)?))
    }
}

impl PostgresServer {
    /// Why nothing was done to a session: it is not there, or a process writes it.
    pub(super) fn why_not(&self, id: &SessionId) -> Error {
        let sql = "SELECT l.holder FROM sessions s JOIN leases l ON l.session = s.number WHERE s.uuid = $1";
        match self.ask(sql, values![id.to_string()]) {
            Ok(rows) => match rows.first() {
                Some(row) => Error::Busy {
                    session: id.clone(),
                    holder: Holder::read(row.get::<_, Option<&str>>(0).unwrap_or_default().as_bytes()),
                },
                None => Error::NoSession(id.clone()),
            },
            Err(error) => error,
        }
    }
}

/// A statement that lists one page.
fn listing(
    query: &SessionQuery,
    after: Option<&(String, String)>,
    limit: usize,
) -> (String, StatementValues) {
    let (mut wanted, mut values) = (Vec::new(), StatementValues::new());
    for (condition, value) in query.conditions("user_id") {
        values.push(Box::new(clean(&value)));
        wanted.push(condition.replace('?', &format!("${}", values.len())));
    }
    if let Some((at, id)) = after {
        values.push(Box::new(clean(at)));
        values.push(Box::new(clean(id)));
        wanted.push(format!("(created_at, uuid) > (${}, ${})", values.len() - 1, values.len()));
    }
    // A value, not part of the text: each text is prepared once and kept.
    values.push(Box::new(i64::try_from(limit).unwrap_or(i64::MAX)));
    let n = values.len();
    let wanted = wanted.join(" AND ");
    let filter = if wanted.is_empty() { String::new() } else { format!("WHERE {wanted}") };
    let columns = columns();
    (format!("SELECT {columns} FROM sessions {filter} ORDER BY created_at, uuid LIMIT ${n}"), values)
}

/// The columns of a session, in the order in which it is read.
fn columns() -> String {
    format!("{COLUMNS}, {}", Counters::NAMES.join(", "))
}

fn count(id: &SessionId, by: &Counters, at: &str) -> (String, StatementValues) {
    let sums =
        (3..).zip(Counters::NAMES).map(|(n, name)| format!("{name} = {name} + ${n}, ")).collect::<String>();
    let sql = format!("UPDATE sessions SET {sums}updated_at = $2 WHERE uuid = $1 RETURNING {}", columns());
    (sql, counted(values![id.to_string(), clean(at)], by))
}

fn enter(id: &SessionId, to: State, at: &str, why: Option<&str>) -> (String, StatementValues) {
    let sql = format!(
        "{ENTER} status = $3, queued = $4, updated_at = $5, completed_at = $6, error_message = $7, \
         started_at = COALESCE(started_at, CASE WHEN NOT $4 THEN $5 END) \
         WHERE number IN (SELECT session FROM free) RETURNING {}",
        columns()
    );
    let ended = to.is_ended().then(|| clean(at));
    let queued = to == State::Queued;
    (sql, values![id.to_string(), to.is_ended(), to.name(), queued, clean(at), ended, why.map(clean)])
}

fn put(id: &SessionId, row: &Session) -> (String, StatementValues) {
    let sums = (8..).zip(Counters::NAMES).map(|(n, name)| format!(", {name} = ${n}")).collect::<String>();
    let sql = format!(
        "{ENTER} status = $3, started_at = $4, completed_at = $5, updated_at = $6, error_message = $7{sums} \
         WHERE number IN (SELECT session FROM free) RETURNING {}",
        columns()
    );
    let values = values![
        id.to_string(),
        row.status.is_ended(),
        row.status.name(),
        row.started_at.as_deref().map(clean),
        row.completed_at.as_deref().map(clean),
        clean(&row.updated_at),
        row.error_message.as_deref().map(clean),
    ];
    (sql, counted(values, &row.counters))
}

/// The values of a statement, and the counters behind them.
fn counted(mut values: StatementValues, by: &Counters) -> StatementValues {
    values.extend(by.numbers().into_iter().flat_map(|n| values![i64::try_from(n).unwrap_or(i64::MAX)]));
    values
}

fn read(row: &Row) -> Result<Session> {
    let meta: Meta = serde_json::from_str(row.get(0)).map_err(|e| Error::damaged("a row of sessions", e))?;
    let status: &str = row.get(2);
    let unknown = || Error::damaged(format!("the row of session {}", meta.uuid), format!("state {status:?}"));
    let number = |column: usize| row.get::<_, i64>(column).max(0) as u64;
    Ok(Session {
        status: State::named(status).ok_or_else(unknown)?,
        started_at: row.get(3),
        completed_at: row.get(4),
        updated_at: row.get(5),
        error_message: row.get(6),
        counters: Counters::of_numbers(std::array::from_fn(|n| number(7 + n))),
        meta: Meta { queued: row.get(1), ..meta },
    })
}

// The threads of a session.

/// Threads of one page.
const THREADS_PAGE: i64 = 1000;

const LIST_THREADS: &str = "SELECT t.thread, t.header FROM sessions s LEFT JOIN threads t \
    ON t.session = s.number AND t.thread > $2 WHERE s.uuid = $1 ORDER BY t.thread LIMIT $3";

/// Adds a thread where those it names are there, and the moment it goes on from has come. Gives what was found of them.
const SPAWN: &str = "WITH s AS (SELECT number FROM sessions WHERE uuid = $1 FOR SHARE), \
    base AS (SELECT last FROM threads WHERE session = (SELECT number FROM s) AND thread = $4), \
    parent AS (SELECT 1 FROM threads WHERE session = (SELECT number FROM s) AND thread = $6), \
    made AS ( \
        INSERT INTO threads (session, thread, header, base_thread, base_seq, last) \
        SELECT number, $2, $3, $4, $5, $5 FROM s \
        WHERE ($4::TEXT IS NULL OR EXISTS (SELECT 1 FROM base WHERE last >= $5)) \
            AND ($6::TEXT IS NULL OR EXISTS (SELECT 1 FROM parent)) \
        ON CONFLICT DO NOTHING RETURNING 1) \
    SELECT EXISTS (SELECT 1 FROM made), (SELECT last FROM base), EXISTS (SELECT 1 FROM parent), \
        EXISTS (SELECT 1 FROM threads WHERE session = s.number AND thread = $2) FROM s";

impl PostgresServer {
    pub(super) fn threads(&self, id: &SessionId) -> Result<Vec<Header>> {
        let (mut headers, mut after) = (Vec::new(), String::new());
        loop {
            let rows = self.ask(LIST_THREADS, values![id.to_string(), after, THREADS_PAGE])?;
            if rows.is_empty() {
                return Err(Error::NoSession(id.clone()));
            }
            let mut last = None;
            for row in &rows {
                let (Some(thread), Some(header)) = (row.get::<_, Option<String>>(0), row.get(1)) else {
                    break;
                };
                headers.push(read_header(&format!("{id}/{thread}"), header)?);
                last = Some(thread);
            }
            match last.filter(|_| rows.len() as i64 == THREADS_PAGE) {
                Some(thread) => after = thread,
                None => return Ok(by_age(headers)),
            }
        }
    }

    pub(super) fn spawn(&self, header: &Header) -> Result<()> {
        let (id, thread) = (&header.session, &header.thread);
        let base = header.base.as_ref();
        let values = values![
            id.to_string(),
            thread.to_string(),
            header.encode(),
            base.map(|moment| moment.thread.to_string()),
            i64::from(header.base_seq()),
            header.parent.as_ref().map(|moment| moment.thread.to_string()),
        ];
        let rows = self.once(SPAWN, values)?;
        let row = rows.first().ok_or_else(|| Error::NoSession(id.clone()))?;
        let (is_made, last, has_parent, is_known): (bool, Option<i64>, bool, bool) =
            (row.get(0), row.get(1), row.get(2), row.get(3));
        if is_made {
            self.teller.ring(id, thread, header.base_seq());
            return Ok(());
        }
        if is_known {
            return Err(Error::ThreadExists(id.clone(), thread.clone()));
        }
        match (base, last, &header.parent) {
            (Some(moment), None, _) => Err(Error::NoThread(id.clone(), moment.thread.clone())),
            (_, _, Some(moment)) if !has_parent => Err(Error::NoThread(id.clone(), moment.thread.clone())),
            (Some(moment), Some(last), _) if seq(last) < moment.seq => {
                Err(Error::no_entry(id, &moment.thread, moment.seq))
            }
            // Made by another at the same moment.
            _ => Err(Error::ThreadExists(id.clone(), thread.clone())),
        }
    }
}

/// Reads a thread's first line.
pub(super) fn read_header(place: &str, line: &[u8]) -> Result<Header> {
    let text = std::str::from_utf8(line).map_err(|e| Error::damaged(place, e))?;
    Header::decode(text).map_err(|source| Error::Header { path: PathBuf::from(place), source })
}
