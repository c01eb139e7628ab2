//! How a session's row and a spawned thread's are written down.

use crate::{Error, Result};
use komado_core::session::{Counters, Meta, Session, State};
use komado_core::thread::{Branch, Status};
use komado_core::{SessionId, ThreadId};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct SessionRow {
    meta: Meta,
    status: State,
    started_at: Option<String>,
    completed_at: Option<String>,
    updated_at: String,
    error_message: Option<String>,
    counters: Counters,
}

pub(super) fn session_text(session: &Session) -> String {
    let Session { meta, status, started_at, completed_at, updated_at, error_message, counters } =
        session.clone();
    let row = SessionRow { meta, status, started_at, completed_at, updated_at, error_message, counters };
    serde_json::to_string(&row).unwrap_or_default()
}

pub(super) fn read_session(id: &SessionId, text: &str) -> Result<Session> {
    let row: SessionRow = serde_json::from_str(text).map_err(|e| Error::damaged(id.as_str(), e))?;
    let SessionRow { meta, status, started_at, completed_at, updated_at, error_message, counters } = row;
    Ok(Session { meta, status, started_at, completed_at, updated_at, error_message, counters })
}

#[derive(Serialize, Deserialize)]
struct BranchRow {
    thread: String,
    parent: Option<String>,
    depth: u32,
    window_ratio: f64,
    status: Status,
    label: Option<String>,
    chronicle_summary: Option<String>,
    held_by: Option<String>,
    created_at: String,
    completed_at: Option<String>,
}

/// Without `told`, which is kept beside it.
pub(super) fn branch_text(branch: &Branch) -> String {
    let branch = branch.clone();
    let row = BranchRow {
        thread: branch.thread.to_string(),
        parent: branch.parent.map(|parent| parent.to_string()),
        depth: branch.depth,
        window_ratio: branch.window_ratio,
        status: branch.status,
        label: branch.label,
        chronicle_summary: branch.chronicle_summary,
        held_by: branch.held_by,
        created_at: branch.created_at,
        completed_at: branch.completed_at,
    };
    serde_json::to_string(&row).unwrap_or_default()
}

pub(super) fn read_branch(id: &SessionId, text: &str, told: bool) -> Result<Branch> {
    let row: BranchRow = serde_json::from_str(text).map_err(|e| Error::damaged(id.as_str(), e))?;
    let name = |name: String| ThreadId::new(name).map_err(|e| Error::damaged(id.as_str(), e));
    Ok(Branch {
        session: id.clone(),
        thread: name(row.thread)?,
        parent: row.parent.map(name).transpose()?,
        depth: row.depth,
        window_ratio: row.window_ratio,
        status: row.status,
        label: row.label,
        chronicle_summary: row.chronicle_summary,
        held_by: row.held_by,
        told,
        created_at: row.created_at,
        completed_at: row.completed_at,
    })
}
