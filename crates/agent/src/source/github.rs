//! GitHub, and GitHub Enterprise: issues and pull requests are one list, labels are put on and taken off one by one.

use super::cursor::{Cursor, Spot};
use super::news::News;
use super::review::{self, seconds};
use super::seen::{self, Change, Seen};
use super::wire::{Ask, Wire};
use super::words::Words;
use super::{Comment, Ended, Error, Look, Source, Tracker, mark, repo_of};
use crate::percent::encode;
use crate::task::Task;
use jiff::Timestamp;
use komado_provider::{Cancel, Client, Method};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

/// GitHub.
pub(super) struct GitHub {
    tracker: Tracker,
    wire: Wire,
    /// For what is asked until somebody breaks it off; what is said is said.
    ear: Wire,
    heard: Heard,
}

/// What is known since the last look, and saves requests as long as the next one goes on from there.
#[derive(Clone, Copy, Default)]
struct Heard {
    /// How far it went.
    to: Cursor,
    /// When its last comment was written: GitHub lists comments since a time, not since one.
    talk: Option<u64>,
    /// The review that was sent last, when all was heard of it.
    review: Option<Spot>,
}

#[derive(Deserialize)]
pub(super) struct User {
    login: String,
}

impl User {
    /// As GitHub shows somebody who is no longer there.
    pub(super) fn name(user: Option<Self>) -> String {
        user.map_or_else(|| "ghost".to_owned(), |user| user.login)
    }
}

#[derive(Deserialize)]
struct Label {
    name: String,
}

#[derive(Deserialize)]
struct Issue {
    number: u64,
    #[serde(default)]
    title: Words,
    #[serde(default)]
    body: Words,
    user: Option<User>,
    #[serde(default)]
    labels: Vec<Label>,
    #[serde(default)]
    assignees: Vec<User>,
    #[serde(default)]
    html_url: String,
    state: String,
    pull_request: Option<IgnoredAny>,
}

impl From<Issue> for Seen {
    fn from(issue: Issue) -> Self {
        Self {
            number: issue.number,
            task_type: if issue.pull_request.is_some() { "pull_request" } else { "issue" },
            title: issue.title.0,
            text: issue.body.0,
            author: issue.user.map(|user| user.login),
            labels: issue.labels.into_iter().map(|label| label.name).collect(),
            assignees: issue.assignees.into_iter().map(|user| user.login).collect(),
            url: issue.html_url,
            state: issue.state,
        }
    }
}

#[derive(Deserialize)]
struct Said {
    id: u64,
    #[serde(default)]
    body: Words,
    user: Option<User>,
    created_at: String,
}

impl GitHub {
    pub(super) fn new(tracker: Tracker, client: Client, cancel: Cancel) -> Self {
        let given = tracker.base_url.trim().trim_end_matches('/');
        // What stands in a browser is not where the API is.
        let root = if given == "https://github.com" { "https://api.github.com" } else { given };
        let wire = Wire::new(&tracker, root.to_owned(), client);
        Self { tracker, ear: wire.until(cancel), wire, heard: Heard::default() }
    }

    fn of_repo(&self, repo: &str, each: &mut dyn FnMut(Task) -> bool) -> Result<bool, Error> {
        let (owner, name) = repo_of(self.tracker.kind, repo)?;
        let tracker = &self.tracker;
        let user = tracker.user.as_deref().map(|user| format!("&assignee={}", encode(user)));
        let query = format!(
            "state=open&sort=created&direction=asc&per_page=100&labels={}{}",
            encode(&tracker.label),
            user.unwrap_or_default()
        );
        let (what, path) =
            (format!("the issues of {repo}"), format!("/repos/{}/{}/issues", encode(owner), encode(name)));
        let mut goes_on = true;
        let found = self.ear.list(&what, &path, &query, &mut |issue: Issue| {
            let seen = Seen::from(issue);
            if seen.waits(tracker) {
                goes_on = each(seen.task(tracker.kind, owner, name));
            }
            goes_on
        })?;
        if !found {
            return Err(self.wire.refused(
                &what,
                "there is no such repository, or the token does not show it (github.repos)",
            ));
        }
        Ok(goes_on)
    }

    /// The path of a task's issue.
    fn at(&self, task: &Task) -> Result<String, Error> {
        self.in_list("issues", task)
    }

    /// The path of a task in one of the lists that have it.
    fn in_list(&self, list: &str, task: &Task) -> Result<String, Error> {
        let key = &task.key;
        let full = format!("{}/{}", key.owner, key.repo);
        let (owner, name) = repo_of(self.tracker.kind, &full)?;
        let number: u64 =
            key.task_id.parse().map_err(|_| self.wire.refused(&task.name, "its number is none"))?;
        Ok(format!("/repos/{}/{}/{list}/{number}", encode(owner), encode(name)))
    }

