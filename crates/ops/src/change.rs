//! What every change tells: what was done, what it did to the window, and how to undo it.

use crate::context::Context;
use crate::fault::Outcome;
use komado_core::Seq;
use komado_engine::Thread;
use komado_engine::engine::Found;
use komado_store::Mode;
use schemars::JsonSchema;
use serde::Serialize;

/// A change that was made to what the model sees.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Changed {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The entry that made the change.
    pub seq: Seq,
    /// What was done, as in the journal.
    pub op: &'static str,
    /// The same for people.
    pub what: String,
    /// Tokens of the view before.
    pub tokens_before: u64,
    /// Tokens of the view after.
    pub tokens_after: u64,
    /// The command that undoes it.
    pub undo: Option<String>,
}

/// What a change was.
pub struct Change {
    /// As in the journal.
    pub op: &'static str,
    /// For people.
    pub what: String,
    /// The command that undoes it.
    pub undo: Option<String>,
}

/// Opens the thread for writing, makes one change, settles, and tells.
pub fn make(
    context: &Context,
    found: &Found,
    op: impl FnOnce(&mut Thread<'_>) -> komado_engine::Result<Seq>,
    tell: impl FnOnce(Seq) -> Change,
) -> Outcome<Changed> {
    let mut thread = context.open(found, Mode::Write)?;
    let tokens_before = thread.view().tokens();
    let seq = op(&mut thread)?;
    context.settle(&mut thread);
    let Change { op, what, undo } = tell(seq);
    let (session, name) = (found.session.to_string(), found.thread.to_string());
    Ok(Changed {
        session,
        thread: name,
        seq,
        op,
        what,
        tokens_before,
        tokens_after: thread.view().tokens(),
        undo,
    })
}

/// `session` or `session/thread`, short enough to type and long enough to find.
pub fn name(found: &Found) -> String {
    match found.thread.is_root() {
        true => found.session.to_string(),
        false => format!("{}/{}", found.session, found.thread),
    }
}

/// The command that goes back to entry `seq`.
pub fn rewind_to(found: &Found, seq: Seq) -> String {
    format!("komado rewind {}@{seq}", name(found))
}

/// The command that takes back the entry `seq` and everything after it.
pub fn rewind_before(found: &Found, seq: Seq) -> String {
    rewind_to(found, seq - 1)
}
