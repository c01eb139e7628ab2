//! What waits to be worked on.
//!
//! At least once: a job is hidden while a worker has it, and is there again when that worker was not heard of for too
//! long. Each taking has a token; who was too slow finds that theirs is no longer good. What failed too often is laid
//! aside and kept. The order is that of coming, and a job that is put back goes to its old place once its pause is over.

use crate::error::{IoContext, odd, of_system};
use crate::files::{file_at, make_folder, private};
use crate::{Error, Holder, Result, locked};
use komado_core::SessionId;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Params, Row, params};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Something to work on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The session it is worked on in; each job has its own.
    pub session: SessionId,
    /// What it is about, such as `github:ann/tool/issue/27`: of two with the same key only one is in the queue.
    pub key: String,
    /// Whose it is.
    pub user: Option<String>,
    /// What the worker needs to know, as JSON.
    pub body: String,
    /// When it came (RFC 3339).
    pub at: String,
}

/// A job that a worker took.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TakenJob {
    /// The job.
    #[serde(flatten)]
    pub job: Job,
    /// Shows that it is theirs.
    pub token: u64,
    /// How often it was taken, this time included.
    pub tries: u32,
    /// Why it came back the last time.
    pub why: Option<String>,
}

/// How work on a job ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JobOutcome {
    /// Well: it leaves the queue.
    Done,
    /// To be tried again, not before this pause is over.
    Again {
        /// The pause.
        pause: Duration,
        /// Why.
        why: String,
    },
    /// Not at all: it is there again at once, as if it had not been taken this time.
    Back,
    /// Never to be tried again by itself: it is laid aside.
    Dead {
        /// Why.
        why: String,
    },
}

/// Where a job is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JobStage {
    /// It waits.
    Waiting,
    /// A worker has it.
    Held(Holder),
    /// It was laid aside.
    Dead,
}

/// A job in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueuedJob {
    /// The job.
    pub job: Job,
    /// Where it is. One whose holder was not heard of for too long waits.
    pub stage: JobStage,
    /// How often it was taken.
    pub tries: u32,
    /// Why it came back or was laid aside.
    pub why: Option<String>,
}

/// Jobs in the order they came.
pub trait Queue: Send + Sync {
    /// Puts a job at the end as it stood in another queue, with its tries and why it came back: laid aside where it was,
    /// waiting where it was not. False when one with its key or of its session is in the queue, laid aside or not.
    fn adopt(&self, queued: &QueuedJob) -> Result<bool>;

    /// The same for a job that was never tried.
    fn enqueue(&self, job: &Job) -> Result<bool> {
        self.adopt(&QueuedJob { job: job.clone(), stage: JobStage::Waiting, tries: 0, why: None })
    }

    /// Takes the first job that waits, and hides it for `hidden`.
    fn take(&self, holder: &Holder, hidden: Duration) -> Result<Option<TakenJob>>;

    /// Hides a job for `hidden` from now. [`Error::NotYours`] when it was taken by another, or is
    /// no longer in the queue.
    fn keep(&self, taken: &TakenJob, hidden: Duration) -> Result<()>;

    /// Ends the work on a job. [`Error::NotYours`] as above; then nothing is changed.
    fn finish(&self, taken: &TakenJob, outcome: &JobOutcome) -> Result<()>;

    /// The jobs in the queue, in order: those after the one of session `after`, at most `limit` (0 for all).
    fn jobs(&self, after: Option<&SessionId>, limit: usize) -> Result<Vec<QueuedJob>>;

    /// Lets a job that was laid aside, or waits for its pause to be over, be taken now, as if it had never been taken.
    /// False when there is no such job, or a worker has it.
    fn requeue(&self, id: &SessionId) -> Result<bool>;

    /// Takes a job out, whichever worker has it; false when there is none.
    fn withdraw(&self, id: &SessionId) -> Result<bool>;
}

// The queue in SQLite: in memory, or as `queue.db` in the folder of a file store, for every process that uses it.
//
// The file is not an index: nothing else says what waits, so it is a file of its own that no rebuild touches, and each change is synced
// before it is acknowledged. Each is one statement, which takes the file's own lock: two processes never take the same
// job. The clock is the file's, so to speak: all who use it are on one machine.

