//! GitHub, and GitHub Enterprise: issues and pull requests are one list, labels are put on and taken off one by one.

use super::client::{TrackerClient, TrackerRequest};
use super::text::{BoundedText, CodePlace, NewComments, encode};
use super::tracker::{self, IssuePath, LabelChange, TrackerApi, TrackerIssue};
use super::{Error, TaskComment, TrackerKind};
use jiff::Timestamp;
use komado_provider::Method;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The type of a pull request.
const PULL: &str = "pull_request";

/// GitHub, and what it said last.
#[derive(Default)]
pub(super) struct GitHub(Heard);

/// What is known since the last look, and saves requests as long as the next one goes on from there.
#[derive(Clone, Copy, Default)]
struct Heard {
    /// How far it went.
    to: ReviewCursor,
    /// When its last comment was written: GitHub lists comments since a time, not since one.
    talk: Option<u64>,
    /// The review that was sent last, when all was heard of it.
    review: Option<CommentPosition>,
}

#[derive(Deserialize)]
pub(super) struct GitHubUser {
    login: String,
}

impl GitHubUser {
    /// As GitHub shows a user who is no longer there.
    pub(super) fn name(user: Option<Self>) -> String {
        user.map_or_else(|| "ghost".to_owned(), |user| user.login)
    }
}

#[derive(Deserialize)]
struct Label {
    name: String,
}

#[derive(Deserialize)]
pub(super) struct GitHubIssue {
    number: u64,
    #[serde(default)]
    title: BoundedText,
    #[serde(default)]
    body: BoundedText,
    user: Option<GitHubUser>,
    #[serde(default)]
    labels: Vec<Label>,
    #[serde(default)]
    assignees: Vec<GitHubUser>,
    #[serde(default)]
    html_url: String,
    state: String,
    pull_request: Option<IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct GitHubComment {
    id: u64,
    #[serde(default)]
    body: BoundedText,
    user: Option<GitHubUser>,
    created_at: String,
}

impl TrackerApi for GitHub {
    type Issue = GitHubIssue;
    type Said = GitHubComment;

    const REPO: (&'static str, &'static str) = ("repository", "github.repos");
    const LISTS: &'static [(&'static str, &'static str)] = &[("issues", "issue")];
    const COMMENT: (&'static str, &'static str) = ("comment", "per_page=100");
    const WAITING: (&'static str, &'static str) = ("state=open&sort=created&direction=asc", "assignee");

    fn root(given: &str) -> String {
        // What stands in a browser is not where the API is.
        let root = if given == "https://github.com" { "https://api.github.com" } else { given };
        root.to_owned()
    }

    fn repo(owner: &str, name: &str) -> String {
        format!("/repos/{}/{}", encode(owner), encode(name))
    }

    fn list(_: &str) -> &'static str {
        "issues"
    }

