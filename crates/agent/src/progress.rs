//! What happens in a task, told as it happens; and what is wanted of it from outside.

use serde::{Deserialize, Serialize};

/// One thing that happened; one JSON line from a task's process to its worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TaskProgress {
    /// Work began, or went on where the journal ends.
    Begun {
        /// Provider and model.
        model: String,
        /// The window, in tokens.
        window: u64,
        /// True when a worker had worked on it before.
        again: bool,
    },
    /// A node of the playbook is entered.
    Node {
        /// Its id.
        id: String,
        /// What people call it.
        label: Option<String>,
        /// The thread it works in.
        thread: String,
    },
    /// The model answered.
    Turn {
        /// Which turn of the task.
        turn: u32,
        /// Tokens that the model saw.
        tokens: u64,
        /// The beginning of what it said.
        said: String,
        /// Tools that it called.
        calls: u32,
    },
    /// A tool answered.
    Tool {
        /// Its name.
        name: String,
        /// True when it said that something went wrong.
        is_error: bool,
        /// How long it took.
        duration_ms: u64,
    },
    /// The view was made smaller.
    Fitted {
        /// Tokens before.
        before: u64,
        /// Tokens after.
        after: u64,
    },
    /// A comment was taken in.
    Comment {
        /// Whose.
        author: String,
    },
    /// Something beside the work went wrong; the work goes on.
    Trouble {
        /// What.
        why: String,
    },
    /// It ended.
    Ended {
        /// `completed`, `failed`, `stopped`, `paused` or `again`.
        status: String,
        /// Its summary, or why.
        why: Option<String>,
    },
}

/// What is wanted of a running task.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TaskOrder {
    /// To rest until a user lets it go on.
    #[error("paused: {0}")]
    Pause(String),
    /// To end for good.
    #[error("stopped: {0}")]
    Stop(String),
    /// To be left to another worker, now: this one ends.
    #[error("left to another worker: {0}")]
    Leave(String),
}
