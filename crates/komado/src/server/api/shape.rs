//! The shapes of what is answered, for the document.
//!
//! The values come from the verbs, as the command line prints them with `--json`; these types only say what is in them, and
//! `make test-api` holds the answers against them. Fields may be added to an answer; none is taken away.

#![allow(dead_code, reason = "the types are read by the document alone")]

use serde_json::Value;
use utoipa::ToSchema;

/// What went wrong (RFC 9457).
#[derive(ToSchema)]
#[schema(example = json!({"type": "urn:komado:problem:not-found", "title": "Not Found", "status": 404,
    "detail": "there is no session \"x\" that you may see; GET /api/v1/sessions lists yours"}))]
pub(super) struct Problem {
    /// Which kind of problem.
    r#type: String,
    /// The status in words.
    title: String,
    /// The status.
    status: u16,
    /// What went wrong, and what to do.
    detail: String,
}

/// What the session works on.
#[derive(ToSchema)]
pub(super) struct TaskKey {
    task_source: String,
    owner: String,
    repo: String,
    task_type: String,
    task_id: String,
}

/// A session.
#[derive(ToSchema)]
pub(super) struct Session {
    /// Its id.
    session: String,
    /// The same, as older readers know it.
    uuid: String,
    /// What it works on.
    task_key: TaskKey,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// The process that made it.
    process_id: u32,
    /// The machine that made it.
    hostname: String,
    /// Model and window.
    config: Value,
    /// Whose it is.
    user: Option<String>,
    /// Where it is in its life.
    status: State,
    /// When work began.
    started_at: Option<String>,
    /// When it ended.
    completed_at: Option<String>,
    /// When anything about it last changed.
    #[schema(format = DateTime)]
    updated_at: String,
    /// Why it failed or stopped.
    error_message: Option<String>,
    /// Replies from a provider.
    llm_call_count: u64,
    /// Answers from tools.
    tool_call_count: u64,
    /// Tokens all calls took.
    total_tokens: u64,
    /// Edits that made the view smaller.
    compression_count: u64,
}

/// Where a session is in its life.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(super) enum State {
    Queued,
    Running,
    Paused,
    Completed,
    Failed,
    Stopped,
}

/// What happened in many sessions, as `komado report --json` prints it; docs/report.md has every field.
#[derive(ToSchema)]
pub(super) struct Report {
    /// Its first moment.
    #[schema(format = DateTime)]
    from: String,
    /// The moment at which its time is over.
    #[schema(format = DateTime)]
    to: String,
    utc_offset: String,
    user: Option<String>,
    model: Option<String>,
    sessions_read: u64,
    entries_read: u64,
    /// Sessions that could not be read to their end; they are counted up to the damage.
    unreadable: u64,
    unreadable_sessions: Vec<String>,
    /// Sums by day, week, user and model.
    usage: Option<Value>,
    /// What people ask, grouped.
    questions: Option<Value>,
    /// How well agents do, by model and tool.
    performance: Option<Value>,
}

/// A session that was read from its export.
#[derive(ToSchema)]
pub(super) struct Imported {
    session: String,
    status: State,
}

/// A user, and what their sessions add up to.
#[derive(ToSchema)]
pub(super) struct User {
    user: String,
    sessions: u64,
    total_tokens: u64,
    #[schema(format = DateTime)]
    first_seen: String,
    #[schema(format = DateTime)]
    last_seen: String,
}

/// A page of users, by name.
#[derive(ToSchema)]
pub(super) struct Users {
    items: Vec<User>,
    /// The cursor of the next page; null at the end.
    next: Option<String>,
}

/// Something that was said.
#[derive(ToSchema)]
pub(super) struct Spoken {
    #[schema(format = DateTime)]
    timestamp: String,
    session: String,
    thread: String,
    seq: u32,
    /// `user` or `assistant`.
    role: String,
    text: String,
}

/// What was said lately, the newest first.
#[derive(ToSchema)]
pub(super) struct Recent {
    items: Vec<Spoken>,
    /// The cursor of the next page; null at the end.
    next: Option<String>,
}

/// A name and how often it came.
#[derive(ToSchema)]
pub(super) struct Share {
    name: String,
    count: u64,
}

/// A session of which not all went as it was asked.
#[derive(ToSchema)]
pub(super) struct Stays {
    session: String,
    why: String,
}

/// What was erased of a user, or would be.
#[derive(ToSchema)]
pub(super) struct Forgotten {
    /// Sessions.
    erased: u64,
    /// Jobs that were withdrawn, or would be.
    jobs: u64,
    /// Sessions that would be erased; only with `dry_run`.
    would_erase: Option<u64>,
    /// Those of them that somebody is at; only with `dry_run`.
    live: Option<Vec<String>>,
    /// Sessions that stay.
    left: Option<Vec<Stays>>,
    /// Sessions that were erased while something of them remains elsewhere.
    remains: Option<Vec<Stays>>,
    /// Keys that still name the user.
    keys: Option<Vec<String>>,
}

/// What is known of a user's conversations.
#[derive(ToSchema)]
pub(super) struct Habits {
    user: String,
    sessions: u64,
    by_status: Value,
    first_seen: Option<String>,
    last_seen: Option<String>,
    /// Messages of the user.
    turns: u64,
    /// Messages of models.
    replies: u64,
    tool_calls: u64,
    total_tokens: u64,
    mean_turn_chars: f64,
    mean_reply_chars: f64,
    /// Requests that were refused as too large.
    overflows: u64,
    /// Edits that made a view smaller.
    compactions: u64,
    overflow_rate: f64,
    compaction_rate: f64,
    models: Vec<Share>,
    tools: Vec<Share>,
    /// The user's messages by hour of the day (UTC), from 0 to 23.
    hours: Vec<u64>,
    words: Vec<Share>,
    questions: Vec<Share>,
}
