//! A session's index of words in a table of fields. Names and values are bytes: they sort as bytes do, and hold any.

use super::server::{PostgresServer, values};
use crate::search_index::keyed::{FieldTable, Fields};
use crate::{Error, Result};
use komado_core::SessionId;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_postgres::Row;

/// Fields that are written in one statement.
const PIECE: usize = 20_000;
/// How the names of sheets begin.
const SHEET: &str = "sheet:";

const OPEN: &str = "WITH s AS (SELECT number FROM sessions WHERE uuid = $1), \
    made AS (INSERT INTO shelves (session) SELECT number FROM sessions \
        WHERE uuid = $1 AND NOT EXISTS (SELECT 1 FROM shelves WHERE session = sessions.number) \
        FOR KEY SHARE ON CONFLICT DO NOTHING) \
    SELECT number FROM s";

const FIELDS: &str = "SELECT f.value FROM unnest($2::BYTEA[]) WITH ORDINALITY AS wanted(field, n) \
    LEFT JOIN shelf_fields f ON f.session = $1 AND f.field = wanted.field ORDER BY wanted.n";

const AFTER: &str = "SELECT field FROM shelf_fields WHERE session = $1 AND field > $2 AND field < $3 \
    ORDER BY field LIMIT $4";

const BEFORE: &str = "SELECT field FROM shelf_fields WHERE session = $1 AND field < $2 AND field > $3 \
    ORDER BY field DESC LIMIT $4";

const PUT: &str = "INSERT INTO shelf_fields (session, field, value) \
    SELECT $1, n.field, n.value FROM unnest($2::BYTEA[], $3::BYTEA[]) AS n(field, value) \
    ON CONFLICT (session, field) DO UPDATE SET value = excluded.value";

/// The fields of one session.
pub(super) struct PostgresFields {
    server: Arc<PostgresServer>,
    id: SessionId,
    session: i64,
}

impl PostgresFields {
    pub(super) fn open(server: &Arc<PostgresServer>, id: &SessionId) -> Result<Self> {
        let rows = server.ask(OPEN, values![id.to_string()])?;
        let row = rows.first().ok_or_else(|| Error::NoSession(id.clone()))?;
        Ok(Self { server: Arc::clone(server), id: id.clone(), session: row.get(0) })
    }
}

fn bytes(name: &str) -> Vec<u8> {
    name.as_bytes().to_vec()
}

impl FieldTable for PostgresFields {
    fn counts(&self) -> Result<(u64, u64)> {
        let sql = "SELECT written, clearings FROM shelves WHERE session = $1";
        let rows = self.server.ask(sql, values![self.session])?;
        let row = rows.first().ok_or_else(|| Error::NoSession(self.id.clone()))?;
        Ok((row.get::<_, i64>(0) as u64, row.get::<_, i64>(1) as u64))
    }

    fn fields(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        let names: Vec<Vec<u8>> = names.iter().map(|name| bytes(name)).collect();
        let rows = self.server.ask(FIELDS, values![self.session, names])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    fn sheets(&self, from: &str, to: &str, most: u32) -> Result<Vec<String>> {
        let sql = if from < to { AFTER } else { BEFORE };
        let [from, to] = [from, to].map(|name| bytes(&format!("{SHEET}{name}")));
        let rows = self.server.ask(sql, values![self.session, from, to, i64::from(most)])?;
        let name = |row: &Row| Some(std::str::from_utf8(row.get(0)).ok()?.strip_prefix(SHEET)?.to_owned());
        Ok(rows.iter().filter_map(name).collect())
    }

    fn write(&self, written: u64, fields: Fields, sheets: Vec<String>) -> Result<bool> {
        let sheets = sheets.iter().map(|name| (bytes(&format!("{SHEET}{name}")), Vec::new()));
        let fields = fields.into_iter().map(|(name, value)| (name.into_bytes(), value));
        // One statement takes each name once.
        let all: BTreeMap<Vec<u8>, Vec<u8>> = fields.chain(sheets).collect();
        let all: Vec<(Vec<u8>, Vec<u8>)> = all.into_iter().collect();
        let mut work = self.server.begin()?;
        let sql = "UPDATE shelves SET written = written + 1 WHERE session = $1 AND written = $2 RETURNING 1";
        if work.ask(sql, values![self.session, written as i64])?.is_empty() {
            return work.leave().map(|()| false);
        }
        for some in all.chunks(PIECE) {
            let (names, given): (Vec<_>, Vec<_>) = some.iter().cloned().unzip();
            work.ask(PUT, values![self.session, names, given])?;
        }
        work.commit().map(|()| true)
    }

    fn clear(&mut self) -> Result<u64> {
        let mut work = self.server.begin()?;
        // A filling that is under way ends first: only a statement that begins after it sees what it put in.
        let sql = "UPDATE shelves SET written = written + 1, clearings = clearings + 1 WHERE session = $1 \
            RETURNING clearings";
        let rows = work.ask(sql, values![self.session])?;
        work.ask("DELETE FROM shelf_fields WHERE session = $1", values![self.session])?;
        work.commit()?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0) as u64))
    }
}