    /// Pull requests are issues, too.
    fn seen(issue: GitHubIssue, _: &'static str) -> TrackerIssue {
        TrackerIssue {
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

    fn words(said: &GitHubComment) -> &str {
        &said.body.0
    }

    /// To put one on tells which others are there.
    fn change(
        wire: &TrackerClient,
        what: &str,
        at: &IssuePath,
        change: &LabelChange<'_>,
    ) -> Result<Option<()>, Error> {
        let path = format!("{}/labels", at.path());
        let ask = match change.on {
            Some(on) => {
                let body = Some(json!({ "labels": [on] }));
                TrackerRequest { what, method: Method::POST, path: path.clone(), body }
            }
            None => TrackerRequest::get(what, path.clone()),
        };
        let Some(labels) = wire.get::<Vec<Label>>(&ask)? else { return Ok(None) };
        for Label { name } in labels {
            if change.off.iter().any(|off| tracker::same(TrackerKind::GitHub, off, &name)) {
                let path = format!("{path}/{}", encode(&name));
                // One that is no longer there was taken off by another user.
                wire.tell(&TrackerRequest { what, method: Method::DELETE, path, body: None })?;
            }
        }
        Ok(Some(()))
    }

    /// Of the talk and of the reviews of a pull request together.
    fn news(
        &mut self,
        ear: &TrackerClient,
        at: &IssuePath,
        seen: &TrackerIssue,
        after: Option<&str>,
    ) -> Result<Vec<TaskComment>, Error> {
        let after: ReviewCursor = after.and_then(|id| id.parse().ok()).unwrap_or_default();
        let before = if self.0.to == after { self.0 } else { Heard::default() };
        let mut news = NewComments::new();
        talk(ear, at, after, before.talk, &mut news)?;
        let mut review = None;
        if seen.task_type == PULL {
            let from = (after.review, before.review);
            review = read(ear, (&at.name, &at.in_list("pulls")), from, &mut news)?;
        }
        let mut heard = Heard { to: after, talk: before.talk, review: review.filter(|_| !news.is_full()) };
        let comments = news.into_all().map(|(spot, comment)| {
            heard.to.pass(spot);
            heard.talk = if spot.review == 0 { Some(spot.time) } else { heard.talk };
            TaskComment { id: heard.to.to_string(), ..comment }
        });
        let comments = comments.collect();
        self.0 = heard;
        Ok(comments)
    }
}

fn talk(
    ear: &TrackerClient,
    at: &IssuePath,
    after: ReviewCursor,
    since: Option<u64>,
    news: &mut NewComments<CommentPosition>,
) -> Result<(), Error> {
    let since = since.and_then(|time| Timestamp::from_second(time.try_into().ok()?).ok());
    let since = since.map(|time| format!("&since={}", encode(&time.to_string()))).unwrap_or_default();
    let (what, path) = (format!("the comments of {}", at.name), at.said::<GitHub>());
    let mut time = 0;
    ear.list(&what, &path, &format!("per_page=100{since}"), &mut |said: GitHubComment| {
        if said.id <= after.comment || tracker::is_ours(&said.body.0) {
            return true;
        }
        // They come in the order of their numbers, and are handed on in no other.
        time = time.max(seconds(&said.created_at).unwrap_or(0));
        let (author, text) = (GitHubUser::name(said.user), said.body.0);
        let spot = CommentPosition { time, review: 0, comment: said.id };
        news.add(spot, TaskComment { id: String::new(), author, text })
    })?;
    Ok(())
}

// Reviews of a pull request at GitHub: what they say as a whole, and what they say in the code.
//
// Everything in the code belongs to a review, also a single answer there, and is shown once its review is sent: so the
// list of reviews tells whether there is anything new. Comments in the code are asked for only then, and all of them:
// those of a review that was sent just now may have been written long ago.

#[derive(Deserialize)]
struct Review {
    id: u64,
    #[serde(default)]
    body: BoundedText,
    user: Option<GitHubUser>,
    #[serde(default)]
    state: String,
    /// Missing while it is being written.
    submitted_at: Option<String>,
}

impl Review {
    fn spot(&self) -> Option<CommentPosition> {
        Some(CommentPosition { time: seconds(self.submitted_at.as_deref()?)?, review: self.id, comment: 0 })
    }

    /// What it says as a whole; many say nothing.
    fn comment(self) -> Option<TaskComment> {
        let text = self.body.0;
        if text.trim().is_empty() || tracker::is_ours(&text) {
            return None;
        }
        let verdict = match self.state.as_str() {
            "APPROVED" => " that approves",
            "CHANGES_REQUESTED" => " that asks for changes",
            _ => "",
        };
        Some(comment(self.user, format!("In a review{verdict}:\n{text}")))
    }
}

/// A comment in the code.
#[derive(Deserialize)]
struct Remark {
    id: u64,
    pull_request_review_id: Option<u64>,
    #[serde(default)]
    body: BoundedText,
    user: Option<GitHubUser>,
    #[serde(default)]
    path: BoundedText,
    start_line: Option<u64>,
    line: Option<u64>,
    original_start_line: Option<u64>,
    original_line: Option<u64>,
    side: Option<String>,
    in_reply_to_id: Option<u64>,
}

impl Remark {
    fn comment(self) -> Option<TaskComment> {
        if self.body.0.trim().is_empty() || tracker::is_ours(&self.body.0) {
            return None;
        }
        let text = self.place().says(&self.body.0);
        Some(comment(self.user, text))
    }

    /// Lines that were changed since have no number of today.
    fn place(&self) -> CodePlace<'_> {
        let is_old = self.line.is_none();
        let (from, line) = match is_old {
            true => (self.original_start_line, self.original_line),
            false => (self.start_line, self.line),
        };
        let of = match self.side.as_deref() {
            _ if is_old => Some("of an earlier version"),
            Some("LEFT") => Some("before the change"),
            _ => None,
        };
        CodePlace { path: &self.path.0, from, line, of, is_reply: self.in_reply_to_id.is_some() }
    }
}

fn comment(user: Option<GitHubUser>, text: String) -> TaskComment {
    TaskComment { id: String::new(), author: GitHubUser::name(user), text }
}

/// A time as GitHub writes it, in seconds since 1970.
pub(super) fn seconds(text: &str) -> Option<u64> {
    u64::try_from(text.parse::<Timestamp>().ok()?.as_second()).ok()
}

/// Adds what reviews of the pull request at `pull` said after `after`, and tells which one was sent last. When that is
/// `known`, there is nothing more to ask for.
pub(super) fn read(
    wire: &TrackerClient,
    (name, pull): (&str, &str),
    (after, known): (CommentPosition, Option<CommentPosition>),
    news: &mut NewComments<CommentPosition>,
) -> Result<Option<CommentPosition>, Error> {
    let (mut newest, mut sent) = (None, BTreeMap::new());
    let what = format!("the reviews of {name}");
    wire.list(&what, &format!("{pull}/reviews"), "per_page=100", &mut |review: Review| {
        let Some(spot) = review.spot() else { return true };
        newest = newest.max(Some(spot));
        // The last one that was heard of may not have been heard to its end.
        if spot >= (CommentPosition { comment: 0, ..after }) {
            sent.insert(spot.review, spot.time);
        }
        if let Some(comment) = review.comment().filter(|_| spot > after) {
            news.add(spot, comment);
        }
        true
    })?;
    if newest <= known {
        return Ok(newest);
    }
    let what = format!("the comments in the code of {name}");
    wire.list(&what, &format!("{pull}/comments"), "per_page=100", &mut |remark: Remark| {
        let review = remark.pull_request_review_id.unwrap_or(0);
        let spot = sent.get(&review).map(|time| CommentPosition { time: *time, review, comment: remark.id });
        let Some(spot) = spot.filter(|spot| *spot > after) else { return true };
        if let Some(comment) = remark.comment() {
            news.add(spot, comment);
        }
        true
    })?;
    Ok(newest)
}

// How far what is said of a task was heard, as an id that outlives the process.
//
// An issue has one list of comments, and the number of the last one says it all. A pull request has reviews beside it, with
// numbers of their own, and those say nothing of the order in which people see them: a review gets its number when
// its author begins to write it, and is shown once they send it. So reviews count by the time when they were sent.

/// Where something stands among all that was said.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct CommentPosition {
    /// When people saw it, in seconds since 1970.
    pub(super) time: u64,
    /// The review it belongs to; 0 for what belongs to none.
    pub(super) review: u64,
    /// The number of the comment; 0 for what a review says as a whole.
    pub(super) comment: u64,
}

