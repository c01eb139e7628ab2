//! The shapes of what is answered, for the document.
//!
//! The values come from the verbs, as the command line prints them with `--json`; these types only say what is in them, and
//! `make test-api` holds the answers against them. Fields may be added to an answer; none is taken away.

#![allow(dead_code, reason = "the types are read by the document alone")]

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

/// A session that was read from its export.
#[derive(ToSchema)]
pub(super) struct Imported {
    session: String,
    status: State,
}
