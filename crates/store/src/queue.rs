//! What waits to be worked on.
//!
//! At least once: a job is hidden while somebody works on it, and is there again when they have not been heard of for too
//! long. Each taking has a token; who was too slow finds that theirs is no longer good. What failed too often is laid
//! aside and kept. The order is that of coming, and a job that is put back goes to its old place once its pause is over.

mod sql;

pub(crate) use sql::{HasJobs, Jobs};

use crate::{Holder, Result};
use komado_core::SessionId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

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

/// A job that somebody took.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Taken {
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
pub enum Outcome {
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
pub enum Stage {
    /// It waits.
    Waiting,
    /// Somebody works on it.
    Held(Holder),
    /// It was laid aside.
    Dead,
}

/// A job in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Queued {
    /// The job.
    pub job: Job,
    /// Where it is. One whose holder was not heard of for too long waits.
    pub stage: Stage,
    /// How often it was taken.
    pub tries: u32,
    /// Why it came back or was laid aside.
    pub why: Option<String>,
}

/// Jobs in the order they came.
pub trait Queue: Send + Sync {
    /// Puts a job at the end as it stood in another queue, with its tries and why it came back: laid aside where it was,
    /// waiting where it was not. False when one with its key or of its session is in the queue, laid aside or not.
    fn adopt(&self, queued: &Queued) -> Result<bool>;

    /// The same for a job that nobody has tried.
    fn enqueue(&self, job: &Job) -> Result<bool> {
        self.adopt(&Queued { job: job.clone(), stage: Stage::Waiting, tries: 0, why: None })
    }

    /// Takes the first job that waits, and hides it for `hidden`.
    fn take(&self, holder: &Holder, hidden: Duration) -> Result<Option<Taken>>;

    /// Hides a job for `hidden` from now. [`Error::NotYours`](crate::Error::NotYours) when it was taken by another, or is
    /// no longer in the queue.
    fn keep(&self, taken: &Taken, hidden: Duration) -> Result<()>;

    /// Ends the work on a job. [`Error::NotYours`](crate::Error::NotYours) as above; then nothing is changed.
    fn finish(&self, taken: &Taken, outcome: &Outcome) -> Result<()>;

    /// The jobs in the queue, in order: those after the one of session `after`, at most `limit` (0 for all).
    fn jobs(&self, after: Option<&SessionId>, limit: usize) -> Result<Vec<Queued>>;

    /// Lets a job that was laid aside, or waits for its pause to be over, be taken now, as if it had never been taken.
    /// False when there is no such job, or somebody works on it.
    fn requeue(&self, id: &SessionId) -> Result<bool>;

    /// Takes a job out, whoever works on it; false when there is none.
    fn withdraw(&self, id: &SessionId) -> Result<bool>;
}
