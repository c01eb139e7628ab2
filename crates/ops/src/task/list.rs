//! Which tasks are there?

use super::everywhere;
use super::standing::{Standing, TaskRow};
use crate::page::Page;
use crate::session::newest;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use komado_core::session::Session;
use komado_store::Query;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Tasks that are not in the queue, unless a request says otherwise.
const USUAL: u32 = 50;
/// Tasks that a model is told of.
const FOR_A_MODEL: usize = 50;

/// List tasks: those in the queue, in its order, then those that only their session tells of.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct ListTasks {
    /// Also those that ended
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
pub struct Tasks {
    /// They.
    #[serde(flatten)]
    pub page: Page<TaskRow>,
    /// True when those that ended are among them.
    #[serde(skip)]
    pub all: bool,
}

impl Operation for ListTasks {
    const NAME: &'static str = "tasks";
    const TITLE: &'static str = "List tasks";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = everywhere("task list", "/tasks");
    type Output = Tasks;

    fn run(self, context: &Context) -> Outcome<Tasks> {
        let (mut items, mut queued) = (Vec::new(), HashSet::new());
        for job in context.engine.jobs() {
            let job = job?;
            queued.insert(job.job.session.to_string());
            if context.caller.may_see_job(&job.job) {
                items.push(Standing::of_job(context, job)?.shown());
            }
        }
        let wanted = |row: &Session| {
            let is_listed = row.meta.task_key.is_task() && !queued.contains(&row.meta.uuid);
            is_listed && (self.all || !row.status.is_ended())
        };
        let query = Query { user: context.caller.only_user(), ..Query::default() };
        for row in newest(context, query, self.limit as usize, wanted)? {
            items.push(Standing::of_row(row)?.remembered(context)?.shown());
        }
        Ok(Tasks { page: Page::whole(items), all: self.all })
    }

    fn text(tasks: &Tasks) -> Option<String> {
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
    format!("{session} {}{why}, {key}, {turns} turns, {tokens} tokens: {title}", state.name())
}
