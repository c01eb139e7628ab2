//! A shelf's tables in SQLite, looked up.

use super::posts::{doc, entry_of};
use super::stacks::{Entry, Piece, Places, Side, Stacks};
use super::{Passage, Tally};
use komado_core::{Role, Seq, ThreadId};
use rusqlite::{Connection, OptionalExtension, Row, params};

type Sql<T> = rusqlite::Result<T>;

/// The tables behind one connection.
pub(super) struct Tables<'a>(pub(super) &'a Connection);

fn places(row: &Row<'_>) -> Sql<Places> {
    Ok((row.get::<_, i64>(0)? as u64, row.get(1)?))
}

/// A place as SQLite numbers it; what is further than it can number is the last.
fn number(place: u64) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}

impl Stacks for Tables<'_> {
    type Error = rusqlite::Error;

    fn tally(&mut self, terms: &[String]) -> Sql<Tally> {
        let facts = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let (docs, words) = self.0.query_row("SELECT docs, words FROM facts", [], facts)?;
        let mut count = self.0.prepare_cached("SELECT sum(docs) FROM posts WHERE term = ?1")?;
        let mut holding = Vec::with_capacity(terms.len());
        for term in terms {
            let sum: Option<i64> = count.query_row([term], |row| row.get(0))?;
            holding.push(sum.unwrap_or(0) as u64);
        }
        Ok(Tally { docs: docs as u64, words: words as u64, holding })
    }

    fn row_after(&mut self, term: &str, after: Option<u64>) -> Sql<Option<Places>> {
        let sql = "SELECT first, body FROM posts WHERE term = ?1 AND first > ?2 ORDER BY first LIMIT 1";
        let after = after.map_or(-1, number);
        self.0.prepare_cached(sql)?.query_row(params![term, after], places).optional()
    }

    fn row_upto(&mut self, term: &str, upto: u64) -> Sql<Option<Places>> {
        let sql = "SELECT first, body FROM posts WHERE term = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1";
        self.0.prepare_cached(sql)?.query_row(params![term, number(upto)], places).optional()
    }

    fn entry(&mut self, id: u64) -> Sql<Option<Entry>> {
        let sql = "SELECT t.name, e.seq, e.role, e.at, e.tools, e.files FROM entries e \
                   JOIN threads t ON t.id = e.thread WHERE e.id = ?1";
        let read = |row: &Row<'_>| {
            Ok(Entry {
                thread: row.get(0)?,
                seq: row.get(1)?,
                role: Role::ALL.get(usize::from(row.get::<_, u8>(2)?)).copied().unwrap_or(Role::User),
                at: row.get(3)?,
                tools: row.get(4)?,
                files: row.get(5)?,
            })
        };
        self.0.prepare_cached(sql)?.query_row([number(id)], read).optional()
    }

    fn piece(&mut self, place: u64) -> Sql<Option<Piece>> {
        let sql = "SELECT at, bytes, in_output, words FROM passages WHERE id = ?1";
        let part = (place - doc(entry_of(place), 0)) as u32;
        let read = |row: &Row<'_>| {
            let (at, bytes, in_output) = (row.get::<_, i64>(0)? as u64, row.get(1)?, row.get(2)?);
            Ok(Piece { passage: Passage { part, at, bytes, in_output }, words: row.get(3)? })
        };
        self.0.prepare_cached(sql)?.query_row([number(place)], read).optional()
    }

    fn entry_before(&mut self, id: Option<u64>) -> Sql<Option<u64>> {
        let sql = "SELECT id FROM entries WHERE id < ?1 ORDER BY id DESC LIMIT 1";
        let end = id.map_or(i64::MAX, number);
        self.0.prepare_cached(sql)?.query_row([end], |row| Ok(row.get::<_, i64>(0)? as u64)).optional()
    }

    fn beside(&mut self, (thread, seq): (&ThreadId, Seq), side: Side, reach: u32) -> Sql<Vec<u64>> {
        let sql = match side {
            Side::Before => {
                "SELECT e.id FROM threads t JOIN entries e ON e.thread = t.id \
                 WHERE t.name = ?1 AND e.seq < ?2 ORDER BY e.seq DESC LIMIT ?3"
            }
            Side::After => {
                "SELECT e.id FROM threads t JOIN entries e ON e.thread = t.id \
                 WHERE t.name = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT ?3"
            }
        };
        let mut found = self.0.prepare_cached(sql)?;
        let ids =
            found.query_map(params![thread.as_str(), seq, reach], |row| Ok(row.get::<_, i64>(0)? as u64))?;
        ids.collect()
    }
}
