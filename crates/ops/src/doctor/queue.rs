//! What is in the queue that does not belong there?
//!
//! Looked at through the store, whichever it is, and never changed: nothing else says what waits. A job that waits, that a
//! worker holds, or that was laid aside because it failed is where it should be. One whose session ended is too for a
//! while, since a tracker may be away; but not for days.

use super::{Checked, Finding, Unreadable};
use crate::clock::days_ago;
use crate::{Context, Outcome};
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_core::session::{Session, State};
use komado_store::{Query, Queued, Stage};

/// Days after which an ended session should have left the queue.
const LONG: u32 = 1;

/// Adds every job that is not as it should be; only that of session `only`, when there is one.
pub(super) fn check(context: &Context, only: Option<&SessionId>, checked: &mut Checked) -> Outcome {
    let long_ago = days_ago(LONG);
    for queued in context.engine.jobs() {
        let queued = match queued {
            Ok(queued) => queued,
            Err(error) if error.is_away() => return Err(error.into()),
            Err(error) => {
                checked.counts.unreadable_jobs += 1;
                checked.items.push(Finding::Queue { queue: Unreadable { error: error.to_string() } });
                return Ok(());
            }
        };
        checked.counts.jobs += 1;
        if only.is_none_or(|only| *only == queued.job.session) {
            look(context, &queued, &long_ago, checked)?;
        }
    }
    Ok(())
}

fn look(context: &Context, queued: &Queued, long_ago: &str, checked: &mut Checked) -> Outcome {
    let (id, task) = (&queued.job.session, queued.job.key.clone());
    if let Err(why) = serde_json::from_str::<Task>(&queued.job.body) {
        checked.counts.unreadable_jobs += 1;
        let why = format!("its job is no task: {why}; `komado task stop {id}` takes it out of the queue");
        checked.items.push(Finding::Job { job: id.to_string(), task, finding: None, error: Some(why) });
        return Ok(());
    }
    let query = Query { id: Some(id.clone()), ..Query::default() };
    let row = context.engine.store().sessions(&query)?.pop();
    if let Some(why) = row.and_then(|row| stale(queued, &row, long_ago)) {
        checked.counts.stale_jobs += 1;
        checked.items.push(Finding::Job { job: id.to_string(), task, finding: Some(why), error: None });
    }
    Ok(())
}

/// Why a job should have left the queue, and what to do.
fn stale(queued: &Queued, row: &Session, long_ago: &str) -> Option<String> {
    let since = row.completed_at.as_deref().filter(|at| row.status.is_ended() && *at < long_ago)?;
    let (state, id) = (row.status.name(), &queued.job.session);
    let wayout = match (&queued.stage, row.status) {
        // The worker that holds it is about to tell its end; one that failed is kept until a person decides.
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
