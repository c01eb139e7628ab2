//! GitLab: issues and merge requests are two lists, labels change in one request, and some notes are the tracker's own.

use super::news::News;
use super::place::Place;
use super::seen::{self, Change, Seen};
use super::wire::{Ask, Wire};
use super::words::Words;
use super::{Comment, Ended, Error, Look, Source, Tracker, mark, repo_of};
use crate::percent::encode;
use crate::task::Task;
use komado_provider::{Cancel, Client, Method};
use serde::Deserialize;
use serde_json::json;

/// Lists by which tasks are found: their name in a path, and that of their tasks.
const LISTS: [(&str, &str); 2] = [("issues", "issue"), ("merge_requests", "pull_request")];

/// How notes are listed.
const NEWEST_FIRST: &str = "sort=desc&order_by=created_at&per_page=100";

/// GitLab.
pub(super) struct GitLab {
    tracker: Tracker,
    wire: Wire,
    /// For what is asked until somebody breaks it off; what is said is said.
    ear: Wire,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct Issue {
    iid: u64,
    #[serde(default)]
    title: Words,
    #[serde(default)]
    description: Words,
    author: Option<User>,
    #[serde(default)]
    labels: Vec<String>,
    assignees: Option<Vec<User>>,
    #[serde(default)]
    web_url: String,
    state: String,
}

impl Issue {
    fn seen(self, task_type: &'static str) -> Seen {
        Seen {
            number: self.iid,
            task_type,
            title: self.title.0,
            text: self.description.0,
            author: self.author.map(|user| user.username),
            labels: self.labels,
            assignees: self.assignees.into_iter().flatten().map(|user| user.username).collect(),
            url: self.web_url,
            state: if self.state == "opened" { "open".to_owned() } else { self.state },
        }
    }
}

#[derive(Deserialize)]
struct Note {
    id: u64,
    #[serde(default)]
    body: Words,
    author: Option<User>,
    #[serde(default)]
    system: bool,
    /// Of a note in the code.
    position: Option<Position>,
}

#[derive(Deserialize)]
struct Position {
    #[serde(default)]
    old_path: Words,
    #[serde(default)]
    new_path: Words,
    old_line: Option<u64>,
    new_line: Option<u64>,
}

impl Position {
    /// A line that was taken out has a number of before alone.
    fn place(&self) -> Place<'_> {
        let (path, line, of) = match (self.new_line, self.old_line) {
            (None, Some(line)) => (&self.old_path.0, Some(line), Some("before the change")),
            (line, _) => (&self.new_path.0, line, None),
        };
        Place { path, line, of, ..Place::default() }
    }
}

impl Note {
    fn comment(self) -> Comment {
        let author = self.author.map_or_else(|| "ghost".to_owned(), |user| user.username);
        let text = match &self.position {
            Some(position) => position.place().says(&self.body.0),
            None => self.body.0,
        };
        Comment { id: self.id.to_string(), author, text }
    }
}

impl GitLab {
    pub(super) fn new(tracker: Tracker, client: Client, cancel: Cancel) -> Self {
        let given = tracker.base_url.trim().trim_end_matches('/');
        let is_whole = given.ends_with("/api/v4");
        let root = if is_whole { given.to_owned() } else { format!("{given}/api/v4") };
        let wire = Wire::new(&tracker, root, client);
        Self { tracker, ear: wire.until(cancel), wire }
    }

