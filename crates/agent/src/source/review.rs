//! Reviews of a pull request at GitHub: what they say as a whole, and what they say in the code.
//!
//! Everything in the code belongs to a review, also a single answer there, and is shown once its review is sent: so the
//! list of reviews tells whether there is anything new. Comments in the code are asked for only then, and all of them:
//! those of a review that was sent just now may have been written long ago.

use super::cursor::Spot;
use super::news::News;
use super::place::Place;
use super::wire::Wire;
use super::words::Words;
use super::{Comment, Error, github::User, mark};
use jiff::Timestamp;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Review {
    id: u64,
    #[serde(default)]
    body: Words,
    user: Option<User>,
    #[serde(default)]
    state: String,
    /// Missing while it is being written.
    submitted_at: Option<String>,
}

impl Review {
    fn spot(&self) -> Option<Spot> {
        Some(Spot { time: seconds(self.submitted_at.as_deref()?)?, review: self.id, comment: 0 })
    }

    /// What it says as a whole; many say nothing.
    fn comment(self) -> Option<Comment> {
        let text = self.body.0;
        if text.trim().is_empty() || mark::is_ours(&text) {
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
    body: Words,
    user: Option<User>,
    #[serde(default)]
    path: Words,
    start_line: Option<u64>,
    line: Option<u64>,
    original_start_line: Option<u64>,
    original_line: Option<u64>,
    side: Option<String>,
    in_reply_to_id: Option<u64>,
}

impl Remark {
    fn comment(self) -> Option<Comment> {
        if self.body.0.trim().is_empty() || mark::is_ours(&self.body.0) {
            return None;
        }
        let text = self.place().says(&self.body.0);
        Some(comment(self.user, text))
    }

    /// Lines that were changed since have no number of today.
    fn place(&self) -> Place<'_> {
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
        Place { path: &self.path.0, from, line, of, is_reply: self.in_reply_to_id.is_some() }
    }
}

fn comment(user: Option<User>, text: String) -> Comment {
    Comment { id: String::new(), author: User::name(user), text }
}

/// A time as GitHub writes it, in seconds since 1970.
pub(super) fn seconds(text: &str) -> Option<u64> {
    u64::try_from(text.parse::<Timestamp>().ok()?.as_second()).ok()
}

/// Adds what reviews of the pull request at `pull` said after `after`, and tells which one was sent last. When that is
/// `known`, there is nothing more to ask for.
pub(super) fn read(
    wire: &Wire,
    (name, pull): (&str, &str),
    (after, known): (Spot, Option<Spot>),
    news: &mut News<Spot>,
) -> Result<Option<Spot>, Error> {
    let (mut newest, mut sent) = (None, BTreeMap::new());
    let what = format!("the reviews of {name}");
    wire.list(&what, &format!("{pull}/reviews"), "per_page=100", &mut |review: Review| {
        let Some(spot) = review.spot() else { return true };
        newest = newest.max(Some(spot));
        // The last one that was heard of may not have been heard to its end.
        if spot >= (Spot { comment: 0, ..after }) {
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
        let spot = sent.get(&review).map(|time| Spot { time: *time, review, comment: remark.id });
        let Some(spot) = spot.filter(|spot| *spot > after) else { return true };
        if let Some(comment) = remark.comment() {
            news.add(spot, comment);
        }
        true
    })?;
    Ok(newest)
}

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
            assert_eq!(review.spot(), Some(Spot { time: 1_767_225_600, review: 1, comment: 0 }));
            assert_eq!(review.comment().map(|comment| comment.text).as_deref(), expect);
        }
        let pending: Review =
            serde_json::from_value(json!({ "id": 1, "state": "PENDING", "body": "x", "user": null }))
                .unwrap();
        assert_eq!(pending.spot(), None);
    }
}
