//! Check every session and the queue, and make again what can be made again. A store on a server also tells how it is
//! doing, and how long it takes to say so.
//!
//! The queue is looked at through the store, whichever it is, and never changed: nothing else says what waits. A job that waits,
//! that a worker holds, or that was laid aside because it failed is where it should be. One whose session ended is too for a
//! while, since a tracker may be away; but not for days.

use crate::address::AtSession;
use crate::clock::days_ago;
use crate::{Interfaces, OpResult, Operation, OperationContext, OperationLabel, OperationProgress};
use komado_agent::task::Task;
use komado_core::session::{Session, State};
use komado_core::{Address, BadId, SessionId};
use komado_engine::Error;
use komado_engine::export::unfinished;
use komado_store::{JobStage, OpenMode, QueuedJob, SessionQuery, StoreHealthFigures};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Check sessions, queue and store, and repair what can be rebuilt from the journals.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct Doctor {
    /// Only this session
    #[arg(value_parser = address)]
    #[schemars(length(max = 300))]
    pub session: Option<String>,
    /// Rebuild tasks.db from the folders, and each session's recall.db from its journals
    #[arg(long)]
    #[serde(skip)]
    pub rebuild: bool,
}

/// An address, as it is written.
fn address(text: &str) -> Result<String, BadId> {
    text.parse::<Address>().map(|_| text.to_owned())
}

/// What was found.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CheckResult {
    /// What is to be known, in the order it was found.
    pub items: Vec<CheckFinding>,
    /// How much was looked at.
    #[serde(flatten)]
    pub counts: CheckCounts,
    /// Rows of the table of sessions, where it was made again.
    #[serde(skip)]
    pub rebuilt: Option<u64>,
    /// Where the sessions are kept, for a caller on this machine.
    #[serde(skip)]
    pub kept_in: Option<String>,
}

/// How much was looked at, and how much of it is not as it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct CheckCounts {
    /// Sessions that were checked.
    pub sessions: u64,
    /// What was put right, or was not as it should be.
    pub findings: u64,
    /// Sessions that cannot be read.
    pub unreadable: u64,
    /// Jobs in the queue, as far as it can be read.
    pub jobs: u64,
    /// Jobs that no worker will bring to an end.
    pub stale_jobs: u64,
    /// Jobs that cannot be read, and the queue itself.
    pub unreadable_jobs: u64,
}

/// Something that is to be known.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum CheckFinding {
    /// How a store on a server is doing.
    Store {
        /// Its own figures.
        store: StoreHealth,
    },
    /// Something that was not as it should be.
    Repaired {
        /// What.
        finding: String,
    },
    /// A session that cannot be read.
    Session {
        /// Its id.
        session: String,
        /// Why.
        error: String,
    },
    /// The queue, which cannot be read.
    Queue {
        /// What is wrong with it.
        queue: UnreadableQueue,
    },
    /// A job of the queue.
    Job {
        /// Its session.
        job: String,
        /// What it is about.
        task: String,
        /// Why it should have left the queue, and what to do.
        #[serde(skip_serializing_if = "Option::is_none")]
        finding: Option<String>,
        /// Why it cannot be read, and what to do.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

/// Why something cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct UnreadableQueue {
    /// Why.
    pub error: String,
}

/// How a store is doing, as it says itself.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct StoreHealth {
    /// Its figures.
    #[serde(flatten)]
    pub vitals: StoreHealthFigures,
    /// How long it took to say so, in milliseconds.
    pub round_trip_ms: f64,
}

impl Operation for Doctor {
    const ABOUT: OperationLabel = OperationLabel::read("doctor", "Check everything");
    const INTERFACES: Interfaces = Interfaces::only_cli(
        "admin doctor",
        "it puts right what it can as it looks; the operator of a store runs it",
    );
    type Output = CheckResult;

    fn run(self, context: &OperationContext) -> OpResult<CheckResult> {
        context.check_sees_all()?;
        context.report(|| {
            let mut checked = CheckResult {
                items: Vec::new(),
                counts: CheckCounts::default(),
                rebuilt: None,
                kept_in: context.kept_in(),
            };
            match &context.files {
                Some(files) => {
                    if self.rebuild {
                        checked.rebuilt = Some(files.rebuild()?.sessions);
                    }
                    files.check_base()?;
                }
                None => checked.items.push(CheckFinding::Store { store: health(context)? }),
            }
            let session = self.session;
            let only = session.map(|session| context.find(&AtSession { session: Some(session) }));
            let only = only.transpose()?.map(|found| found.session);
            let broken = check_all(context, only.as_ref(), self.rebuild, &mut checked)?;
            let found = context.files.as_ref().map(|files| files.take_findings()).unwrap_or_default();
            checked.counts.findings = found.len() as u64;
            let repaired = found.into_iter().map(|finding| CheckFinding::Repaired { finding });
            checked.items.extend(repaired.chain(broken));
            check_queue(context, only.as_ref(), &mut checked)?;
            Ok(checked)
        })
    }
}

/// Asks the store twice and times the second answer: the first may have to connect.
fn health(context: &OperationContext) -> OpResult<StoreHealth> {
    context.engine.store().vitals()?;
    let begun = Instant::now();
    let vitals = context.engine.store().vitals()?;
    Ok(StoreHealth { vitals, round_trip_ms: milliseconds(begun.elapsed()) })
}

