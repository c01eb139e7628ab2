//! Where work on a task stands beside its conversation: the last comment taken in, the time it took, where counting began.
//! And what the task is called and works with: its job, which says so too, is gone when it is done.
//!
//! It is noted in the same write as the words it goes with, in the thread where they are said. A comment may be said in a
//! child thread, so whoever takes a task up looks at the notes of all of them.

use crate::error::Result;
use crate::task::Task;
use komado_core::SessionId;
use komado_core::raw::Raw;
use komado_engine::{Engine, Thread};
use komado_store::Mode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::path::PathBuf;

/// What the note is about.
pub const ABOUT: &str = "task";

/// Where work stands.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Mark {
    /// One line about the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where people look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The folder it works in, when it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Where its folder is cloned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_url: Option<String>,
    /// The playbook it follows, when it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub playbook: Option<PathBuf>,
    /// The last comment that was taken in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// Time at work, of all workers together.
    #[serde(default)]
    pub spent_ms: u64,
    /// Turns that do not count: those before somebody let a task that had failed go on.
    #[serde(default)]
    pub turns_from: u64,
    /// Tokens that do not count, for the same reason.
    #[serde(default)]
    pub tokens_from: u64,
}

impl Mark {
    /// Of a task that is about to be told.
    pub(super) fn about(task: &Task) -> Self {
        Self {
            title: Some(task.title.clone()),
            url: task.url.clone(),
            folder: task.folder.clone(),
            clone_url: task.clone_url.clone(),
            playbook: task.playbook.clone(),
            seen: task.last_comment.clone(),
            ..Self::default()
        }
    }

    /// As a note.
    pub fn raw(&self) -> Result<Raw> {
        note(self)
    }

    /// The last one of a thread.
    pub fn of(thread: &Thread<'_>) -> Result<Option<Self>> {
        noted(thread, ABOUT)
    }

    /// What the notes of every thread say together; `None` when the task was never told in its session.
    pub fn of_session(engine: &Engine, session: &SessionId) -> Result<Option<Self>> {
        let mut whole: Option<Self> = None;
        for header in engine.store().threads(session)? {
            let thread = engine.open(session, &header.thread, Mode::Read)?;
            let Some(mark) = Self::of(&thread)? else { continue };
            whole = Some(match whole {
                Some(before) => before.and(mark),
                None => mark,
            });
        }
        Ok(whole)
    }

    /// Both: what is later in each. Time is counted from where turns are.
    fn and(self, other: Self) -> Self {
        let spent_ms = match self.turns_from.cmp(&other.turns_from) {
            Ordering::Greater => self.spent_ms,
            Ordering::Less => other.spent_ms,
            Ordering::Equal => self.spent_ms.max(other.spent_ms),
        };
        Self {
            title: self.title.or(other.title),
            url: self.url.or(other.url),
            folder: self.folder.or(other.folder),
            clone_url: self.clone_url.or(other.clone_url),
            playbook: self.playbook.or(other.playbook),
            seen: later(self.seen, other.seen),
            spent_ms,
            turns_from: self.turns_from.max(other.turns_from),
            tokens_from: self.tokens_from.max(other.tokens_from),
        }
    }
}

/// A value as it is noted.
pub(super) fn note(value: &impl Serialize) -> Result<Raw> {
    let text = serde_json::to_string(value).and_then(Raw::parse);
    Ok(text.map_err(std::io::Error::from)?)
}

/// What was last noted in a thread, where it can be read.
pub(super) fn noted<T: DeserializeOwned>(thread: &Thread<'_>, about: &str) -> Result<Option<T>> {
    Ok(thread.noted(about)?.and_then(|(_, value)| serde_json::from_str(value.get()).ok()))
}

/// The later of two comments; ids are the source's: a later one is longer, or as long and sorts behind.
pub(super) fn later(one: Option<String>, other: Option<String>) -> Option<String> {
    let key = |id: &Option<String>| id.as_ref().map(|id| (id.len(), id.clone()));
    if key(&one) >= key(&other) { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_in_any_thread_was_seen() {
        let mark = |seen: &str, spent_ms| Mark { seen: Some(seen.to_owned()), spent_ms, ..Mark::default() };
        assert_eq!(mark("99", 5).and(mark("100", 3)), mark("100", 5));
        assert_eq!(Mark::default().and(mark("7", 0)), mark("7", 0));
        let anew = Mark { turns_from: 4, ..Mark::default() };
        assert_eq!(
            anew.clone().and(mark("7", 50)).spent_ms,
            0,
            "a task that is let go on has all its time again"
        );
        assert_eq!(mark("7", 50).and(anew).spent_ms, 0);
    }
}
