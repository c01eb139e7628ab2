//! What a stand-in knows: repositories, issues, what it was asked, and how it is to fail.

use super::issue::{Comment, Issue, Place, Sort};
use super::review::Review;
use komado_agent::source::Kind;
use std::collections::{BTreeMap, VecDeque};

/// When the clock of every stand-in begins: 2026-01-01T00:00:00Z.
const BEGINNING: i64 = 1_767_225_600;
/// How many requests are remembered.
const MOST_REQUESTS: usize = 20_000;

/// A request as it came, and how it was answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Such as `GET`.
    pub method: String,
    /// Path and query, as they were sent.
    pub path: String,
    /// The status; 0 when the connection was cut.
    pub status: u16,
}

/// What is said when there were too many requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The quota is used up: the next one begins so many seconds from now.
    Quota(u32),
    /// Too many at once: to be tried again after so many seconds.
    Burst(u32),
}

/// How a request fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// With this status, in the tracker's own shape.
    Status(u16),
    /// With this status, and a page of a proxy in between.
    Page(u16),
    /// The connection ends, and nothing was done.
    Cut,
    /// What was asked is done, and the connection ends before the answer.
    CutAfter,
    /// The answer ends in the middle.
    Half,
    /// There were too many.
    Limit(Limit),
}

/// A repository. Deleted issues leave an empty place, so that numbers stay.
#[derive(Default)]
pub(super) struct Repo {
    issues: BTreeMap<(Sort, u64), Option<Issue>>,
}

/// Everything.
pub(super) struct Desk {
    pub(super) kind: Kind,
    pub(super) token: String,
    /// Where people look at issues.
    pub(super) root: String,
    /// Where links to the next page lead.
    pub(super) link_root: String,
    pub(super) requests: Vec<Request>,
    repos: BTreeMap<String, Repo>,
    renamed: BTreeMap<String, String>,
    /// How the next requests fail; `None` for one that does not.
    faults: VecDeque<Option<Fault>>,
    now: i64,
    last_id: u64,
    last_review: u64,
    last_remark: u64,
}

impl Desk {
    pub(super) fn new(kind: Kind, token: &str, root: &str) -> Self {
        Self {
            kind,
            token: token.to_owned(),
            root: root.to_owned(),
            link_root: root.to_owned(),
            requests: Vec::new(),
            repos: BTreeMap::new(),
            renamed: BTreeMap::new(),
            faults: VecDeque::new(),
            now: BEGINNING,
            last_id: 1_000,
            last_review: 200,
            last_remark: 70_000,
        }
    }

    /// Seconds since 1970.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// A request came: a second has passed. How it is to fail, if it is.
    pub(super) fn next_fault(&mut self) -> Option<Fault> {
        self.now += 1;
        self.faults.pop_front().flatten()
    }

    pub(super) fn plan(&mut self, after: usize, times: usize, fault: &Fault) {
        self.faults.extend(std::iter::repeat_n(None, after));
        self.faults.extend(std::iter::repeat_n(Some(fault.clone()), times));
    }

    pub(super) fn record(&mut self, request: Request) {
        if self.requests.len() < MOST_REQUESTS {
            self.requests.push(request);
        }
    }

    pub(super) fn repo(&mut self, name: &str) -> &mut Repo {
        self.repos.entry(name.to_owned()).or_default()
    }

    pub(super) fn has_repo(&self, name: &str) -> bool {
        self.repos.contains_key(name)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) {
        if let Some(repo) = self.repos.remove(from) {
            self.repos.insert(to.to_owned(), repo);
        }
        self.renamed.insert(from.to_owned(), to.to_owned());
    }

    pub(super) fn renamed(&self, name: &str) -> Option<&str> {
        self.renamed.get(name).map(String::as_str)
    }

