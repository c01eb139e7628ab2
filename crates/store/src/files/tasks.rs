//! `tasks.db`: every session's state and counters, for people and their SQL.
//!
//! An index like the others: it can be lost and made again from the folders. Writes are tried three times, because
//! another process may hold the table for a moment.

use super::{branches, places, private};
use crate::error::{IoContext, of_system};
use crate::{Error, Result, SessionChange, SessionQuery};
use komado_core::SessionId;
use komado_core::session::{Counters, Meta, MetaConfig, Session, State, TaskKey};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, params, params_from_iter};
use serde_json::Value as Json;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Every column: its name, which is that of a field; how it is kept; and the part of a session that has the field. First those of
/// seed 000, then what the wider states need.
const COLUMNS: [(&str, &str, &str); 35] = [
    ("uuid", "TEXT PRIMARY KEY", ""),
    ("task_source", "TEXT NOT NULL", "/task_key"),
    ("owner", "TEXT NOT NULL", "/task_key"),
    ("repo", "TEXT NOT NULL", "/task_key"),
    ("task_type", "TEXT NOT NULL", "/task_key"),
    ("task_id", "TEXT NOT NULL", "/task_key"),
    ("status", "TEXT NOT NULL", ""),
    ("created_at", "TEXT NOT NULL", ""),
    ("started_at", "TEXT", ""),
    ("completed_at", "TEXT", ""),
    ("process_id", "INTEGER", ""),
    ("hostname", "TEXT", ""),
    ("llm_provider", "TEXT", "/config"),
    ("model", "TEXT", "/config"),
    ("context_length", "INTEGER", "/config"),
    ("llm_call_count", COUNT, ""),
    ("tool_call_count", COUNT, ""),
    ("total_tokens", COUNT, ""),
    ("compression_count", COUNT, ""),
    ("error_message", "TEXT", ""),
    ("user", "TEXT", ""),
    ("updated_at", "TEXT", ""),
    ("compression_threshold", "REAL", "/config"),
    ("meter", "TEXT", "/config"),
    ("window_from", "TEXT", "/config"),
    ("persona", "TEXT", "/config"),
    ("stelis_config", "TEXT", "/config"),
    ("alias", "TEXT", "/config"),
    ("agent", "TEXT", "/config"),
    ("project", "TEXT", "/config"),
    ("input_tokens", COUNT, ""),
    ("cached_tokens", COUNT, ""),
    ("cache_write_tokens", COUNT, ""),
    ("output_tokens", COUNT, ""),
    ("saved_tokens", COUNT, ""),
];

/// A column of a sum. Where it was added later it is too small; making the table again from the folders puts that right.
const COUNT: &str = "INTEGER DEFAULT 0";

/// How many columns the first tables of ours had; an older program passes the later ones over.
const FIRST: usize = 24;

const INDEXES: &str = "
CREATE INDEX IF NOT EXISTS idx_tasks_status ON tasks(status);
CREATE INDEX IF NOT EXISTS idx_tasks_created_at ON tasks(created_at);
CREATE INDEX IF NOT EXISTS idx_tasks_user ON tasks(user);
";

/// What makes the table.
fn schema() -> String {
    let columns = COLUMNS.map(|(name, kind, _)| format!("{name} {kind}")).join(", ");
    format!("CREATE TABLE IF NOT EXISTS tasks ({columns});{INDEXES}")
}

/// The names of all columns.
fn names() -> String {
    COLUMNS.map(|(name, ..)| name).join(", ")
}

/// Version of the table; 0 while it was made but not yet filled from the folders.
const VERSION: u32 = 1;

/// How often a refused write is tried in all.
const TRIES: u32 = 3;

/// How long the table is waited for, all tries together, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(15);

/// What opening the table came to.
pub(super) enum OpenedTable {
    /// It can be used.
    Ready(TaskTable),
    /// It is new, or the process that made it did not come to an end: it wants every row.
    Unfilled(TaskTable),
    /// It is not a table of ours.
    Broken(String),
}