    /// Changes labels; `None` when the issue is gone. To put one on tells which others are there.
    fn change(&self, wire: &Wire, task: &Task, change: &Change<'_>) -> Result<Option<()>, Error> {
        let what = format!("the labels of {}", task.name);
        let path = format!("{}/labels", self.at(task)?);
        let ask = match change.on {
            Some(on) => {
                let body = Some(json!({ "labels": [on] }));
                Ask { what: &what, method: Method::POST, path: path.clone(), body }
            }
            None => Ask::get(&what, path.clone()),
        };
        let Some(labels) = wire.get::<Vec<Label>>(&ask)? else { return Ok(None) };
        for Label { name } in labels {
            if change.off.iter().any(|off| seen::same(self.tracker.kind, off, &name)) {
                let path = format!("{path}/{}", encode(&name));
                // One that is no longer there was taken off by somebody else.
                wire.tell(&Ask { what: &what, method: Method::DELETE, path, body: None })?;
            }
        }
        Ok(Some(()))
    }

    /// What was said after `after`, of the talk and of the reviews of a pull request together.
    fn news(&mut self, task: &Task, after: Cursor, is_pull: bool) -> Result<Vec<Comment>, Error> {
        let before = if self.heard.to == after { self.heard } else { Heard::default() };
        let mut news = News::new();
        self.talk(task, after, before.talk, &mut news)?;
        let mut review = None;
        if is_pull {
            let pull = self.in_list("pulls", task)?;
            let from = (after.review, before.review);
            review = review::read(&self.ear, (&task.name, &pull), from, &mut news)?;
        }
        let mut heard = Heard { to: after, talk: before.talk, review: review.filter(|_| !news.is_full()) };
        let comments = news.into_all().map(|(spot, comment)| {
            heard.to.pass(spot);
            heard.talk = if spot.review == 0 { Some(spot.time) } else { heard.talk };
            Comment { id: heard.to.to_string(), ..comment }
        });
        let comments = comments.collect();
        self.heard = heard;
        Ok(comments)
    }

    fn talk(
        &self,
        task: &Task,
        after: Cursor,
        since: Option<u64>,
        news: &mut News<Spot>,
    ) -> Result<(), Error> {
        let since = since.and_then(|time| Timestamp::from_second(time.try_into().ok()?).ok());
        let since = since.map(|time| format!("&since={}", encode(&time.to_string()))).unwrap_or_default();
        let (what, path) = (format!("the comments of {}", task.name), format!("{}/comments", self.at(task)?));
        let mut time = 0;
        self.ear.list(&what, &path, &format!("per_page=100{since}"), &mut |said: Said| {
            if said.id <= after.comment || mark::is_ours(&said.body.0) {
                return true;
            }
            // They come in the order of their numbers, and are handed on in no other.
            time = time.max(seconds(&said.created_at).unwrap_or(0));
            let (author, text) = (User::name(said.user), said.body.0);
            let spot = Spot { time, review: 0, comment: said.id };
            news.add(spot, Comment { id: String::new(), author, text })
        })?;
        Ok(())
    }
}

impl Source for GitHub {
    fn waiting(&mut self, each: &mut dyn FnMut(Task) -> bool) -> Result<(), Error> {
        for repo in &self.tracker.repos {
            if !self.of_repo(repo, each)? {
                break;
            }
        }
        Ok(())
    }

    fn begin(&mut self, task: &Task) -> Result<(), Error> {
        self.change(&self.ear, task, &seen::begins(&self.tracker))?.ok_or_else(|| {
            self.wire.refused(&task.name, "it is gone, or the token may not change it (github.token)")
        })
    }

    fn look(&mut self, task: &Task, after: Option<&str>) -> Result<Look, Error> {
        let Some(issue) = self.ear.get::<Issue>(&Ask::get(&task.name, self.at(task)?))? else {
            return Ok(Look::gone());
        };
        let is_pull = issue.pull_request.is_some();
        if let Some(why) = Seen::from(issue).unwanted(&self.tracker) {
            return Ok(Look { comments: Vec::new(), unwanted: Some(why) });
        }
        let after = after.and_then(|id| id.parse().ok()).unwrap_or_default();
        let comments = self.news(task, after, is_pull)?;
        Ok(Look { comments, unwanted: None })
    }

    fn say(&mut self, task: &Task, mark: &str, text: &str) -> Result<(), Error> {
        let what = format!("a comment on {}", task.name);
        let path = format!("{}/comments", self.at(task)?);
        let line = mark::line(mark);
        let body = Some(json!({ "body": mark::comment(self.tracker.kind, mark, text) }));
        let ask = Ask { what: &what, method: Method::POST, path: path.clone(), body };
        self.wire.post_once(&ask, &mut || {
            let mut is_there = false;
            self.wire.list(&what, &path, "per_page=100", &mut |said: Said| {
                is_there = mark::has(&said.body.0, &line);
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
        self.change(&self.wire, task, &Seen::from(issue).ends(&self.tracker, ended)).map(drop)
    }
}
