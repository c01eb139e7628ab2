//! What every change tells: what was done, what it did to the window, and how to undo it.

use crate::{OpResult, OperationContext};
use komado_core::Seq;
use komado_core::journal::{Close, Entry};
use komado_engine::Thread;
use komado_engine::engine::ResolvedAddress;
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::Serialize;

/// A change that was made to what the model sees.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ChangedView {
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

/// Opens the thread for writing, makes one change and settles.
pub fn make(
    context: &OperationContext,
    found: &ResolvedAddress,
    op: &'static str,
    edit: impl FnOnce(&mut Thread<'_>) -> komado_engine::Result<Seq>,
) -> OpResult<ChangedView> {
    let mut thread = context.open(found, OpenMode::Write)?;
    let tokens_before = thread.view().tokens();
    let seq = edit(&mut thread)?;
    context.settle(&mut thread);
    Ok(ChangedView {
        session: found.session.to_string(),
        thread: found.thread.to_string(),
        seq,
        op,
        what: String::new(),
        tokens_before,
        tokens_after: thread.view().tokens(),
        undo: None,
    })
}

impl ChangedView {
    /// The same, told for people, with the command that undoes it.
    #[must_use]
    pub fn told(self, what: impl Into<String>, undo: String) -> Self {
        Self { what: what.into(), undo: Some(undo), ..self }
    }
}

/// `session` or `session/thread`, short enough to type and long enough to find.
pub fn name(found: &ResolvedAddress) -> String {
    match found.thread.is_root() {
        true => found.session.to_string(),
        false => format!("{}/{}", found.session, found.thread),
    }
}

/// The result or the reason with which a thread was closed, as a shell takes it for one word.
pub(crate) fn closing_words(thread: &Thread<'_>) -> OpResult<Option<String>> {
    let closed = thread.view().closed().map(|seq| thread.record(seq)).transpose()?;
    Ok(match closed.map(|record| record.entry) {
        Some(Entry::Close(Close { result: Some(words), .. })) => Some(quoted(&words)),
        _ => None,
    })
}

/// A text as a shell takes it for one word.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The command that goes back to entry `seq`.
pub fn rewind_to(found: &ResolvedAddress, seq: Seq) -> String {
    format!("komado rewind {}@{seq}", name(found))
}

/// The command that takes back the entry `seq` and everything after it.
pub fn rewind_before(found: &ResolvedAddress, seq: Seq) -> String {
    rewind_to(found, seq - 1)
}

/// The command that takes back the edit `seq`.
pub fn revert(found: &ResolvedAddress, seq: Seq) -> String {
    format!("komado revert {}@{seq}", name(found))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_shell_takes_what_is_quoted_for_one_word() {
        assert_eq!(super::quoted("it's 直った"), r"'it'\''s 直った'");
    }
}
