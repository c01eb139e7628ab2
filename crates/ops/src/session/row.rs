//! A session as every interface tells it.

use komado_core::session::{self, Counters, Meta, MetaConfig, Session, StelisConfig};
use komado_engine::import::unfinished;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A session.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub struct SessionRow {
    /// Its id.
    pub session: String,
    /// The same, as older readers know it.
    pub uuid: String,
    /// What it works on.
    pub task_key: TaskKey,
    /// When it was made.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// The process that made it.
    pub process_id: u32,
    /// The machine that made it.
    pub hostname: String,
    /// Model and window.
    pub config: SessionConfig,
    /// Whose it is.
    pub user: Option<String>,
    /// True while it waits in a queue.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    /// Where it is in its life.
    pub status: Status,
    /// When work began.
    pub started_at: Option<String>,
    /// When it ended.
    pub completed_at: Option<String>,
    /// When anything about it last changed.
    #[schemars(extend("format" = "date-time"))]
    pub updated_at: String,
    /// Why it failed or stopped.
    pub error_message: Option<String>,
    /// Replies from a provider.
    pub llm_call_count: u64,
    /// Answers from tools.
    pub tool_call_count: u64,
    /// Tokens all calls took, as the providers said.
    pub total_tokens: u64,
    /// Edits that made the view smaller.
    pub compression_count: u64,
    /// Why it is not whole, where an import of it did not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
}

/// The issue or pull request a session works on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct TaskKey {
    /// `github` or `gitlab`; `local` for a session that came from no tracker.
    pub task_source: String,
    /// Owner of the repository.
    pub owner: String,
    /// Its name.
    pub repo: String,
    /// `issue` or `pull_request`; `session` for a local one.
    pub task_type: String,
    /// Number of the issue or pull request.
    pub task_id: String,
}

impl TaskKey {
    /// As it is written on a command line: `github:ann/tool/issue/27`, or `local`.
    pub fn written(&self) -> String {
        let Self { task_source, owner, repo, task_type, task_id } = self;
        match task_source == "local" {
            true => task_source.clone(),
            false => format!("{task_source}:{owner}/{repo}/{task_type}/{task_id}"),
        }
    }
}

/// Model and window of a session.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SessionConfig {
    /// Such as `openai`.
    pub llm_provider: Option<String>,
    /// Such as `gpt-4o`.
    pub model: Option<String>,
    /// The model's window in tokens.
    pub context_length: Option<u32>,
    /// Who said how large the window is: `given`, `learned`, `probed` or `listed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_from: Option<String>,
    /// The share of the window at which it is made smaller.
    pub compression_threshold: Option<f64>,
    /// How tokens are counted.
    pub meter: String,
    /// Who speaks in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// What its child threads get.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::ChildSettings>")]
    pub stelis_config: Option<StelisConfig>,
    /// The name by which the gateway finds it again, as a digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

/// Where a session is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Status {
    /// Known, not begun.
    Queued,
    /// At work.
    Running,
    /// Waits to go on.
    Paused,
    /// Done.
    Completed,
    /// Ended by an error.
    Failed,
    /// Ended by its user.
    Stopped,
}

impl Status {
    /// The word for it.
    pub fn name(self) -> &'static str {
        session::State::from(self).name()
    }
}

impl From<Status> for session::State {
    fn from(status: Status) -> Self {
        match status {
            Status::Queued => Self::Queued,
            Status::Running => Self::Running,
            Status::Paused => Self::Paused,
            Status::Completed => Self::Completed,
            Status::Failed => Self::Failed,
            Status::Stopped => Self::Stopped,
        }
    }
}

impl From<session::State> for Status {
    fn from(state: session::State) -> Self {
        match state {
            session::State::Queued => Self::Queued,
            session::State::Running => Self::Running,
            session::State::Paused => Self::Paused,
            session::State::Completed => Self::Completed,
            session::State::Failed => Self::Failed,
            session::State::Stopped => Self::Stopped,
        }
    }
}

impl From<session::TaskKey> for TaskKey {
    fn from(key: session::TaskKey) -> Self {
        let session::TaskKey { task_source, owner, repo, task_type, task_id } = key;
        Self { task_source, owner, repo, task_type, task_id }
    }
}

impl From<MetaConfig> for SessionConfig {
    fn from(config: MetaConfig) -> Self {
        let MetaConfig {
            llm_provider,
            model,
            context_length,
            window_from,
            compression_threshold,
            meter,
            persona,
            stelis_config,
            alias,
        } = config;
        Self {
            llm_provider,
            model,
            context_length,
            window_from,
            compression_threshold,
            meter,
            persona,
            stelis_config,
            alias,
        }
    }
}

impl From<Session> for SessionRow {
    fn from(session: Session) -> Self {
        let unfinished = unfinished(&session).map(str::to_owned);
        let Session { meta, status, started_at, completed_at, updated_at, error_message, counters } = session;
        let Meta { uuid, task_key, created_at, process_id, hostname, config, user, queued } = meta;
        let Counters { llm_call_count, tool_call_count, total_tokens, compression_count } = counters;
        Self {
            session: uuid.clone(),
            uuid,
            task_key: task_key.into(),
            created_at,
            process_id,
            hostname,
            config: config.into(),
            user,
            queued,
            status: status.into(),
            started_at,
            completed_at,
            updated_at,
            error_message,
            llm_call_count,
            tool_call_count,
            total_tokens,
            compression_count,
            unfinished,
        }
    }
}