/// A token is set while a worker has the job; a worker that was too slow finds another one, or none.
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS jobs (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL UNIQUE,
    user TEXT,
    body TEXT NOT NULL,
    at TEXT NOT NULL,
    hidden_until INTEGER NOT NULL DEFAULT 0,
    holder TEXT,
    token INTEGER,
    tries INTEGER NOT NULL DEFAULT 0,
    why TEXT,
    dead INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS idx_jobs_alive ON jobs(place) WHERE dead = 0;
";

/// Version of the file.
const VERSION: u32 = 1;

/// How long the file is waited for while another process changes it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Before the file is opened once more.
const PAUSE: Duration = Duration::from_millis(10);

/// Nothing is hidden for longer than a hundred years.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Milliseconds of now.
const NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";

const COLUMNS: &str = "session, key, user, body, at, tries, why";

/// A store whose queue is one of these.
pub(crate) trait SqliteQueueStore: Send + Sync {
    fn line(&self) -> &SqliteQueue;
}

/// The queue; in memory without a path.
#[derive(Default)]
pub(crate) struct SqliteQueue {
    path: Option<PathBuf>,
    open: Mutex<Option<Open>>,
}

struct Open {
    db: Connection,
    /// Which file it is, on which device.
    file: Option<(u64, u64)>,
}

impl SqliteQueue {
    /// The queue in the file at `path`, which is made when something is put in.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path: Some(path), open: Mutex::default() }
    }

    /// Runs `run` on the queue, which is made when missing.
    fn with<T>(&self, run: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut kept = locked(&self.open);
        let file = || self.path.as_deref().map_or(Ok(None), file_at);
        let now = file()?;
        // One that is gone, or another by now, would take jobs that no process finds again; it is closed before the next opens.
        let is_there = now.is_some() || self.path.is_none();
        let open = match kept.take().filter(|open| is_there && open.file == now) {
            Some(open) => open,
            None => Open { db: open(self.path.as_deref())?, file: file()? },
        };
        let done = run(&kept.insert(open).db);
        done.map_err(|e| refused(self.place(), &e))
    }

    fn place(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new("memory"))
    }

    /// The same where there is one. Nothing waits where there is none, and looking makes none.
    fn on<T: Default>(&self, run: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        if self.path.as_ref().is_none_or(|path| path.exists()) { self.with(run) } else { Ok(T::default()) }
    }

    /// Changes a job that is still theirs: `?1` is its session, `?2` the token.
    fn change_taken(&self, taken: &TakenJob, sql: &str, rest: &[&dyn rusqlite::ToSql]) -> Result<()> {
        let (session, token) = (taken.job.session.as_str(), taken.token.cast_signed());
        let values: Vec<&dyn rusqlite::ToSql> =
            [&session as &dyn rusqlite::ToSql, &token].into_iter().chain(rest.iter().copied()).collect();
        match self.on(|db| execute(db, sql, &values[..]))? {
            0 => Err(Error::NotYours(taken.job.session.clone())),
            _ => Ok(()),
        }
    }
}

fn open(path: Option<&Path>) -> Result<Connection> {
    let place = path.unwrap_or(Path::new("memory"));
    if let Some(path) = path {
        make_folder(path.parent().unwrap_or(path))?;
        if !path.exists() {
            private().open(path).tried("make", path)?;
        }
    }
    let begun = Instant::now();
    // Of two that make the file at once SQLite refuses one without waiting.
    let (db, version) = loop {
        match prepare(path) {
            Err(error) if is_busy(&error) && begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            done => break done.map_err(|e| refused(place, &e))?,
        }
    };
    if version > VERSION {
        let why = format!("it has version {version}, this komado reads up to {VERSION}; use a newer komado");
        return Err(Error::Refused { place: place.display().to_string(), why });
    }
    Ok(db)
}

