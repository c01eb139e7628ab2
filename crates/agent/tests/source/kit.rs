//! A tracker, and a source that is pointed at it.

use komado_agent::source::{self, TaskSource, TrackerConfig, TrackerKind};
use komado_agent::task::Task;
use komado_provider::{Cancel, Client, ClientTimeouts};
use komado_testkit::tracker::{CommentPlace, FakeIssue, TrackerServer};
use std::time::Duration;

pub(crate) const TOKEN: &str = "s3cret-key";
pub(crate) const BOTH: [TrackerKind; 2] = [TrackerKind::GitHub, TrackerKind::GitLab];
pub(crate) const REPO: &str = "ann/tool";

/// Labels as somebody would write them who wants to see them go wrong.
pub(crate) const LABEL: &str = "to do / 依頼 🪟";
pub(crate) const RUNNING: &str = "作業中 100%";
pub(crate) const DONE: &str = "done & dusted?";
pub(crate) const FAILED: &str = "failed#1";
pub(crate) const PAUSED: &str = "paused+";

pub(crate) struct Room {
    pub(crate) server: TrackerServer,
    pub(crate) source: Box<dyn TaskSource>,
    /// Breaks off what the source is asked.
    pub(crate) cancel: Cancel,
}

pub(crate) fn tracker(server: &TrackerServer, kind: TrackerKind) -> TrackerConfig {
    TrackerConfig {
        kind,
        base_url: server.url().to_owned(),
        token: Some(TOKEN.to_owned()),
        repos: vec![REPO.to_owned()],
        user: None,
        label: LABEL.to_owned(),
        running: RUNNING.to_owned(),
        done: DONE.to_owned(),
        failed: FAILED.to_owned(),
        paused: PAUSED.to_owned(),
        patience: Duration::from_millis(200),
    }
}

pub(crate) fn client() -> Client {
    Client::new(ClientTimeouts::default()).unwrap()
}

impl Room {
    pub(crate) fn new(kind: TrackerKind) -> Self {
        Self::with(kind, |_| {})
    }

    /// With other settings.
    pub(crate) fn with(kind: TrackerKind, change: impl FnOnce(&mut TrackerConfig)) -> Self {
        let server = TrackerServer::start(kind, TOKEN).unwrap();
        server.add_repo(REPO);
        let mut tracker = tracker(&server, kind);
        change(&mut tracker);
        let cancel = Cancel::default();
        let source = source::open(tracker, client(), cancel.clone()).unwrap();
        Self { server, source, cancel }
    }

    /// An issue that waits.
    pub(crate) fn issue(&self, title: &str) -> CommentPlace {
        self.server.add_issue(REPO, FakeIssue::new(title).label(LABEL).by("ann"))
    }

    pub(crate) fn waiting(&mut self) -> Vec<Task> {
        let mut tasks = Vec::new();
        self.source
            .waiting(&mut |task| {
                tasks.push(task);
                true
            })
            .unwrap();
        tasks
    }

    /// An issue whose task was begun.
    pub(crate) fn begun(&mut self, issue: FakeIssue) -> (Task, CommentPlace) {
        let place = self.server.add_issue(REPO, issue.label(LABEL));
        let task = self.waiting().pop().unwrap();
        self.source.begin(&task).unwrap();
        (task, place)
    }

    pub(crate) fn labels(&self, place: &CommentPlace) -> Vec<String> {
        self.server.issue(place).unwrap().labels
    }

    /// What people read, with its marks.
    pub(crate) fn said(&self, place: &CommentPlace) -> Vec<String> {
        self.server.issue(place).unwrap().comments.into_iter().map(|comment| comment.text).collect()
    }
}
