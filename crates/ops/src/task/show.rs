//! Which tasks are there, and everything about one.

use super::everywhere;
use super::standing::{TaskRow, TaskStanding, find};
use crate::session::newest;
use crate::work::folder;
use crate::{Interfaces, OpResult, Operation, OperationContext, OperationLabel, ResultPage};
use komado_agent::handler::TaskMark;
use komado_core::amount::count;
use komado_core::journal::{Close, Entry};
use komado_core::session::Session;
use komado_core::{Kind, ThreadId};
use komado_engine::Thread;
use komado_store::{OpenMode, SessionQuery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

/// Tasks that are not in the queue, unless a request says otherwise.
const USUAL: u32 = 50;
/// Tasks that a model is told of.
const FOR_A_MODEL: usize = 50;

/// List tasks: those in the queue, in its order, then those that only their session tells of.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct ListTasks {
    /// Include tasks that ended
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
    /// At most so many that are not in the queue, the newest
    #[arg(short = 'n', long, default_value_t = USUAL)]
    #[serde(default = "usual")]
    #[schemars(range(max = 1000))]
    pub limit: u32,
}

const fn usual() -> u32 {
    USUAL
}

/// Tasks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct TaskList {
    /// They.
    #[serde(flatten)]
    pub page: ResultPage<TaskRow>,
    /// True when those that ended are among them.
    #[serde(skip)]
    pub all: bool,
}

impl Operation for ListTasks {
    const ABOUT: OperationLabel = OperationLabel::read("tasks", "List tasks");
    const INTERFACES: Interfaces = everywhere("task list", "/tasks");
    type Output = TaskList;

    fn run(self, context: &OperationContext) -> OpResult<TaskList> {
        let (mut items, mut queued) = (Vec::new(), HashSet::new());
        for job in context.engine.jobs() {
            let job = job?;
            queued.insert(job.job.session.to_string());
            if context.caller.may_see_job(&job.job) {
                items.push(TaskStanding::of_job(context, job)?.shown());
            }
        }
        let wanted = |row: &Session| {
            let is_listed = row.meta.task_key.is_task() && !queued.contains(&row.meta.uuid);
            is_listed && (self.all || !row.status.is_ended())
        };
        let query = SessionQuery { user: context.caller.only_user(), ..SessionQuery::default() };
        for row in newest(context, query, self.limit as usize, wanted)? {
            items.push(TaskStanding::of_row(row)?.remembered(context)?.shown());
        }
        Ok(TaskList { page: ResultPage::whole(items), all: self.all })
    }

    fn text(tasks: &TaskList) -> Option<String> {
        let items = &tasks.page.items;
        let mut lines: Vec<String> = items.iter().take(FOR_A_MODEL).map(line).collect();
        match items.len() {
            0 => lines.push("no tasks".to_owned()),
            n if n > FOR_A_MODEL => lines.push(format!("and {} more", n - FOR_A_MODEL)),
            _ => {}
        }
        Some(lines.join("\n"))
    }
}

fn line(task: &TaskRow) -> String {
    let TaskRow { session, task: key, state, turns, tokens, .. } = task;
    let title = task.title.as_deref().unwrap_or("-");
    let why = task.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let (turns, tokens) = (count(*turns, "turn"), count(*tokens, "token"));
    format!("{session} {}{why}, {key}, {turns}, {tokens}: {title}", state.name())
}

/// Characters of the last words that are shown.
const SHOWN: usize = 2_000;

/// Show one task: its text, its state, and why.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct ShowTask {
    /// Its session or a unique beginning of it, or its key, such as github:ann/tool/issue/27
    #[schemars(length(min = 1, max = 500), example = &"fix-login")]
    pub task: String,
}

/// Everything about a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct TaskDetails {
    /// As lists show it.
    #[serde(flatten)]
    pub row: TaskRow,
    /// What is to be done.
    pub text: Option<String>,
    /// What its journals say.
    #[serde(flatten)]
    pub journal: TaskJournal,
    /// Where its files are, for a caller on this machine.
    #[serde(flatten)]
    pub paths: Option<TaskPaths>,
    /// True when it has a session.
    #[serde(skip)]
    pub has_session: bool,
}

/// What the journals of a task say.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct TaskJournal {
    /// The node of the playbook where it is.
    pub node: Option<String>,
    /// How many threads it has.
    pub threads: usize,
    /// What the model said last, where that is not in the result.
    pub last_words: Option<String>,
    /// What came of it.
    pub result: Option<String>,
    /// The last comment that was taken in.
    pub last_comment: Option<String>,
    #[serde(skip)]
    first_words: Option<String>,
}

/// Where the files of a task are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct TaskPaths {
    /// The folder it works in.
    pub folder: Option<String>,
    /// The playbook it follows, where it names one.
    pub playbook: Option<String>,
    /// The folder of its session.
    pub files: Option<String>,
}

impl Operation for ShowTask {
    const ABOUT: OperationLabel = OperationLabel::read("task", "Show a task");
    const INTERFACES: Interfaces = everywhere("task show", "/tasks/{task}");
    type Output = TaskDetails;

    fn run(self, context: &OperationContext) -> OpResult<TaskDetails> {
        let task = find(context, &self.task)?.remembered(context)?;
        let has_session = task.row.is_some();
        let journal = if has_session { journal(context, &task)? } else { TaskJournal::default() };
        Ok(TaskDetails {
            row: task.shown(),
            text: task.task().map(|task| task.text).or_else(|| journal.first_words.clone()),
            journal,
            paths: context.is_here().then(|| paths(context, &task)),
            has_session,
        })
    }
}

fn paths(context: &OperationContext, task: &TaskStanding) -> TaskPaths {
    // What is not UTF-8 in a path is replaced: the path itself would be no JSON.
    let text = |path: &Path| path.display().to_string();
    let (named, playbook) = task.named_paths();
    TaskPaths {
        folder: folder::there(context, named, &task.session).as_deref().map(text),
        playbook: playbook.as_deref().map(text),
        files: context.folder(&task.session).flatten(),
    }
}

fn journal(context: &OperationContext, task: &TaskStanding) -> OpResult<TaskJournal> {
    let root = context.engine.open(&task.session, &ThreadId::root(), OpenMode::Read)?;
    let node = root.noted("playbook")?.and_then(|(_, note)| {
        let note: Value = serde_json::from_str(note.get()).ok()?;
        note["node"].as_str().map(str::to_owned)
    });
    let closed = root.view().closed().map(|at| root.record(at)).transpose()?;
    let result = match closed.map(|record| record.entry) {
        Some(Entry::Close(Close { result, .. })) => result,
        _ => None,
    };
    let last_words = root.last_words(|kind| kind == Kind::Assistant)?;
    let is_told = |words: &String| result.as_deref().is_some_and(|text| text.contains(words.as_str()));
    Ok(TaskJournal {
        node,
        threads: context.engine.store().threads(&task.session)?.len(),
        last_words: last_words.map(|words| shortened(&words)).filter(|words| !is_told(words)),
        result,
        last_comment: TaskMark::of(&root)?.and_then(|mark| mark.seen),
        first_words: first_words(&root)?,
    })
}

/// The first words of a user: those of the task.
fn first_words(root: &Thread<'_>) -> OpResult<Option<String>> {
    for entry in root.view().forth(root.source(), 1) {
        let (seq, head) = entry?;
        if head.kind == Kind::User
            && let Entry::Message(message, _) = root.record(seq)?.entry
        {
            return Ok(Some(shortened(&message.words())));
        }
    }
    Ok(None)
}

fn shortened(words: &str) -> String {
    words.trim().chars().take(SHOWN).collect()
}
