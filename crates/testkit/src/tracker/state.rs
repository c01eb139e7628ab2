//! What a stand-in knows: repositories, issues, what it was asked, and how it is to fail.

use super::issue::{CommentPlace, FakeIssue, IssueSort, TrackerComment};
use super::review::Review;
use komado_agent::source::TrackerKind;
use std::collections::{BTreeMap, VecDeque};

/// When the clock of every stand-in begins: 2026-01-01T00:00:00Z.
const BEGINNING: i64 = 1_767_225_600;
/// How many requests are remembered.
const MOST_REQUESTS: usize = 20_000;

/// A request as it came, and how it was answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FakeTrackerRequest {
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
pub enum TrackerFault {
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
    issues: BTreeMap<(IssueSort, u64), Option<FakeIssue>>,
}

/// Everything.
pub(super) struct TrackerState {
    pub(super) kind: TrackerKind,
    pub(super) token: String,
    /// Where people look at issues.
    pub(super) root: String,
    /// Where links to the next page lead.
    pub(super) link_root: String,
    pub(super) requests: Vec<FakeTrackerRequest>,
    repos: BTreeMap<String, Repo>,
    renamed: BTreeMap<String, String>,
    /// How the next requests fail; `None` for one that does not.
    faults: VecDeque<Option<TrackerFault>>,
    now: i64,
    last_id: u64,
    last_review: u64,
    last_remark: u64,
}

impl TrackerState {
    pub(super) fn new(kind: TrackerKind, token: &str, root: &str) -> Self {
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
    pub(super) fn next_fault(&mut self) -> Option<TrackerFault> {
        self.now += 1;
        self.faults.pop_front().flatten()
    }

    pub(super) fn plan(&mut self, after: usize, times: usize, fault: &TrackerFault) {
        self.faults.extend(std::iter::repeat_n(None, after));
        self.faults.extend(std::iter::repeat_n(Some(fault.clone()), times));
    }

    pub(super) fn record(&mut self, request: FakeTrackerRequest) {
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

    pub(super) fn add(&mut self, repo: &str, sort: IssueSort, issue: FakeIssue) -> CommentPlace {
        let (at, counts_together) = (self.tick(), self.kind == TrackerKind::GitHub);
        let issues = &mut self.repo(repo).issues;
        let mine = |other: IssueSort| counts_together || other == sort;
        let last = issues.keys().filter(|(other, _)| mine(*other)).map(|(_, number)| *number).max();
        let number = last.unwrap_or(0) + 1;
        issues.insert((sort, number), Some(FakeIssue { at, ..issue }));
        CommentPlace { repo: repo.to_owned(), sort, number }
    }

    fn tick(&mut self) -> i64 {
        self.now += 1;
        self.now
    }

    /// `None` when it never was; `Some(None)` when it was deleted.
    pub(super) fn slot(&self, place: &CommentPlace) -> Option<Option<&FakeIssue>> {
        let slot = self.repos.get(&place.repo)?.issues.get(&(place.sort, place.number))?;
        Some(slot.as_ref())
    }

    pub(super) fn find(&self, place: &CommentPlace) -> Option<&FakeIssue> {
        self.slot(place).flatten()
    }

    pub(super) fn all(&self, repo: &str) -> Vec<(CommentPlace, FakeIssue)> {
        let issues = self.repos.get(repo).into_iter().flat_map(|repo| &repo.issues);
        let mut all: Vec<(CommentPlace, FakeIssue)> = issues
            .filter_map(|((sort, number), issue)| {
                let place = CommentPlace { repo: repo.to_owned(), sort: *sort, number: *number };
                issue.clone().map(|issue| (place, issue))
            })
            .collect();
        all.sort_by_key(|(place, issue)| (issue.at, place.number));
        all
    }

    pub(super) fn change(&mut self, place: &CommentPlace, change: impl FnOnce(&mut FakeIssue)) {
        if let Some(issue) = self.find_mut(place) {
            change(issue);
        }
    }

    fn find_mut(&mut self, place: &CommentPlace) -> Option<&mut FakeIssue> {
        self.repos.get_mut(&place.repo)?.issues.get_mut(&(place.sort, place.number))?.as_mut()
    }

    pub(super) fn delete(&mut self, place: &CommentPlace) {
        if let Some(repo) = self.repos.get_mut(&place.repo) {
            repo.issues.insert((place.sort, place.number), None);
        }
    }

    /// GitLab writes a note about it.
    pub(super) fn unassign(&mut self, place: &CommentPlace) {
        self.change(place, |issue| issue.assignees.clear());
        if self.kind == TrackerKind::GitLab {
            self.comment(place, Author::Tracker, "removed assignee");
        }
    }

    /// One more comment; its id. `None` when there is no such issue.
    pub(super) fn comment(&mut self, place: &CommentPlace, by: Author<'_>, text: &str) -> Option<u64> {
        let (id, at) = (self.last_id + 1, self.tick());
        let (author, system) = match by {
            Author::User(user) => (user, false),
            Author::Tracker => ("ghost", true),
        };
        let comment =
            TrackerComment { id, author: author.to_owned(), text: text.to_owned(), system, on: None, at };
        self.find_mut(place)?.comments.push(comment);
        self.last_id = id;
        Some(id)
    }

    /// A user writes a review, and has not sent it; its number.
    pub(super) fn draft(&mut self, place: &CommentPlace, mut review: Review) -> Option<u64> {
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
    pub(super) fn send(&mut self, place: &CommentPlace, id: u64) {
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
pub(super) enum Author<'a> {
    /// A user.
    User(&'a str),
    /// The tracker itself, about a change.
    Tracker,
}
