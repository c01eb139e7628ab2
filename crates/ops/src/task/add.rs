//! Put a task into the queue.

use super::put::{QueuedTask, fresh, put, settled, why_known};
use super::{by_people, check_may_change};
use crate::{Context, Effect, Exit, Fault, Interfaces, Operation, Outcome, Route};
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_core::session::TaskKey;
use schemars::JsonSchema;
use serde::Deserialize;
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
    /// Its name: of two with the same one only one is in the queue, and the later inherits what the earlier came to
    pub key: Option<String>,
    /// Whose task it is
    pub user: Option<String>,
    /// The folder to work in; one of its own when left out. Only a caller on this machine names one.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
    /// The playbook to follow; the settings' when left out. Only a caller on this machine names one.
    #[serde(skip)]
    pub playbook: Option<PathBuf>,
}

impl Operation for AddTask {
    const NAME: &'static str = "task_add";
    const TITLE: &'static str = "Add a task";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces = by_people("task add", Route::make("tasks", "/tasks"));
    type Output = QueuedTask;

    fn run(self, context: &Context) -> Outcome<QueuedTask> {
        check_may_change(context)?;
        let Self { text, title, key: named, user, folder, playbook } = self;
        if text.trim().is_empty() {
            return Err(Fault::usage("nothing is to be done: write the task"));
        }
        let session = fresh()?;
        let key = key(named.as_deref(), &session)?;
        let title = title.unwrap_or_else(|| first_line(&text));
        let task = settled(context, Task { title, text, user, folder, playbook, ..Task::of(key) })?;
        let name = task.name.clone();
        match put(context, session, task)? {
            Some(queued) => Ok(queued),
            None => Err(Fault::new(Exit::Refused, why_known(context, &name)?)),
        }
    }

    fn location(queued: &QueuedTask) -> Option<String> {
        Some(format!("/tasks/{}", queued.session))
    }
}

/// The key as it was given: an issue's, or a name; the session's own when there is none.
fn key(given: Option<&str>, session: &SessionId) -> Outcome<TaskKey> {
    match given {
        None => Ok(Task::local(session.as_str())),
        Some(text) if text.starts_with("github:") || text.starts_with("gitlab:") => {
            TaskKey::parse(text).map_err(Fault::usage)
        }
        Some(text) => {
            let name = text.strip_prefix("local:").unwrap_or(text).trim();
            if name.is_empty() || name.chars().any(char::is_control) {
                return Err(Fault::usage(format!(
                    "not a task key: {text:?}: write a name, such as fix-login"
                )));
            }
            let length = name.chars().count();
            if length > MOST_KEY {
                return Err(Fault::usage(format!(
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
