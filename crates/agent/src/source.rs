//! Where tasks come from, and who hears how they end: trackers with issues, or a file.
//!
//! A tracker is asked and told over HTTP. Whatever is told may be told twice, because the process that told it may have been killed
//! before they knew that it came through. What others write there is text, never an instruction.

mod client;
mod file;
mod github;
mod gitlab;
mod retry;
mod text;
mod tracker;

pub use file::read;
pub(crate) use text::head;

use crate::task::Task;
use komado_provider::{Cancel, Client};
use std::fmt;
use std::time::Duration;

/// Which tracker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrackerKind {
    /// GitHub, or GitHub Enterprise.
    GitHub,
    /// GitLab.
    GitLab,
}

komado_core::names! {
    /// `github` or `gitlab`.
    TrackerKind { GitHub = "github", GitLab = "gitlab" }
}

impl TrackerKind {
    /// As it writes itself.
    pub const fn title(self) -> &'static str {
        match self {
            Self::GitHub => "GitHub",
            Self::GitLab => "GitLab",
        }
    }
}

/// A tracker from the settings.
#[derive(Clone, PartialEq, Eq)]
pub struct TrackerConfig {
    /// Which.
    pub kind: TrackerKind,
    /// Where its API is.
    pub base_url: String,
    /// The key.
    pub token: Option<String>,
    /// Repositories or projects (`owner/name`).
    pub repos: Vec<String>,
    /// Whose assignment makes an issue a task of ours; any issue when there is none.
    pub user: Option<String>,
    /// The label that makes an issue a task.
    pub label: String,
    /// The label while it is worked on.
    pub running: String,
    /// The label once it is done.
    pub done: String,
    /// The label once it failed.
    pub failed: String,
    /// The label while it is paused.
    pub paused: String,
    /// How long to wait at most for a tracker that says that it was asked too often.
    pub patience: Duration,
}

impl fmt::Debug for TrackerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker")
            .field("kind", &self.kind)
            .field("base_url", &self.base_url)
            .field("repos", &self.repos)
            .finish_non_exhaustive()
    }
}

/// Why a tracker could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It could not be reached, or was too busy for too long: later may help.
    #[error("{tracker} cannot be asked now: {why}")]
    Away {
        /// Which, and where.
        tracker: String,
        /// Why.
        why: String,
    },
    /// It refuses: the key, a name, or what was asked for is wrong.
    #[error("{tracker} refuses {what}: {why}")]
    Refused {
        /// Which, and where.
        tracker: String,
        /// What was asked.
        what: String,
        /// What it said, and what to do.
        why: String,
    },
    /// A file or a line that is not a task.
    #[error("{place}: {why}")]
    BadTask {
        /// Where.
        place: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Something that was said about a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskComment {
    /// How far was heard, for the source that gave it alone. A later one is longer than an
    /// earlier one, or as long and sorts behind it.
    pub id: String,
    /// Whose.
    pub author: String,
    /// The words.
    pub text: String,
}

/// What a tracker says of a task that is worked on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskNews {
    /// Comments since the one asked for, in order, without our own.
    pub comments: Vec<TaskComment>,
    /// Why it is no longer wanted: our user is not assigned any more, it was closed, it is gone.
    pub unwanted: Option<String>,
}

impl TaskNews {
    /// There is no such thing any more.
    fn gone() -> Self {
        Self {
            comments: Vec::new(),
            unwanted: Some("it was deleted, or is no longer shown to us".to_owned()),
        }
    }
}

/// How work on a task ended, for its labels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceEnd {
    /// Well.
    Done,
    /// Not well.
    Failed,
    /// It rests.
    Paused,
    /// It was stopped: no label of ours stays.
    Stopped,
}

/// Where tasks come from; unless it says otherwise, a source that has no tasks and hears nothing. Everything may be asked twice: the process that asks may have been killed in between.
pub trait TaskSource: Send {
    /// Every task that waits, one after the other, page by page; `each` says whether to go on.
    fn waiting(&mut self, _each: &mut dyn FnMut(Task) -> bool) -> Result<(), Error> {
        Ok(())
    }

    /// Work on it begins: the label changes.
    fn begin(&mut self, _task: &Task) -> Result<(), Error> {
        Ok(())
    }

    /// What is new about it since the comment whose id is `after`.
    fn look(&mut self, _task: &Task, _after: Option<&str>) -> Result<TaskNews, Error> {
        Ok(TaskNews::default())
    }

    /// Says something about it, once: a comment that has this `mark` is not written again.
    fn say(&mut self, _task: &Task, _mark: &str, _text: &str) -> Result<(), Error> {
        Ok(())
    }

    /// Work on it ended: the label changes.
    fn end(&mut self, _task: &Task, _ended: SourceEnd) -> Result<(), Error> {
        Ok(())
    }
}

/// For tasks without a tracker: added by hand, or from a file.
pub struct NoSource;

impl TaskSource for NoSource {}

/// The source of a tracker. Settings by which it could never work are refused here. `cancel` breaks off what waits, looks
/// and begins; whatever is to be said of a task, and its end, is tried all the same.
pub fn open(tracker: TrackerConfig, client: Client, cancel: Cancel) -> Result<Box<dyn TaskSource>, Error> {
    tracker::check_labels(&tracker)?;
    for repo in &tracker.repos {
        repo_of(tracker.kind, repo)?;
    }
    Ok(match tracker.kind {
        TrackerKind::GitHub => {
            Box::new(tracker::TrackerSource::<github::GitHub>::new(tracker, client, cancel))
        }
        TrackerKind::GitLab => {
            Box::new(tracker::TrackerSource::<gitlab::GitLab>::new(tracker, client, cancel))
        }
    })
}

/// Owner and name of a repository. Groups of GitLab nest, and belong to the owner.
fn repo_of(kind: TrackerKind, repo: &str) -> Result<(&str, &str), Error> {
    let is_name = |piece: &str| !matches!(piece.trim(), "" | "." | "..");
    let found = repo.rsplit_once('/').filter(|(owner, name)| {
        is_name(name)
            && owner.split('/').all(is_name)
            && (kind == TrackerKind::GitLab || !owner.contains('/'))
    });
    found.ok_or_else(|| {
        let (setting, shape) = match kind {
            TrackerKind::GitHub => ("github.repos", "OWNER/NAME, such as ann/tool"),
            TrackerKind::GitLab => ("gitlab.projects", "GROUP/NAME, such as tools/web/front"),
        };
        Error::Refused {
            tracker: kind.name().to_owned(),
            what: format!("the repository {repo:?} ({setting})"),
            why: format!("write {shape}"),
        }
    })
}
