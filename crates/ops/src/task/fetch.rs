//! Put what waits at the trackers into the queue.

use super::check_may_change;
use super::put::{QueuedTask, fresh, put};
use super::standing::{PAUSED, job_of};
use crate::work::open_tracker;
use crate::{Context, Effect, Fault, Interfaces, Offer, Operation, Outcome};
use komado_agent::source::Source;
use komado_agent::task::Task;
use komado_provider::Cancel;
use komado_store::{Queued, Stage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Put the issues that wait at GitHub and GitLab into the queue.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct FetchTasks {
    /// Only from this tracker: github or gitlab
    pub source: Option<String>,
}

/// What was fetched.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct FetchedTasks {
    /// New tasks.
    pub queued: Vec<QueuedTask>,
    /// Tasks that were there.
    pub known: u64,
}

impl Operation for FetchTasks {
    const NAME: &'static str = "task_fetch";
    const TITLE: &'static str = "Fetch tasks from trackers";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces = Interfaces {
        cli: Offer::As("task fetch"),
        http: Offer::Not(
            "it waits for trackers to answer; a worker fetches by itself: `komado work --fetch`",
        ),
        mcp: Offer::Not("what is worked on is for people to say, who set a label at the tracker"),
    };
    type Output = FetchedTasks;

    fn run(self, context: &Context) -> Outcome<FetchedTasks> {
        self.until(context, &Cancel::default())
    }
}

impl FetchTasks {
    /// Does it until `cancel` is said.
    pub fn until(self, context: &Context, cancel: &Cancel) -> Outcome<FetchedTasks> {
        check_may_change(context)?;
        let only = self.source.as_deref();
        let trackers = &context.config.agent.trackers;
        let wanted: Vec<_> =
            trackers.iter().filter(|tracker| only.is_none_or(|name| tracker.kind.name() == name)).collect();
        if wanted.is_empty() {
            let name = only.unwrap_or("github");
            return Err(Fault::usage(format!(
                "no tracker to fetch from: set {name}.repos in the settings, such as [ann/tool]; `komado config` lists them"
            )));
        }
        let mut fetched = FetchedTasks::default();
        for tracker in wanted {
            from(context, &mut *open_tracker(context, tracker, cancel)?, &mut fetched)?;
        }
        Ok(fetched)
    }
}

fn from(context: &Context, source: &mut dyn Source, fetched: &mut FetchedTasks) -> Outcome {
    let mut went_wrong = Ok(());
    let asked = source.waiting(&mut |task| {
        went_wrong = take_in(context, task, fetched);
        went_wrong.is_ok()
    });
    went_wrong?;
    Ok(asked.map_err(komado_agent::Error::from)?)
}

/// Queues one that waits. Its label says that it is wanted, also when it was laid aside before: then it begins anew, with
/// what the earlier session came to. One that rests goes on only when it is resumed.
fn take_in(context: &Context, task: Task, fetched: &mut FetchedTasks) -> Outcome {
    let mut put_in = put(context, fresh()?, task.clone())?;
    if put_in.is_none()
        && let Some(failed) = job_of(context, &task.name)?.filter(is_failed)
    {
        context.engine.store().withdraw(&failed.job.session)?;
        put_in = put(context, fresh()?, task)?;
    }
    match put_in {
        Some(new) => fetched.queued.push(new),
        None => fetched.known += 1,
    }
    Ok(())
}

fn is_failed(queued: &Queued) -> bool {
    queued.stage == Stage::Dead && queued.why.as_deref() != Some(PAUSED)
}
