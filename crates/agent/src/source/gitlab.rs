//! GitLab: issues and merge requests are two lists, labels change in one request, and some notes are the tracker's own.

use super::client::{TrackerClient, TrackerRequest};
use super::text::{BoundedText, CodePlace, NewComments, encode};
use super::tracker::{self, IssuePath, LabelChange, TrackerApi, TrackerIssue};
use super::{Error, TaskComment};
use komado_provider::Method;
use serde::Deserialize;
use serde_json::json;

/// GitLab.
#[derive(Default)]
pub(super) struct GitLab;

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
pub(super) struct GitLabIssue {
    iid: u64,
    #[serde(default)]
    title: BoundedText,
    #[serde(default)]
    description: BoundedText,
    author: Option<User>,
    #[serde(default)]
    labels: Vec<String>,
    assignees: Option<Vec<User>>,
    #[serde(default)]
    web_url: String,
    state: String,
}

#[derive(Deserialize)]
pub(super) struct GitLabNote {
    id: u64,
    #[serde(default)]
    body: BoundedText,
    author: Option<User>,
    #[serde(default)]
    system: bool,
    /// Of a note in the code.
    position: Option<Position>,
}

#[derive(Deserialize)]
struct Position {
    #[serde(default)]
    old_path: BoundedText,
    #[serde(default)]
    new_path: BoundedText,
    old_line: Option<u64>,
    new_line: Option<u64>,
}

impl Position {
    /// A line that was taken out has a number of before alone.
    fn place(&self) -> CodePlace<'_> {
        let (path, line, of) = match (self.new_line, self.old_line) {
            (None, Some(line)) => (&self.old_path.0, Some(line), Some("before the change")),
            (line, _) => (&self.new_path.0, line, None),
        };
        CodePlace { path, line, of, ..CodePlace::default() }
    }
}

impl GitLabNote {
    fn comment(self) -> TaskComment {
        let author = self.author.map_or_else(|| "ghost".to_owned(), |user| user.username);
        let text = match &self.position {
            Some(position) => position.place().says(&self.body.0),
            None => self.body.0,
        };
        TaskComment { id: self.id.to_string(), author, text }
    }
}

impl TrackerApi for GitLab {
    type Issue = GitLabIssue;
    type Said = GitLabNote;

    const REPO: (&'static str, &'static str) = ("project", "gitlab.projects");
    const LISTS: &'static [(&'static str, &'static str)] =
        &[("issues", "issue"), ("merge_requests", "pull_request")];
    const COMMENT: (&'static str, &'static str) = ("note", "sort=desc&order_by=created_at&per_page=100");
    const WAITING: (&'static str, &'static str) =
        ("state=opened&scope=all&order_by=created_at&sort=asc", "assignee_username");

    fn root(given: &str) -> String {
        if given.ends_with("/api/v4") { given.to_owned() } else { format!("{given}/api/v4") }
    }

    fn repo(owner: &str, name: &str) -> String {
        format!("/projects/{}", encode(&format!("{owner}/{name}")))
    }

    fn list(task_type: &str) -> &'static str {
        if task_type == "issue" { "issues" } else { "merge_requests" }
    }

    fn seen(issue: GitLabIssue, task_type: &'static str) -> TrackerIssue {
        TrackerIssue {
            number: issue.iid,
            task_type,
            title: issue.title.0,
            text: issue.description.0,
            author: issue.author.map(|user| user.username),
            labels: issue.labels,
            assignees: issue.assignees.into_iter().flatten().map(|user| user.username).collect(),
            url: issue.web_url,
            state: if issue.state == "opened" { "open".to_owned() } else { issue.state },
        }
    }

    fn words(note: &GitLabNote) -> &str {
        &note.body.0
    }

    fn change(
        wire: &TrackerClient,
        what: &str,
        at: &IssuePath,
        change: &LabelChange<'_>,
    ) -> Result<Option<()>, Error> {
        let body =
            json!({ "add_labels": change.on.unwrap_or_default(), "remove_labels": change.off.join(",") });
        wire.tell(&TrackerRequest { what, method: Method::PUT, path: at.path(), body: Some(body) })
    }

    /// They are read from the newest, so that a long talk is not read again and again; of more than there is room for, the
    /// oldest are kept, and the others are news the next time.
    fn news(
        &mut self,
        ear: &TrackerClient,
        at: &IssuePath,
        _: &TrackerIssue,
        after: Option<&str>,
    ) -> Result<Vec<TaskComment>, Error> {
        let after = after.and_then(|id| id.parse().ok()).unwrap_or(0);
        let mut news = NewComments::new();
        let (what, path) = (format!("the notes of {}", at.name), at.said::<Self>());
        ear.list(&what, &path, Self::COMMENT.1, &mut |note: GitLabNote| {
            if note.id <= after {
                return false;
            }
            if !note.system && !tracker::is_ours(&note.body.0) {
                news.add(note.id, note.comment());
            }
            true
        })?;
        Ok(news.into_all().map(|(_, comment)| comment).collect())
    }
}