/// How far the talk and the reviews were heard. As text, a later one is longer than an earlier one, or sorts behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ReviewCursor {
    /// The last comment that belongs to no review.
    pub(super) comment: u64,
    /// The last that was heard of reviews.
    pub(super) review: CommentPosition,
}

impl ReviewCursor {
    /// This was heard, too.
    pub(super) fn pass(&mut self, spot: CommentPosition) {
        if spot.review == 0 {
            self.comment = spot.comment;
        } else {
            self.review = spot;
        }
    }
}

impl fmt::Display for ReviewCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CommentPosition { time, review, comment } = self.review;
        match self.review == CommentPosition::default() {
            true => write!(f, "{}", self.comment),
            // Of one width, so that a later one is never shorter.
            false => write!(f, "c{}.r{time:012}-{review:020}-{comment:020}", self.comment),
        }
    }
}

impl FromStr for ReviewCursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| BadCursor);
        let Some((comment, review)) = text.strip_prefix('c').and_then(|rest| rest.split_once(".r")) else {
            return Ok(Self { comment: number(text)?, review: CommentPosition::default() });
        };
        let mut numbers = review.splitn(3, '-').map(number);
        let mut next = || numbers.next().unwrap_or(Err(BadCursor));
        let review = CommentPosition { time: next()?, review: next()?, comment: next()? };
        Ok(Self { comment: number(comment)?, review })
    }
}

