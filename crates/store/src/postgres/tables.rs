//! The table of spawned threads, and who has words waiting.

use super::server::{StatementValues, values};
use super::{PostgresStore, clean, seq};
use crate::tables::{
    BranchFilter, BranchTable, Lessons, MOST_SPOTS, ThreadMail, TranscriptPlace, TranscriptPlaces,
};
use crate::{Error, Result};
use komado_core::thread::{Branch, ThreadStatus};
use komado_core::{Seq, SessionId, ThreadId};
use tokio_postgres::Row;

const PUT: &str = "INSERT INTO branches (session, thread, parent, depth, window_ratio, status, label, \
        chronicle_summary, held_by, told, created_at, completed_at) \
    SELECT number, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 FROM sessions WHERE uuid = $1 FOR KEY SHARE \
    ON CONFLICT (session, thread) DO UPDATE SET parent = excluded.parent, depth = excluded.depth, \
        window_ratio = excluded.window_ratio, status = excluded.status, label = excluded.label, \
        chronicle_summary = excluded.chronicle_summary, held_by = excluded.held_by, told = excluded.told, \
        created_at = excluded.created_at, completed_at = excluded.completed_at \
    RETURNING session";

/// What lists branches; the tables' own indexes know each condition.
macro_rules! listing {
    ($wanted:literal) => {
        concat!(
            "SELECT b.thread, b.parent, b.depth, b.window_ratio, b.status, b.label, b.chronicle_summary, b.held_by, \
             b.told, b.created_at, b.completed_at FROM sessions s LEFT JOIN branches b ON b.session = s.number \
             AND b.parent IS NOT NULL AND ",
            $wanted,
            " WHERE s.uuid = $1 ORDER BY b.depth, b.created_at, b.thread"
        )
    };
}

const ALL: &str = listing!("TRUE");
const UNSETTLED: &str =
    listing!("(NOT b.told OR (b.held_by IS NOT NULL AND b.status IN ('active', 'paused')))");
const UNDER: &str = listing!("b.parent = $2");

const UNSETTLE: &str = "WITH s AS (SELECT number FROM sessions WHERE uuid = $1), \
    done AS (UPDATE branches SET told = FALSE WHERE session = (SELECT number FROM s) AND parent = $2) \
    SELECT number FROM s";

const DROP: &str = "WITH s AS (SELECT number FROM sessions WHERE uuid = $1), \
    done AS (DELETE FROM branches WHERE session = (SELECT number FROM s) AND thread = $2) \
    SELECT number FROM s";

const POST: &str = "WITH s AS (SELECT number FROM sessions WHERE uuid = $1 FOR KEY SHARE), \
    done AS (INSERT INTO mail (session, to_thread, from_thread, seq) SELECT number, $2, $3, $4 FROM s \
        ON CONFLICT DO NOTHING) \
    SELECT number FROM s";

const MAIL: &str = "SELECT m.from_thread, m.seq FROM sessions s LEFT JOIN mail m \
    ON m.session = s.number AND m.to_thread = $2 WHERE s.uuid = $1 ORDER BY m.number";

const TAKEN: &str = "WITH s AS (SELECT number FROM sessions WHERE uuid = $1), \
    done AS (DELETE FROM mail WHERE session = (SELECT number FROM s) AND to_thread = $2 AND from_thread = $3 \
        AND seq <= $4) \
    SELECT number FROM s";

impl PostgresStore {
    /// Asks about a session that must be there: then there is at least one row.
    fn about(&self, id: &SessionId, sql: &'static str, values: StatementValues) -> Result<Vec<Row>> {
        let rows = self.server().ask(sql, values)?;
        if rows.is_empty() { Err(Error::NoSession(id.clone())) } else { Ok(rows) }
    }
}

impl BranchTable for PostgresStore {
    fn put_branch(&self, branch: &Branch) -> Result<()> {
        let values = values![
            branch.session.to_string(),
            branch.thread.to_string(),
            branch.parent.as_ref().map(ToString::to_string),
            i64::from(branch.depth),
            branch.window_ratio,
            branch.status.name(),
            branch.label.as_deref().map(clean),
            branch.chronicle_summary.as_deref().map(clean),
            branch.held_by.as_deref().map(clean),
            branch.told,
            clean(&branch.created_at),
            branch.completed_at.as_deref().map(clean),
        ];
        self.about(&branch.session, PUT, values).map(|_| ())
    }

    fn branches(&self, id: &SessionId, which: BranchFilter) -> Result<Vec<Branch>> {
        let rows = match which {
            BranchFilter::All => self.about(id, ALL, values![id.to_string()])?,
            BranchFilter::Unsettled => self.about(id, UNSETTLED, values![id.to_string()])?,
            BranchFilter::Under(parent) => {
                self.about(id, UNDER, values![id.to_string(), parent.to_string()])?
            }
        };
        let there = rows.iter().filter(|row| row.get::<_, Option<&str>>(0).is_some());
        there.map(|row| read(id, row)).collect()
    }

    fn unsettle(&self, id: &SessionId, parent: &ThreadId) -> Result<()> {
        self.about(id, UNSETTLE, values![id.to_string(), parent.to_string()]).map(|_| ())
    }

    fn drop_branch(&self, id: &SessionId, thread: &ThreadId) -> Result<()> {
        self.about(id, DROP, values![id.to_string(), thread.to_string()]).map(|_| ())
    }