    pub(super) fn add(&mut self, repo: &str, sort: Sort, issue: Issue) -> Place {
        let (at, counts_together) = (self.tick(), self.kind == Kind::GitHub);
        let issues = &mut self.repo(repo).issues;
        let mine = |other: Sort| counts_together || other == sort;
        let last = issues.keys().filter(|(other, _)| mine(*other)).map(|(_, number)| *number).max();
        let number = last.unwrap_or(0) + 1;
        issues.insert((sort, number), Some(Issue { at, ..issue }));
        Place { repo: repo.to_owned(), sort, number }
    }

    fn tick(&mut self) -> i64 {
        self.now += 1;
        self.now
    }

    /// `None` when it never was; `Some(None)` when it was deleted.
    pub(super) fn slot(&self, place: &Place) -> Option<Option<&Issue>> {
        let slot = self.repos.get(&place.repo)?.issues.get(&(place.sort, place.number))?;
        Some(slot.as_ref())
    }

    pub(super) fn find(&self, place: &Place) -> Option<&Issue> {
        self.slot(place).flatten()
    }

    pub(super) fn all(&self, repo: &str) -> Vec<(Place, Issue)> {
        let issues = self.repos.get(repo).into_iter().flat_map(|repo| &repo.issues);
        let mut all: Vec<(Place, Issue)> = issues
            .filter_map(|((sort, number), issue)| {
                let place = Place { repo: repo.to_owned(), sort: *sort, number: *number };
                issue.clone().map(|issue| (place, issue))
            })
            .collect();
        all.sort_by_key(|(place, issue)| (issue.at, place.number));
        all
    }

    pub(super) fn change(&mut self, place: &Place, change: impl FnOnce(&mut Issue)) {
        if let Some(issue) = self.find_mut(place) {
            change(issue);
        }
    }

    fn find_mut(&mut self, place: &Place) -> Option<&mut Issue> {
        self.repos.get_mut(&place.repo)?.issues.get_mut(&(place.sort, place.number))?.as_mut()
    }

    pub(super) fn delete(&mut self, place: &Place) {
        if let Some(repo) = self.repos.get_mut(&place.repo) {
            repo.issues.insert((place.sort, place.number), None);
        }
    }

    /// GitLab writes a note about it.
    pub(super) fn unassign(&mut self, place: &Place) {
        self.change(place, |issue| issue.assignees.clear());
        if self.kind == Kind::GitLab {
            self.comment(place, By::Tracker, "removed assignee");
        }
    }

    /// One more comment; its id. `None` when there is no such issue.
    pub(super) fn comment(&mut self, place: &Place, by: By<'_>, text: &str) -> Option<u64> {
        let (id, at) = (self.last_id + 1, self.tick());
        let (author, system) = match by {
            By::User(user) => (user, false),
            By::Tracker => ("ghost", true),
        };
        let comment = Comment { id, author: author.to_owned(), text: text.to_owned(), system, on: None, at };
        self.find_mut(place)?.comments.push(comment);
        self.last_id = id;
        Some(id)
    }

    /// A user writes a review, and has not sent it; its number.
    pub(super) fn draft(&mut self, place: &Place, mut review: Review) -> Option<u64> {
        let at = self.tick();
        self.last_review += 1;
        review.id = self.last_review;
        for remark in &mut review.remarks {
            self.last_remark += 1;
            (remark.id, remark.at) = (self.last_remark, at);
        }
        self.find_mut(place)?.reviews.push(review);
        Some(self.last_review)
    }

    /// It is sent.
    pub(super) fn send(&mut self, place: &Place, id: u64) {
        let now = self.tick();
        self.change(place, |issue| {
            issue
                .reviews
                .iter_mut()
                .filter(|review| review.id == id)
                .for_each(|review| review.sent = Some(now));
        });
    }
}

/// Who writes a comment.
#[derive(Clone, Copy)]
pub(super) enum By<'a> {
    /// A user.
    User(&'a str),
    /// The tracker itself, about a change.
    Tracker,
}
