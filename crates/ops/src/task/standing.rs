//! Where a task stands: what the queue and the table of sessions say of it together; and which task a request means.

use crate::{Naming, OpFault, OpResult, OperationContext};
use komado_agent::handler::{TaskMark, kept};
use komado_agent::task::Task;
use komado_core::session::{Session, State};
use komado_core::{SessionId, ThreadId};
use komado_store::{JobStage, OpenMode, QueuedJob, SessionQuery};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// Why the job of a task that rests is laid aside.
pub(super) const PAUSED: &str = "paused";

/// Where a task is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It waits to be taken.
    Queued,
    /// It waits to be tried again.
    Retry,
    /// It is worked on.
    Running,
    /// It is worked on, and rests when its step is done.
    Pausing,
    /// It rests until it is resumed.
    Paused,
    /// It is worked on, and out of the queue: its worker stops.
    Stopping,
    /// It is done.
    Completed,
    /// It failed.
    Failed,
    /// It was stopped.
    Stopped,
    /// It was laid aside before it was begun, or without an end.
    Dead,
    /// Nothing says where it is.
    Unknown,
}

komado_core::names! {
    /// One word for it.
    TaskState {
        Queued = "queued", Retry = "retry", Running = "running", Pausing = "pausing", Paused = "paused",
        Stopping = "stopping", Completed = "completed", Failed = "failed", Stopped = "stopped", Dead = "dead",
        Unknown = "unknown",
    }
}

impl From<State> for TaskState {
    fn from(state: State) -> Self {
        match state {
            State::Queued => Self::Queued,
            State::Running => Self::Running,
            State::Paused => Self::Paused,
            State::Completed => Self::Completed,
            State::Failed => Self::Failed,
            State::Stopped => Self::Stopped,
        }
    }
}

/// A task as lists show it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct TaskRow {
    /// Its session.
    pub session: String,
    /// Its key, such as `github:ann/tool/issue/27`.
    pub task: String,
    /// Where it is on its way.
    pub state: TaskState,
    /// One line about it.
    pub title: Option<String>,
    /// Where people look at it.
    pub url: Option<String>,
    /// Whose it is.
    pub user: Option<String>,
    /// How often it was taken, while it is in the queue.
    pub tries: Option<u32>,
    /// Why it is where it is.
    pub why: Option<String>,
    /// The process that works on it, and its machine.
    pub worker: Option<String>,
    /// Turns of the model.
    pub turns: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Tokens it took.
    pub tokens: u64,
    /// When it was put into the queue, while it is there.
    pub queued_at: Option<String>,
    /// When work on it began.
    pub started_at: Option<String>,
    /// When it ended.
    pub completed_at: Option<String>,
}

/// A task: its job, its session, or both.
pub(super) struct TaskStanding {
    pub(super) session: SessionId,
    pub(super) key: String,
    pub(super) queued: Option<QueuedJob>,
    pub(super) row: Option<Session>,
    /// What its journal says of it, where its job is gone and that was asked for.
    mark: Option<TaskMark>,
    /// What its job said, where it was noted before it went.
    kept: Option<Task>,
}

impl TaskStanding {
    pub(super) fn of_job(context: &OperationContext, queued: QueuedJob) -> OpResult<Self> {
        let query = SessionQuery { id: Some(queued.job.session.clone()), ..SessionQuery::default() };
        let row = context.engine.store().sessions(&query)?.pop();
        let (session, key) = (queued.job.session.clone(), queued.job.key.clone());
        Ok(Self { session, key, queued: Some(queued), row, mark: None, kept: None })
    }

    pub(super) fn of_row(row: Session) -> OpResult<Self> {
        let session = SessionId::new(row.meta.uuid.as_str())?;
        let key = Task::name_of(&row.meta.task_key);
        Ok(Self { session, key, queued: None, row: Some(row), mark: None, kept: None })
    }

    /// With what its journal says of it, when no job says it.
    pub(super) fn remembered(mut self, context: &OperationContext) -> OpResult<Self> {
        if self.queued.is_none() {
            let root = context.engine.open(&self.session, &ThreadId::root(), OpenMode::Read)?;
            self.mark = TaskMark::of(&root)?;
            self.kept = kept(&root)?;
        }
        Ok(self)
    }

