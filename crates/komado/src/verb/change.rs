//! What every change tells: what was done, what it did to the window, and how to undo it.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::{number, say};
use komado_core::Seq;
use komado_engine::engine::Found;
use komado_engine::{Result, Thread};
use komado_store::Mode;
use serde_json::json;

/// A change that was made.
pub(super) struct Change {
    /// The verb, as in the journal.
    pub(super) op: &'static str,
    /// What was done, for people.
    pub(super) what: String,
    /// The command that undoes it.
    pub(super) undo: Option<String>,
}

/// Opens the thread for writing, makes one change, settles, and tells.
pub(super) fn make(
    app: &mut App,
    found: &Found,
    op: impl FnOnce(&mut Thread<'_>) -> Result<Seq>,
    tell: impl FnOnce(Seq) -> Change,
) -> Outcome {
    let mut thread = app.open(found, Mode::Write)?;
    let before = thread.view().tokens();
    let seq = op(&mut thread)?;
    settle(&mut thread);
    let after = thread.view().tokens();
    drop(thread);
    let change = tell(seq);
    if app.paper.json {
        return app.paper.json(&json!({
            "session": found.session.as_str(),
            "thread": found.thread.as_str(),
            "seq": seq,
            "op": change.op,
            "tokens_before": before,
            "tokens_after": after,
            "undo": change.undo,
        }));
    }
    app.paper.line(format!("@{seq} {}", change.what))?;
    say(format!("window: {} → {} tokens", number(before), number(after)));
    if let Some(undo) = change.undo {
        say(format!("undo: {undo}"));
    }
    Ok(())
}

/// Brings what is derived up to date. The entry is durable already, so a failure here is told and is no failure.
pub(super) fn settle(thread: &mut Thread<'_>) {
    if let Err(error) = thread.settle() {
        say(format!("komado: what was said is safe, but what is derived from it is behind: {error}"));
        say("komado: the next change, or `komado doctor`, brings it up to date");
    }
}

/// `session` or `session/thread`, short enough to type and long enough to find.
pub(crate) fn name(found: &Found) -> String {
    if found.thread.is_root() {
        found.session.to_string()
    } else {
        format!("{}/{}", found.session, found.thread)
    }
}

/// The command that goes back to entry `seq`.
pub(super) fn rewind_to(found: &Found, seq: Seq) -> String {
    format!("komado rewind {}@{seq}", name(found))
}

/// The command that takes back the entry `seq` and everything after it.
pub(super) fn rewind_before(found: &Found, seq: Seq) -> String {
    rewind_to(found, seq - 1)
}
