//! An issue or a pull request, as it stands at the tracker.

use super::review::Review;
use komado_agent::task::Task;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum IssueSort {
    /// An issue.
    Issue,
    /// A pull request, or a merge request.
    Pull,
}

/// Where an issue is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CommentPlace {
    /// The repository, with its owner.
    pub repo: String,
    /// Which of the two: at GitLab each counts for itself.
    pub sort: IssueSort,
    /// Its number.
    pub number: u64,
}

impl CommentPlace {
    /// Where the issue of a task is; `None` for a task of no tracker.
    pub fn of(task: &Task) -> Option<Self> {
        let sort = if task.key.task_type == "issue" { IssueSort::Issue } else { IssueSort::Pull };
        let number = task.key.task_id.parse().ok()?;
        Some(Self { repo: format!("{}/{}", task.key.owner, task.key.repo), sort, number })
    }
}

/// Where it is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IssueStage {
    /// To be done.
    #[default]
    Open,
    /// Done, or refused.
    Closed,
    /// A pull request that was taken in.
    Merged,
}

/// Something that was said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrackerComment {
    /// Its id; later ones are larger.
    pub id: u64,
    /// Whose.
    pub author: String,
    /// The words.
    pub text: String,
    /// True for what GitLab itself writes about changes.
    pub system: bool,
    /// The file and the line of a note in the code, at GitLab.
    pub on: Option<(String, u64)>,
    /// When, on the stand-in's clock.
    pub at: i64,
}

/// An issue or a pull request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FakeIssue {
    /// Its title.
    pub title: String,
    /// Its text; there may be none.
    pub text: Option<String>,
    /// Whose it is.
    pub author: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Who is to do it.
    pub assignees: Vec<String>,
    /// Where it is in its life.
    pub stage: IssueStage,
    /// What was said about it.
    pub comments: Vec<TrackerComment>,
    /// Reviews of a pull request at GitHub, in the order in which users began to write them.
    pub reviews: Vec<Review>,
    /// When it was made, on the stand-in's clock.
    pub at: i64,
}

impl FakeIssue {
    /// With this title, by `ghost`, and nothing else.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), author: "ghost".into(), ..Self::default() }
    }

    /// With this text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..self }
    }

    /// With one more label.
    #[must_use]
    pub fn label(mut self, label: &str) -> Self {
        self.put_on(label);
        self
    }

    /// With one more who is to do it.
    #[must_use]
    pub fn assigned(mut self, user: &str) -> Self {
        self.assignees.push(user.to_owned());
        self
    }

    /// By a user.
    #[must_use]
    pub fn by(self, author: &str) -> Self {
        Self { author: author.to_owned(), ..self }
    }

    pub(super) fn put_on(&mut self, label: &str) {
        if !self.has(label) {
            self.labels.push(label.to_owned());
        }
    }

    pub(super) fn has(&self, label: &str) -> bool {
        self.labels.iter().any(|other| other == label)
    }
}
