//! A shelf in one SQLite file, or in memory.
//!
//! The file has no owner: it is made by the first search, made again when it is broken, foreign or of
//! another version, and kept nowhere but in a passing file where the session's folder cannot be written. Each filling
//! is one transaction; a count of clearings keeps a reader that still holds old words from putting them back.

use super::postings::{LAST_PART, Posting, PostingRow, doc, entry_of};
use super::search::{EntrySide, IndexTables, PackedPostings, StoredEntry, StoredPassage};
use super::{
    IndexedEntry, IndexedPassage, IndexedUpto, Passage, SearchFilter, SearchFor, SearchHit, SearchIndex,
    TermCounts,
};
use crate::error::{IoContext, of_system};
use crate::files::private;
use crate::{Error, Result, locked};
use komado_core::{Role, Seq, ThreadId};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Raised with the tables and with the terms: a shelf of another version is made again.
const VERSION: u32 = 1;
/// Says that the file is a shelf: `koma`.
const MARKED: u32 = 0x6b6f_6d61;

const SCHEMA: &str = "
CREATE TABLE facts (one INTEGER PRIMARY KEY CHECK (one = 1), clearings INTEGER NOT NULL, docs INTEGER NOT NULL,
    words INTEGER NOT NULL);
INSERT INTO facts VALUES (1, 0, 0, 0);
CREATE TABLE threads (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL, part INTEGER NOT NULL);
CREATE TABLE entries (id INTEGER PRIMARY KEY, thread INTEGER NOT NULL, seq INTEGER NOT NULL, role INTEGER NOT NULL,
    at TEXT NOT NULL, tools TEXT NOT NULL, files TEXT NOT NULL, UNIQUE (thread, seq));
CREATE TABLE passages (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, bytes INTEGER NOT NULL, words INTEGER NOT NULL,
    in_output INTEGER NOT NULL);
CREATE TABLE posts (term TEXT NOT NULL, first INTEGER NOT NULL, docs INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (term, first)) WITHOUT ROWID;
";

/// Every column there is; preparing these finds a file with other ones.
const LOOKS: [&str; 5] = [
    "SELECT one, clearings, docs, words FROM facts",
    "SELECT id, name, seq, part FROM threads",
    "SELECT id, thread, seq, role, at, tools, files FROM entries",
    "SELECT id, at, bytes, words, in_output FROM passages",
    "SELECT term, first, docs, body FROM posts",
];

/// A shelf, open. Clones share it.
#[derive(Clone)]
pub(crate) struct SqliteSearchIndex {
    db: Arc<Mutex<Connection>>,
    /// Its file; none for one that no other process sees.
    path: Option<PathBuf>,
    clearings: u64,
}

/// Why a file cannot be used.
enum Unfit {
    /// It is no shelf of this version.
    Broken,
    /// The system, or another process, refused.
    Refused(Error),
}

impl From<rusqlite::Error> for Unfit {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            None | Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::Unknown) => {
                Self::Broken
            }
            Some(_) => Self::Refused(told(&error)),
        }
    }
}

impl SqliteSearchIndex {
    /// Opens the shelf at `path`, making it when it is not there or of no use. Where it may not be written there is a
    /// passing one instead.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let opened = connect(path).or_else(|unfit| match unfit {
            Unfit::Broken => remove(path).map_err(Unfit::Refused).and_then(|()| connect(path)),
            refused @ Unfit::Refused(_) => Err(refused),
        });
        match opened {
            Ok(ready) => Ok(Self::of(ready, Some(path))),
            Err(Unfit::Refused(error)) if error.is_permission() => Self::passing(),
            Err(Unfit::Refused(error)) => Err(error),
            Err(Unfit::Broken) => Err(Error::Shelf(format!("{} cannot be made again", path.display()))),
        }
    }

    /// A shelf in memory.
    pub(crate) fn memory() -> Result<Self> {
        let ready = Connection::open_in_memory().and_then(prepared).map_err(|e| told(&e))?;
        Ok(Self::of(ready, None))
    }

    /// A shelf in a file without a name, which goes with the process.
    fn passing() -> Result<Self> {
        let ready = Connection::open("").and_then(prepared).map_err(|e| told(&e))?;
        Ok(Self::of(ready, None))
    }

    fn of((db, clearings): (Connection, u64), path: Option<&Path>) -> Self {
        Self { db: Arc::new(Mutex::new(db)), path: path.map(Path::to_owned), clearings }
    }

    /// Another handle on the same shelf, up to date.
    pub(crate) fn again(&self) -> Result<Self> {
        let clearings = clearings(&self.db()).map_err(|e| told(&e))?;
        Ok(Self { clearings, ..self.clone() })
    }

    /// False when the file has holes.
    pub(crate) fn is_sound(&self) -> bool {
        let found = self.db().query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
        found.is_ok_and(|found| found == "ok")
    }

    pub(super) fn db(&self) -> MutexGuard<'_, Connection> {
        locked(&self.db)
    }
}

