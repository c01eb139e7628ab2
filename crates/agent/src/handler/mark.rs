//! Where work on a task stands beside its conversation: the last comment taken in, the time it took, where counting began.
//! And what the task is called and works with: its job, which says so too, is gone when it is done.
//!
//! It is noted in the same write as the words it goes with, in the thread where they are said. A comment may be said in a
//! child thread, so the worker that takes a task up looks at the notes of all of them.

use crate::Result;
use crate::limits::{LimitsUsed, TaskLimits};
use crate::task::Task;
use komado_core::journal::Entry;
use komado_core::raw::RawJson;
use komado_core::{Kind, SessionId, ThreadId};
use komado_engine::{Engine, Error, Thread};
use komado_store::OpenMode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::path::PathBuf;
use std::time::Duration;

/// What the note is about.
pub const ABOUT: &str = "task";

/// Where work stands.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TaskMark {
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
    /// Turns that do not count: those before a user let a task that had failed go on.
    #[serde(default)]
    pub turns_from: u64,
    /// Tokens that do not count, for the same reason.
    #[serde(default)]
    pub tokens_from: u64,
}

impl TaskMark {
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
    pub fn raw(&self) -> Result<RawJson> {
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
            let thread = engine.open(session, &header.thread, OpenMode::Read)?;
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
pub(super) fn note(value: &impl Serialize) -> Result<RawJson> {
    let text = serde_json::to_string(value).and_then(RawJson::parse);
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

// A job's words in the journal of its task: what is stopped leaves the queue, and may be wanted after all.
//
// They are noted before the session is closed and the job goes, so that nothing is lost when the process is killed in between.
// One note is enough: a task never changes.

/// What the note is about.
const JOB_NOTE: &str = "job";

/// Notes in its session what a task is, unless that was done. False when the session was closed before a word could be said
/// anything of it: then nothing can be noted, either.
pub fn keep(engine: &Engine, session: &SessionId, task: &Task) -> Result<bool> {
    let mut root = engine.open(session, &ThreadId::root(), OpenMode::Amend)?;
    if root.noted(JOB_NOTE)?.is_some() {
        return Ok(true);
    }
    if root.view().closed().is_some() {
        return Ok(TaskMark::of(&root)?.is_some());
    }
    root.note(JOB_NOTE, note(task)?)?;
    root.settle()?;
    Ok(true)
}

/// What was noted.
pub fn kept(root: &Thread<'_>) -> Result<Option<Task>> {
    noted(root, JOB_NOTE)
}

// What a task took before the worker that has it now.

/// Requests of a task that the model answered, and what they took. Not those that the row of its session counts beside
/// them: answers that were lost, and summaries. What a task may take is the same whether or not it was killed on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct AnsweredCount {
    pub(super) turns: u64,
    pub(super) tokens: u64,
    /// Calls that were answered.
    pub(super) calls: u64,
}

impl AnsweredCount {
    /// As the journals of a session say, one entry at a time.
    pub(super) fn of_session(engine: &Engine, session: &SessionId) -> Result<Self> {
        let mut sum = Self::default();
        for header in engine.store().threads(session)? {
            let thread = engine.open(session, &header.thread, OpenMode::Read)?;
            for seq in header.base_seq() + 1..=thread.last() {
                match thread.source().head(seq).map_err(Error::from)?.kind {
                    Kind::Tool => sum.calls += 1,
                    Kind::Assistant => sum.add(&thread.record(seq)?.entry),
                    _ => {}
                }
            }
        }
        Ok(sum)
    }

    /// A call of a playbook's own is no reply.
    fn add(&mut self, entry: &Entry) {
        if let Entry::Message(_, Some(reply)) = entry {
            self.turns += 1;
            self.tokens += reply.usage.map_or(0, |usage| usage.total());
        }
    }
}

impl LimitsUsed {
    /// What was taken before counts, less what was before a retry.
    pub(super) fn after(limits: TaskLimits, mark: &TaskMark, before: &AnsweredCount) -> Self {
        let mut toll = Self::new(limits);
        toll.spent = Duration::from_millis(mark.spent_ms);
        toll.turns = before.turns.saturating_sub(mark.turns_from);
        toll.tokens = before.tokens.saturating_sub(mark.tokens_from);
        toll.calls = before.calls;
        toll
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_in_any_thread_was_seen() {
        let mark =
            |seen: &str, spent_ms| TaskMark { seen: Some(seen.to_owned()), spent_ms, ..TaskMark::default() };
        assert_eq!(mark("99", 5).and(mark("100", 3)), mark("100", 5));
        assert_eq!(TaskMark::default().and(mark("7", 0)), mark("7", 0));
        let anew = TaskMark { turns_from: 4, ..TaskMark::default() };
        assert_eq!(
            anew.clone().and(mark("7", 50)).spent_ms,
            0,
            "a task that is let go on has all its time again"
        );
        assert_eq!(mark("7", 50).and(anew).spent_ms, 0);
    }
}

#[cfg(test)]
mod toll_tests {
    use super::*;
    use crate::limits::LimitReached;

    fn toll(limits: TaskLimits) -> LimitsUsed {
        LimitsUsed::after(limits, &TaskMark::default(), &AnsweredCount::default())
    }

    #[test]
    fn errors_count_only_in_a_row() {
        let mut toll = toll(TaskLimits { errors: 2, ..TaskLimits::default() });
        toll.call(Some("first".into()));
        toll.call(None);
        toll.call(Some("second".into()));
        assert_eq!(toll.reached(), None);
        toll.call(Some("third".into()));
        assert_eq!(toll.reached(), Some(LimitReached::Errors(2, "third".into())));
    }

    #[test]
    fn what_others_took_counts_and_what_was_before_a_retry_does_not() {
        let limits = TaskLimits { turns: Some(5), tokens: Some(100), ..TaskLimits::default() };
        let before = AnsweredCount { turns: 9, tokens: 150, calls: 0 };
        let toll = LimitsUsed::after(limits, &TaskMark::default(), &before);
        assert_eq!(toll.reached(), Some(LimitReached::Turns(5)));
        let mark = TaskMark { turns_from: 9, tokens_from: 150, ..TaskMark::default() };
        let mut toll = LimitsUsed::after(limits, &mark, &before);
        assert_eq!(toll.reached(), None);
        toll.turn(100);
        assert_eq!(toll.reached(), Some(LimitReached::Tokens(100)));
    }

    #[test]
    fn a_call_that_is_repeated_too_often_ends_the_task_and_another_call_does_not() {
        let mut toll = toll(TaskLimits { repeats: Some(3), ..TaskLimits::default() });
        toll.repeat(2, "read");
        assert_eq!(toll.reached(), None);
        toll.repeat(3, "read");
        let Some(reached) = toll.reached() else { panic!("three times are enough") };
        assert!(reached.to_string().contains("read 3 times") && reached.to_string().contains("max_repeats"));
        toll.repeat(0, "");
        assert_eq!(toll.reached(), None);
    }

    #[test]
    fn time_counts_from_the_first_worker_on() {
        let limits = TaskLimits { time: Some(Duration::from_secs(60)), ..TaskLimits::default() };
        let mark = TaskMark { spent_ms: 60_000, ..TaskMark::default() };
        assert_eq!(toll(limits).reached(), None);
        let toll = LimitsUsed::after(limits, &mark, &AnsweredCount::default());
        assert_eq!(toll.reached(), Some(LimitReached::Time(Duration::from_secs(60))));
    }
}
