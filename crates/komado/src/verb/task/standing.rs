//! Where a task stands: what the queue and the table of sessions say of it together.

use super::put::{bare, name};
use crate::app::App;
use crate::fault::Outcome;
use komado_agent::handler::{Mark, kept};
use komado_agent::task::Task;
use komado_core::session::{Session, State};
use komado_core::{SessionId, ThreadId};
use komado_store::{Mode, Query, Queued, Stage};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Why the job of a task that rests is laid aside.
pub(super) const PAUSED: &str = "paused";
/// Jobs of the queue that are looked at in one go.
const PAGE: usize = 500;

/// A task: its job, its session, or both.
pub(super) struct Standing {
    pub(super) session: SessionId,
    pub(super) key: String,
    pub(super) queued: Option<Queued>,
    pub(super) row: Option<Session>,
    /// What its journal says of it, where its job is gone and somebody asked.
    mark: Option<Mark>,
    /// What its job said, where it was noted before it went.
    kept: Option<Task>,
}

impl Standing {
    pub(super) fn of_job(app: &App, queued: Queued) -> Outcome<Self> {
        let query = Query { id: Some(queued.job.session.clone()), ..Query::default() };
        let row = app.context.engine.store().sessions(&query)?.pop();
        let (session, key) = (queued.job.session.clone(), queued.job.key.clone());
        Ok(Self { session, key, queued: Some(queued), row, mark: None, kept: None })
    }

    pub(super) fn of_row(row: Session) -> Outcome<Self> {
        let session = SessionId::new(row.meta.uuid.as_str())?;
        let key = name(&row.meta.task_key);
        Ok(Self { session, key, queued: None, row: Some(row), mark: None, kept: None })
    }

    /// With what its journal says of it, when no job says it.
    pub(super) fn remembered(mut self, app: &App) -> Outcome<Self> {
        if self.queued.is_none() {
            let root = app.context.engine.open(&self.session, &ThreadId::root(), Mode::Read)?;
            self.mark = Mark::of(&root).map_err(super::fault)?;
            self.kept = kept(&root).map_err(super::fault)?;
        }
        Ok(self)
    }

    /// One line about it.
    pub(super) fn title(&self) -> Option<String> {
        let noted = || self.mark.as_ref().and_then(|mark| mark.title.clone());
        self.task().map(|task| task.title).or_else(noted)
    }

    /// Where people look at it.
    pub(super) fn url(&self) -> Option<String> {
        let noted = || self.mark.as_ref().and_then(|mark| mark.url.clone());
        self.task().and_then(|task| task.url).or_else(noted)
    }

    /// For its tracker, which needs no more than its key.
    pub(super) fn for_tracker(&self) -> Option<Task> {
        let bared = || self.row.as_ref().map(|row| bare(row.meta.task_key.clone()));
        self.task().or_else(bared)
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
            ..bare(row.meta.task_key.clone())
        })
    }

    /// One word for it.
    pub(super) fn state(&self) -> &'static str {
        let row = self.row.as_ref().map(|row| row.status);
        match self.queued.as_ref().map(|queued| (&queued.stage, queued.tries, queued.why.as_deref())) {
            None => row.map_or("unknown", State::name),
            Some((Stage::Held(_), ..)) if row == Some(State::Paused) => "pausing",
            Some((Stage::Held(_), ..)) => "running",
            Some((Stage::Dead, _, Some(PAUSED))) => "paused",
            Some((Stage::Dead, ..)) => row.filter(|state| state.is_ended()).map_or("dead", State::name),
            Some((Stage::Waiting, ..)) if row == Some(State::Paused) => "paused",
            Some((Stage::Waiting, 0, _)) => "queued",
            Some((Stage::Waiting, ..)) => "retry",
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

    /// True while somebody holds the job.
    pub(super) fn is_held(&self) -> bool {
        self.queued.as_ref().is_some_and(|queued| matches!(queued.stage, Stage::Held(_)))
    }

    /// Why it is where it is.
    pub(super) fn why(&self) -> Option<String> {
        let queued = self.queued.as_ref().and_then(|queued| queued.why.clone());
        queued.or_else(|| self.row.as_ref().and_then(|row| row.error_message.clone()))
    }

    /// Who works on it.
    pub(super) fn worker(&self) -> Option<String> {
        match self.queued.as_ref().map(|queued| &queued.stage) {
            Some(Stage::Held(holder)) => Some(format!("{}@{}", holder.pid, holder.host)),
            _ => None,
        }
    }

    pub(super) fn tries(&self) -> Option<u32> {
        self.queued.as_ref().map(|queued| queued.tries)
    }

    /// For programs.
    pub(super) fn as_json(&self) -> Value {
        let counters = self.row.as_ref().map(|row| row.counters).unwrap_or_default();
        json!({
            "session": self.session.as_str(),
            "task": self.key,
            "state": self.state(),
            "title": self.title(),
            "url": self.url(),
            "user": self.user(),
            "tries": self.tries(),
            "why": self.why(),
            "worker": self.worker(),
            "turns": counters.llm_call_count,
            "tool_calls": counters.tool_call_count,
            "tokens": counters.total_tokens,
            "queued_at": self.queued.as_ref().map(|queued| &queued.job.at),
            "started_at": self.row.as_ref().and_then(|row| row.started_at.as_ref()),
            "completed_at": self.row.as_ref().and_then(|row| row.completed_at.as_ref()),
        })
    }

    fn user(&self) -> Option<&String> {
        let queued = self.queued.as_ref().and_then(|queued| queued.job.user.as_ref());
        queued.or_else(|| self.row.as_ref().and_then(|row| row.meta.user.as_ref()))
    }
}

/// True for a session that works on a task.
pub(super) fn is_task(row: &Session) -> bool {
    let key = &row.meta.task_key;
    key.task_source != "local" || key.task_type == "task"
}

/// Every job in the queue, a page at a time; `each` says whether to go on.
pub(crate) fn each_job(app: &App, mut each: impl FnMut(Queued) -> Outcome<bool>) -> Outcome {
    let mut after: Option<SessionId> = None;
    loop {
        let page = app.context.engine.store().jobs(after.as_ref(), PAGE)?;
        after = page.last().map(|last| last.job.session.clone());
        let is_last = page.len() < PAGE;
        for queued in page {
            if !each(queued)? {
                return Ok(());
            }
        }
        if is_last {
            return Ok(());
        }
    }
}

/// The job with this key.
pub(super) fn job_of(app: &App, key: &str) -> Outcome<Option<Queued>> {
    let mut found = None;
    each_job(app, |queued| {
        let is_it = queued.job.key == key;
        if is_it {
            found = Some(queued);
        }
        Ok(!is_it)
    })?;
    Ok(found)
}