/// What the system refused is told as such; only the rest is a fault of the shelf.
pub(super) fn told(error: &rusqlite::Error) -> Error {
    of_system(Path::new("recall.db"), error).unwrap_or_else(|| Error::Shelf(error.to_string()))
}

fn connect(path: &Path) -> std::result::Result<(Connection, u64), Unfit> {
    // Where no file can be made beside it, nothing can be written to it either.
    let folder = path.parent().unwrap_or(path);
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK)
        .tried("write to", folder)
        .map_err(Unfit::Refused)?;
    private().open(path).tried("make", path).map_err(Unfit::Refused)?;
    Ok(prepared(Connection::open(path)?)?)
}

/// Removes the file and what SQLite keeps beside it.
fn remove(path: &Path) -> Result<()> {
    for end in ["", "-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        std::fs::remove_file(&name).tried_if_there("remove", path)?;
    }
    Ok(())
}

/// Sets the connection up, and the tables when there are none; tells how often it was cleared. Anything but a shelf of this version is an error.
fn prepared(mut db: Connection) -> rusqlite::Result<(Connection, u64)> {
    db.busy_timeout(Duration::from_secs(5))?;
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "cache_size", -4000)?;
    db.pragma_update(None, "secure_delete", "ON")?;
    db.set_prepared_statement_cache_capacity(32);
    let marks = |db: &Connection| -> rusqlite::Result<(u32, u32)> {
        let get = |name| db.pragma_query_value(None, name, |row| row.get(0));
        Ok((get("application_id")?, get("user_version")?))
    };
    if marks(&db)? != (MARKED, VERSION) {
        let work = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been faster.
        if marks(&work)? != (MARKED, VERSION) {
            let tables: u32 = work.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if tables > 0 {
                return Err(rusqlite::Error::InvalidQuery);
            }
            work.execute_batch(SCHEMA)?;
            work.pragma_update(None, "application_id", MARKED)?;
            work.pragma_update(None, "user_version", VERSION)?;
        }
        work.commit()?;
    }
    for look in LOOKS {
        db.prepare(look)?;
    }
    let clearings = clearings(&db)?;
    Ok((db, clearings))
}

fn clearings(db: &Connection) -> rusqlite::Result<u64> {
    db.query_row("SELECT clearings FROM facts", [], |row| row.get::<_, i64>(0)).map(|n| n as u64)
}

/// A list in one column. What holds a line break is not a name of a tool or file.
pub(crate) fn joined(names: &[String]) -> String {
    let lines: Vec<&str> = names.iter().map(String::as_str).filter(|name| !name.contains('\n')).collect();
    lines.join("\n")
}

fn mark_of(db: &Connection, thread: &ThreadId) -> rusqlite::Result<Option<(i64, IndexedUpto)>> {
    let mut look = db.prepare_cached("SELECT id, seq, part FROM threads WHERE name = ?1")?;
    look.query_row([thread.as_str()], |row| {
        Ok((row.get(0)?, IndexedUpto { seq: row.get(1)?, part: row.get(2)? }))
    })
    .optional()
}

/// One transaction of a filling.
struct Filling<'a> {
    work: &'a Transaction<'a>,
    terms: HashMap<&'a str, Vec<Posting>>,
    docs: i64,
    words: i64,
}

impl<'a> Filling<'a> {
    fn take(&mut self, thread: i64, sheet: &'a IndexedEntry) -> rusqlite::Result<()> {
        let entry = self.entry(thread, sheet)?;
        let sql = "INSERT INTO passages (id, at, bytes, words, in_output) VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut keep = self.work.prepare_cached(sql)?;
        for IndexedPassage { passage, words, terms } in
            sheet.docs.iter().filter(|doc| doc.passage.part <= LAST_PART)
        {
            let place = doc(entry, passage.part);
            let at = passage.at as i64;
            keep.execute(params![place as i64, at, passage.bytes, words, passage.in_output])?;
            for (term, times) in terms {
                self.terms.entry(term).or_default().push(Posting { doc: place, times: *times });
            }
            self.docs += 1;
            self.words += i64::from(*words);
        }
        Ok(())
    }

