//! A task: what is to be done, and where it came from. It is what a job in the queue carries.

use komado_core::session::TaskKey;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is to be done. Written to the queue as JSON when it is put there, and never changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Where it came from, as seed 000 writes it.
    #[serde(flatten)]
    pub key: TaskKey,
    /// Its name in the queue and for people: `github:ann/tool/issue/27`, or `local:NAME`.
    pub name: String,
    /// One line about it.
    pub title: String,
    /// The whole of it.
    #[serde(default)]
    pub text: String,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Where people look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Where its repository can be cloned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_url: Option<String>,
    /// The folder to work in; one of its own when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// The playbook to follow, a file; the settings' or the built-in one when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub playbook: Option<PathBuf>,
    /// The last comment that was there when it was queued: those after it are news.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_comment: Option<String>,
}

impl Task {
    /// A task of which only the key is known.
    pub fn of(key: TaskKey) -> Self {
        Self {
            name: Self::name_of(&key),
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

    /// The key of a task that came from no tracker.
    pub fn local(name: impl Into<String>) -> TaskKey {
        TaskKey {
            task_source: "local".to_owned(),
            owner: String::new(),
            repo: String::new(),
            task_type: "task".to_owned(),
            task_id: name.into(),
        }
    }

    /// What a task with this key is called.
    pub fn name_of(key: &TaskKey) -> String {
        match key.task_source.as_str() {
            "local" => format!("local:{}", key.task_id),
            _ => key.to_string(),
        }
    }
}
