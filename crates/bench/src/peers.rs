//! What people use instead, doing the same.

use crate::error::{Error, Result};
use rusqlite::{Connection, params};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Appends lines durably.
pub(super) trait Peer {
    /// What it is, with everything that bears on its figures.
    fn name(&self) -> String;

    /// Makes one line durable.
    fn append(&mut self, line: &str) -> Result;
}

/// A file, one write and one sync for each line: nothing durable can be cheaper than this.
pub(super) struct RawPeer(File);

impl RawPeer {
    pub(super) fn new(path: &Path) -> Result<Self> {
        Ok(Self(OpenOptions::new().create(true).append(true).open(path)?))
    }
}

impl Peer for RawPeer {
    fn name(&self) -> String {
        "plain file, write + fdatasync".into()
    }

    fn append(&mut self, line: &str) -> Result {
        self.0.write_all(line.as_bytes())?;
        Ok(self.0.sync_data()?)
    }
}

/// A table with a row for each line.
pub(super) struct Sqlite(Connection);

const INSERT: &str = "INSERT INTO messages (line) VALUES (?1)";

impl Sqlite {
    pub(super) fn new(path: &Path) -> Result<Self> {
        let db = Connection::open(path).map_err(broken)?;
        db.pragma_update(None, "journal_mode", "WAL").map_err(broken)?;
        db.pragma_update(None, "synchronous", "FULL").map_err(broken)?;
        db.execute_batch("CREATE TABLE messages (seq INTEGER PRIMARY KEY, line TEXT NOT NULL)")
            .map_err(broken)?;
        Ok(Self(db))
    }

    /// Many lines in one transaction.
    pub(super) fn fill(&mut self, lines: impl Iterator<Item = String>) -> Result {
        let transaction = self.0.transaction().map_err(broken)?;
        {
            let mut insert = transaction.prepare_cached(INSERT).map_err(broken)?;
            for line in lines {
                insert.execute(params![line]).map_err(broken)?;
            }
        }
        transaction.commit().map_err(broken)
    }
}

impl Peer for Sqlite {
    fn name(&self) -> String {
        format!("SQLite {} INSERT, WAL, synchronous=FULL", rusqlite::version())
    }

    fn append(&mut self, line: &str) -> Result {
        let mut insert = self.0.prepare_cached(INSERT).map_err(broken)?;
        insert.execute(params![line]).map(|_| ()).map_err(broken)
    }
}

fn broken(error: rusqlite::Error) -> Error {
    Error::failed(format!("the peer's database: {error}"))
}