    /// The entry's own row; it is there already when some of its passages are.
    fn entry(&self, thread: i64, sheet: &IndexedEntry) -> rusqlite::Result<u64> {
        let mut look = self.work.prepare_cached("SELECT id FROM entries WHERE thread = ?1 AND seq = ?2")?;
        if let Some(id) = look.query_row(params![thread, sheet.seq], |row| row.get::<_, i64>(0)).optional()? {
            return Ok(id as u64);
        }
        let role = Role::ALL.iter().position(|role| *role == sheet.role).unwrap_or_default() as i64;
        let sql = "INSERT INTO entries (thread, seq, role, at, tools, files) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (tools, files) = (joined(&sheet.tools), joined(&sheet.files));
        let mut keep = self.work.prepare_cached(sql)?;
        Ok(keep.insert(params![thread, sheet.seq, role, sheet.timestamp, tools, files])? as u64)
    }

    /// Adds the places of each term to its last row, or begins another.
    fn post(&self) -> rusqlite::Result<()> {
        let sql = "SELECT first, docs, body FROM posts WHERE term = ?1 ORDER BY first DESC LIMIT 1";
        let mut last = self.work.prepare_cached(sql)?;
        let sql = "INSERT OR REPLACE INTO posts (term, first, docs, body) VALUES (?1, ?2, ?3, ?4)";
        let mut keep = self.work.prepare_cached(sql)?;
        // In the order of the table, so that each of its pages is visited once.
        let mut terms: Vec<(&&str, &Vec<Posting>)> = self.terms.iter().collect();
        terms.sort_unstable_by_key(|(term, _)| **term);
        for (term, posts) in terms {
            let read = |row: &rusqlite::Row<'_>| {
                let (first, docs): (i64, i64) = (row.get(0)?, row.get(1)?);
                Ok(PostingRow::kept(first as u64, docs as u64, row.get(2)?))
            };
            let mut row = last.query_row([term], read).optional()?;
            let mut put = |row: &PostingRow| {
                keep.execute(params![term, row.first as i64, row.docs as i64, row.body]).map(|_| ())
            };
            for post in posts {
                if let Some(full) = row.take_if(|row| row.is_full()) {
                    put(&full)?;
                }
                row.get_or_insert_with(|| PostingRow::begin(post.doc)).push(*post);
            }
            row.iter().try_for_each(&mut put)?;
        }
        Ok(())
    }
}

impl SqliteSearchIndex {
    fn fill(
        &self,
        thread: &ThreadId,
        (after, upto): (IndexedUpto, IndexedUpto),
        sheets: &[IndexedEntry],
    ) -> rusqlite::Result<Result<()>> {
        let mut db = self.db();
        let work = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let moved = |found: Seq| Ok(Err(Error::Moved { expected: after.seq, found }));
        if clearings(&work)? != self.clearings {
            return moved(0);
        }
        let known = mark_of(&work, thread)?;
        let (id, found) = match known {
            Some(known) => known,
            None => {
                let sql = "INSERT INTO threads (name, seq, part) VALUES (?1, 0, 0)";
                work.execute(sql, [thread.as_str()])?;
                (work.last_insert_rowid(), IndexedUpto::default())
            }
        };
        // Places are kept in order: an entry that is half in is finished before another begins.
        let sql = "SELECT count(*) FROM threads WHERE part > 0 AND id <> ?1";
        let unfinished: u32 = work.query_row(sql, [id], |row| row.get(0))?;
        if found != after || unfinished > 0 {
            return moved(found.seq);
        }
        let mut filling = Filling { work: &work, terms: HashMap::new(), docs: 0, words: 0 };
        for sheet in sheets {
            filling.take(id, sheet)?;
        }
        filling.post()?;
        let (docs, words) = (filling.docs, filling.words);
        work.execute("UPDATE facts SET docs = docs + ?1, words = words + ?2", [docs, words])?;
        work.execute(
            "UPDATE threads SET seq = ?2, part = ?3 WHERE id = ?1",
            params![id, upto.seq, upto.part],
        )?;
        work.commit()?;
        Ok(Ok(()))
    }
}

impl SearchIndex for SqliteSearchIndex {
    fn upto(&self, thread: &ThreadId) -> Result<IndexedUpto> {
        let found = mark_of(&self.db(), thread).map_err(|e| told(&e))?;
        Ok(found.map(|(_, mark)| mark).unwrap_or_default())
    }

    fn add(
        &mut self,
        thread: &ThreadId,
        after: IndexedUpto,
        upto: IndexedUpto,
        sheets: &[IndexedEntry],
    ) -> Result<()> {
        self.fill(thread, (after, upto), sheets).map_err(|e| told(&e))?
    }

    fn tally(&self, terms: &[String]) -> Result<TermCounts> {
        Tables(&self.db()).tally(terms).map_err(|e| told(&e))
    }

    fn hits(&self, wanted: SearchFor<'_>, filter: &SearchFilter) -> Result<Vec<(i32, SearchHit)>> {
        super::search::hits(&mut Tables(&self.db()), wanted, filter).map_err(|e| told(&e))
    }

