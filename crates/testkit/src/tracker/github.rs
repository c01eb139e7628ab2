//! GitHub's face: paths, shapes and words of its REST API.

use super::answer::{TrackerResponse, stamp};
use super::issue::{CommentPlace, FakeIssue, IssueSort, IssueStage, TrackerComment};
use super::pulls;
use super::query::TrackerPage;
use super::serve::TrackerExchange;
use super::state::{Author, Limit, TrackerState};
use serde_json::{Value, json};

/// The longest comment, in characters.
const MOST_WORDS: usize = 65_536;

/// Who shows the token.
pub(super) const ME: &str = "komado-bot";

pub(super) fn refusal(status: u16, words: &str) -> TrackerResponse {
    let body = json!({ "message": words, "documentation_url": "https://docs.github.com/rest", "status": status.to_string() });
    TrackerResponse::json(status, &body)
}

pub(super) fn not_found() -> TrackerResponse {
    refusal(404, "Not Found")
}

pub(super) fn limited(now: i64, limit: Limit) -> TrackerResponse {
    match limit {
        Limit::Quota(seconds) => refusal(403, "API rate limit exceeded for user ID 1.")
            .with("x-ratelimit-limit", 5000)
            .with("x-ratelimit-remaining", 0)
            .with("x-ratelimit-reset", now + i64::from(seconds)),
        Limit::Burst(seconds) => {
            refusal(403, "You have exceeded a secondary rate limit. Please wait a few minutes.")
                .with("x-ratelimit-remaining", 4_999)
                .with("retry-after", seconds)
        }
    }
}

pub(super) fn answer(desk: &mut TrackerState, asked: &TrackerExchange<'_>) -> TrackerResponse {
    if asked.header("user-agent").is_none() {
        return refusal(
            403,
            "Request forbidden by administrative rules. Please make sure your request has a User-Agent header",
        );
    }
    match asked.header("authorization") {
        None => return refusal(401, "Requires authentication"),
        Some(given) if given != format!("Bearer {}", desk.token) => return refusal(401, "Bad credentials"),
        Some(_) => {}
    }
    // GitHub Enterprise has its API under a path.
    let pieces: Vec<&str> = asked.pieces.iter().map(String::as_str).collect();
    let pieces = pieces.strip_prefix(&["api", "v3"]).unwrap_or(&pieces);
    let ["repos", owner, name, list @ ("issues" | "pulls"), rest @ ..] = pieces else { return not_found() };
    let repo = format!("{owner}/{name}");
    if let Some(to) = desk.renamed(&repo) {
        let location = format!("{}{}", desk.root, asked.path.replacen(&repo, to, 1));
        return refusal(301, "Moved Permanently").with("location", location);
    }
    if !desk.has_repo(&repo) {
        return not_found();
    }
    match (asked.method, *list, rest) {
        ("GET", "issues", []) => issues(desk, asked, &repo),
        (_, list, [number, rest @ ..]) => match number.parse() {
            Ok(number) if list == "pulls" => pulls::answer(desk, asked, &repo, number, rest),
            Ok(number) => of_one(desk, asked, &repo, number, rest),
            Err(_) => not_found(),
        },
        _ => not_found(),
    }
}

fn issues(desk: &TrackerState, asked: &TrackerExchange<'_>, repo: &str) -> TrackerResponse {
    let (query, labels) = (&asked.query, asked.query.labels());
    let wanted = |issue: &FakeIssue| {
        let state = match query.get("state").unwrap_or("open") {
            "open" => issue.stage == IssueStage::Open,
            "closed" => issue.stage != IssueStage::Open,
            _ => true,
        };
        let has = |label: &&str| issue.labels.iter().any(|other| other.eq_ignore_ascii_case(label));
        let assigned =
            |user: &str| issue.assignees.iter().any(|other| user == "*" || other.eq_ignore_ascii_case(user));
        state && labels.iter().all(has) && query.get("assignee").is_none_or(assigned)
    };
    let mut all = desk.all(repo);
    all.retain(|(_, issue)| wanted(issue));
    if query.get("direction") != Some("asc") {
        all.reverse();
    }
    let shapes = all.iter().map(|(place, issue)| shape(desk, place, issue)).collect();
    paged(desk, asked, TrackerPage::of(shapes, query, 30))
}

pub(super) fn paged(
    desk: &TrackerState,
    asked: &TrackerExchange<'_>,
    page: TrackerPage<Value>,
) -> TrackerResponse {
    let link = page.link(&format!("{}{}", desk.link_root, asked.path));
    let answer =
        TrackerResponse::json(200, &Value::Array(page.elements)).with("x-ratelimit-remaining", 4_999);
    link.into_iter().fold(answer, |answer, link| answer.with("link", link))
}