    /// For its tracker, which needs no more than its key.
    pub(super) fn for_tracker(&self) -> Option<Task> {
        let bare = || self.row.as_ref().map(|row| Task::of(row.meta.task_key.clone()));
        self.task().or_else(bare)
    }

    /// As its journal remembers it, for a new job. Where only its mark is there, its words are in the conversation. `None`
    /// when it was never begun.
    pub(super) fn remembered_task(&self) -> Option<Task> {
        self.kept.clone().or_else(|| self.marked_task())
    }

    fn marked_task(&self) -> Option<Task> {
        let (row, mark) = (self.row.as_ref()?, self.mark.clone()?);
        Some(Task {
            title: mark.title.unwrap_or_default(),
            url: mark.url,
            folder: mark.folder,
            clone_url: mark.clone_url,
            playbook: mark.playbook,
            last_comment: mark.seen,
            user: row.meta.user.clone(),
            ..Task::of(row.meta.task_key.clone())
        })
    }

    /// Where it is on its way.
    pub(super) fn state(&self) -> TaskState {
        let row = self.row.as_ref().map(|row| row.status);
        match self.queued.as_ref().map(|queued| (&queued.stage, queued.tries, queued.why.as_deref())) {
            None => row.map_or(TaskState::Unknown, TaskState::from),
            Some((JobStage::Held(_), ..)) if row == Some(State::Paused) => TaskState::Pausing,
            Some((JobStage::Held(_), ..)) => TaskState::Running,
            Some((JobStage::Dead, _, Some(PAUSED))) => TaskState::Paused,
            Some((JobStage::Dead, ..)) => {
                row.filter(|state| state.is_ended()).map_or(TaskState::Dead, TaskState::from)
            }
            Some((JobStage::Waiting, ..)) if row == Some(State::Paused) => TaskState::Paused,
            Some((JobStage::Waiting, 0, _)) => TaskState::Queued,
            Some((JobStage::Waiting, ..)) => TaskState::Retry,
        }
    }

    /// What the job carries, or carried when it was noted.
    pub(super) fn task(&self) -> Option<Task> {
        let carried = self.queued.as_ref().and_then(|queued| serde_json::from_str(&queued.job.body).ok());
        carried.or_else(|| self.kept.clone())
    }

    /// The folder it works in and the playbook it follows, where it names them.
    pub(super) fn named_paths(&self) -> (Option<PathBuf>, Option<PathBuf>) {
        let task = self.task().or_else(|| self.marked_task());
        task.map_or((None, None), |task| (task.folder, task.playbook))
    }

    /// True when its session has not ended.
    pub(super) fn is_open(&self) -> bool {
        self.row.as_ref().is_some_and(|row| !row.status.is_ended())
    }

    /// True while a worker holds the job.
    pub(super) fn is_held(&self) -> bool {
        self.queued.as_ref().is_some_and(|queued| matches!(queued.stage, JobStage::Held(_)))
    }

    /// As lists show it.
    pub(super) fn shown(&self) -> TaskRow {
        let (queued, row) = (self.queued.as_ref(), self.row.as_ref());
        let (task, mark) = (self.task(), self.mark.as_ref());
        let (title, url) = task.map_or((None, None), |task| (Some(task.title), task.url));
        let counters = row.map(|row| row.counters).unwrap_or_default();
        let worker = queued.and_then(|queued| match &queued.stage {
            JobStage::Held(holder) => Some(format!("{}@{}", holder.pid, holder.host)),
            _ => None,
        });
        let why = queued.and_then(|queued| queued.why.clone());
        let user = queued.and_then(|queued| queued.job.user.clone());
        TaskRow {
            session: self.session.to_string(),
            task: self.key.clone(),
            state: self.state(),
            title: title.or_else(|| mark?.title.clone()),
            url: url.or_else(|| mark?.url.clone()),
            user: user.or_else(|| row?.meta.user.clone()),
            tries: queued.map(|queued| queued.tries),
            why: why.or_else(|| row?.error_message.clone()),
            worker,
            turns: counters.llm_call_count,
            tool_calls: counters.tool_call_count,
            tokens: counters.total_tokens,
            queued_at: queued.map(|queued| queued.job.at.clone()),
            started_at: row.and_then(|row| row.started_at.clone()),
            completed_at: row.and_then(|row| row.completed_at.clone()),
        }
    }
}