    fn clear(&mut self) -> Result<()> {
        let done = {
            let db = self.db();
            // Unlike a filling, this must outlast a power cut.
            let _ = db.pragma_update(None, "synchronous", "FULL");
            db.execute_batch(
                "BEGIN EXCLUSIVE; DELETE FROM posts; DELETE FROM passages; DELETE FROM entries; \
                 DELETE FROM threads; UPDATE facts SET clearings = clearings + 1, docs = 0, words = 0; COMMIT;",
            )
            .map(|()| {
                // What was freed is zeroes by now; giving the room back may fail.
                let _ = db.execute_batch("VACUUM");
            })
        };
        let Err(error) = done else {
            *self = self.again()?;
            return Ok(());
        };
        let (refused, unfit) = (told(&error), Unfit::from(error));
        match (unfit, &self.path) {
            // What cannot be read cannot be emptied; it can be removed.
            (Unfit::Broken, Some(path)) => {
                remove(path)?;
                *self = Self::open(&path.clone())?;
                Ok(())
            }
            _ => {
                let _ = self.db().execute_batch("ROLLBACK");
                Err(refused)
            }
        }
    }
}

// A shelf's tables in SQLite, looked up.

type Sql<T> = rusqlite::Result<T>;

/// The tables behind one connection.
struct Tables<'a>(&'a Connection);

fn places(row: &rusqlite::Row<'_>) -> Sql<PackedPostings> {
    Ok((row.get::<_, i64>(0)? as u64, row.get(1)?))
}

/// A place as SQLite numbers it; what is further than it can number is the last.
fn number(place: u64) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}

impl IndexTables for Tables<'_> {
    type Error = rusqlite::Error;

    fn tally(&mut self, terms: &[String]) -> Sql<TermCounts> {
        let facts = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let (docs, words) = self.0.query_row("SELECT docs, words FROM facts", [], facts)?;
        let mut count = self.0.prepare_cached("SELECT sum(docs) FROM posts WHERE term = ?1")?;
        let mut holding = Vec::with_capacity(terms.len());
        for term in terms {
            let sum: Option<i64> = count.query_row([term], |row| row.get(0))?;
            holding.push(sum.unwrap_or(0) as u64);
        }
        Ok(TermCounts { docs: docs as u64, words: words as u64, holding })
    }

    fn row_after(&mut self, term: &str, after: Option<u64>) -> Sql<Option<PackedPostings>> {
        let sql = "SELECT first, body FROM posts WHERE term = ?1 AND first > ?2 ORDER BY first LIMIT 1";
        let after = after.map_or(-1, number);
        self.0.prepare_cached(sql)?.query_row(params![term, after], places).optional()
    }

    fn row_upto(&mut self, term: &str, upto: u64) -> Sql<Option<PackedPostings>> {
        let sql = "SELECT first, body FROM posts WHERE term = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1";
        self.0.prepare_cached(sql)?.query_row(params![term, number(upto)], places).optional()
    }

    fn entry(&mut self, id: u64) -> Sql<Option<StoredEntry>> {
        let sql = "SELECT t.name, e.seq, e.role, e.at, e.tools, e.files FROM entries e \
                   JOIN threads t ON t.id = e.thread WHERE e.id = ?1";
        let read = |row: &rusqlite::Row<'_>| {
            Ok(StoredEntry {
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

    fn piece(&mut self, place: u64) -> Sql<Option<StoredPassage>> {
        let sql = "SELECT at, bytes, in_output, words FROM passages WHERE id = ?1";
        let part = (place - doc(entry_of(place), 0)) as u32;
        let read = |row: &rusqlite::Row<'_>| {
            let (at, bytes, in_output) = (row.get::<_, i64>(0)? as u64, row.get(1)?, row.get(2)?);
            Ok(StoredPassage { passage: Passage { part, at, bytes, in_output }, words: row.get(3)? })
        };
        self.0.prepare_cached(sql)?.query_row([number(place)], read).optional()
    }

    fn entry_before(&mut self, id: Option<u64>) -> Sql<Option<u64>> {
        let sql = "SELECT id FROM entries WHERE id < ?1 ORDER BY id DESC LIMIT 1";
        let end = id.map_or(i64::MAX, number);
        self.0.prepare_cached(sql)?.query_row([end], |row| Ok(row.get::<_, i64>(0)? as u64)).optional()
    }

    fn beside(&mut self, (thread, seq): (&ThreadId, Seq), side: EntrySide, reach: u32) -> Sql<Vec<u64>> {
        let sql = match side {
            EntrySide::Before => {
                "SELECT e.id FROM threads t JOIN entries e ON e.thread = t.id \
                 WHERE t.name = ?1 AND e.seq < ?2 ORDER BY e.seq DESC LIMIT ?3"
            }
            EntrySide::After => {
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
