//! A tracker of issues, whichever: how it is asked and told, and what differs from one to the next.

use super::seen::{self, Change, Seen};
use super::wire::{Ask, Wire};
use super::{Comment, Ended, Error, Look, Source, Tracker, mark, repo_of};
use crate::task::Task;
use komado_provider::{Cancel, Client, Method};
use serde::de::DeserializeOwned;
use serde_json::json;

/// What one tracker has of its own.
pub(super) trait Forge: Send + Default {
    /// An issue, as it is listed.
    type Issue: DeserializeOwned;
    /// A comment, as it is listed.
    type Said: DeserializeOwned;

    /// What a repository is called, and the setting that names some.
    const REPO: (&'static str, &'static str);
    /// Lists by which tasks are found: their name in a path, and the type of their tasks.
    const LISTS: &'static [(&'static str, &'static str)];
    /// What a comment is called, and how all of an issue are asked for.
    const COMMENT: (&'static str, &'static str);

    /// Where the API is, for an address of the settings.
    fn root(given: &str) -> String;

    /// The path of a repository.
    fn repo(owner: &str, name: &str) -> String;

    /// What asks a list for the issues that wait.
    fn waiting(tracker: &Tracker) -> String;

    /// The list that has tasks of a type.
    fn list(task_type: &str) -> &'static str;

    /// An issue of a list of this type.
    fn seen(issue: Self::Issue, task_type: &'static str) -> Seen;

    /// What was said.
    fn words(said: &Self::Said) -> &str;

    /// Changes the labels of an issue; `None` when it is gone.
    fn change(wire: &Wire, what: &str, at: &At, change: &Change<'_>) -> Result<Option<()>, Error>;

    /// What was said of a task after `after`.
    fn news(&mut self, ear: &Wire, at: &At, seen: &Seen, after: Option<&str>) -> Result<Vec<Comment>, Error>;
}

/// Where a task is at its tracker.
pub(super) struct At {
    /// What people call it.
    pub(super) name: String,
    repo: String,
    list: &'static str,
    number: u64,
}

impl At {
    /// Its path.
    pub(super) fn path(&self) -> String {
        self.in_list(self.list)
    }

    /// Its path in another list that has it.
    pub(super) fn in_list(&self, list: &str) -> String {
        format!("{}/{list}/{}", self.repo, self.number)
    }

    /// The path of what was said of it.
    pub(super) fn said<F: Forge>(&self) -> String {
        format!("{}/{}s", self.path(), F::COMMENT.0)
    }
}

/// The issues of a tracker.
pub(super) struct Issues<F> {
    tracker: Tracker,
    wire: Wire,
    /// For what is asked until somebody breaks it off; what is said is said.
    ear: Wire,
    forge: F,
}

impl<F: Forge> Issues<F> {
    pub(super) fn new(tracker: Tracker, client: Client, cancel: Cancel) -> Self {
        let root = F::root(tracker.base_url.trim().trim_end_matches('/'));
        let wire = Wire::new(&tracker, root, client);
        Self { tracker, ear: wire.until(cancel), wire, forge: F::default() }
    }

    /// Hands on the tasks of one list that wait, until `each` says no; then false.
    fn of_list(
        &self,
        repo: &str,
        (list, task_type): (&str, &'static str),
        each: &mut dyn FnMut(Task) -> bool,
    ) -> Result<bool, Error> {
        let tracker = &self.tracker;
        let (owner, name) = repo_of(tracker.kind, repo)?;
        let what = format!("the {} of {repo}", list.replace('_', " "));
        let path = format!("{}/{list}", F::repo(owner, name));
        let mut goes_on = true;
        let found = self.ear.list(&what, &path, &F::waiting(tracker), &mut |issue: F::Issue| {
            let seen = F::seen(issue, task_type);
            if seen.waits(tracker) {
                goes_on = each(seen.task(tracker.kind, owner, name));
            }
            goes_on
        })?;
        if !found {
            let (repo, setting) = F::REPO;
            let why = format!("there is no such {repo}, or the token does not show it ({setting})");
            return Err(self.wire.refused(&what, &why));
        }
        Ok(goes_on)
    }

    fn at(&self, task: &Task) -> Result<At, Error> {
        let key = &task.key;
        let full = format!("{}/{}", key.owner, key.repo);
        let (owner, name) = repo_of(self.tracker.kind, &full)?;
        let number = key.task_id.parse().map_err(|_| self.wire.refused(&task.name, "its number is none"))?;
        Ok(At { name: task.name.clone(), repo: F::repo(owner, name), list: F::list(&key.task_type), number })
    }

    fn issue(&self, wire: &Wire, at: &At) -> Result<Option<Seen>, Error> {
        let issue = wire.get::<F::Issue>(&Ask::get(&at.name, at.path()))?;
        Ok(issue.map(|issue| F::seen(issue, "")))
    }

    fn change(&self, wire: &Wire, at: &At, change: &Change<'_>) -> Result<Option<()>, Error> {
        F::change(wire, &format!("the labels of {}", at.name), at, change)
    }
}

impl<F: Forge> Source for Issues<F> {
    fn waiting(&mut self, each: &mut dyn FnMut(Task) -> bool) -> Result<(), Error> {
        for repo in &self.tracker.repos {
            for list in F::LISTS {
                if !self.of_list(repo, *list, each)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, task: &Task) -> Result<(), Error> {
        let done = self.change(&self.ear, &self.at(task)?, &seen::begins(&self.tracker))?;
        done.ok_or_else(|| {
            let setting = format!("{}.token", self.tracker.kind.name());
            let why = format!("it is gone, or the token may not change it ({setting})");
            self.wire.refused(&task.name, &why)
        })
    }

    fn look(&mut self, task: &Task, after: Option<&str>) -> Result<Look, Error> {
        let at = self.at(task)?;
        let Some(seen) = self.issue(&self.ear, &at)? else { return Ok(Look::gone()) };
        if let Some(why) = seen.unwanted(&self.tracker) {
            return Ok(Look { comments: Vec::new(), unwanted: Some(why) });
        }
        let comments = self.forge.news(&self.ear, &at, &seen, after)?;
        Ok(Look { comments, unwanted: None })
    }

    fn say(&mut self, task: &Task, mark: &str, text: &str) -> Result<(), Error> {
        let at = self.at(task)?;
        let (one, query) = F::COMMENT;
        let (what, path) = (format!("a {one} on {}", at.name), at.said::<F>());
        let line = mark::line(mark);
        let body = Some(json!({ "body": mark::comment(self.tracker.kind, mark, text) }));
        let ask = Ask { what: &what, method: Method::POST, path: path.clone(), body };
        self.wire.post_once(&ask, &mut || {
            let mut is_there = false;
            self.wire.list(&what, &path, query, &mut |said: F::Said| {
                is_there = mark::has(F::words(&said), &line);
                !is_there
            })?;
            Ok(is_there)
        })
    }

    fn end(&mut self, task: &Task, ended: Ended) -> Result<(), Error> {
        let at = self.at(task)?;
        // Of an issue that is gone there is nothing to be said.
        let Some(seen) = self.issue(&self.wire, &at)? else { return Ok(()) };
        self.change(&self.wire, &at, &seen.ends(&self.tracker, ended)).map(drop)
    }
}
