//! What `complete`, `fail`, `stop`, `pause` and `resume` have in common.

use crate::address::AtSession;
use crate::{Context, Fault, Outcome};
use komado_core::session::{Session, State};
use komado_core::{SessionId, ThreadId};
use komado_engine::{Engine, Result};
use komado_store::Which;
use schemars::JsonSchema;
use serde::Serialize;

/// A session's new state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Entered {
    /// The session.
    pub session: String,
    /// Where it is in its life now.
    pub status: State,
    /// When it ended.
    pub completed_at: Option<String>,
    /// Why it failed, stopped or waits.
    pub error_message: Option<String>,
    /// Child threads that ended with it, those further up first.
    pub aborted: Vec<String>,
    /// Where it is kept now, for a caller on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<Option<String>>,
    /// The command that undoes it.
    pub undo: String,
    /// The commands that let the child threads go on, in order.
    pub undo_aborted: Vec<String>,
}

/// Changes a session's state and tells.
pub(super) fn enter(
    context: &Context,
    at: &AtSession,
    undo: &str,
    op: impl FnOnce(&Engine, &SessionId) -> Result<Session>,
) -> Outcome<Entered> {
    let found = context.find(at)?;
    if found.seq.is_some() || !found.thread.is_root() {
        return Err(Fault::usage(format!("name a session, without thread or moment: {}", found.session)));
    }
    let id = found.session;
    let before = open_children(context, &id)?;
    let session = op(&context.engine, &id)?;
    let after = open_children(context, &id)?;
    let aborted: Vec<String> =
        before.iter().filter(|thread| !after.contains(thread)).map(ToString::to_string).collect();
    let again = |thread: &String| format!("komado thread resume {id}/{thread}");
    Ok(Entered {
        session: id.to_string(),
        status: session.status,
        completed_at: session.completed_at,
        error_message: session.error_message,
        folder: context.folder(&id),
        undo: format!("komado {undo} {id}"),
        undo_aborted: aborted.iter().map(again).collect(),
        aborted,
    })
}

/// The child threads that have not ended, those further up first.
fn open_children(context: &Context, id: &SessionId) -> Outcome<Vec<ThreadId>> {
    let mut branches = context.engine.store().branches(id, Which::All)?;
    branches.sort_by_key(|branch| branch.depth);
    let open = branches.into_iter().filter(|branch| branch.parent.is_some() && branch.status.is_open());
    Ok(open.map(|branch| branch.thread).collect())
}
