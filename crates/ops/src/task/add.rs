//! Put tasks into the queue: one, those of a file, or what waits at the trackers.

use super::standing::{PAUSED, TaskStanding, TaskState, job_of};
use super::{by_people, check_may_change};
use crate::playbook::{most_depth, right};
use crate::session::{AGENT, hostname, meter};
use crate::work::{folder, open_tracker};
use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, Route};
use komado_agent::handler;
use komado_agent::source::{self, TaskSource};
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_core::amount::count;
use komado_core::session::{MetaConfig, TaskKey};
use komado_engine::Error as Engine;
use komado_provider::Cancel;
use komado_store::{Job, JobStage, QueuedJob};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Characters of a text that become its title.
const TITLE: usize = 80;
/// Characters of a key that is refused that are shown.
const SHOWN: usize = 40;
/// The longest name that a key gives, in characters.
const MOST_KEY: usize = 200;

/// Put a task into the queue: a worker takes it and works on it in a session of its own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct AddTask {
    /// What is to be done
    #[schemars(length(min = 1), example = &"Fix the login page")]
    pub text: String,
    /// One line about it; the beginning of the text when left out
    pub title: Option<String>,
    /// Its name; the queue holds one task of a name, and a later one continues the session of the earlier
    pub key: Option<String>,
    /// The user the task belongs to
    pub user: Option<String>,
    /// The folder to work in; one of its own when left out. Only a caller on this machine names one.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
    /// The playbook to follow; the settings' when left out. Only a caller on this machine names one.
    #[serde(skip)]
    pub playbook: Option<PathBuf>,
}

impl Operation for AddTask {
    const ABOUT: OperationLabel = OperationLabel::add("task_add", "Add a task");
    const INTERFACES: Interfaces = by_people("task add", Route::make("tasks", "/tasks"));
    type Output = QueuedTask;

    fn run(self, context: &OperationContext) -> OpResult<QueuedTask> {
        check_may_change(context)?;
        let Self { text, title, key: named, user, folder, playbook } = self;
        if text.trim().is_empty() {
            return Err(OpFault::usage("there is no task: write it"));
        }
        let session = fresh()?;
        let key = key(named.as_deref(), &session)?;
        let title = title.unwrap_or_else(|| first_line(&text));
        let task = settled(context, Task { title, text, user, folder, playbook, ..Task::of(key) })?;
        let name = task.name.clone();
        match put(context, session, task)? {
            Some(queued) => Ok(queued),
            None => Err(OpFault::refused(why_known(context, &name)?)),
        }
    }

    fn location(queued: &QueuedTask) -> Option<String> {
        Some(format!("/tasks/{}", queued.session))
    }
}

/// The key as it was given: an issue's, or a name; the session's own when there is none.
fn key(given: Option<&str>, session: &SessionId) -> OpResult<TaskKey> {
    match given {
        None => Ok(Task::local(session.as_str())),
        Some(text) if text.starts_with("github:") || text.starts_with("gitlab:") => {
            TaskKey::parse(text).map_err(OpFault::usage)
        }
        Some(text) => {
            let name = text.strip_prefix("local:").unwrap_or(text).trim();
            if name.is_empty() || name.chars().any(char::is_control) {
                return Err(OpFault::usage(format!(
                    "not a task key: {text:?}: write a name, such as fix-login"
                )));
            }
            let length = name.chars().count();
            if length > MOST_KEY {
                return Err(OpFault::usage(format!(
                    "the task key {:?}… has {length} characters: write at most {MOST_KEY}",
                    name.chars().take(SHOWN).collect::<String>()
                )));
            }
            Ok(Task::local(name))
        }
    }
}

fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim_start_matches('#').trim();
    let cut: String = line.chars().take(TITLE).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}

/// Put the tasks of a file into the queue; all of it is looked at before any of it is queued.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct AddTasks {
    /// The file: JSON lines, a JSON array, or text
    pub file: PathBuf,
    /// Whose tasks they are, in place of what the file says
    pub user: Option<String>,
    /// The folder to work in, in place of what the file says
    pub folder: Option<PathBuf>,
    /// The playbook to follow, in place of what the file says
    pub playbook: Option<PathBuf>,
}

/// Tasks that were put into the queue; those whose keys are there already are not among them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct AddedTasks {
    /// They.
    pub items: Vec<QueuedTask>,
}

impl Operation for AddTasks {
    const ABOUT: OperationLabel = OperationLabel::add("task_add_file", "Add the tasks of a file");
    const INTERFACES: Interfaces =
        Interfaces::only_cli("task add --file", "it reads a file of this machine; `POST /tasks` adds a task")
            .not_mcp("it reads a file of this machine, and tasks are added by people");
    type Output = AddedTasks;

