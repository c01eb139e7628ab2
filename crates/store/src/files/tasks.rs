//! `tasks.db`: every session's state and counters, for people and their SQL.
//!
//! An index like the others: it can be lost and made again from the folders. Writes are tried three times, because
//! another process may hold the table for a moment.

use crate::error::Tried;
use crate::{Change, Error, Query, Result};
use komado_core::SessionId;
use komado_core::session::{Counters, Meta, MetaConfig, Session, State, TaskKey};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Seed 000's table and indexes, then what the wider states need.
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS tasks (
    uuid TEXT PRIMARY KEY,
    task_source TEXT NOT NULL,
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    task_type TEXT NOT NULL,
    task_id TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    started_at TEXT,
    completed_at TEXT,
    process_id INTEGER,
    hostname TEXT,
    llm_provider TEXT,
    model TEXT,
    context_length INTEGER,
    llm_call_count INTEGER DEFAULT 0,
    tool_call_count INTEGER DEFAULT 0,
    total_tokens INTEGER DEFAULT 0,
    compression_count INTEGER DEFAULT 0,
    error_message TEXT,
    user TEXT,
    updated_at TEXT,
    compression_threshold REAL,
    meter TEXT
);
CREATE INDEX IF NOT EXISTS idx_tasks_status ON tasks(status);
CREATE INDEX IF NOT EXISTS idx_tasks_created_at ON tasks(created_at);
CREATE INDEX IF NOT EXISTS idx_tasks_user ON tasks(user);
PRAGMA user_version = 1;
";

const COLUMNS: &str = "uuid, task_source, owner, repo, task_type, task_id, status, created_at, started_at, \
    completed_at, process_id, hostname, llm_provider, model, context_length, llm_call_count, tool_call_count, \
    total_tokens, compression_count, error_message, user, updated_at, compression_threshold, meter";

/// How often a refused write is tried in all.
const TRIES: u32 = 3;

pub(super) struct Tasks(Connection);

fn broken(error: rusqlite::Error) -> Error {
    Error::Table(error.to_string())
}

impl Tasks {
    /// Opens the table, making it when missing. Fails when it cannot be read as one.
    pub(super) fn open(path: &Path) -> Result<Self> {
        if !path.exists() {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600).open(path).tried("make", path)?;
        }
        let db = Connection::open(path).map_err(broken)?;
        db.busy_timeout(Duration::from_secs(5)).map_err(broken)?;
        db.pragma_update(None, "journal_mode", "WAL").map_err(broken)?;
        db.pragma_update(None, "synchronous", "NORMAL").map_err(broken)?;
        retry(|| db.execute_batch(SCHEMA))?;
        // A table of the same name with other columns is refused here, not at the first write.
        db.prepare(&format!("SELECT {COLUMNS} FROM tasks LIMIT 0")).map_err(broken)?;
        Ok(Self(db))
    }

    pub(super) fn put(&self, session: &Session) -> Result<()> {
        let marks = vec!["?"; 24].join(", ");
        let sql = format!("INSERT OR REPLACE INTO tasks ({COLUMNS}) VALUES ({marks})");
        retry(|| self.0.execute(&sql, params_from_iter(values(session)))).map(|_| ())
    }

    pub(super) fn change(&self, id: &SessionId, change: &Change) -> Result<()> {
        let id = id.as_str();
        let changed = match change {
            Change::State { to, at, why } => {
                let ended = to.is_ended().then_some(at);
                let sql = "UPDATE tasks SET status = ?2, updated_at = ?3, completed_at = ?4, error_message = ?5, \
                           started_at = CASE WHEN ?2 = 'queued' THEN started_at ELSE COALESCE(started_at, ?3) END \
                           WHERE uuid = ?1";
                retry(|| self.0.execute(sql, params![id, to.name(), at, ended, why]))?
            }
            Change::Count { by, at } => {
                let sql = "UPDATE tasks SET llm_call_count = llm_call_count + ?2, \
                           tool_call_count = tool_call_count + ?3, total_tokens = total_tokens + ?4, \
                           compression_count = compression_count + ?5, updated_at = ?6 WHERE uuid = ?1";
                let n = [by.llm_call_count, by.tool_call_count, by.total_tokens, by.compression_count];
                let [a, b, c, d] = n.map(|n| n as i64);
                retry(|| self.0.execute(sql, params![id, a, b, c, d, at]))?
            }
        };
        if changed == 0 { Err(Error::Table(format!("it has no row for session {id}"))) } else { Ok(()) }
    }

    pub(super) fn remove(&self, id: &SessionId) -> Result<()> {
        retry(|| self.0.execute("DELETE FROM tasks WHERE uuid = ?1", [id.as_str()])).map(|_| ())
    }

    pub(super) fn get(&self, id: &SessionId) -> Result<Option<Session>> {
        let sql = format!("SELECT {COLUMNS} FROM tasks WHERE uuid = ?1");
        self.0.query_row(&sql, [id.as_str()], read).optional().map_err(broken)
    }

    pub(super) fn list(&self, query: &Query) -> Result<Vec<Session>> {
        let (clause, values) = clauses(query);
        let limit = if query.limit == 0 { String::new() } else { format!(" LIMIT {}", query.limit) };
        let sql = format!("SELECT {COLUMNS} FROM tasks WHERE {clause} ORDER BY created_at, uuid{limit}");
        let mut statement = self.0.prepare(&sql).map_err(broken)?;
        let rows = statement.query_map(params_from_iter(values), read).map_err(broken)?;
        rows.collect::<rusqlite::Result<Vec<_>>>().map_err(broken)
    }
}

