//! What is in the queue that does not belong there?
//!
//! Looked at through the store, whichever it is, and never changed: nothing else says what waits. A job that waits, that a
//! worker holds, or that was laid aside because it failed is where it should be. One whose session ended is too for a
//! while, since a tracker may be away; but not for days.

use crate::app::App;
use crate::clock::days_ago;
use crate::fault::Outcome;
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_core::session::{Session, State};
use komado_store::{Query, Queued, Stage};
use serde_json::json;

/// Days after which an ended session should have left the queue.
const LONG: u32 = 1;

/// What was seen.
#[derive(Default)]
pub(super) struct Looked {
    /// Jobs in the queue, as far as it can be read.
    pub(super) jobs: u64,
    /// Jobs that nobody will bring to an end.
    pub(super) stale: u64,
    /// Jobs that cannot be read, and the queue itself.
    pub(super) broken: u64,
}

/// Tells of every job that is not as it should be; only of that of session `only`, when there is one.
pub(super) fn check(app: &mut App, only: Option<&SessionId>) -> Outcome<Looked> {
    let mut looked = Looked::default();
    let long_ago = days_ago(LONG);
    let engine = app.context.engine.clone();
    for queued in engine.jobs() {
        let queued = match queued {
            Ok(queued) => queued,
            Err(error) if error.is_away() => return Err(error.into()),
            Err(error) => {
                looked.broken += 1;
                return tell_unreadable(app, &error.to_string()).map(|()| looked);
            }
        };
        looked.jobs += 1;
        if only.is_none_or(|only| *only == queued.job.session) {
            look(app, &queued, &long_ago, &mut looked)?;
        }
    }
    Ok(looked)
}

fn look(app: &mut App, queued: &Queued, long_ago: &str, looked: &mut Looked) -> Outcome {
    if let Err(why) = serde_json::from_str::<Task>(&queued.job.body) {
        looked.broken += 1;
        let id = &queued.job.session;
        let why = format!("its job is no task: {why}; `komado task stop {id}` takes it out of the queue");
        return tell(app, queued, "error", &why);
    }
    let query = Query { id: Some(queued.job.session.clone()), ..Query::default() };
    let row = app.context.engine.store().sessions(&query)?.pop();
    match row.and_then(|row| stale(queued, &row, long_ago)) {
        Some(why) => {
            looked.stale += 1;
            tell(app, queued, "finding", &why)
        }
        None => Ok(()),
    }
}

/// Why a job should have left the queue, and what to do.
fn stale(queued: &Queued, row: &Session, long_ago: &str) -> Option<String> {
    let since = row.completed_at.as_deref().filter(|at| row.status.is_ended() && *at < long_ago)?;
    let (state, id) = (row.status.name(), &queued.job.session);
    let wayout = match (&queued.stage, row.status) {
        // Whoever holds it is about to tell its end; one that failed is kept until somebody decides.
        (Stage::Held(_), _) | (Stage::Dead, State::Failed) => return None,
        (Stage::Waiting, _) => "a worker (`komado work`) tells its end and takes it out".to_owned(),
        (Stage::Dead, _) => format!("`komado task retry {id}` lets a worker tell its end"),
    };
    let at = since.get(..16).unwrap_or(since);
    Some(format!(
        "{state} since {at}, and its job is still in the queue: {wayout}; `komado task stop {id}` takes it out without a \
         word at its tracker"
    ))
}

fn tell(app: &mut App, queued: &Queued, what: &str, why: &str) -> Outcome {
    let (id, task) = (&queued.job.session, &queued.job.key);
    if app.paper.json {
        return app.paper.json(&json!({ "job": id.as_str(), "task": task, what: why }));
    }
    app.paper.line(format!("{id} ({task}): {why}"))
}

fn tell_unreadable(app: &mut App, why: &str) -> Outcome {
    if app.paper.json {
        return app.paper.json(&json!({ "queue": { "error": why } }));
    }
    app.paper.line(format!("the queue cannot be read: {why}"))
}
