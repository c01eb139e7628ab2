//! What waits to be worked on: a row for each job, taken by who finds it first unlocked.

use super::server::{PostgresServer, values};
use super::{PostgresStore, clean, seconds};
use crate::queue::{Job, JobOutcome, JobStage, Queue, QueuedJob, TakenJob};
use crate::{Error, Holder, Result};
use komado_core::SessionId;
use std::time::Duration;
use tokio_postgres::Row;

/// Jobs of one page, where all are asked for.
const PAGE: usize = 500;

const ENQUEUE: &str = "INSERT INTO jobs (session, key, user_id, body, at, tries, why, is_dead) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
    ON CONFLICT DO NOTHING RETURNING 1";

/// Who comes at the same moment takes the next one.
const TAKE: &str = "UPDATE jobs SET holder = $1, token = nextval('job_tokens'), tries = tries + 1, \
        hidden_until = clock_timestamp() + $2::DOUBLE PRECISION * INTERVAL '1 second' \
    WHERE number = (SELECT number FROM jobs WHERE NOT is_dead \
        AND (hidden_until IS NULL OR hidden_until <= clock_timestamp()) \
        ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED) \
    RETURNING session, key, user_id, body, at, tries, why, token";

const KEEP: &str = "UPDATE jobs SET hidden_until = clock_timestamp() + $3::DOUBLE PRECISION * INTERVAL '1 second' \
    WHERE session = $1 AND token = $2 AND NOT is_dead RETURNING 1";

const DONE: &str = "DELETE FROM jobs WHERE session = $1 AND token = $2 AND NOT is_dead RETURNING 1";

const LEAVE: &str = "UPDATE jobs SET holder = NULL, token = NULL, is_dead = $3, why = $4, \
        hidden_until = clock_timestamp() + $5::DOUBLE PRECISION * INTERVAL '1 second' \
    WHERE session = $1 AND token = $2 AND NOT is_dead RETURNING 1";

const BACK: &str = "UPDATE jobs SET holder = NULL, token = NULL, hidden_until = NULL, tries = GREATEST(tries - 1, 0) \
    WHERE session = $1 AND token = $2 AND NOT is_dead RETURNING 1";

const LIST: &str = "SELECT session, key, user_id, body, at, tries, why, is_dead, holder, \
        COALESCE(hidden_until > clock_timestamp(), FALSE), number FROM jobs \
    WHERE number > COALESCE($3, (SELECT number FROM jobs WHERE session = $1), 0) ORDER BY number LIMIT $2";

const REQUEUE: &str = "UPDATE jobs SET is_dead = FALSE, tries = 0, hidden_until = NULL, holder = NULL, token = NULL \
    WHERE session = $1 AND (is_dead OR holder IS NULL OR hidden_until <= clock_timestamp()) RETURNING 1";

impl Queue for PostgresStore {
    fn adopt(&self, queued: &QueuedJob) -> Result<bool> {
        let QueuedJob { job, stage, tries, why } = queued;
        let (user, why) = (job.user.as_deref().map(clean), why.as_deref().map(clean));
        let (key, body, at) = (clean(&job.key), clean(&job.body), clean(&job.at));
        let (session, tries, is_dead) =
            (job.session.to_string(), i64::from(*tries), *stage == JobStage::Dead);
        let values = values![session, key, user, body, at, tries, why, is_dead];
        Ok(!self.server().once(ENQUEUE, values)?.is_empty())
    }

    fn take(&self, holder: &Holder, hidden: Duration) -> Result<Option<TakenJob>> {
        let holder = serde_json::to_string(holder).unwrap_or_default();
        let rows = self.server().once(TAKE, values![clean(&holder), seconds(hidden)])?;
        let read = |row: &Row| {
            let token: i64 = row.get(7);
            Ok(TakenJob { job: job(row)?, token: token as u64, tries: tries(row), why: row.get(6) })
        };
        rows.first().map(read).transpose()
    }

    fn keep(&self, taken: &TakenJob, hidden: Duration) -> Result<()> {
        let id = &taken.job.session;
        let rows = self.server().ask(KEEP, values![id.to_string(), taken.token as i64, seconds(hidden)])?;
        theirs(id, &rows)
    }

    fn finish(&self, taken: &TakenJob, outcome: &JobOutcome) -> Result<()> {
        let (id, token) = (&taken.job.session, taken.token as i64);
        let rows = match outcome {
            JobOutcome::Done => self.server().once(DONE, values![id.to_string(), token])?,
            JobOutcome::Again { pause, why } => self.server().leave(id, token, (false, why, *pause))?,
            JobOutcome::Back => self.server().once(BACK, values![id.to_string(), token])?,
            JobOutcome::Dead { why } => self.server().leave(id, token, (true, why, Duration::ZERO))?,
        };
        theirs(id, &rows)
    }

    fn jobs(&self, after_job: Option<&SessionId>, limit: usize) -> Result<Vec<QueuedJob>> {
        let (mut found, mut after): (Vec<QueuedJob>, Option<i64>) = (Vec::new(), None);
        let first = after_job.map(ToString::to_string);
        loop {
            let left = if limit == 0 { PAGE } else { (limit - found.len()).min(PAGE) };
            let rows = self.server().ask(LIST, values![first.clone(), left as i64, after])?;
            for row in &rows {
                found.push(queued(row)?);
            }
            if rows.len() < left || found.len() == limit {
                return Ok(found);
            }
            // By its number, which stays where it is when the job itself leaves.
            after = rows.last().map(|row| row.get(10));
        }
    }

    fn requeue(&self, id: &SessionId) -> Result<bool> {
        Ok(!self.server().ask(REQUEUE, values![id.to_string()])?.is_empty())
    }

    fn withdraw(&self, id: &SessionId) -> Result<bool> {
        let sql = "DELETE FROM jobs WHERE session = $1 RETURNING 1";
        Ok(!self.server().once(sql, values![id.to_string()])?.is_empty())
    }
}

impl PostgresServer {
    fn leave(&self, id: &SessionId, token: i64, end: (bool, &str, Duration)) -> Result<Vec<Row>> {
        let (is_dead, why, pause) = end;
        self.once(LEAVE, values![id.to_string(), token, is_dead, clean(why), seconds(pause)])
    }
}

fn theirs(id: &SessionId, rows: &[Row]) -> Result<()> {
    if rows.is_empty() { Err(Error::NotYours(id.clone())) } else { Ok(()) }
}

fn tries(row: &Row) -> u32 {
    u32::try_from(row.get::<_, i64>(5)).unwrap_or(u32::MAX)
}

fn job(row: &Row) -> Result<Job> {
    let session: String = row.get(0);
    Ok(Job {
        session: SessionId::new(session).map_err(|e| Error::damaged("a row of jobs", e))?,
        key: row.get(1),
        user: row.get(2),
        body: row.get(3),
        at: row.get(4),
    })
}

fn queued(row: &Row) -> Result<QueuedJob> {
    let (is_dead, holder, is_hidden): (bool, Option<&str>, bool) = (row.get(7), row.get(8), row.get(9));
    let stage = match holder {
        _ if is_dead => JobStage::Dead,
        Some(holder) if is_hidden => JobStage::Held(Holder::read(holder.as_bytes())),
        _ => JobStage::Waiting,
    };
    Ok(QueuedJob { job: job(row)?, stage, tries: tries(row), why: row.get(6) })
}
