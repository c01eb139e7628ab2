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

/// A list.
#[derive(ToSchema)]
pub(super) struct List {
    items: Vec<Value>,
}

/// A thread in a list.
#[derive(ToSchema)]
pub(super) struct Thread {
    session: String,
    thread: String,
    status: String,
    /// The moment it was started at.
    parent: Option<String>,
    /// The moment it goes on from.
    base: Option<String>,
    /// Its own entries.
    entries: u32,
    /// Its last entry.
    last: u32,
    /// Tokens of what the model sees in it.
    context_tokens: u64,
    label: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
}

/// A session's threads, the root first.
#[derive(ToSchema)]
pub(super) struct Threads {
    items: Vec<Thread>,
}

/// A session's threads as a tree, each under the one it came from.
#[derive(ToSchema)]
pub(super) struct Tree {
    session: String,
    window: Option<u64>,
    threads: Vec<Value>,
}

/// A thread that was made.
#[derive(ToSchema)]
pub(super) struct Begun {
    session: String,
    thread: String,
    /// `session/thread`.
    address: String,
}

/// A child thread that has ended or waits.
#[derive(ToSchema)]
pub(super) struct Ended {
    session: String,
    thread: String,
    status: String,
    undo: String,
}

/// A change of a thread that is in the journal now.
#[derive(ToSchema)]
pub(super) struct Change {
    session: String,
    thread: String,
    /// The entry that says it.
    seq: u32,
    /// What was done.
    op: String,
    /// Tokens of the view before.
    tokens_before: u64,
    /// Tokens of the view now.
    tokens_after: u64,
    /// The command that undoes it.
    undo: Option<String>,
}

/// Something said in a thread.
#[derive(ToSchema)]
pub(super) struct Said {
    session: String,
    thread: String,
    seq: u32,
}

/// What was said of shares.
#[derive(ToSchema)]
pub(super) struct Balanced {
    session: String,
    thread: String,
    entries: Vec<Value>,
    window: u64,
}

/// What was done in a child thread.
#[derive(ToSchema)]
pub(super) struct Chronicle {
    session: String,
    thread: String,
    seq: u32,
    text: String,
    /// The first and the last entry it tells of.
    covers: Vec<u32>,
    partial: bool,
    /// The model that wrote it.
    by: Option<String>,
}

/// What was done to make a view fit, or would be.
#[derive(ToSchema)]
pub(super) struct Fitted {
    session: String,
    thread: String,
    /// The rule that decided, with its numbers.
    verdict: Value,
    /// The edits, each with what undoes it.
    edits: Vec<Value>,
    declined: Vec<String>,
    tokens_before: u64,
    tokens_after: u64,
}

/// The window and what fills it.
#[derive(ToSchema)]
pub(super) struct Context {
    session: String,
    thread: String,
    seq: u32,
    status: State,
    model: Option<String>,
    meter: String,
    window: Option<u32>,
    context_tokens: u64,
    free_tokens: Option<u64>,
    items: u64,
    parts: Value,
    edits: Vec<u32>,
    pins: Vec<Vec<u32>>,
    open_calls: Vec<String>,
}

/// A session that was read from its export.
#[derive(ToSchema)]
pub(super) struct Imported {
    session: String,
    status: State,
}