    fn of_list(
        &self,
        repo: &str,
        (list, task_type): (&str, &'static str),
        each: &mut dyn FnMut(Task) -> bool,
    ) -> Result<bool, Error> {
        let (owner, name) = repo_of(self.tracker.kind, repo)?;
        let tracker = &self.tracker;
        let user = tracker.user.as_deref().map(|user| format!("&assignee_username={}", encode(user)));
        let query = format!(
            "state=opened&scope=all&order_by=created_at&sort=asc&per_page=100&labels={}{}",
            encode(&tracker.label),
            user.unwrap_or_default()
        );
        let what = format!("the {} of {repo}", list.replace('_', " "));
        let path = format!("/projects/{}/{list}", encode(repo));
        let mut goes_on = true;
        let found = self.ear.list(&what, &path, &query, &mut |issue: Issue| {
            let seen = issue.seen(task_type);
            if seen.waits(tracker) {
                goes_on = each(seen.task(tracker.kind, owner, name));
            }
            goes_on
        })?;
        if !found {
            return Err(self.wire.refused(
                &what,
                "there is no such project, or the token does not show it (gitlab.projects)",
            ));
        }
        Ok(goes_on)
    }

    /// The path of a task's issue.
    fn at(&self, task: &Task) -> Result<String, Error> {
        let key = &task.key;
        let list = if key.task_type == "issue" { "issues" } else { "merge_requests" };
        let full = format!("{}/{}", key.owner, key.repo);
        repo_of(self.tracker.kind, &full)?;
        let number: u64 =
            key.task_id.parse().map_err(|_| self.wire.refused(&task.name, "its number is none"))?;
        Ok(format!("/projects/{}/{list}/{number}", encode(&full)))
    }

    /// Changes labels; `None` when the issue is gone.
    fn change(&self, wire: &Wire, task: &Task, change: &Change<'_>) -> Result<Option<()>, Error> {
        let what = format!("the labels of {}", task.name);
        let body =
            json!({ "add_labels": change.on.unwrap_or_default(), "remove_labels": change.off.join(",") });
        wire.tell(&Ask { what: &what, method: Method::PUT, path: self.at(task)?, body: Some(body) })
    }

    /// Notes after `after`. They are read from the newest, so that a long talk is not read again and again; of more than
    /// there is room for, the oldest are kept, and the others are news the next time.
    fn news(&self, what: &str, at: &str, after: u64) -> Result<Vec<Comment>, Error> {
        let mut news = News::new();
        self.ear.list(what, &format!("{at}/notes"), NEWEST_FIRST, &mut |note: Note| {
            if note.id <= after {
                return false;
            }
            if !note.system && !mark::is_ours(&note.body.0) {
                news.add(note.id, note.comment());
            }
            true
        })?;
        Ok(news.into_all().map(|(_, comment)| comment).collect())
    }
}

impl Source for GitLab {
    fn waiting(&mut self, each: &mut dyn FnMut(Task) -> bool) -> Result<(), Error> {
        for repo in &self.tracker.repos {
            for list in LISTS {
                if !self.of_list(repo, list, each)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, task: &Task) -> Result<(), Error> {
        self.change(&self.ear, task, &seen::begins(&self.tracker))?.ok_or_else(|| {
            self.wire.refused(&task.name, "it is gone, or the token may not change it (gitlab.token)")
        })
    }

    fn look(&mut self, task: &Task, after: Option<&str>) -> Result<Look, Error> {
        let at = self.at(task)?;
        let Some(issue) = self.ear.get::<Issue>(&Ask::get(&task.name, at.clone()))? else {
            return Ok(Look::gone());
        };
        if let Some(why) = issue.seen("").unwanted(&self.tracker) {
            return Ok(Look { comments: Vec::new(), unwanted: Some(why) });
        }
        let after = after.and_then(|id| id.parse().ok()).unwrap_or(0);
        let comments = self.news(&format!("the notes of {}", task.name), &at, after)?;
        Ok(Look { comments, unwanted: None })
    }

    fn say(&mut self, task: &Task, mark: &str, text: &str) -> Result<(), Error> {
        let what = format!("a note on {}", task.name);
        let path = format!("{}/notes", self.at(task)?);
        let line = mark::line(mark);
        let body = Some(json!({ "body": mark::comment(self.tracker.kind, mark, text) }));
        let ask = Ask { what: &what, method: Method::POST, path: path.clone(), body };
        self.wire.post_once(&ask, &mut || {
            let mut is_there = false;
            self.wire.list(&what, &path, NEWEST_FIRST, &mut |note: Note| {
                is_there = mark::has(&note.body.0, &line);
                !is_there
            })?;
            Ok(is_there)
        })
    }

    fn end(&mut self, task: &Task, ended: Ended) -> Result<(), Error> {
        // Of an issue that is gone there is nothing to be said.
        let Some(issue) = self.wire.get::<Issue>(&Ask::get(&task.name, self.at(task)?))? else {
            return Ok(());
        };
        self.change(&self.wire, task, &issue.seen("").ends(&self.tracker, ended)).map(drop)
    }
}