/// The table, open.
pub(crate) struct TaskTable {
    pub(super) db: Connection,
    path: PathBuf,
    /// Which file it is, on which device.
    file: Option<(u64, u64)>,
    /// True for one in memory, which takes no changes.
    pub(super) is_copy: bool,
}

impl TaskTable {
    /// Opens the table, making it when missing.
    pub(super) fn open(path: &Path, patience: Option<Duration>) -> Result<OpenedTable> {
        let patience = patience.unwrap_or(PATIENCE);
        if !path.exists() {
            private().open(path).tried("make", path)?;
        }
        let busy = |e: &rusqlite::Error| {
            matches!(e.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
        };
        let mut opened = prepare(path, patience);
        for n in 1..TRIES {
            if opened.as_ref().is_err_and(busy) {
                std::thread::sleep(Duration::from_millis(20 * u64::from(n)));
                opened = prepare(path, patience);
            }
        }
        match opened {
            Ok((_, newer @ VERSION..)) if newer > VERSION => Err(Error::Table(format!(
                "it has version {newer}, this komado reads up to version {VERSION}; use a newer komado"
            ))),
            Ok((db, version)) => {
                let tasks = Self { db, path: path.to_owned(), file: file_at(path)?, is_copy: false };
                Ok(if version == 0 { OpenedTable::Unfilled(tasks) } else { OpenedTable::Ready(tasks) })
            }
            Err(error) => match error.sqlite_error_code() {
                // A file that is none, one with holes, or a table of the same name with other columns.
                None | Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::Unknown) => {
                    Ok(OpenedTable::Broken(error.to_string()))
                }
                Some(_) => Err(refused(path, &error, 1)),
            },
        }
    }

    /// A table in memory, for who may not write the one on disk. It takes rows from folders and no changes.
    pub(super) fn copy(path: &Path) -> Result<Self> {
        Ok(Self { is_copy: true, ..Self::memory(path)? })
    }

    /// A table in memory.
    pub(crate) fn memory(path: &Path) -> Result<Self> {
        let db = Connection::open_in_memory().map_err(|e| refused(path, &e, 1))?;
        let made = db.execute_batch(&schema()).and_then(|()| branches::prepare(&db));
        made.and_then(|()| places::prepare(&db)).map_err(|e| refused(path, &e, 1))?;
        Ok(Self { db, path: path.to_owned(), file: None, is_copy: false })
    }

    /// How long it is waited for from now on, all tries together.
    pub(super) fn wait_for(&self, patience: Duration) {
        // Only a connection in use refuses that, and this one is not.
        let _ = self.db.busy_timeout(patience / TRIES);
    }

    /// False when the file is another one by now. One that is gone is a fault, once: what it held is made again from the
    /// folders, and those may be gone, too.
    pub(super) fn is_current(&self) -> Result<bool> {
        match (self.file, file_at(&self.path)?) {
            (None, _) => Ok(true),
            (Some(_), None) => {
                let why = "its file was removed while it was in use; it is made again for the next one";
                Err(Error::Table(format!("{}: {why}", self.path.display())))
            }
            (own, now) => Ok(own == now),
        }
    }

    /// Notes that every session has its row.
    pub(super) fn filled(&self) -> Result<()> {
        self.retry(|| self.db.pragma_update(None, "user_version", VERSION))
    }

    /// False when the file has holes.
    pub(super) fn is_sound(&self) -> bool {
        let found = self.db.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
        found.is_ok_and(|found| found == "ok")
    }

    /// Refuses what would change a copy.
    pub(super) fn may_change(&self) -> Result<()> {
        let denied = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        if self.is_copy { Err(denied()).tried("write", &self.path) } else { Ok(()) }
    }

    pub(super) fn retry<T>(&self, run: impl FnMut() -> rusqlite::Result<T>) -> Result<T> {
        retry(&self.path, run)
    }

    /// Runs a statement that is prepared once: many sessions are written at a time, and the table is one.
    pub(super) fn run(&self, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<usize> {
        self.db.prepare_cached(sql)?.execute(values)
    }

    /// Changes rows with one statement, tried a few times; gives how many.
    pub(super) fn write(&self, sql: &str, values: impl rusqlite::Params + Clone) -> Result<usize> {
        self.retry(|| self.run(sql, values.clone()))
    }

    /// What a query finds, read row by row.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let found = || self.db.prepare_cached(sql)?.query_map(values, read)?.collect();
        self.told(found())
    }

