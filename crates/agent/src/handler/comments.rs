//! What people say about a task while it is worked on: how the model hears it, and what becomes of words that came too late.

use super::Kit;
use crate::error::Result;
use crate::source::Comment;
use komado_core::journal::Entry;
use komado_core::message::Message;
use komado_core::{Kind, Role};
use komado_engine::Thread;
use std::collections::BTreeSet;

/// How a comment begins; the model is told of it in its brief.
const BEGIN: &str = "[comment by ";

/// What the model is told with comments that came while it wrote its last words.
const LATE: &str = "[These comments came before your last answer was sent to anybody. Take them into account; then write the \
                    summary of the whole task again, with what they changed: only your last words are sent.]";

/// A comment as the model hears it.
pub(super) fn message(comment: &Comment) -> Message {
    Message::text(Role::User, format!("{BEGIN}{}]\n{}", comment.author, comment.text))
}

/// What is said after comments that came late.
pub(super) fn late() -> Message {
    Message::text(Role::User, LATE)
}

/// True when a comment was said in a thread after the model's last words. Told by the journal, not by who took it in:
/// they may have been killed in between.
pub(super) fn wait_in(thread: &Thread<'_>) -> Result<bool> {
    let is_said = |kind| matches!(kind, Kind::Assistant | Kind::User);
    let waits = thread.newest(is_said, |record| match record.entry {
        Entry::Message(message, None) if message.role == Role::User => {
            message.words().starts_with(BEGIN).then_some(true)
        }
        Entry::Message(_, Some(_)) => Some(false),
        _ => None,
    })?;
    Ok(waits.unwrap_or(false))
}

/// What came of a task, with a word about comments that nobody took in.
pub(super) fn with_unheard(kit: &Kit<'_>, result: &str) -> String {
    let authors: BTreeSet<String> = kit.orders.comments().into_iter().map(|comment| comment.author).collect();
    match authors.is_empty() {
        true => result.to_owned(),
        false => format!(
            "{}\n\nNot taken into account: what {} wrote while this was being finished.",
            result.trim_end(),
            authors.into_iter().collect::<Vec<_>>().join(", ")
        ),
    }
}
