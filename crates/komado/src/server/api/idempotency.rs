//! Idempotency keys: the answer of a call is kept, so that a repeated call gets the same answer and is done once.
//!
//! A row is durable before the entries are written, and names the first of their lines by its digest. So a crash in between
//! loses nothing: a caller who asks again finds the row, looks whether that very line stands in the journal, and knows whether it
//! was done. Rows are kept for a week. Refused: a key that comes with another body (422), or while its first call runs (409).

use super::response::{ApiProblem, ApiResult};
use komado_core::SessionId;
use komado_ops::{OpFault, OpResult, PlannedEntries, private};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The longest key.
const LONGEST: usize = 255;

/// The rows, and which calls are running.
#[derive(Default)]
pub(super) struct IdempotencyTable {
    /// The table; in memory where sessions are, too.
    path: Option<PathBuf>,
    table: Mutex<Option<Connection>>,
    running: Mutex<HashSet<String>>,
}

/// A call that runs; another with the same key waits for nothing and is refused.
pub(super) struct RunningCall<'a> {
    answers: &'a IdempotencyTable,
    name: String,
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.answers.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

impl IdempotencyTable {
    /// The table in `base_dir`.
    pub(super) fn at(base_dir: &Path) -> Self {
        Self { path: Some(base_dir.join("answers.db")), ..Self::default() }
    }

    /// The name of a key at a place; the key itself is not kept.
    pub(super) fn name(place: &str, key: &[u8]) -> ApiResult<String> {
        if key.is_empty() || key.len() > LONGEST {
            return Err(ApiProblem::bad(format!("Idempotency-Key must have 1 to {LONGEST} characters")));
        }
        let mut digest = blake3::Hasher::new();
        digest.update(place.as_bytes()).update(b"\0").update(key);
        Ok(digest.finalize().to_hex().to_string())
    }

    /// Begins a call.
    pub(super) fn begin(&self, name: &str) -> ApiResult<RunningCall<'_>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if !running.insert(name.to_owned()) {
            return Err(ApiProblem::busy(
                "a call with this Idempotency-Key is running; ask again when it has ended",
            ));
        }
        Ok(RunningCall { answers: self, name: name.to_owned() })
    }

    /// What was planned under this name with this body.
    pub(super) fn find(&self, name: &str, body: &str) -> OpResult<Option<PlannedEntries>> {
        let row = self.with(|table| {
            let mut find =
                table.prepare_cached("SELECT body, seq, line, answer FROM answers WHERE name = ?1")?;
            let read = |row: &rusqlite::Row<'_>| {
                Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?, row.get::<_, String>(3)?))
            };
            find.query_row(params![name], read).optional()
        })?;
        let Some((of, seq, line, answer)) = row else { return Ok(None) };
        if of != body {
            return Err(OpFault::input(
                "this Idempotency-Key came with another body before; send the same body, or another key",
            ));
        }
        Ok(Some(PlannedEntries { seq, line, answer }))
    }

    /// Writes down what will be done; durable when it returns.
    pub(super) fn plan(&self, name: &str, body: &str, planned: &PlannedEntries, now: &str) -> OpResult {
        let PlannedEntries { seq, line, answer } = planned;
        self.with(|table| {
            table.execute(
                "INSERT OR REPLACE INTO answers (name, body, seq, line, answer, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![name, body, seq, line, answer, now],
            )
        })
        .map(|_| ())
    }

    /// Forgets what is older than `before`.
    pub(super) fn forget(&self, before: &str) -> OpResult {
        self.with(|table| table.execute("DELETE FROM answers WHERE at < ?1", params![before])).map(|_| ())
    }

    /// Forgets what calls about a session were answered, and leaves no trace of it in the file.
    pub(super) fn forget_session(&self, id: &SessionId) -> OpResult {
        if self.path.as_ref().is_none_or(|path| !path.exists()) {
            return Ok(());
        }
        self.with(|table| {
            table.pragma_update(None, "secure_delete", "ON")?;
            let sql = "DELETE FROM answers WHERE json_extract(answer, '$.session') = ?1";
            table.execute(sql, params![id.as_str()])
        })
        .map(|_| ())
    }

    fn with<T>(&self, op: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> OpResult<T> {
        let mut held = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let away = |error: rusqlite::Error| {
            OpFault::away(format!("answers.db: {error}; try again, or leave the key out"))
        };
        let table = match held.take() {
            Some(table) => table,
            None => self.open().map_err(away)?,
        };
        op(held.insert(table)).map_err(away)
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        let table = match &self.path {
            Some(path) => {
                make_private(path).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
                Connection::open(path)?
            }
            None => Connection::open_in_memory()?,
        };
        table.busy_timeout(std::time::Duration::from_secs(5))?;
        table.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE IF NOT EXISTS answers (name TEXT PRIMARY KEY, body TEXT NOT NULL, seq INTEGER NOT NULL,
                 line TEXT NOT NULL, answer TEXT NOT NULL, at TEXT NOT NULL) WITHOUT ROWID;",
        )?;
        Ok(table)
    }
}

/// Makes the table's file before SQLite does, which would let others read it. What SQLite makes beside it has the same mode.
fn make_private(path: &Path) -> std::io::Result<()> {
    private::file(path)?;
    ["-wal", "-shm"].iter().try_for_each(|end| {
        let mut beside = path.as_os_str().to_owned();
        beside.push(end);
        private::close_at(Path::new(&beside))
    })
}