    pub(super) fn told<T>(&self, result: rusqlite::Result<T>) -> Result<T> {
        result.map_err(|e| refused(&self.path, &e, 1))
    }

    pub(super) fn put(&self, session: &Session) -> Result<()> {
        let marks = ["?"; COLUMNS.len()].join(", ");
        let sql = format!("INSERT OR REPLACE INTO tasks ({}) VALUES ({marks})", names());
        self.write(&sql, params_from_iter(values(session))).map(drop)
    }

    pub(super) fn change(&self, id: &SessionId, change: &SessionChange) -> Result<()> {
        self.may_change()?;
        let id = id.as_str();
        let changed = match change {
            SessionChange::State { to, at, why } => {
                let ended = to.is_ended().then_some(at);
                let sql = "UPDATE tasks SET status = ?2, updated_at = ?3, completed_at = ?4, error_message = ?5, \
                           started_at = CASE WHEN ?2 = 'queued' THEN started_at ELSE COALESCE(started_at, ?3) END \
                           WHERE uuid = ?1";
                self.turn_root(id, *to, at)?;
                self.write(sql, params![id, to.name(), at, ended, why])?
            }
            SessionChange::Count { by, at } => {
                let sums = Counters::NAMES.map(|name| format!("{name} = {name} + ?")).join(", ");
                let sql = format!("UPDATE tasks SET {sums}, updated_at = ? WHERE uuid = ?");
                let sums = by.numbers().map(|n| Value::from(n as i64));
                let values = sums.into_iter().chain([at.clone().into(), id.to_owned().into()]);
                self.write(&sql, params_from_iter(values.collect::<Vec<_>>()))?
            }
            SessionChange::Row(row) => {
                self.turn_root(id, row.status, &row.updated_at)?;
                self.put(row)?;
                1
            }
        };
        if changed == 0 { Err(Error::Table(format!("it has no row for session {id}"))) } else { Ok(()) }
    }

    pub(super) fn remove(&self, id: &SessionId) -> Result<()> {
        self.may_change()?;
        self.forget_branches(id)?;
        self.forget_spots(id)?;
        self.write("DELETE FROM tasks WHERE uuid = ?1", [id.as_str()]).map(drop)
    }

    pub(super) fn get(&self, id: &SessionId) -> Result<Option<Session>> {
        let sql = format!("SELECT {} FROM tasks WHERE uuid = ?1", names());
        Ok(self.rows(&sql, [id.as_str()], read)?.pop())
    }

    /// How many sessions there are.
    pub(super) fn count(&self) -> Result<u64> {
        let count = self.db.query_row("SELECT count(*) FROM tasks", [], |row| row.get::<_, i64>(0));
        self.told(count.map(i64::unsigned_abs))
    }

    pub(super) fn list(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        let (mut clauses, mut values): (Vec<String>, Vec<String>) =
            query.conditions("user").into_iter().unzip();
        if let Some((created_at, uuid)) = &query.after {
            clauses.push("(created_at, uuid) > (?, ?)".to_owned());
            values.extend([created_at.clone(), uuid.to_string()]);
        }
        let filter = if clauses.is_empty() { "1".to_owned() } else { clauses.join(" AND ") };
        let limit = if query.limit == 0 { String::new() } else { format!(" LIMIT {}", query.limit) };
        let columns = names();
        let sql = format!("SELECT {columns} FROM tasks WHERE {filter} ORDER BY created_at, uuid{limit}");
        self.rows(&sql, params_from_iter(values), read)
    }
}

/// Which file is at a path now.
pub(crate) fn file_at(path: &Path) -> Result<Option<(u64, u64)>> {
    let found = std::fs::metadata(path).tried_if_there("look at", path)?;
    Ok(found.map(|found| (found.dev(), found.ino())))
}

