//! Stand-ins for GitHub and GitLab: real HTTP, their shapes and their words, issues in memory.
//!
//! They serve tests, and users who want to try their settings where nothing can be broken. They are as strict as the real
//! ones where a client could get it wrong (keys, pages, labels that are not there, comments without words), fail on demand
//! as those fail, and write down what they were asked. Their clock stands still but for one second with each request, so
//! that whatever they say is the same in every run.
//!
//! ```no_run
//! use komado_agent::source::TrackerKind;
//! use komado_testkit::tracker::{FakeIssue, TrackerServer};
//!
//! let server = TrackerServer::start(TrackerKind::GitHub, "token")?;
//! let place = server.add_issue("ann/tool", FakeIssue::new("Fix the lid").label("komado").by("ann"));
//! // Point a source at `server.url()`, then look at what became of it.
//! println!("{:?}", server.issue(&place).map(|issue| issue.labels));
//! # Ok::<(), std::io::Error>(())
//! ```

mod answer;
mod connection;
mod github;
mod gitlab;
mod issue;
mod pulls;
mod query;
mod review;
mod serve;
mod state;

pub use issue::{CommentPlace, FakeIssue, IssueSort, IssueStage, TrackerComment};
pub use review::{Remark, Review};
pub use state::{FakeTrackerRequest, Limit, TrackerFault};

use komado_agent::source::TrackerKind;
use state::{Author, TrackerState};
use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// What every request is answered from.
type Shared = Arc<Mutex<TrackerState>>;

/// Nothing is left half done when another thread panics: each change is one call.
fn lock(desk: &Shared) -> MutexGuard<'_, TrackerState> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tracker that runs. It stops when it is dropped.
pub struct TrackerServer {
    url: String,
    desk: Shared,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TrackerServer {
    /// Starts one on a free port of this machine. Clients must show `token`.
    pub fn start(kind: TrackerKind, token: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let root = format!("http://{}", listener.local_addr()?);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let desk = Arc::new(Mutex::new(TrackerState::new(kind, token, &root)));
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&desk);
        let thread = std::thread::Builder::new()
            .name("stand-in".into())
            .spawn(move || serve::run(runtime, listener, served, stopped))?;
        let url = if kind == TrackerKind::GitLab { format!("{root}/api/v4") } else { root };
        Ok(Self { url, desk, stop: Some(stop), thread: Some(thread) })
    }

    /// Where its API is: what belongs into the settings.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A repository without issues; one that is there stays as it is.
    pub fn add_repo(&self, repo: &str) {
        lock(&self.desk).repo(repo);
    }

    /// One more issue; its repository is made where it is not there.
    pub fn add_issue(&self, repo: &str, issue: FakeIssue) -> CommentPlace {
        lock(&self.desk).add(repo, IssueSort::Issue, issue)
    }

    /// One more pull request or merge request.
    pub fn add_pull(&self, repo: &str, issue: FakeIssue) -> CommentPlace {
        lock(&self.desk).add(repo, IssueSort::Pull, issue)
    }

    /// How it is now; `None` once it was deleted.
    pub fn issue(&self, place: &CommentPlace) -> Option<FakeIssue> {
        lock(&self.desk).find(place).cloned()
    }

    /// Every issue and pull request of a repository that is not deleted, in the order they came.
    pub fn issues(&self, repo: &str) -> Vec<(CommentPlace, FakeIssue)> {
        lock(&self.desk).all(repo)
    }

    /// A user says something; its id.
    pub fn comment_as(&self, user: &str, place: &CommentPlace, text: &str) -> u64 {
        lock(&self.desk).comment(place, Author::User(user), text).unwrap_or_default()
    }

    /// A user says something in the code; at GitHub that is a review of its own.
    pub fn comment_on(&self, user: &str, place: &CommentPlace, (path, line): (&str, u64), text: &str) {
        let mut desk = lock(&self.desk);
        if desk.kind == TrackerKind::GitHub {
            drop(desk);
            self.review_as(user, place, Review::new("COMMENTED").on(path, line, text));
        } else if desk.comment(place, Author::User(user), text).is_some() {
            let note = |comment: &mut TrackerComment| comment.on = Some((path.to_owned(), line));
            desk.change(place, |issue| _ = issue.comments.last_mut().map(note));
        }
    }

    /// A user reviews a pull request at GitHub.
    pub fn review_as(&self, user: &str, place: &CommentPlace, review: Review) {
        let id = self.draft_as(user, place, review);
        self.send_review(place, id);
    }

    /// A user writes a review, and has not sent it; its number.
    pub fn draft_as(&self, user: &str, place: &CommentPlace, review: Review) -> u64 {
        let review = Review { author: user.to_owned(), ..review };
        lock(&self.desk).draft(place, review).unwrap_or_default()
    }

    /// A review is sent: everybody sees it.
    pub fn send_review(&self, place: &CommentPlace, id: u64) {
        lock(&self.desk).send(place, id);
    }

    /// No user is assigned any more.
    pub fn unassign(&self, place: &CommentPlace) {
        lock(&self.desk).unassign(place);
    }

    /// It is closed.
    pub fn close(&self, place: &CommentPlace) {
        lock(&self.desk).change(place, |issue| issue.stage = IssueStage::Closed);
    }

    /// It is deleted: a client that asks for it is told so.
    pub fn delete(&self, place: &CommentPlace) {
        lock(&self.desk).delete(place);
    }

    /// A user puts a label on.
    pub fn label(&self, place: &CommentPlace, label: &str) {
        lock(&self.desk).change(place, |issue| issue.put_on(label));
    }

    /// A user takes a label off.
    pub fn unlabel(&self, place: &CommentPlace, label: &str) {
        lock(&self.desk).change(place, |issue| issue.labels.retain(|other| other != label));
    }

    /// A client that asks for `from` is sent to `to`.
    pub fn rename(&self, from: &str, to: &str) {
        lock(&self.desk).rename(from, to);
    }

    /// Says of the next `times` requests that there were too many, after `after` more were answered.
    pub fn limit_after(&self, after: usize, times: usize, limit: Limit) {
        lock(&self.desk).plan(after, times, &TrackerFault::Limit(limit));
    }

    /// Fails the next `times` requests.
    pub fn fail_next(&self, times: usize, fault: TrackerFault) {
        lock(&self.desk).plan(0, times, &fault);
    }

    /// Fails `times` requests, after `after` more were answered.
    pub fn fail_after(&self, after: usize, times: usize, fault: TrackerFault) {
        lock(&self.desk).plan(after, times, &fault);
    }

    /// Links to the next page lead here from now on.
    pub fn link_to(&self, root: &str) {
        lock(&self.desk).link_root = root.to_owned();
    }

    /// What was asked so far, the oldest first.
    pub fn requests(&self) -> Vec<FakeTrackerRequest> {
        lock(&self.desk).requests.clone()
    }
}

impl Drop for TrackerServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for TrackerServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("url", &self.url).finish_non_exhaustive()
    }
}
