//! What `complete`, `fail`, `stop`, `pause` and `resume` have in common.

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::{say, text_of};
use crate::verb::thread::ended;
use komado_core::session::Session;
use komado_core::{Address, SessionId, ThreadId};
use komado_engine::{Engine, Result};
use komado_store::Which;
use serde_json::json;

/// Changes a session's state and tells.
pub(super) fn make(
    app: &mut App,
    address: &Address,
    undo: &str,
    op: impl FnOnce(&Engine, &SessionId) -> Result<Session>,
) -> Outcome {
    let found = app.find(address)?;
    if found.seq.is_some() || !found.thread.is_root() {
        return Err(Fault::usage(format!("name a session, without thread or moment: {}", found.session)));
    }
    let before = open_children(app, &found.session)?;
    let session = op(&app.context.engine, &found.session)?;
    let after = open_children(app, &found.session)?;
    let aborted: Vec<&ThreadId> = before.iter().filter(|thread| !after.contains(thread)).collect();
    let again = ended::again(&found.session, aborted.iter().copied());
    let aborted: Vec<&str> = aborted.into_iter().map(ThreadId::as_str).collect();
    let folder = app.context.files.as_ref().and_then(|files| files.folder(&found.session).ok());
    let undo = format!("komado {undo} {}", found.session);
    if app.paper.json {
        return app.paper.json(&json!({
            "session": found.session.as_str(),
            "status": session.status.name(),
            "completed_at": session.completed_at,
            "error_message": session.error_message,
            "aborted": aborted,
            "folder": folder.as_deref().map(text_of),
            "undo": undo,
            "undo_aborted": again,
        }));
    }
    app.paper.line(format!("{} is {}", found.session, session.status.name()))?;
    if !aborted.is_empty() {
        say(format!("child threads aborted with it: {}", aborted.join(", ")));
    }
    folder.iter().for_each(|folder| say(format!("folder: {}", folder.display())));
    say(format!("undo: {undo}"));
    again.iter().for_each(|undo| say(format!("      {undo}")));
    Ok(())
}

/// The child threads that have not ended, those further up first.
fn open_children(app: &App, id: &SessionId) -> Outcome<Vec<ThreadId>> {
    let mut branches = app.context.engine.store().branches(id, Which::All)?;
    branches.sort_by_key(|branch| branch.depth);
    let open = branches.into_iter().filter(|branch| branch.parent.is_some() && branch.status.is_open());
    Ok(open.map(|branch| branch.thread).collect())
}