/// The job with this key.
pub(super) fn job_of(context: &OperationContext, key: &str) -> OpResult<Option<QueuedJob>> {
    let mut with_key =
        context.engine.jobs().filter(|queued| queued.as_ref().map_or(true, |queued| queued.job.key == key));
    Ok(with_key.next().transpose()?)
}

/// Most names that an ambiguous one is told to fit.
const MOST: usize = 5;
/// Characters from which on a name is rather a session's than a key.
const ID: usize = 8;

/// What was given, and how it may be meant.
struct Named<'a> {
    given: &'a str,
    is_whole: bool,
}

impl Named<'_> {
    fn is_session(&self, id: &str) -> bool {
        if self.is_whole { id == self.given } else { id.starts_with(self.given) }
    }

    fn is_key(&self, key: &str) -> bool {
        key == self.given || key.strip_prefix("local:") == Some(self.given)
    }
}

/// The task that is named, among those the caller may see. In the queue is looked first; of several sessions with the same
/// key the newest is meant.
pub(super) fn find(context: &OperationContext, given: &str) -> OpResult<TaskStanding> {
    if given.trim().is_empty() {
        return Err(OpFault::usage("which task? give its session, a beginning of it, or its key"));
    }
    let named = Named { given, is_whole: context.naming == Naming::Exact };
    let mut fits = Vec::new();
    for queued in context.engine.jobs() {
        let queued = queued?;
        let is_it = named.is_key(&queued.job.key) || named.is_session(queued.job.session.as_str());
        if is_it && context.caller.may_see_job(&queued.job) {
            fits.push(TaskStanding::of_job(context, queued)?);
        }
        if fits.len() > MOST {
            break;
        }
    }
    if fits.is_empty() {
        fits = sessions(context, &named)?;
    }
    only(&named, fits)
}

/// What is long enough to be a session's name is looked for among those that begin so, and only then among all.
fn sessions(context: &OperationContext, named: &Named<'_>) -> OpResult<Vec<TaskStanding>> {
    let given = named.given;
    let is_id = given.len() >= ID && given.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let by_id = if is_id { among(context, named, Some(given.to_owned()))? } else { Vec::new() };
    if by_id.is_empty() { among(context, named, None) } else { Ok(by_id) }
}

fn among(
    context: &OperationContext,
    named: &Named<'_>,
    prefix: Option<String>,
) -> OpResult<Vec<TaskStanding>> {
    let (mut by_id, mut by_key) = (Vec::new(), None);
    let query = SessionQuery { prefix, user: context.caller.only_user(), ..SessionQuery::default() };
    context.engine.each_session(query, |row| {
        if !row.meta.task_key.is_task() || !context.caller.may_see(row) {
            return Ok(());
        }
        if named.is_session(&row.meta.uuid) && by_id.len() <= MOST {
            by_id.push(row.clone());
        }
        if named.is_key(&Task::name_of(&row.meta.task_key)) {
            by_key = Some(row.clone());
        }
        Ok(())
    })?;
    by_key.into_iter().chain(by_id).map(TaskStanding::of_row).collect()
}

fn only(named: &Named<'_>, mut fits: Vec<TaskStanding>) -> OpResult<TaskStanding> {
    let given = named.given;
    let exact = |task: &TaskStanding| task.session.as_str() == given || named.is_key(&task.key);
    if let Some(exact) = fits.iter().position(exact) {
        return Ok(fits.swap_remove(exact));
    }
    if fits.len() > 1 {
        let names: Vec<&str> = fits.iter().take(MOST).map(|task| task.session.as_str()).collect();
        return Err(OpFault::not_found(format!(
            "{given:?} fits several tasks: {}; write more of it",
            names.join(", ")
        )));
    }
    fits.pop().ok_or_else(|| {
        OpFault::not_found(format!("there is no task {given:?}; `komado task list --all` lists them"))
    })
}
