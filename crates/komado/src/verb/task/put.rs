//! A task into the queue, under a session of its own.

use super::standing::{PAUSED, Standing, job_of};
use crate::app::App;
use crate::fault::Outcome;
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_core::session::TaskKey;
use komado_store::{Job, Queued, Stage};

/// What became of a task that was to be queued.
pub(super) enum Put {
    /// It waits, under this session.
    Queued(SessionId),
    /// One with its key is there already.
    Known,
}

/// A new session.
pub(super) fn fresh() -> Outcome<SessionId> {
    Ok(SessionId::new(uuid::Uuid::new_v4().to_string())?)
}

/// The key of a task that came from no tracker.
pub(super) fn local(name: &str) -> TaskKey {
    TaskKey {
        task_source: "local".into(),
        owner: String::new(),
        repo: String::new(),
        task_type: "task".into(),
        task_id: name.to_owned(),
    }
}

/// A task of which only the key is known.
pub(super) fn bare(key: TaskKey) -> Task {
    Task {
        name: name(&key),
        key,
        title: String::new(),
        text: String::new(),
        user: None,
        url: None,
        clone_url: None,
        folder: None,
        playbook: None,
        last_comment: None,
    }
}

/// What a task is called.
pub(super) fn name(key: &TaskKey) -> String {
    match key.task_source.as_str() {
        "local" => format!("local:{}", key.task_id),
        _ => key.to_string(),
    }
}

/// Puts it at the end of the queue.
pub(super) fn put(app: &App, session: SessionId, task: Task) -> Outcome<Put> {
    let job = job(app, session, task)?;
    Ok(if app.context.engine.store().enqueue(&job)? { Put::Queued(job.session) } else { Put::Known })
}

/// Puts it into the queue as one that rests: nobody takes it before it is let go. False when one with its key is there.
pub(super) fn put_at_rest(app: &App, session: SessionId, task: Task) -> Outcome<bool> {
    let job = job(app, session, task)?;
    let at_rest = Queued { job, stage: Stage::Dead, tries: 0, why: Some(PAUSED.to_owned()) };
    Ok(app.context.engine.store().adopt(&at_rest)?)
}

fn job(app: &App, session: SessionId, mut task: Task) -> Outcome<Job> {
    task.user = task.user.or_else(|| app.context.config.user.clone());
    Ok(Job {
        session,
        key: task.name.clone(),
        user: task.user.clone(),
        body: serde_json::to_string(&task)?,
        at: app.context.engine.now(),
    })
}

/// Why a task is not queued whose key is taken: where the other one stands, and what can be done.
pub(super) fn why_known(app: &App, name: &str) -> Outcome<String> {
    let Some(queued) = job_of(app, name)? else {
        return Ok(format!("{name} was in the queue a moment ago: try again"));
    };
    let anew = format!("`komado task stop {name}` takes it out");
    Ok(match Standing::of_job(app, queued)?.state() {
        state @ ("failed" | "dead") => {
            let state = if state == "dead" { "was laid aside" } else { "failed" };
            format!("{name} {state} before, and is kept: `komado task retry {name}` tries it again, {anew}")
        }
        "paused" | "pausing" => format!("{name} rests: `komado task resume {name}` lets it go on, {anew}"),
        "running" => format!("{name} is worked on: `komado task show {name}` shows it, {anew}"),
        "retry" => format!("{name} waits to be tried again: `komado task retry {name}` does so now, {anew}"),
        "queued" => format!("{name} is in the queue already: `komado task show {name}` shows it, {anew}"),
        state => format!(
            "{name} is {state}, and its tracker was not told yet: `komado task retry {name}` tells it"
        ),
    })
}
