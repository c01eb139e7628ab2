//! An issue as a tracker shows it, whichever tracker: is it a task, and is it still wanted?

use super::{Ended, Error, Kind, Tracker, words};
use crate::task::Task;
use komado_core::session::TaskKey;

/// An issue or a pull request.
pub(super) struct Seen {
    pub(super) number: u64,
    /// `issue` or `pull_request`.
    pub(super) task_type: &'static str,
    pub(super) title: String,
    pub(super) text: String,
    pub(super) author: Option<String>,
    pub(super) labels: Vec<String>,
    pub(super) assignees: Vec<String>,
    pub(super) url: String,
    /// `open`, or how it ended.
    pub(super) state: String,
}

impl Seen {
    /// True when it waits for us. The tracker was asked for nothing else, and a tracker that knows some of the question only
    /// is not believed.
    pub(super) fn waits(&self, tracker: &Tracker) -> bool {
        self.state == "open" && self.has(tracker, &tracker.label) && self.is_ours(tracker)
    }

    /// Why it is no longer wanted, if it is not.
    pub(super) fn unwanted(&self, tracker: &Tracker) -> Option<String> {
        if self.state != "open" {
            return Some(format!("it was {} at {}", self.state, tracker.kind.title()));
        }
        if !self.is_ours(tracker) {
            let user = tracker.user.as_deref().unwrap_or_default();
            return Some(format!("{user} is no longer assigned to it"));
        }
        let is_known = self.was_begun(tracker) || self.has(tracker, &tracker.label);
        (!is_known).then(|| format!("its label {:?} was taken off", tracker.running))
    }

    /// True when it has a label of a task that was begun. A tracker that was away at the time was never told.
    fn was_begun(&self, tracker: &Tracker) -> bool {
        let Tracker { running, done, failed, paused, .. } = tracker;
        [running, done, failed, paused].into_iter().any(|label| self.has(tracker, label))
    }

    /// What changes when work on it ends. The label that made it a task stays where somebody put it on again, since they want
    /// it done once more; it goes where work was never said to begin, and where it was stopped.
    pub(super) fn ends<'a>(&self, tracker: &'a Tracker, ended: Ended) -> Change<'a> {
        let on = match ended {
            Ended::Done => Some(tracker.done.as_str()),
            Ended::Failed => Some(tracker.failed.as_str()),
            Ended::Paused => Some(tracker.paused.as_str()),
            Ended::Stopped => None,
        };
        let ours = [&tracker.running, &tracker.done, &tracker.failed, &tracker.paused].map(String::as_str);
        let mut off: Vec<&str> = ours.into_iter().filter(|label| Some(*label) != on).collect();
        if ended == Ended::Stopped || !self.was_begun(tracker) {
            off.push(&tracker.label);
        }
        Change { on, off }
    }

    /// As a task of `owner`/`repo`.
    pub(super) fn task(self, kind: Kind, owner: &str, repo: &str) -> Task {
        let key = TaskKey {
            task_source: kind.name().to_owned(),
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            task_type: self.task_type.to_owned(),
            task_id: self.number.to_string(),
        };
        Task {
            title: words::line(&self.title),
            text: self.text,
            user: self.author,
            clone_url: clone_url(&self.url),
            url: is_web(&self.url).then_some(self.url),
            ..Task::of(key)
        }
    }

    fn has(&self, tracker: &Tracker, label: &str) -> bool {
        self.labels.iter().any(|other| same(tracker.kind, other, label))
    }

    fn is_ours(&self, tracker: &Tracker) -> bool {
        let is_assigned =
            |user: &String| self.assignees.iter().any(|other| other.to_lowercase() == user.to_lowercase());
        tracker.user.as_ref().is_none_or(is_assigned)
    }
}

/// True when two names are one label: GitHub does not tell small letters from large ones.
pub(super) fn same(kind: Kind, one: &str, other: &str) -> bool {
    match kind {
        Kind::GitHub => one.to_lowercase() == other.to_lowercase(),
        Kind::GitLab => one == other,
    }
}

/// Labels to put on and to take off.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Change<'a> {
    pub(super) on: Option<&'a str>,
    pub(super) off: Vec<&'a str>,
}

/// Work begins, after whatever was before.
pub(super) fn begins(tracker: &Tracker) -> Change<'_> {
    let off = [&tracker.label, &tracker.done, &tracker.failed, &tracker.paused];
    Change { on: Some(&tracker.running), off: off.map(String::as_str).to_vec() }
}

