//! GitHub, and GitHub Enterprise: issues and pull requests are one list, labels are put on and taken off one by one.

use super::cursor::{Cursor, Spot};
use super::news::News;
use super::review::{self, seconds};
use super::seen::{self, Change, Seen};
use super::tracker::{At, Forge};
use super::wire::{Ask, Wire};
use super::words::Words;
use super::{Comment, Error, Kind, Tracker, mark};
use crate::percent::encode;
use jiff::Timestamp;
use komado_provider::Method;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

/// The type of a pull request.
const PULL: &str = "pull_request";

/// GitHub, and what it said last.
#[derive(Default)]
pub(super) struct GitHub(Heard);

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
pub(super) struct Issue {
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

#[derive(Deserialize)]
pub(super) struct Said {
    id: u64,
    #[serde(default)]
    body: Words,
    user: Option<User>,
    created_at: String,
}

impl Forge for GitHub {
    type Issue = Issue;
    type Said = Said;

    const REPO: (&'static str, &'static str) = ("repository", "github.repos");
    const LISTS: &'static [(&'static str, &'static str)] = &[("issues", "issue")];
    const COMMENT: (&'static str, &'static str) = ("comment", "per_page=100");

    fn root(given: &str) -> String {
        // What stands in a browser is not where the API is.
        let root = if given == "https://github.com" { "https://api.github.com" } else { given };
        root.to_owned()
    }

    fn repo(owner: &str, name: &str) -> String {
        format!("/repos/{}/{}", encode(owner), encode(name))
    }

    fn waiting(tracker: &Tracker) -> String {
        let user = tracker.user.as_deref().map(|user| format!("&assignee={}", encode(user)));
        format!(
            "state=open&sort=created&direction=asc&per_page=100&labels={}{}",
            encode(&tracker.label),
            user.unwrap_or_default()
        )
    }

    fn list(_: &str) -> &'static str {
        "issues"
    }

    /// Pull requests are issues, too.
    fn seen(issue: Issue, _: &'static str) -> Seen {
        Seen {
            number: issue.number,
            task_type: if issue.pull_request.is_some() { PULL } else { "issue" },
            title: issue.title.0,
            text: issue.body.0,
            author: issue.user.map(|user| user.login),
            labels: issue.labels.into_iter().map(|label| label.name).collect(),
            assignees: issue.assignees.into_iter().map(|user| user.login).collect(),
            url: issue.html_url,
            state: issue.state,
        }
    }

    fn words(said: &Said) -> &str {
        &said.body.0
    }

    /// To put one on tells which others are there.
    fn change(wire: &Wire, what: &str, at: &At, change: &Change<'_>) -> Result<Option<()>, Error> {
        let path = format!("{}/labels", at.path());
        let ask = match change.on {
            Some(on) => {
                let body = Some(json!({ "labels": [on] }));
                Ask { what, method: Method::POST, path: path.clone(), body }
            }
            None => Ask::get(what, path.clone()),
        };
        let Some(labels) = wire.get::<Vec<Label>>(&ask)? else { return Ok(None) };
        for Label { name } in labels {
            if change.off.iter().any(|off| seen::same(Kind::GitHub, off, &name)) {
                let path = format!("{path}/{}", encode(&name));
                // One that is no longer there was taken off by somebody else.
                wire.tell(&Ask { what, method: Method::DELETE, path, body: None })?;
            }
        }
        Ok(Some(()))
    }

    /// Of the talk and of the reviews of a pull request together.
    fn news(&mut self, ear: &Wire, at: &At, seen: &Seen, after: Option<&str>) -> Result<Vec<Comment>, Error> {
        let after: Cursor = after.and_then(|id| id.parse().ok()).unwrap_or_default();
        let before = if self.0.to == after { self.0 } else { Heard::default() };
        let mut news = News::new();
        talk(ear, at, after, before.talk, &mut news)?;
        let mut review = None;
        if seen.task_type == PULL {
            let from = (after.review, before.review);
            review = review::read(ear, (&at.name, &at.in_list("pulls")), from, &mut news)?;
        }
        let mut heard = Heard { to: after, talk: before.talk, review: review.filter(|_| !news.is_full()) };
        let comments = news.into_all().map(|(spot, comment)| {
            heard.to.pass(spot);
            heard.talk = if spot.review == 0 { Some(spot.time) } else { heard.talk };
            Comment { id: heard.to.to_string(), ..comment }
        });
        let comments = comments.collect();
        self.0 = heard;
        Ok(comments)
    }
}

fn talk(ear: &Wire, at: &At, after: Cursor, since: Option<u64>, news: &mut News<Spot>) -> Result<(), Error> {
    let since = since.and_then(|time| Timestamp::from_second(time.try_into().ok()?).ok());
    let since = since.map(|time| format!("&since={}", encode(&time.to_string()))).unwrap_or_default();
    let (what, path) = (format!("the comments of {}", at.name), at.said::<GitHub>());
    let mut time = 0;
    ear.list(&what, &path, &format!("per_page=100{since}"), &mut |said: Said| {
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