fn clauses(query: &Query) -> (String, Vec<Value>) {
    let mut clauses = vec!["1".to_owned()];
    let mut values = Vec::new();
    let mut add = |clause: &str, given: Vec<String>| {
        clauses.push(clause.to_owned());
        values.extend(given.into_iter().map(Value::from));
    };
    if let Some(prefix) = &query.prefix {
        add("substr(uuid, 1, length(?)) = ?", vec![prefix.clone(), prefix.clone()]);
    }
    if let Some(status) = query.status {
        add("status = ?", vec![status.name().into()]);
    }
    if let Some(user) = &query.user {
        add("user = ?", vec![user.clone()]);
    }
    if let Some(before) = &query.ended_before {
        add("completed_at < ?", vec![before.clone()]);
    }
    if let Some((created_at, uuid)) = &query.after {
        add("(created_at, uuid) > (?, ?)", vec![created_at.clone(), uuid.to_string()]);
    }
    (clauses.join(" AND "), values)
}

fn retry<T>(mut run: impl FnMut() -> rusqlite::Result<T>) -> Result<T> {
    let mut tried = 1;
    loop {
        match run() {
            Ok(value) => return Ok(value),
            Err(e) if tried >= TRIES => return Err(Error::Table(format!("{e} (tried {tried} times)"))),
            Err(_) => std::thread::sleep(Duration::from_millis(20 * u64::from(tried))),
        }
        tried += 1;
    }
}

fn values(session: &Session) -> Vec<Value> {
    let Session { meta, counters, .. } = session;
    let TaskKey { task_source, owner, repo, task_type, task_id } = &meta.task_key;
    let text = |text: &str| Value::from(text.to_owned());
    let maybe = |text: &Option<String>| Value::from(text.clone());
    vec![
        text(&meta.uuid),
        text(task_source),
        text(owner),
        text(repo),
        text(task_type),
        text(task_id),
        text(session.status.name()),
        text(&meta.created_at),
        maybe(&session.started_at),
        maybe(&session.completed_at),
        Value::from(meta.process_id),
        text(&meta.hostname),
        maybe(&meta.config.llm_provider),
        maybe(&meta.config.model),
        Value::from(meta.config.context_length),
        Value::from(counters.llm_call_count as i64),
        Value::from(counters.tool_call_count as i64),
        Value::from(counters.total_tokens as i64),
        Value::from(counters.compression_count as i64),
        maybe(&session.error_message),
        maybe(&meta.user),
        text(&session.updated_at),
        Value::from(meta.config.compression_threshold),
        text(&meta.config.meter),
    ]
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Session> {
    let status: String = row.get(6)?;
    let status = State::named(&status).unwrap_or(State::Running);
    let count = |i: usize| row.get::<_, Option<i64>>(i).map(|n| n.unwrap_or(0).max(0) as u64);
    let created_at: String = row.get(7)?;
    Ok(Session {
        meta: Meta {
            uuid: row.get(0)?,
            task_key: TaskKey {
                task_source: row.get(1)?,
                owner: row.get(2)?,
                repo: row.get(3)?,
                task_type: row.get(4)?,
                task_id: row.get(5)?,
            },
            created_at: created_at.clone(),
            process_id: row.get::<_, Option<u32>>(10)?.unwrap_or(0),
            hostname: row.get::<_, Option<String>>(11)?.unwrap_or_default(),
            config: MetaConfig {
                llm_provider: row.get(12)?,
                model: row.get(13)?,
                context_length: row.get(14)?,
                compression_threshold: row.get(22)?,
                meter: row.get::<_, Option<String>>(23)?.unwrap_or_default(),
            },
            user: row.get(20)?,
            queued: status == State::Queued,
        },
        status,
        started_at: row.get(8)?,
        completed_at: row.get(9)?,
        updated_at: row.get::<_, Option<String>>(21)?.unwrap_or(created_at),
        error_message: row.get(19)?,
        counters: Counters {
            llm_call_count: count(15)?,
            tool_call_count: count(16)?,
            total_tokens: count(17)?,
            compression_count: count(18)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_write_is_tried_three_times() {
        let mut calls = 0;
        let gone = |calls: &mut u32| -> rusqlite::Result<()> {
            *calls += 1;
            Err(rusqlite::Error::QueryReturnedNoRows)
        };
        let error = retry(|| gone(&mut calls)).unwrap_err();
        assert_eq!(calls, 3);
        assert!(error.to_string().contains("tried 3 times"), "{error}");
        let mut calls = 0;
        let second = |calls: &mut u32| {
            *calls += 1;
            if *calls < 3 { Err(rusqlite::Error::QueryReturnedNoRows) } else { Ok(7) }
        };
        assert_eq!(retry(|| second(&mut calls)).unwrap(), 7);
    }
}