fn of_one(
    desk: &mut TrackerState,
    asked: &TrackerExchange<'_>,
    repo: &str,
    number: u64,
    rest: &[&str],
) -> TrackerResponse {
    let at = |sort| CommentPlace { repo: repo.to_owned(), sort, number };
    let place =
        [at(IssueSort::Issue), at(IssueSort::Pull)].into_iter().find(|place| desk.slot(place).is_some());
    let Some(place) = place else { return not_found() };
    let Some(issue) = desk.find(&place) else { return refusal(410, "This issue was deleted") };
    match (asked.method, rest) {
        ("GET", []) => TrackerResponse::json(200, &shape(desk, &place, issue)),
        ("GET", ["labels"]) => labels(desk, &place, 200),
        ("POST", ["labels"]) => put_on(desk, asked, &place),
        ("DELETE", ["labels", name]) => take_off(desk, &place, name),
        ("GET", ["comments"]) => comments(desk, asked, &place, issue),
        ("POST", ["comments"]) => say(desk, asked, &place),
        _ => not_found(),
    }
}

fn labels(desk: &TrackerState, place: &CommentPlace, status: u16) -> TrackerResponse {
    let labels = desk.find(place).map(label_shapes).unwrap_or_default();
    TrackerResponse::json(status, &Value::Array(labels))
}

fn put_on(desk: &mut TrackerState, asked: &TrackerExchange<'_>, place: &CommentPlace) -> TrackerResponse {
    let given = asked.body.as_ref().and_then(|body| body.get("labels")).and_then(Value::as_array);
    let Some(given) = given else { return refusal(422, "Invalid request.\n\n\"labels\" wasn't supplied.") };
    let given: Vec<&str> = given.iter().filter_map(Value::as_str).collect();
    desk.change(place, |issue| {
        for label in given {
            if !issue.labels.iter().any(|other| other.eq_ignore_ascii_case(label)) {
                issue.put_on(label);
            }
        }
    });
    labels(desk, place, 200)
}

fn take_off(desk: &mut TrackerState, place: &CommentPlace, name: &str) -> TrackerResponse {
    let mut was_there = false;
    desk.change(place, |issue| {
        let before = issue.labels.len();
        issue.labels.retain(|other| !other.eq_ignore_ascii_case(name));
        was_there = issue.labels.len() < before;
    });
    if was_there { labels(desk, place, 200) } else { refusal(404, "Label does not exist") }
}

fn comments(
    desk: &TrackerState,
    asked: &TrackerExchange<'_>,
    place: &CommentPlace,
    issue: &FakeIssue,
) -> TrackerResponse {
    let since = asked.query.get("since");
    let recent = |comment: &&TrackerComment| since.is_none_or(|since| stamp(comment.at).as_str() >= since);
    let all = issue.comments.iter().filter(recent).map(|comment| said(desk, place, comment)).collect();
    paged(desk, asked, TrackerPage::of(all, &asked.query, 30))
}

fn say(desk: &mut TrackerState, asked: &TrackerExchange<'_>, place: &CommentPlace) -> TrackerResponse {
    let text = asked.field("body").unwrap_or_default();
    if text.trim().is_empty() {
        return refusal(422, "Validation Failed: body cannot be blank");
    }
    if text.chars().count() > MOST_WORDS {
        return refusal(422, "Validation Failed: body is too long (maximum is 65536 characters)");
    }
    desk.comment(place, Author::User(ME), text);
    let last = desk.find(place).and_then(|issue| issue.comments.last());
    TrackerResponse::json(201, &last.map_or(Value::Null, |comment| said(desk, place, comment)))
}

fn said(desk: &TrackerState, place: &CommentPlace, comment: &TrackerComment) -> Value {
    json!({
        "id": comment.id,
        "html_url": format!("{}#issuecomment-{}", page(desk, place), comment.id),
        "user": { "login": comment.author, "type": "User" },
        "body": comment.text,
        "created_at": stamp(comment.at),
        "updated_at": stamp(comment.at),
    })
}

fn label_shapes(issue: &FakeIssue) -> Vec<Value> {
    let shape =
        |label: &String| json!({ "name": label, "color": "ededed", "default": false, "description": null });
    issue.labels.iter().map(shape).collect()
}

pub(super) fn page(desk: &TrackerState, place: &CommentPlace) -> String {
    let kind = if place.sort == IssueSort::Issue { "issues" } else { "pull" };
    format!("{}/{}/{kind}/{}", desk.root, place.repo, place.number)
}

fn shape(desk: &TrackerState, place: &CommentPlace, issue: &FakeIssue) -> Value {
    let user = |login: &String| json!({ "login": login, "type": "User" });
    let mut shape = json!({
        "id": 7_000_000 + place.number,
        "url": format!("{}/repos/{}/issues/{}", desk.root, place.repo, place.number),
        "html_url": page(desk, place),
        "number": place.number,
        "title": issue.title,
        "body": issue.text,
        "user": user(&issue.author),
        "labels": label_shapes(issue),
        "assignee": issue.assignees.first().map(user),
        "assignees": issue.assignees.iter().map(user).collect::<Vec<_>>(),
        "state": if issue.stage == IssueStage::Open { "open" } else { "closed" },
        "comments": issue.comments.len(),
        "created_at": stamp(issue.at),
        "updated_at": stamp(issue.comments.last().map_or(issue.at, |comment| comment.at)),
    });
    if place.sort == IssueSort::Pull {
        let merged = (issue.stage == IssueStage::Merged).then(|| stamp(issue.at));
        shape["pull_request"] = json!({ "html_url": page(desk, place), "merged_at": merged });
    }
    shape
}