fn prepare(path: Option<&Path>) -> rusqlite::Result<(Connection, u32)> {
    let db = path.map_or_else(Connection::open_in_memory, Connection::open)?;
    db.busy_timeout(PATIENCE)?;
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > VERSION {
        return Ok((db, version));
    }
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    // What a job says may be private, and is gone with it.
    db.pragma_update(None, "secure_delete", "ON")?;
    if version < VERSION {
        db.execute_batch(SCHEMA)?;
        db.pragma_update(None, "user_version", VERSION)?;
    }
    Ok((db, VERSION))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn refused(path: &Path, error: &rusqlite::Error) -> Error {
    let place = path.display().to_string();
    match is_busy(error) {
        true => Error::away(&place, "another process holds it".to_owned()),
        false => of_system(path, error).unwrap_or_else(|| {
            let advice = "put it back from a copy, or move it away to begin with an empty queue";
            Error::Refused { place, why: format!("{error}; {advice}") }
        }),
    }
}

/// A time as it is counted in the file.
fn millis(time: Duration) -> i64 {
    i64::try_from(time.min(LONGEST).as_millis()).unwrap_or(i64::MAX)
}

fn execute(db: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
    db.prepare_cached(sql)?.execute(values)
}

fn read_job(row: &Row<'_>) -> rusqlite::Result<Job> {
    Ok(Job {
        session: SessionId::new(row.get::<_, String>("session")?).map_err(|e| odd(0, e))?,
        key: row.get("key")?,
        user: row.get("user")?,
        body: row.get("body")?,
        at: row.get("at")?,
    })
}

fn read_taken(row: &Row<'_>) -> rusqlite::Result<TakenJob> {
    let token: i64 = row.get("token")?;
    let (tries, why) = (row.get("tries")?, row.get("why")?);
    Ok(TakenJob { job: read_job(row)?, token: token.cast_unsigned(), tries, why })
}

fn read_queued(row: &Row<'_>) -> rusqlite::Result<QueuedJob> {
    let holder: Option<String> = row.get("holder")?;
    let held = match holder.filter(|_| row.get("is_hidden").unwrap_or(false)) {
        Some(holder) => Some(serde_json::from_str(&holder).map_err(|e| odd(0, e))?),
        None => None,
    };
    let stage = match held {
        _ if row.get("dead")? => JobStage::Dead,
        Some(holder) => JobStage::Held(holder),
        None => JobStage::Waiting,
    };
    Ok(QueuedJob { job: read_job(row)?, stage, tries: row.get("tries")?, why: row.get("why")? })
}

impl<S: SqliteQueueStore> Queue for S {
    fn adopt(&self, queued: &QueuedJob) -> Result<bool> {
        let sql = "INSERT OR IGNORE INTO jobs (session, key, user, body, at, tries, why, dead) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let QueuedJob { job, stage, tries, why } = queued;
        let (session, is_dead) = (job.session.as_str(), *stage == JobStage::Dead);
        let values = params![session, job.key, job.user, job.body, job.at, tries, why, is_dead];
        Ok(self.line().with(|db| execute(db, sql, values))? > 0)
    }

    fn take(&self, holder: &Holder, hidden: Duration) -> Result<Option<TakenJob>> {
        let sql = format!(
            "UPDATE jobs SET token = random(), holder = ?1, hidden_until = {NOW} + ?2, tries = tries + 1 \
             WHERE place = (SELECT place FROM jobs WHERE dead = 0 AND hidden_until <= {NOW} ORDER BY place LIMIT 1) \
             RETURNING {COLUMNS}, token"
        );
        let holder = serde_json::to_string(holder).unwrap_or_default();
        self.line().on(|db| {
            let mut statement = db.prepare_cached(&sql)?;
            statement.query_row(params![holder, millis(hidden)], read_taken).optional()
        })
    }

    fn keep(&self, taken: &TakenJob, hidden: Duration) -> Result<()> {
        let sql = format!("UPDATE jobs SET hidden_until = {NOW} + ?3 WHERE session = ?1 AND token = ?2");
        self.line().change_taken(taken, &sql, &[&millis(hidden)])
    }

    fn finish(&self, taken: &TakenJob, outcome: &JobOutcome) -> Result<()> {
        match outcome {
            JobOutcome::Done => {
                self.line().change_taken(taken, "DELETE FROM jobs WHERE session = ?1 AND token = ?2", &[])
            }
            JobOutcome::Again { pause, why } => {
                let sql = format!(
                    "UPDATE jobs SET token = NULL, holder = NULL, hidden_until = {NOW} + ?3, why = ?4 \
                     WHERE session = ?1 AND token = ?2"
                );
                self.line().change_taken(taken, &sql, &[&millis(*pause), why])
            }
            JobOutcome::Back => {
                let sql = "UPDATE jobs SET token = NULL, holder = NULL, hidden_until = 0, tries = MAX(tries - 1, 0) \
                           WHERE session = ?1 AND token = ?2";
                self.line().change_taken(taken, sql, &[])
            }
            JobOutcome::Dead { why } => {
                let sql = "UPDATE jobs SET token = NULL, holder = NULL, dead = 1, why = ?3 \
                           WHERE session = ?1 AND token = ?2";
                self.line().change_taken(taken, sql, &[why])
            }
        }
    }

    fn jobs(&self, after: Option<&SessionId>, limit: usize) -> Result<Vec<QueuedJob>> {
        let sql = format!(
            "SELECT {COLUMNS}, holder, dead, hidden_until > {NOW} AS is_hidden FROM jobs \
             WHERE place > COALESCE((SELECT place FROM jobs WHERE session = ?1), 0) ORDER BY place LIMIT ?2"
        );
        let limit = if limit == 0 { -1 } else { i64::try_from(limit).unwrap_or(-1) };
        self.line().on(|db| {
            let mut statement = db.prepare_cached(&sql)?;
            let rows = statement.query_map(params![after.map(SessionId::as_str), limit], read_queued)?;
            rows.collect()
        })
    }

    fn requeue(&self, id: &SessionId) -> Result<bool> {
        let sql = format!(
            "UPDATE jobs SET dead = 0, tries = 0, hidden_until = 0, holder = NULL, token = NULL \
             WHERE session = ?1 AND (dead = 1 OR token IS NULL OR hidden_until <= {NOW})"
        );
        Ok(self.line().on(|db| execute(db, &sql, [id.as_str()]))? > 0)
    }

    fn withdraw(&self, id: &SessionId) -> Result<bool> {
        Ok(self.line().on(|db| execute(db, "DELETE FROM jobs WHERE session = ?1", [id.as_str()]))? > 0)
    }
}