/// A text that says nothing of how far was heard.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct BadCursor;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn said(remark: Value) -> Option<String> {
        let remark: Remark = serde_json::from_value(remark).unwrap();
        remark.comment().map(|comment| comment.text)
    }

    fn remark(mut more: Value) -> Value {
        let whole = json!({
            "id": 10, "pull_request_review_id": 42, "path": "src/lib.rs", "body": "why?", "user": { "login": "ann" },
            "position": 1, "original_position": 1, "side": "RIGHT", "subject_type": "line",
            "start_line": null, "line": 12, "original_start_line": null, "original_line": 9,
        });
        for (name, value) in whole.as_object().unwrap() {
            more.as_object_mut().unwrap().entry(name).or_insert_with(|| value.clone());
        }
        more
    }

    #[test]
    fn a_comment_in_the_code_says_where_it_stands() {
        for (more, expect) in [
            (json!({}), "On src/lib.rs, line 12:\nwhy?"),
            (json!({ "start_line": 10 }), "On src/lib.rs, lines 10 to 12:\nwhy?"),
            (json!({ "side": "LEFT" }), "On src/lib.rs, line 12 before the change:\nwhy?"),
            (json!({ "in_reply_to_id": 8 }), "In reply, on src/lib.rs, line 12:\nwhy?"),
            (json!({ "line": null }), "On src/lib.rs, line 9 of an earlier version:\nwhy?"),
            (json!({ "line": null, "original_line": null, "subject_type": "file" }), "On src/lib.rs:\nwhy?"),
        ] {
            assert_eq!(said(remark(more)).as_deref(), Some(expect));
        }
        assert_eq!(said(remark(json!({ "body": " " }))), None);
        assert_eq!(said(remark(json!({ "body": "<!-- komado:m -->\nours" }))), None);
    }

    #[test]
    fn a_review_says_what_it_asks_for_and_an_empty_one_nothing() {
        for (state, body, expect) in [
            ("CHANGES_REQUESTED", "小さく", Some("In a review that asks for changes:\n小さく")),
            ("APPROVED", "good", Some("In a review that approves:\ngood")),
            ("COMMENTED", "hm", Some("In a review:\nhm")),
            ("APPROVED", " \n", None),
        ] {
            let review =
                json!({ "id": 1, "state": state, "body": body, "submitted_at": "2026-01-01T00:00:00Z" });
            let review: Review = serde_json::from_value(review).unwrap();
            assert_eq!(review.spot(), Some(CommentPosition { time: 1_767_225_600, review: 1, comment: 0 }));
            assert_eq!(review.comment().map(|comment| comment.text).as_deref(), expect);
        }
        let pending: Review =
            serde_json::from_value(json!({ "id": 1, "state": "PENDING", "body": "x", "user": null }))
                .unwrap();
        assert_eq!(pending.spot(), None);
    }
}

#[cfg(test)]
mod cursor_tests {
    use super::*;

    #[test]
    fn a_later_one_is_longer_or_sorts_behind_whatever_was_heard_in_between() {
        let spots = [(9, 0, 7), (10, 0, 99), (11, 500, 0), (11, 500, 3), (12, 8, 0), (12, 8, 4_000_000_000)];
        let more =
            [(13, 0, 100), (13, 9, u64::MAX), (1_767_225_600, 1, 0), (1_767_225_601, 0, 9_999_999_999)];
        let mut cursor = ReviewCursor::default();
        let mut before = (0, String::new());
        for (time, review, comment) in spots.into_iter().chain(more) {
            cursor.pass(CommentPosition { time, review, comment });
            let text = cursor.to_string();
            assert_eq!(text.parse(), Ok(cursor), "{text}");
            let key = (text.len(), text);
            assert!(before < key, "{before:?} {key:?}");
            before = key;
        }
    }

    #[test]
    fn a_plain_number_is_a_comment_and_anything_else_is_none() {
        let plain = ReviewCursor { comment: 1_234, review: CommentPosition::default() };
        assert_eq!("1234".parse(), Ok(plain));
        assert_eq!(plain.to_string(), "1234");
        for text in ["", "c1", "c1.r2", "c1.r2-3", "c1.r2-3-4-5", "c.r1-2-3", "窓", "-1", "c1.r-1-2-3"] {
            assert_eq!(text.parse::<ReviewCursor>(), Err(BadCursor), "{text}");
        }
    }
}