fn milliseconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 100_000.0).round() / 100.0
}

/// Checks the session that was named, or all; gives those that cannot be read.
fn check_all(
    context: &OperationContext,
    only: Option<&SessionId>,
    rebuild: bool,
    checked: &mut CheckResult,
) -> OpResult<Vec<CheckFinding>> {
    let (mut broken, mut total, mut wanted) = (Vec::new(), None, Ok(()));
    let mut one = |id: &SessionId, total: Option<u64>| -> Result<(), Error> {
        match check(context, id, rebuild) {
            // Nothing is wrong with the session, and the next would be waited for as long.
            Err(Error::Store(error)) if error.is_away() => return Err(error.into()),
            Err(why) => {
                broken.push(CheckFinding::Session { session: id.to_string(), error: why.to_string() })
            }
            Ok(()) => {}
        }
        checked.counts.sessions += 1;
        if wanted.is_ok() {
            wanted = context.progress(OperationProgress::Checking { done: checked.counts.sessions, total });
        }
        Ok(())
    };
    match (only, &context.files) {
        (Some(id), _) => one(id, Some(1))?,
        // Also folders that the table does not know.
        (None, Some(files)) => {
            let folders = files.folders()?;
            total = Some(folders.len() as u64);
            folders.iter().try_for_each(|id| one(id, total))?;
        }
        (None, None) => context.engine.each_session(SessionQuery::default(), |session| {
            one(&SessionId::new(session.meta.uuid.as_str())?, total)
        })?,
    }
    wanted?;
    checked.counts.unreadable = broken.len() as u64;
    Ok(broken)
}

/// Checks a session against its journals, a folder also against the table, then brings what is derived up to date.
fn check(context: &OperationContext, id: &SessionId, rebuild: bool) -> Result<(), Error> {
    if let Some(files) = &context.files {
        files.check(id)?;
    }
    for header in context.engine.store().threads(id)? {
        let mut thread = match context.engine.open(id, &header.thread, OpenMode::Amend) {
            Ok(thread) => thread,
            // The process that writes it keeps it right.
            Err(Error::Store(komado_store::Error::Busy { .. })) => continue,
            Err(error) => return Err(error),
        };
        thread.settle()?;
        for note in thread.notes() {
            context.note(format!("{id}/{}: {note}", header.thread));
        }
    }
    if rebuild {
        context.engine.reindex(id, &mut |_, _| {})?;
    }
    if let Some(why) = unfinished(&context.engine.session(id)?) {
        context.note(format!("session {id}: {why}"));
    }
    Ok(())
}

/// Days after which an ended session should have left the queue.
const LONG: u32 = 1;

/// Adds every job that is not as it should be; only that of session `only`, when there is one.
fn check_queue(context: &OperationContext, only: Option<&SessionId>, checked: &mut CheckResult) -> OpResult {
    let long_ago = days_ago(LONG);
    for queued in context.engine.jobs() {
        let queued = match queued {
            Ok(queued) => queued,
            Err(error) if error.is_away() => return Err(error.into()),
            Err(error) => {
                checked.counts.unreadable_jobs += 1;
                checked
                    .items
                    .push(CheckFinding::Queue { queue: UnreadableQueue { error: error.to_string() } });
                return Ok(());
            }
        };
        checked.counts.jobs += 1;
        if only.is_none_or(|only| *only == queued.job.session) {
            check_job(context, &queued, &long_ago, checked)?;
        }
    }
    Ok(())
}

fn check_job(
    context: &OperationContext,
    queued: &QueuedJob,
    long_ago: &str,
    checked: &mut CheckResult,
) -> OpResult {
    let (id, task) = (&queued.job.session, queued.job.key.clone());
    if let Err(why) = serde_json::from_str::<Task>(&queued.job.body) {
        checked.counts.unreadable_jobs += 1;
        let why = format!("its job is not a task: {why}; `komado task stop {id}` takes it out of the queue");
        checked.items.push(CheckFinding::Job { job: id.to_string(), task, finding: None, error: Some(why) });
        return Ok(());
    }
    let query = SessionQuery { id: Some(id.clone()), ..SessionQuery::default() };
    let row = context.engine.store().sessions(&query)?.pop();
    if let Some(why) = row.and_then(|row| stale(queued, &row, long_ago)) {
        checked.counts.stale_jobs += 1;
        checked.items.push(CheckFinding::Job { job: id.to_string(), task, finding: Some(why), error: None });
    }
    Ok(())
}

/// Why a job should have left the queue, and what to do.
fn stale(queued: &QueuedJob, row: &Session, long_ago: &str) -> Option<String> {
    let since = row.completed_at.as_deref().filter(|at| row.status.is_ended() && *at < long_ago)?;
    let (state, id) = (row.status.name(), &queued.job.session);
    let wayout = match (&queued.stage, row.status) {
        // The worker that holds it is about to tell its end; one that failed is kept until a person decides.
        (JobStage::Held(_), _) | (JobStage::Dead, State::Failed) => return None,
        (JobStage::Waiting, _) => "a worker (`komado task work`) tells its end and takes it out".to_owned(),
        (JobStage::Dead, _) => format!("`komado task retry {id}` lets a worker tell its end"),
    };
    let at = since.get(..16).unwrap_or(since);
    Some(format!(
        "{state} since {at}, and its job is still in the queue: {wayout}; `komado task stop {id}` takes it out without a \
         word at its tracker"
    ))
}