    fn run(self, context: &OperationContext) -> OpResult<AddedTasks> {
        check_may_change(context)?;
        let name = self.file.display().to_string();
        let text = std::fs::read_to_string(&self.file).map_err(|why| OpFault::unread(&name, &why))?;
        let tasks = source::read(&name, &text).map_err(komado_agent::Error::from)?;
        let settle = |task: Task| {
            let (user, folder) = (self.user.clone().or(task.user), self.folder.clone().or(task.folder));
            let playbook = self.playbook.clone().or(task.playbook);
            settled(context, Task { user, folder, playbook, ..task })
        };
        let tasks = tasks.into_iter().map(settle).collect::<OpResult<Vec<_>>>()?;
        let mut items: Vec<QueuedTask> = Vec::new();
        for task in tasks {
            let key = task.name.clone();
            let queued = fresh().and_then(|session| put(context, session, task));
            let queued = queued.map_err(|fault| match items.len() {
                0 => fault,
                n => {
                    let before = count(n as u64, "task");
                    fault.and(format!("what came before it is in the queue, {before}: `komado task list`"))
                }
            })?;
            match queued {
                Some(queued) => items.push(queued),
                None => context.note(why_known(context, &key)?),
            }
        }
        match items.is_empty() {
            true => Err(OpFault::refused(format!("{name}: all of it is in the queue already"))),
            false => Ok(AddedTasks { items }),
        }
    }
}

/// Put labelled issues from GitHub and GitLab into the queue.
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
    const ABOUT: OperationLabel = OperationLabel::add("task_fetch", "Fetch tasks from trackers");
    const INTERFACES: Interfaces = Interfaces::only_cli(
        "task fetch",
        "it waits for trackers to answer; a worker fetches by itself: `komado task work --fetch`",
    )
    .not_mcp("what is worked on is for people to say, who set a label at the tracker");
    type Output = FetchedTasks;

    fn run(self, context: &OperationContext) -> OpResult<FetchedTasks> {
        self.until(context, &Cancel::default())
    }
}

impl FetchTasks {
    /// Does it until `cancel` is said.
    pub fn until(self, context: &OperationContext, cancel: &Cancel) -> OpResult<FetchedTasks> {
        check_may_change(context)?;
        let only = self.source.as_deref();
        let trackers = &context.config.agent.trackers;
        let wanted: Vec<_> =
            trackers.iter().filter(|tracker| only.is_none_or(|name| tracker.kind.name() == name)).collect();
        if wanted.is_empty() {
            let name = only.unwrap_or("github");
            return Err(OpFault::usage(format!(
                "no tracker to fetch from: set {name}.repos in the settings, such as [ann/tool]; `komado admin config` lists them"
            )));
        }
        let mut fetched = FetchedTasks::default();
        for tracker in wanted {
            from(context, &mut *open_tracker(context, tracker, cancel)?, &mut fetched)?;
        }
        Ok(fetched)
    }
}

fn from(context: &OperationContext, source: &mut dyn TaskSource, fetched: &mut FetchedTasks) -> OpResult {
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
fn take_in(context: &OperationContext, task: Task, fetched: &mut FetchedTasks) -> OpResult {
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

fn is_failed(queued: &QueuedJob) -> bool {
    queued.stage == JobStage::Dead && queued.why.as_deref() != Some(PAUSED)
}

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
pub(super) fn fresh() -> OpResult<SessionId> {
    Ok(SessionId::new(uuid::Uuid::new_v4().to_string())?)
}

/// A task with paths that the worker finds, wherever it runs. What would fail when it begins is refused now.
pub(super) fn settled(context: &OperationContext, task: Task) -> OpResult<Task> {
    let there = |path: PathBuf, what: &str| {
        path.canonicalize().map_err(|why| OpFault::not_found(format!("the {what} {}: {why}", path.display())))
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
pub(super) fn put(
    context: &OperationContext,
    session: SessionId,
    task: Task,
) -> OpResult<Option<QueuedTask>> {
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
pub(super) fn put_at_rest(context: &OperationContext, session: SessionId, task: Task) -> OpResult<bool> {
    let job = job(context, session, task)?;
    let at_rest = QueuedJob { job, stage: JobStage::Dead, tries: 0, why: Some(PAUSED.to_owned()) };
    Ok(context.engine.store().adopt(&at_rest)?)
}

fn job(context: &OperationContext, session: SessionId, mut task: Task) -> OpResult<Job> {
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
pub(super) fn make(context: &OperationContext, task: &TaskStanding) -> OpResult {
    let Some(about) = task.for_tracker() else { return Ok(()) };
    let models = &context.config.models;
    let model = models.of(&models.provider).and_then(|of| of.model.clone());
    let meter = meter(context, None, model.as_deref())?.name().to_owned();
    let config = MetaConfig { meter, agent: Some(AGENT.to_owned()), ..MetaConfig::default() };
    handler::make(&context.engine, &task.session, &about, config, hostname(), true)?;
    Ok(())
}

/// Opens the session again; one that is open needs no opening.
pub(super) fn reopen(context: &OperationContext, id: &SessionId) -> OpResult {
    match context.engine.resume(id) {
        Ok(_) | Err(Engine::WrongState { .. }) => Ok(()),
        Err(other) => Err(other.into()),
    }
}

/// Why a task is not queued whose key is taken: where the other one stands, and what can be done.
pub(super) fn why_known(context: &OperationContext, name: &str) -> OpResult<String> {
    let Some(queued) = job_of(context, name)? else {
        return Ok(format!("{name} was in the queue a moment ago: try again"));
    };
    let anew = format!("`komado task stop {name}` takes it out");
    Ok(match TaskStanding::of_job(context, queued)?.state() {
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
