//! A tracker of issues, whichever: how it is asked and told, and what differs from one to the next.

use super::client::{TrackerClient, TrackerRequest};
use super::{Error, SourceEnd, TaskComment, TaskNews, TaskSource, TrackerConfig, TrackerKind, repo_of, text};
use crate::task::Task;
use komado_core::session::TaskKey;
use komado_provider::{Cancel, Client, Method};
use serde::de::DeserializeOwned;
use serde_json::json;

/// What one tracker has of its own.
pub(super) trait TrackerApi: Send + Default {
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
    /// How a list is asked for what is open, the oldest first, and the field for the user who is to do it.
    const WAITING: (&'static str, &'static str);

    /// Where the API is, for an address of the settings.
    fn root(given: &str) -> String;

    /// The path of a repository.
    fn repo(owner: &str, name: &str) -> String;

    /// The list that has tasks of a type.
    fn list(task_type: &str) -> &'static str;

    /// An issue of a list of this type.
    fn seen(issue: Self::Issue, task_type: &'static str) -> TrackerIssue;

    /// What was said.
    fn words(said: &Self::Said) -> &str;

    /// Changes the labels of an issue; `None` when it is gone.
    fn change(
        wire: &TrackerClient,
        what: &str,
        at: &IssuePath,
        change: &LabelChange<'_>,
    ) -> Result<Option<()>, Error>;

    /// What was said of a task after `after`.
    fn news(
        &mut self,
        ear: &TrackerClient,
        at: &IssuePath,
        seen: &TrackerIssue,
        after: Option<&str>,
    ) -> Result<Vec<TaskComment>, Error>;
}

/// Where a task is at its tracker.
pub(super) struct IssuePath {
    /// What people call it.
    pub(super) name: String,
    repo: String,
    list: &'static str,
    number: u64,
}

impl IssuePath {
    /// Its path.
    pub(super) fn path(&self) -> String {
        self.in_list(self.list)
    }

    /// Its path in another list that has it.
    pub(super) fn in_list(&self, list: &str) -> String {
        format!("{}/{list}/{}", self.repo, self.number)
    }

