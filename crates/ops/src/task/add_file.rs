//! Put the tasks of a file into the queue.

use super::check_may_change;
use super::put::{QueuedTask, fresh, put, settled, why_known};
use crate::{Context, Effect, Exit, Fault, Interfaces, Offer, Operation, Outcome};
use komado_agent::source;
use komado_agent::task::Task;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

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
    const NAME: &'static str = "task_add_file";
    const TITLE: &'static str = "Add the tasks of a file";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces = Interfaces {
        cli: Offer::As("task add --file"),
        http: Offer::Not("it reads a file of this machine; `POST /tasks` adds a task"),
        mcp: Offer::Not("it reads a file of this machine, and tasks are added by people"),
    };
    type Output = AddedTasks;

    fn run(self, context: &Context) -> Outcome<AddedTasks> {
        check_may_change(context)?;
        let name = self.file.display().to_string();
        let text = std::fs::read_to_string(&self.file).map_err(|why| Fault::unread(&name, &why))?;
        let tasks = source::read(&name, &text).map_err(komado_agent::Error::from)?;
        let settle = |task: Task| {
            let (user, folder) = (self.user.clone().or(task.user), self.folder.clone().or(task.folder));
            let playbook = self.playbook.clone().or(task.playbook);
            settled(context, Task { user, folder, playbook, ..task })
        };
        let tasks = tasks.into_iter().map(settle).collect::<Outcome<Vec<_>>>()?;
        let mut items: Vec<QueuedTask> = Vec::new();
        for task in tasks {
            let key = task.name.clone();
            let queued = fresh().and_then(|session| put(context, session, task));
            let queued = queued.map_err(|fault| match items.len() {
                0 => fault,
                n => fault.and(format!("{n} of the tasks before it are in the queue: `komado task list`")),
            })?;
            match queued {
                Some(queued) => items.push(queued),
                None => context.note(why_known(context, &key)?),
            }
        }
        match items.is_empty() {
            true => Err(Fault::new(Exit::Refused, format!("{name}: all of it is in the queue already"))),
            false => Ok(AddedTasks { items }),
        }
    }
}
