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