    /// The path of what was said of it.
    pub(super) fn said<F: TrackerApi>(&self) -> String {
        format!("{}/{}s", self.path(), F::COMMENT.0)
    }
}

/// The issues of a tracker.
pub(super) struct TrackerSource<F> {
    tracker: TrackerConfig,
    wire: TrackerClient,
    /// For what is asked until it is broken off; what is said is said.
    ear: TrackerClient,
    forge: F,
}

impl<F: TrackerApi> TrackerSource<F> {
    pub(super) fn new(tracker: TrackerConfig, client: Client, cancel: Cancel) -> Self {
        let root = F::root(tracker.base_url.trim().trim_end_matches('/'));
        let wire = TrackerClient::new(&tracker, root, client);
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
        let (open, assignee) = F::WAITING;
        let user = tracker.user.as_deref().map(|user| format!("&{assignee}={}", text::encode(user)));
        let (label, user) = (text::encode(&tracker.label), user.unwrap_or_default());
        let query = format!("{open}&per_page=100&labels={label}{user}");
        let mut goes_on = true;
        let found = self.ear.list(&what, &path, &query, &mut |issue: F::Issue| {
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

    fn at(&self, task: &Task) -> Result<IssuePath, Error> {
        let key = &task.key;
        let full = format!("{}/{}", key.owner, key.repo);
        let (owner, name) = repo_of(self.tracker.kind, &full)?;
        let number = key.task_id.parse().map_err(|_| self.wire.refused(&task.name, "its number is none"))?;
        Ok(IssuePath {
            name: task.name.clone(),
            repo: F::repo(owner, name),
            list: F::list(&key.task_type),
            number,
        })
    }

    fn issue(&self, wire: &TrackerClient, at: &IssuePath) -> Result<Option<TrackerIssue>, Error> {
        let issue = wire.get::<F::Issue>(&TrackerRequest::get(&at.name, at.path()))?;
        Ok(issue.map(|issue| F::seen(issue, "")))
    }

    fn change(
        &self,
        wire: &TrackerClient,
        at: &IssuePath,
        change: &LabelChange<'_>,
    ) -> Result<Option<()>, Error> {
        F::change(wire, &format!("the labels of {}", at.name), at, change)
    }
}

impl<F: TrackerApi> TaskSource for TrackerSource<F> {
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
        let done = self.change(&self.ear, &self.at(task)?, &begins(&self.tracker))?;
        done.ok_or_else(|| {
            let setting = format!("{}.token", self.tracker.kind.name());
            let why = format!("it is gone, or the token may not change it ({setting})");
            self.wire.refused(&task.name, &why)
        })
    }

    fn look(&mut self, task: &Task, after: Option<&str>) -> Result<TaskNews, Error> {
        let at = self.at(task)?;
        let Some(seen) = self.issue(&self.ear, &at)? else { return Ok(TaskNews::gone()) };
        if let Some(why) = seen.unwanted(&self.tracker) {
            return Ok(TaskNews { comments: Vec::new(), unwanted: Some(why) });
        }
        let comments = self.forge.news(&self.ear, &at, &seen, after)?;
        Ok(TaskNews { comments, unwanted: None })
    }

    fn say(&mut self, task: &Task, mark: &str, text: &str) -> Result<(), Error> {
        let at = self.at(task)?;
        let (one, query) = F::COMMENT;
        let (what, path) = (format!("a {one} on {}", at.name), at.said::<F>());
        let line = line(mark);
        let body = Some(json!({ "body": comment(self.tracker.kind, mark, text) }));
        let ask = TrackerRequest { what: &what, method: Method::POST, path: path.clone(), body };
        self.wire.post_once(&ask, &mut || {
            let mut is_there = false;
            self.wire.list(&what, &path, query, &mut |said: F::Said| {
                is_there = has(F::words(&said), &line);
                !is_there
            })?;
            Ok(is_there)
        })
    }

    fn end(&mut self, task: &Task, ended: SourceEnd) -> Result<(), Error> {
        let at = self.at(task)?;
        // Of an issue that is gone there is nothing to be said.
        let Some(seen) = self.issue(&self.wire, &at)? else { return Ok(()) };
        self.change(&self.wire, &at, &seen.ends(&self.tracker, ended)).map(drop)
    }
}

// An issue as a tracker shows it, whichever tracker: is it a task, and is it still wanted?

/// An issue or a pull request.
pub(super) struct TrackerIssue {
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

impl TrackerIssue {
    /// True when it waits for us. The tracker was asked for nothing else, and a tracker that knows some of the question only
    /// is not believed.
    pub(super) fn waits(&self, tracker: &TrackerConfig) -> bool {
        self.state == "open" && self.has(tracker, &tracker.label) && self.is_ours(tracker)
    }

    /// Why it is no longer wanted, if it is not.
    pub(super) fn unwanted(&self, tracker: &TrackerConfig) -> Option<String> {
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
    fn was_begun(&self, tracker: &TrackerConfig) -> bool {
        let TrackerConfig { running, done, failed, paused, .. } = tracker;
        [running, done, failed, paused].into_iter().any(|label| self.has(tracker, label))
    }

    /// What changes when work on it ends. The label that made it a task stays where a user put it on again, since they want
    /// it done once more; it goes where work was never said to begin, and where it was stopped.
    pub(super) fn ends<'a>(&self, tracker: &'a TrackerConfig, ended: SourceEnd) -> LabelChange<'a> {
        let on = match ended {
            SourceEnd::Done => Some(tracker.done.as_str()),
            SourceEnd::Failed => Some(tracker.failed.as_str()),
            SourceEnd::Paused => Some(tracker.paused.as_str()),
            SourceEnd::Stopped => None,
        };
        let ours = [&tracker.running, &tracker.done, &tracker.failed, &tracker.paused].map(String::as_str);
        let mut off: Vec<&str> = ours.into_iter().filter(|label| Some(*label) != on).collect();
        if ended == SourceEnd::Stopped || !self.was_begun(tracker) {
            off.push(&tracker.label);
        }
        LabelChange { on, off }
    }

    /// As a task of `owner`/`repo`.
    pub(super) fn task(self, kind: TrackerKind, owner: &str, repo: &str) -> Task {
        let key = TaskKey {
            task_source: kind.name().to_owned(),
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            task_type: self.task_type.to_owned(),
            task_id: self.number.to_string(),
        };
        Task {
            title: text::line(&self.title),
            text: self.text,
            user: self.author,
            clone_url: clone_url(&self.url),
            url: is_web(&self.url).then_some(self.url),
            ..Task::of(key)
        }
    }

    fn has(&self, tracker: &TrackerConfig, label: &str) -> bool {
        self.labels.iter().any(|other| same(tracker.kind, other, label))
    }

    fn is_ours(&self, tracker: &TrackerConfig) -> bool {
        let is_assigned =
            |user: &String| self.assignees.iter().any(|other| other.to_lowercase() == user.to_lowercase());
        tracker.user.as_ref().is_none_or(is_assigned)
    }
}

/// True when two names are one label: GitHub does not tell small letters from large ones.
pub(super) fn same(kind: TrackerKind, one: &str, other: &str) -> bool {
    match kind {
        TrackerKind::GitHub => one.to_lowercase() == other.to_lowercase(),
        TrackerKind::GitLab => one == other,
    }
}

/// Labels to put on and to take off.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct LabelChange<'a> {
    pub(super) on: Option<&'a str>,
    pub(super) off: Vec<&'a str>,
}

/// Work begins, after whatever was before.
pub(super) fn begins(tracker: &TrackerConfig) -> LabelChange<'_> {
    let off = [&tracker.label, &tracker.done, &tracker.failed, &tracker.paused];
    LabelChange { on: Some(&tracker.running), off: off.map(String::as_str).to_vec() }
}

/// Refuses labels by which a task would never end, or never be found.
pub(super) fn check_labels(tracker: &TrackerConfig) -> Result<(), Error> {
    let name = tracker.kind.name();
    let TrackerConfig { label, running, done, failed, paused, .. } = tracker;
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

// What is said at a tracker, and the mark by which it is found again.
//
// The mark is the first line and cannot be seen: a comment that begins with one is ours, and is written once however often
// it is tried. What a model says may hold anything, and where it is said is not ours: it is cut to what fits,
// and a line that GitLab would carry out is made words again.

/// How every mark begins.
const BEGINNING: &str = "<!-- komado:";

/// The first line of a comment that has this mark.
pub(super) fn line(mark: &str) -> String {
    format!("{BEGINNING}{} -->", text::encode(mark))
}

/// True for a comment that we wrote.
pub(super) fn is_ours(text: &str) -> bool {
    text.starts_with(BEGINNING)
}

/// True for the comment that has the mark whose line this is.
pub(super) fn has(text: &str, line: &str) -> bool {
    text.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with(['\n', '\r']))
}

/// The whole comment.
pub(super) fn comment(kind: TrackerKind, mark: &str, text: &str) -> String {
    let text = match kind {
        TrackerKind::GitHub => text.to_owned(),
        TrackerKind::GitLab => text.lines().map(harmless).collect::<Vec<_>>().join("\n"),
    };
    cut(&format!("{}\n{text}", line(mark)), most(kind))
}

/// The longest comment, in UTF-16 units: no tracker counts more than those.
const fn most(kind: TrackerKind) -> usize {
    match kind {
        TrackerKind::GitHub => 65_536,
        TrackerKind::GitLab => 1_000_000,
    }
}

/// GitLab carries out a line such as `/close` with the rights of its author.
fn harmless(line: &str) -> String {
    let start = line.trim_start();
    let word = start.strip_prefix('/').map(|rest| rest.split(char::is_whitespace).next().unwrap_or_default());
    let is_command = word.is_some_and(|word| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    });
    match is_command {
        true => format!("{}\\{start}", &line[..line.len() - start.len()]),
        false => line.to_owned(),
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.encode_utf16().count() <= most {
        return text.to_owned();
    }
    let note = "\n\n… (cut: a comment cannot be longer)";
    let mut room = most - note.encode_utf16().count();
    let fits = |c: &char| {
        let size = c.len_utf16();
        let fits = size <= room;
        room = if fits { room - size } else { 0 };
        fits
    };
    let kept: String = text.chars().take_while(fits).collect();
    kept + note
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn tracker() -> TrackerConfig {
        let words = |word: &str| word.to_owned();
        TrackerConfig {
            kind: TrackerKind::GitHub,
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

    fn labelled(labels: &[&str]) -> TrackerIssue {
        TrackerIssue {
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
            running.ends(&tracker, SourceEnd::Done),
            LabelChange { on: Some("done"), off: vec!["running", "failed", "paused"] }
        );
        assert_eq!(
            running.ends(&tracker, SourceEnd::Stopped),
            LabelChange { on: None, off: vec!["running", "done", "failed", "paused", "komado"] }
        );
    }

    #[test]
    fn what_was_never_said_to_begin_does_not_wait_again_once_it_ended() {
        let tracker = tracker();
        assert!(labelled(&["komado"]).ends(&tracker, SourceEnd::Done).off.contains(&"komado"));
        assert!(!labelled(&["komado", "done"]).ends(&tracker, SourceEnd::Done).off.contains(&"komado"));
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
        let shared = TrackerConfig { failed: "done".into(), ..tracker() };
        assert!(check_labels(&shared).is_ok());
        for (wrong, setting) in [
            (TrackerConfig { done: "Komado".into(), ..tracker() }, "github.label_done"),
            (TrackerConfig { running: "komado".into(), ..tracker() }, "github.label_running"),
            (TrackerConfig { paused: "running".into(), ..tracker() }, "github.label_paused"),
            (TrackerConfig { label: "a,b".into(), ..tracker() }, "github.label"),
            (TrackerConfig { failed: " ".into(), ..tracker() }, "github.label_failed"),
        ] {
            let error = check_labels(&wrong).unwrap_err().to_string();
            assert!(error.contains(&format!("({setting})")), "{error}");
        }
    }
}

#[cfg(test)]
mod mark_tests {
    use super::*;

    #[test]
    fn a_mark_is_found_in_its_own_comment_and_in_no_other() {
        let comment = comment(TrackerKind::GitHub, "s1/result", "done");
        assert!(is_ours(&comment) && has(&comment, &line("s1/result")));
        assert!(!has(&comment, &line("s1/resul")) && !has(&comment, &line("s1")));
        assert!(!is_ours(&format!("> {comment}")), "a quote of ours is not ours");
        assert!(!is_ours(&format!("see\n{comment}")));
    }

    #[test]
    fn a_mark_cannot_end_the_comment_that_hides_it() {
        let line = line("a --> <b>窓");
        assert_eq!(line.matches("-->").count(), 1);
        assert!(line.ends_with(" -->"));
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters_and_says_so() {
        for (kind, most) in [(TrackerKind::GitHub, 65_536), (TrackerKind::GitLab, 1_000_000)] {
            for word in ["窓", "🪟", "a"] {
                let said = comment(kind, "m", &word.repeat(most));
                let length = said.encode_utf16().count();
                assert!(length <= most && length > most - 4, "{length}");
                assert!(said.ends_with("cannot be longer)"));
            }
        }
    }

    #[test]
    fn a_line_that_gitlab_would_carry_out_is_made_words() {
        let said =
            comment(TrackerKind::GitLab, "m", "see\n/close\n  /assign @me\n/usr/bin/env\n/ a\n/label ~x");
        let lines: Vec<&str> = said.lines().skip(1).collect();
        assert_eq!(lines, ["see", "\\/close", "  \\/assign @me", "/usr/bin/env", "/ a", "\\/label ~x"]);
        assert!(comment(TrackerKind::GitHub, "m", "/close").ends_with("\n/close"));
    }
}
