//! `places` in `tasks.db`: where a client's transcript may go on.
//!
//! A row for each request that came through the gateway, asked for at each request: one look-up in an index, one short
//! write. The write is not synced by itself. What a power cut takes is in the journals, and is put back by a rebuild; until
//! then a transcript is found at an earlier mark, and the journal tells the rest.

use super::branches::TaskTableStore;
use super::tasks::TaskTable;
use super::{FileJournal, FileStore};
use crate::error::odd;
use crate::tables::{MOST_SPOTS, TranscriptPlace, TranscriptPlaces, spot_of};
use crate::{Journal, OpenMode, Result, Store};
use komado_core::head::{EntrySource, Kind};
use komado_core::{Seq, SessionId, ThreadId};
use rusqlite::{Connection, Row, params};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS places (
    name TEXT NOT NULL,
    session TEXT NOT NULL,
    thread TEXT NOT NULL,
    seq INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_places_name ON places(name);
CREATE INDEX IF NOT EXISTS idx_places_session ON places(session);
CREATE UNIQUE INDEX IF NOT EXISTS idx_places_once ON places(name, session, thread, seq);
";

/// One index gives the rows of a name in the order they came.
const FIND: &str = "SELECT name, session, thread, seq FROM places INDEXED BY idx_places_name WHERE name = ?1 \
    ORDER BY rowid DESC LIMIT ?2";

/// An index knows each row: neither a name nor a session with very many is looked through.
const NOTE: &str = "INSERT OR IGNORE INTO places (name, session, thread, seq) VALUES (?1, ?2, ?3, ?4)";

/// Makes the table where it is missing; refuses another of the same name.
pub(super) fn prepare(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(SCHEMA)?;
    db.prepare(FIND).map(|_| ())
}

impl TaskTable {
    /// Notes moments, all or none; gives how many were not there.
    pub(super) fn note_spots(&self, spots: &[TranscriptPlace]) -> Result<usize> {
        self.retry(|| {
            // One row is one statement, which needs no other.
            let whole = if spots.len() > 1 { Some(self.db.unchecked_transaction()?) } else { None };
            let mut added = 0;
            for TranscriptPlace { name, session, thread, seq } in spots {
                added += self.run(NOTE, params![name, session.as_str(), thread.as_str(), seq])?;
            }
            whole.map_or(Ok(()), rusqlite::Transaction::commit)?;
            Ok(added)
        })
    }

    /// The moments called `name`, the newest first. A row that another program wrote, and that names nothing, is passed over.
    pub(super) fn spots(&self, name: &str) -> Result<Vec<TranscriptPlace>> {
        let whole = |row: &Row<'_>| match read(row) {
            Err(rusqlite::Error::FromSqlConversionFailure(..)) => Ok(None),
            found => found.map(Some),
        };
        let found = self.rows(FIND, params![name, MOST_SPOTS as i64], whole)?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Takes all rows of a session out.
    pub(crate) fn forget_spots(&self, id: &SessionId) -> Result<()> {
        self.write("DELETE FROM places WHERE session = ?1", [id.as_str()]).map(drop)
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<TranscriptPlace> {
    Ok(TranscriptPlace {
        name: row.get(0)?,
        session: SessionId::new(row.get::<_, String>(1)?).map_err(|e| odd(1, e))?,
        thread: ThreadId::new(row.get::<_, String>(2)?).map_err(|e| odd(2, e))?,
        seq: row.get(3)?,
    })
}

impl<S: TaskTableStore> TranscriptPlaces for S {
    fn note(&self, spots: &[TranscriptPlace]) -> Result<()> {
        self.with_tasks(|tasks| {
            tasks.may_change()?;
            tasks.note_spots(spots).map(|_| ())
        })
    }

    fn spots(&self, name: &str) -> Result<Vec<TranscriptPlace>> {
        if !self.is_made() {
            return Ok(Vec::new());
        }
        self.with_tasks(|tasks| tasks.spots(name))
    }
}

impl FileStore {
    /// Every moment that the journals of a session name, the oldest first: its own name, requests, replies. What cannot be
    /// read is left out; counting the entries tells of it.
    pub(super) fn spots_of(&self, id: &SessionId, alias: Option<&str>) -> Result<Vec<TranscriptPlace>> {
        let mut found = Vec::new();
        for header in self.threads(id)? {
            if let Ok(journal) = self.open_file(id, &header.thread, OpenMode::Read) {
                own_spots(&journal, &mut found);
            }
        }
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        let own = |name: &str| {
            let (name, session) = (name.to_owned(), id.clone());
            TranscriptPlace { name, session, thread: ThreadId::root(), seq: 0 }
        };
        Ok(alias.map(own).into_iter().chain(found.into_iter().map(|(_, spot)| spot)).collect())
    }

    /// Gives every session the rows that its journals name, in the order the sessions were made.
    pub(super) fn fill_spots(&self, tasks: &TaskTable) -> Result<()> {
        for row in tasks.list(&crate::SessionQuery::default())? {
            let Ok(id) = SessionId::new(row.meta.uuid.as_str()) else { continue };
            // A session that cannot be read has been told of.
            if let Ok(spots) = self.spots_of(&id, row.meta.config.alias.as_deref()) {
                tasks.note_spots(&spots)?;
            }
        }
        Ok(())
    }
}

/// The moments that a thread's own entries name, each with its time.
fn own_spots(journal: &FileJournal, found: &mut Vec<(String, TranscriptPlace)>) {
    let header = journal.header();
    for seq in header.base_seq() + 1..=Journal::last(journal) {
        if let Some((name, at)) = named(journal, seq) {
            let (session, thread) = (header.session.clone(), header.thread.clone());
            found.push((at, TranscriptPlace { name, session, thread, seq }));
        }
    }
}

fn named(journal: &FileJournal, seq: Seq) -> Option<(String, String)> {
    let kind = EntrySource::head(journal, seq).ok()?.kind;
    if !matches!(kind, Kind::Sent | Kind::Assistant) {
        return None;
    }
    let record = EntrySource::record(journal, seq).ok()?;
    Some((spot_of(&record.entry)?.to_owned(), record.timestamp))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn spot(n: u32) -> TranscriptPlace {
        TranscriptPlace {
            name: format!("{n:032x}"),
            session: SessionId::new(format!("s{}", n % 1_000)).unwrap(),
            thread: ThreadId::root(),
            seq: n,
        }
    }

    /// How the table goes about it.
    fn plan(tasks: &TaskTable, sql: &str) -> String {
        let mut statement = tasks.db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let marks = vec!["s"; statement.parameter_count()];
        let steps =
            statement.query_map(rusqlite::params_from_iter(marks), |row| row.get::<_, String>(3)).unwrap();
        steps.map(|step| step.unwrap()).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn of_a_hundred_thousand_moments_one_is_found_by_the_index() {
        let tasks = TaskTable::copy(Path::new("tasks.db")).unwrap();
        let all: Vec<TranscriptPlace> = (0..100_000).map(spot).collect();
        assert_eq!(tasks.note_spots(&all).unwrap(), 100_000);
        assert_eq!(tasks.note_spots(&all[..500]).unwrap(), 0);
        assert_eq!(tasks.spots(&all[77_777].name).unwrap(), [all[77_777].clone()]);
        tasks.forget_spots(&all[77_777].session).unwrap();
        assert_eq!(tasks.spots(&all[77_777].name).unwrap(), []);
        // No sorting, and no row looked at but those of the name.
        assert_eq!(plan(&tasks, FIND), "SEARCH places USING INDEX idx_places_name (name=?)");
        let forget = plan(&tasks, "DELETE FROM places WHERE session = ?1");
        assert!(forget.contains("idx_places_session (session=?)"), "{forget}");
    }

    #[test]
    fn a_row_that_names_nothing_is_passed_over() {
        let tasks = TaskTable::copy(Path::new("tasks.db")).unwrap();
        tasks.note_spots(&[TranscriptPlace { name: "n".into(), ..spot(1) }]).unwrap();
        tasks.db.execute("INSERT INTO places VALUES ('n', 'no/session', 'root', 1)", []).unwrap();
        assert_eq!(tasks.spots("n").unwrap().len(), 1);
    }
}
