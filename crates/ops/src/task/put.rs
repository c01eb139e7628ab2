//! A task into the queue, under a session of its own.

use super::standing::{PAUSED, Standing, TaskState, job_of};
use crate::playbook::{most_depth, right};
use crate::session::{hostname, meter};
use crate::work::folder;
use crate::{Context, Exit, Fault, Outcome};
use komado_agent::handler;
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_core::session::MetaConfig;
use komado_engine::Error as Engine;
use komado_store::{Job, Queued, Stage};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// A task that was put into the queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct QueuedTask {
    /// Its session.
    pub session: String,
    /// Its key.
    pub task: String,
    /// That it waits.
    pub state: TaskState,
    /// The command that takes it out again.
    pub undo: String,
}

/// A new session.
pub(super) fn fresh() -> Outcome<SessionId> {
    Ok(SessionId::new(uuid::Uuid::new_v4().to_string())?)
}

/// A task with paths that the worker finds, wherever it runs. What would fail when it begins is refused now.
pub(super) fn settled(context: &Context, task: Task) -> Outcome<Task> {
    let there = |path: PathBuf, what: &str| {
        path.canonicalize()
            .map_err(|why| Fault::new(Exit::NotFound, format!("the {what} {}: {why}", path.display())))
    };
    let folder = task.folder.map(|path| there(path, "folder")).transpose()?;
    let playbook = task.playbook.map(|path| there(path, "playbook")).transpose()?;
    if let Some(folder) = &folder {
        folder::check_named(context, folder)?;
    }
    if let Some(path) = &playbook {
        right(Some(path), most_depth(context))?;
    }
    Ok(Task { folder, playbook, ..task })
}

/// Puts it at the end of the queue; `None` when one with its key is there already.
pub(super) fn put(context: &Context, session: SessionId, task: Task) -> Outcome<Option<QueuedTask>> {
    let job = job(context, session, task)?;
    let is_new = context.engine.store().enqueue(&job)?;
    Ok(is_new.then(|| QueuedTask {
        session: job.session.to_string(),
        undo: format!("komado task stop {}", job.session),
        task: job.key,
        state: TaskState::Queued,
    }))
}

/// Puts it into the queue as one that rests: no worker takes it before it is let go. False when one with its key is there.
pub(super) fn put_at_rest(context: &Context, session: SessionId, task: Task) -> Outcome<bool> {
    let job = job(context, session, task)?;
    let at_rest = Queued { job, stage: Stage::Dead, tries: 0, why: Some(PAUSED.to_owned()) };
    Ok(context.engine.store().adopt(&at_rest)?)
}

fn job(context: &Context, session: SessionId, mut task: Task) -> Outcome<Job> {
    task.user = task.user.or_else(|| context.caller.user.clone()).or_else(|| context.config.user.clone());
    Ok(Job {
        session,
        key: task.name.clone(),
        user: task.user.clone(),
        body: serde_json::to_string(&task)?,
        at: context.engine.now(),
    })
}

/// Its session, made as the worker that begins it would; the model is chosen by that one.
pub(super) fn make(context: &Context, task: &Standing) -> Outcome {
    let Some(about) = task.for_tracker() else { return Ok(()) };
    let models = &context.config.models;
    let model = models.of(&models.provider).and_then(|of| of.model.clone());
    let meter = meter(context, None, model.as_deref())?.name().to_owned();
    let config = MetaConfig { meter, ..MetaConfig::default() };
    handler::make(&context.engine, &task.session, &about, config, hostname(), true)?;
    Ok(())
}

/// Opens the session again; one that is open needs no opening.
pub(super) fn reopen(context: &Context, id: &SessionId) -> Outcome {
    match context.engine.resume(id) {
        Ok(_) | Err(Engine::WrongState { .. }) => Ok(()),
        Err(other) => Err(other.into()),
    }
}

/// Why a task is not queued whose key is taken: where the other one stands, and what can be done.
pub(super) fn why_known(context: &Context, name: &str) -> Outcome<String> {
    let Some(queued) = job_of(context, name)? else {
        return Ok(format!("{name} was in the queue a moment ago: try again"));
    };
    let anew = format!("`komado task stop {name}` takes it out");
    Ok(match Standing::of_job(context, queued)?.state() {
        state @ (TaskState::Failed | TaskState::Dead) => {
            let state = if state == TaskState::Dead { "was laid aside" } else { "failed" };
            format!("{name} {state} before, and is kept: `komado task retry {name}` tries it again, {anew}")
        }
        TaskState::Paused | TaskState::Pausing => {
            format!("{name} rests: `komado task resume {name}` lets it go on, {anew}")
        }
        TaskState::Running => format!("{name} is worked on: `komado task show {name}` shows it, {anew}"),
        TaskState::Retry => {
            format!("{name} waits to be tried again: `komado task retry {name}` does so now, {anew}")
        }
        TaskState::Queued => {
            format!("{name} is in the queue already: `komado task show {name}` shows it, {anew}")
        }
        state => format!(
            "{name} is {}, and its tracker was not told yet: `komado task retry {name}` tells it",
            state.name()
        ),
    })
}