/// Refuses labels by which a task would never end, or never be found.
pub(super) fn check_labels(tracker: &Tracker) -> Result<(), Error> {
    let name = tracker.kind.name();
    let Tracker { label, running, done, failed, paused, .. } = tracker;
    let wrong = |setting: &str, label: &str, why: &str| Error::Refused {
        tracker: name.to_owned(),
        what: format!("the label {label:?} ({name}.{setting})"),
        why: why.to_owned(),
    };
    let all = [
        ("label", label),
        ("label_running", running),
        ("label_done", done),
        ("label_failed", failed),
        ("label_paused", paused),
    ];
    for (at, (setting, label)) in all.iter().enumerate() {
        if label.trim().is_empty() || label.contains(',') {
            return Err(wrong(setting, label, "a label has a name, and no comma in it"));
        }
        // Ends may share a label; the one that makes an issue a task, and the one while it runs, are their own.
        let earlier = all[..at.min(2)].iter().find(|(_, other)| same(tracker.kind, other, label));
        if let Some((other, _)) = earlier {
            return Err(wrong(
                setting,
                label,
                &format!("it is that of {name}.{other} already; take another"),
            ));
        }
    }
    Ok(())
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Where the repository of an issue's page can be cloned from.
fn clone_url(page: &str) -> Option<String> {
    let pieces = ["/-/issues/", "/-/merge_requests/", "/issues/", "/pull/", "/merge_requests/"];
    let at = pieces.iter().find_map(|piece| page.rfind(piece))?;
    is_web(page).then(|| format!("{}.git", &page[..at]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn tracker() -> Tracker {
        let words = |word: &str| word.to_owned();
        Tracker {
            kind: Kind::GitHub,
            base_url: words("http://127.0.0.1"),
            token: None,
            repos: Vec::new(),
            user: None,
            label: words("komado"),
            running: words("running"),
            done: words("done"),
            failed: words("failed"),
            paused: words("paused"),
            patience: Duration::ZERO,
        }
    }

    #[test]
    fn a_repository_is_cloned_from_beside_its_issues() {
        for (page, expect) in [
            ("https://github.com/ann/tool/issues/27", Some("https://github.com/ann/tool.git")),
            ("https://github.com/ann/pull/pull/3", Some("https://github.com/ann/pull.git")),
            ("https://gitlab.com/a/b/c/-/issues/5", Some("https://gitlab.com/a/b/c.git")),
            ("https://gitlab.com/a/issues/-/merge_requests/5", Some("https://gitlab.com/a/issues.git")),
            ("ext::sh -c x/issues/1", None),
            ("https://example.com/", None),
        ] {
            assert_eq!(clone_url(page).as_deref(), expect, "{page}");
        }
    }

    fn labelled(labels: &[&str]) -> Seen {
        Seen {
            number: 1,
            task_type: "issue",
            title: String::new(),
            text: String::new(),
            author: None,
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            assignees: Vec::new(),
            url: String::new(),
            state: "open".to_owned(),
        }
    }

    #[test]
    fn an_end_leaves_its_own_label_and_a_stop_none() {
        let tracker = tracker();
        let running = labelled(&["running", "komado"]);
        assert_eq!(
            running.ends(&tracker, Ended::Done),
            Change { on: Some("done"), off: vec!["running", "failed", "paused"] }
        );
        assert_eq!(
            running.ends(&tracker, Ended::Stopped),
            Change { on: None, off: vec!["running", "done", "failed", "paused", "komado"] }
        );
    }

    #[test]
    fn what_was_never_said_to_begin_does_not_wait_again_once_it_ended() {
        let tracker = tracker();
        assert!(labelled(&["komado"]).ends(&tracker, Ended::Done).off.contains(&"komado"));
        assert!(!labelled(&["komado", "done"]).ends(&tracker, Ended::Done).off.contains(&"komado"));
    }

    #[test]
    fn only_what_has_no_label_of_ours_was_taken_off() {
        let tracker = tracker();
        for label in ["komado", "running", "paused", "failed", "done"] {
            assert_eq!(labelled(&["bug", label]).unwanted(&tracker), None);
        }
        assert!(labelled(&["bug"]).unwanted(&tracker).is_some());
    }

    #[test]
    fn labels_by_which_a_task_would_never_end_are_refused_and_named() {
        assert!(check_labels(&tracker()).is_ok());
        let shared = Tracker { failed: "done".into(), ..tracker() };
        assert!(check_labels(&shared).is_ok());
        for (wrong, setting) in [
            (Tracker { done: "Komado".into(), ..tracker() }, "github.label_done"),
            (Tracker { running: "komado".into(), ..tracker() }, "github.label_running"),
            (Tracker { paused: "running".into(), ..tracker() }, "github.label_paused"),
            (Tracker { label: "a,b".into(), ..tracker() }, "github.label"),
            (Tracker { failed: " ".into(), ..tracker() }, "github.label_failed"),
        ] {
            let error = check_labels(&wrong).unwrap_err().to_string();
            assert!(error.contains(&format!("({setting})")), "{error}");
        }
    }
}