/// Opens the table as it is; gives its version.
fn prepare(path: &Path, patience: Duration) -> rusqlite::Result<(Connection, u32)> {
    let db = Connection::open(path)?;
    db.busy_timeout(patience / TRIES)?;
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "NORMAL")?;
    if version == 0 {
        db.execute_batch(&schema())?;
    } else {
        add_columns(&db)?;
    }
    branches::prepare(&db)?;
    places::prepare(&db)?;
    // A table of the same name with other columns is refused here, not at the first write.
    db.prepare(&format!("SELECT {} FROM tasks LIMIT 0", names()))?;
    Ok((db, version))
}

/// Gives an older table of ours the columns it lacks. Another process may be just as far.
fn add_columns(db: &Connection) -> rusqlite::Result<()> {
    let has = "SELECT count(*) FROM pragma_table_info('tasks') WHERE name = ?1";
    let has = |name: &str| db.query_row(has, [name], |row| row.get::<_, bool>(0));
    if !has("meter")? {
        return Ok(());
    }
    for (name, kind, _) in &COLUMNS[FIRST..] {
        if !has(name)? {
            let added = db.execute_batch(&format!("ALTER TABLE tasks ADD COLUMN {name} {kind}"));
            if added.is_err() && !has(name)? {
                return added;
            }
        }
    }
    Ok(())
}

/// What the system refused is told as such; only the rest is a fault of the table.
fn refused(path: &Path, error: &rusqlite::Error, tried: u32) -> Error {
    let times = if tried > 1 { format!(" (tried {tried} times)") } else { String::new() };
    of_system(path, error).unwrap_or_else(|| Error::Table(format!("{error}{times}")))
}

fn retry<T>(path: &Path, mut run: impl FnMut() -> rusqlite::Result<T>) -> Result<T> {
    let mut tried = 1;
    loop {
        match run() {
            Ok(value) => return Ok(value),
            Err(e) if tried >= TRIES => return Err(refused(path, &e, tried)),
            Err(_) => std::thread::sleep(Duration::from_millis(20 * u64::from(tried))),
        }
        tried += 1;
    }
}

/// What stands in the columns for a session.
fn values(session: &Session) -> Vec<Value> {
    let fields = serde_json::to_value(session).unwrap_or_default();
    let threads = session.meta.config.stelis_config;
    let value = |(name, _, part)| match fields.pointer(part).map(|part| &part[name]) {
        Some(Json::String(text)) => text.clone().into(),
        Some(Json::Number(n)) => n.as_i64().map_or_else(|| n.as_f64().into(), Value::from),
        Some(Json::Object(_)) => threads.and_then(|threads| serde_json::to_string(&threads).ok()).into(),
        _ => Value::Null,
    };
    COLUMNS.map(value).into()
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Session> {
    let status: String = row.get(6)?;
    let status = State::named(&status).unwrap_or(State::Running);
    let mut counters = [0; Counters::NAMES.len()];
    for (counter, name) in counters.iter_mut().zip(Counters::NAMES) {
        *counter = row.get::<_, Option<i64>>(name)?.unwrap_or(0).max(0) as u64;
    }
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
                window_from: row.get(24)?,
                persona: row.get(25)?,
                stelis_config: row
                    .get::<_, Option<String>>(26)?
                    .and_then(|text| serde_json::from_str(&text).ok()),
                alias: row.get(27)?,
                agent: row.get(28)?,
                project: row.get(29)?,
            },
            user: row.get(20)?,
            queued: status == State::Queued,
        },
        status,
        started_at: row.get(8)?,
        completed_at: row.get(9)?,
        updated_at: row.get::<_, Option<String>>(21)?.unwrap_or(created_at),
        error_message: row.get(19)?,
        counters: Counters::of_numbers(counters),
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
        let path = Path::new("tasks.db");
        let error = retry(path, || gone(&mut calls)).unwrap_err();
        assert_eq!(calls, 3);
        assert!(error.to_string().contains("tried 3 times"), "{error}");
        let mut calls = 0;
        let second = |calls: &mut u32| {
            *calls += 1;
            if *calls < 3 { Err(rusqlite::Error::QueryReturnedNoRows) } else { Ok(7) }
        };
        assert_eq!(retry(path, || second(&mut calls)).unwrap(), 7);
    }
}