    fn post(&self, id: &SessionId, to: &ThreadId, mail: &ThreadMail) -> Result<()> {
        let values = values![id.to_string(), to.to_string(), mail.from.to_string(), i64::from(mail.seq)];
        self.about(id, POST, values).map(|_| ())
    }

    fn mail(&self, id: &SessionId, to: &ThreadId) -> Result<Vec<ThreadMail>> {
        let rows = self.about(id, MAIL, values![id.to_string(), to.to_string()])?;
        let read = |row: &Row| {
            let from = row.get::<_, Option<String>>(0)?;
            let from = ThreadId::new(from).map_err(|e| Error::damaged(format!("the mail of {id}"), e));
            Some(from.map(|from| ThreadMail { from, seq: seq(row.get(1)) }))
        };
        rows.iter().filter_map(read).collect()
    }

    fn taken(&self, id: &SessionId, to: &ThreadId, from: &ThreadId, upto: Seq) -> Result<()> {
        let values = values![id.to_string(), to.to_string(), from.to_string(), i64::from(upto)];
        self.about(id, TAKEN, values).map(|_| ())
    }
}

fn read(id: &SessionId, row: &Row) -> Result<Branch> {
    let odd = |why: String| Error::damaged(format!("the branches of {id}"), why);
    let named = |name: String| ThreadId::new(name).map_err(|e| odd(e.to_string()));
    let status: &str = row.get(4);
    Ok(Branch {
        session: id.clone(),
        thread: named(row.get(0))?,
        parent: row.get::<_, Option<String>>(1).map(named).transpose()?,
        depth: u32::try_from(row.get::<_, i64>(2)).unwrap_or(u32::MAX),
        window_ratio: row.get(3),
        status: ThreadStatus::named(status).ok_or_else(|| odd(format!("status {status:?}")))?,
        label: row.get(5),
        chronicle_summary: row.get(6),
        held_by: row.get(7),
        told: row.get(8),
        created_at: row.get(9),
        completed_at: row.get(10),
    })
}

// Where a client's transcript may go on, and what was learned about models.

/// Moments that are noted in one statement.
const MOST: usize = 4096;

const NOTE: &str = "INSERT INTO places (name, session, thread, seq) \
    SELECT n.name, s.number, n.thread, n.seq \
    FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::BIGINT[]) WITH ORDINALITY AS n(name, uuid, thread, seq, n) \
    JOIN sessions s ON s.uuid = n.uuid ORDER BY n.n FOR KEY SHARE OF s ON CONFLICT DO NOTHING";

const SPOTS: &str = "SELECT p.name, s.uuid, p.thread, p.seq FROM places p JOIN sessions s ON s.number = p.session \
    WHERE p.name = $1 ORDER BY p.number DESC LIMIT $2";

impl TranscriptPlaces for PostgresStore {
    fn note(&self, spots: &[TranscriptPlace]) -> Result<()> {
        for some in spots.chunks(MOST) {
            let names: Vec<String> = some.iter().map(|spot| clean(&spot.name)).collect();
            let sessions: Vec<String> = some.iter().map(|spot| spot.session.to_string()).collect();
            let threads: Vec<String> = some.iter().map(|spot| spot.thread.to_string()).collect();
            let seqs: Vec<i64> = some.iter().map(|spot| i64::from(spot.seq)).collect();
            self.server().ask(NOTE, values![names, sessions, threads, seqs])?;
        }
        Ok(())
    }

    fn spots(&self, name: &str) -> Result<Vec<TranscriptPlace>> {
        let rows = self.server().ask(SPOTS, values![clean(name), MOST_SPOTS as i64])?;
        let read = |row: &Row| {
            Some(TranscriptPlace {
                name: row.get(0),
                session: SessionId::new(row.get::<_, String>(1)).ok()?,
                thread: ThreadId::new(row.get::<_, String>(2)).ok()?,
                seq: seq(row.get(3)),
            })
        };
        Ok(rows.iter().filter_map(read).collect())
    }
}

impl Lessons for PostgresStore {
    fn lesson(&self, about: &str) -> Result<Option<String>> {
        let rows = self.server().ask("SELECT lesson FROM lessons WHERE about = $1", values![clean(about)])?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    fn put_lesson(&self, about: &str, old: Option<&str>, new: &str) -> Result<bool> {
        // Asked again after a lost answer, both find the new one there.
        let rows = match old {
            None => {
                let sql = "INSERT INTO lessons VALUES ($1, $2) ON CONFLICT (about) DO UPDATE \
                    SET lesson = excluded.lesson WHERE lessons.lesson = excluded.lesson RETURNING 1";
                self.server().ask(sql, values![clean(about), clean(new)])?
            }
            Some(old) => {
                let sql =
                    "UPDATE lessons SET lesson = $2 WHERE about = $1 AND lesson IN ($2, $3) RETURNING 1";
                self.server().ask(sql, values![clean(about), clean(new), old.to_owned()])?
            }
        };
        Ok(!rows.is_empty())
    }

    fn lessons(&self) -> Result<Vec<(String, String)>> {
        let rows = self.server().ask("SELECT about, lesson FROM lessons ORDER BY about", values![])?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    fn forget(&self, about: &str) -> Result<bool> {
        let sql = "DELETE FROM lessons WHERE about = $1 RETURNING 1";
        Ok(!self.server().once(sql, values![clean(about)])?.is_empty())
    }
}
