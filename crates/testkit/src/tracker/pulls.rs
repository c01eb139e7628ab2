//! GitHub's lists of what is said in reviews. They are kept apart from the talk, and count for themselves.

use super::answer::{TrackerResponse, stamp};
use super::github::{ME, not_found, page, paged};
use super::issue::{CommentPlace, FakeIssue, IssueSort};
use super::query::TrackerPage;
use super::review::{Remark, Review};
use super::serve::TrackerExchange;
use super::state::TrackerState;
use serde_json::{Value, json};

/// What is asked of the pull request `number`: an issue is none.
pub(super) fn answer(
    desk: &TrackerState,
    asked: &TrackerExchange<'_>,
    repo: &str,
    number: u64,
    rest: &[&str],
) -> TrackerResponse {
    let place = CommentPlace { repo: repo.to_owned(), sort: IssueSort::Pull, number };
    let Some(issue) = desk.find(&place) else { return not_found() };
    let all = match (asked.method, rest) {
        ("GET", ["reviews"]) => reviews(desk, &place, issue),
        ("GET", ["comments"]) => remarks(desk, asked, &place, issue),
        _ => return not_found(),
    };
    paged(desk, asked, TrackerPage::of(all, &asked.query, 30))
}

/// In the order of their numbers. One that is being written is shown to its author alone.
fn reviews(desk: &TrackerState, place: &CommentPlace, issue: &FakeIssue) -> Vec<Value> {
    let is_shown = |review: &&Review| review.sent.is_some() || review.author == ME;
    issue.reviews.iter().filter(is_shown).map(|review| whole(desk, place, review)).collect()
}

fn whole(desk: &TrackerState, place: &CommentPlace, review: &Review) -> Value {
    let mut shape = json!({
        "id": review.id,
        "user": { "login": review.author, "type": "User" },
        "body": review.text,
        "state": if review.sent.is_some() { review.verdict.as_str() } else { "PENDING" },
        "html_url": format!("{}#pullrequestreview-{}", page(desk, place), review.id),
    });
    if let Some(sent) = review.sent {
        shape["submitted_at"] = stamp(sent).into();
    }
    shape
}

/// In the order of their numbers, and none of a review that is being written.
fn remarks(
    desk: &TrackerState,
    asked: &TrackerExchange<'_>,
    place: &CommentPlace,
    issue: &FakeIssue,
) -> Vec<Value> {
    let since = asked.query.get("since");
    let recent = |remark: &Remark| since.is_none_or(|since| stamp(remark.at).as_str() >= since);
    let sent = issue.reviews.iter().filter(|review| review.sent.is_some());
    let mut all: Vec<(u64, Value)> = sent
        .flat_map(|review| review.remarks.iter().map(move |remark| (review, remark)))
        .filter(|(_, remark)| recent(remark))
        .map(|(review, remark)| (remark.id, in_code(desk, place, review, remark)))
        .collect();
    all.sort_by_key(|(id, _)| *id);
    all.into_iter().map(|(_, shape)| shape).collect()
}

fn in_code(desk: &TrackerState, place: &CommentPlace, review: &Review, remark: &Remark) -> Value {
    json!({
        "id": remark.id,
        "pull_request_review_id": review.id,
        "user": { "login": review.author, "type": "User" },
        "body": remark.text,
        "path": remark.path,
        "start_line": null,
        "line": remark.line,
        "original_start_line": null,
        "original_line": remark.line,
        "side": "RIGHT",
        "subject_type": "line",
        "html_url": format!("{}#discussion_r{}", page(desk, place), remark.id),
        "created_at": stamp(remark.at),
        "updated_at": stamp(remark.at),
    })
}
