//! GitLab's face: paths, shapes and words of its API, version 4.

use super::answer::{TrackerResponse, stamp};
use super::issue::{CommentPlace, FakeIssue, IssueSort, IssueStage, TrackerComment};
use super::query::TrackerPage;
use super::serve::TrackerExchange;
use super::state::{Author, Limit, TrackerState};
use serde_json::{Value, json};

/// The longest note, in characters.
const MOST_WORDS: usize = 1_000_000;

pub(super) fn refusal(status: u16, words: &str) -> TrackerResponse {
    TrackerResponse::json(status, &json!({ "message": format!("{status} {words}") }))
}

fn not_found(what: &str) -> TrackerResponse {
    refusal(404, &format!("{what} Not Found"))
}

pub(super) fn limited(now: i64, limit: Limit) -> TrackerResponse {
    let (Limit::Quota(seconds) | Limit::Burst(seconds)) = limit;
    let answer = TrackerResponse {
        status: 429,
        headers: vec![("content-type", "text/plain".to_owned())],
        body: "Retry later\n".to_owned(),
    };
    match limit {
        Limit::Quota(_) => {
            answer.with("ratelimit-remaining", 0).with("ratelimit-reset", now + i64::from(seconds))
        }
        Limit::Burst(_) => answer.with("retry-after", seconds),
    }
}

pub(super) fn answer(desk: &mut TrackerState, asked: &TrackerExchange<'_>) -> TrackerResponse {
    if asked.header("private-token") != Some(desk.token.as_str()) {
        return refusal(401, "Unauthorized");
    }
    let pieces: Vec<&str> = asked.pieces.iter().map(String::as_str).collect();
    let ["api", "v4", "projects", repo, kind, rest @ ..] = &pieces[..] else { return not_found("") };
    let sort = match *kind {
        "issues" => IssueSort::Issue,
        "merge_requests" => IssueSort::Pull,
        _ => return not_found(""),
    };
    if !desk.has_repo(repo) {
        return not_found("Project");
    }
    match (asked.method, rest) {
        ("GET", []) => list(desk, asked, repo, sort),
        (_, [number, rest @ ..]) => match number.parse() {
            Ok(number) => of_one(desk, asked, &CommentPlace { repo: (*repo).to_owned(), sort, number }, rest),
            Err(_) => refusal(400, "Bad request - iid is invalid"),
        },
        _ => not_found(""),
    }
}

fn list(desk: &TrackerState, asked: &TrackerExchange<'_>, repo: &str, sort: IssueSort) -> TrackerResponse {
    let (query, labels) = (&asked.query, asked.query.labels());
    let user = query.get("assignee_username").or_else(|| query.get("assignee_username[]"));
    let wanted = |issue: &FakeIssue| {
        let state = query.get("state").is_none_or(|state| state == "all" || state == stage(issue));
        let assigned = |user: &str| issue.assignees.iter().any(|other| other == user);
        state && labels.iter().all(|label| issue.has(label)) && user.is_none_or(assigned)
    };
    let mut all = desk.all(repo);
    all.retain(|(place, issue)| place.sort == sort && wanted(issue));
    if query.get("sort") != Some("asc") {
        all.reverse();
    }
    let shapes = all.iter().map(|(place, issue)| shape(desk, place, issue)).collect();
    paged(desk, asked, TrackerPage::of(shapes, query, 20))
}

fn paged(desk: &TrackerState, asked: &TrackerExchange<'_>, page: TrackerPage<Value>) -> TrackerResponse {
    let (number, pages, link) =
        (page.number, page.pages(), page.link(&format!("{}{}", desk.link_root, asked.path)));
    let next = if number < pages { (number + 1).to_string() } else { String::new() };
    let answer = TrackerResponse::json(200, &Value::Array(page.elements))
        .with("x-page", number)
        .with("x-per-page", page.size)
        .with("x-next-page", next)
        .with("x-total", page.total)
        .with("x-total-pages", pages);
    link.into_iter().fold(answer, |answer, link| answer.with("link", link))
}

fn of_one(
    desk: &mut TrackerState,
    asked: &TrackerExchange<'_>,
    place: &CommentPlace,
    rest: &[&str],
) -> TrackerResponse {
    let Some(issue) = desk.find(place) else { return not_found("") };
    match (asked.method, rest) {
        ("GET", []) => TrackerResponse::json(200, &shape(desk, place, issue)),
        ("PUT", []) => change(desk, asked, place),
        ("GET", ["notes"]) => notes(asked, desk, issue),
        ("POST", ["notes"]) => say(desk, asked, place),
        _ => not_found(""),
    }
}

fn change(desk: &mut TrackerState, asked: &TrackerExchange<'_>, place: &CommentPlace) -> TrackerResponse {
    let names = |field| asked.field(field).unwrap_or_default().split(',').map(str::trim);
    if asked.field("add_labels").is_none() && asked.field("remove_labels").is_none() {
        let body = json!({ "error": "add_labels, remove_labels are missing, at least one parameter must be provided" });
        return TrackerResponse::json(400, &body);
    }
    desk.change(place, |issue| {
        issue.labels.retain(|label| names("remove_labels").all(|other| other != label));
        names("add_labels").filter(|label| !label.is_empty()).for_each(|label| issue.put_on(label));
    });
    let shape = desk.find(place).map(|issue| shape(desk, place, issue));
    TrackerResponse::json(200, &shape.unwrap_or_default())
}

fn notes(asked: &TrackerExchange<'_>, desk: &TrackerState, issue: &FakeIssue) -> TrackerResponse {
    let mut all: Vec<Value> = issue.comments.iter().map(said).collect();
    if asked.query.get("sort") != Some("asc") {
        all.reverse();
    }
    paged(desk, asked, TrackerPage::of(all, &asked.query, 20))
}

/// A line that is a command is carried out, and is no words: a client that writes a note for another user must know that.
fn say(desk: &mut TrackerState, asked: &TrackerExchange<'_>, place: &CommentPlace) -> TrackerResponse {
    let Some(text) = asked.field("body") else {
        return TrackerResponse::json(400, &json!({ "error": "body is missing" }));
    };
    if text.chars().count() > MOST_WORDS {
        return TrackerResponse::json(
            400,
            &json!({ "message": { "note": ["is too long (maximum is 1000000 characters)"] } }),
        );
    }
    if text.lines().any(|line| line.trim_end() == "/close") {
        desk.change(place, |issue| issue.stage = IssueStage::Closed);
    }
    let words: Vec<&str> = text.lines().filter(|line| line.trim_end() != "/close").collect();
    if words.concat().trim().is_empty() {
        return TrackerResponse::json(400, &json!({ "message": { "note": ["can't be blank"] } }));
    }
    desk.comment(place, Author::User("komado-bot"), &words.join("\n"));
    let last = desk.find(place).and_then(|issue| issue.comments.last());
    TrackerResponse::json(201, &last.map_or(Value::Null, said))
}

fn said(comment: &TrackerComment) -> Value {
    let mut shape = json!({
        "id": comment.id,
        "type": null,
        "body": comment.text,
        "author": { "id": 1, "username": comment.author, "state": "active" },
        "system": comment.system,
        "created_at": stamp(comment.at),
        "updated_at": stamp(comment.at),
        "noteable_type": "Issue",
    });
    if let Some((path, line)) = &comment.on {
        shape["type"] = "DiffNote".into();
        shape["position"] = json!({
            "position_type": "text", "old_path": path, "new_path": path, "old_line": null, "new_line": line,
        });
    }
    shape
}

fn stage(issue: &FakeIssue) -> &'static str {
    match issue.stage {
        IssueStage::Open => "opened",
        IssueStage::Closed => "closed",
        IssueStage::Merged => "merged",
    }
}

fn shape(desk: &TrackerState, place: &CommentPlace, issue: &FakeIssue) -> Value {
    let user = |name: &String| json!({ "id": 1, "username": name, "state": "active" });
    let kind = if place.sort == IssueSort::Issue { "issues" } else { "merge_requests" };
    json!({
        "id": 9_000_000 + place.number,
        "iid": place.number,
        "project_id": 1,
        "title": issue.title,
        "description": issue.text,
        "state": stage(issue),
        "author": user(&issue.author),
        "labels": issue.labels,
        "assignees": issue.assignees.iter().map(user).collect::<Vec<_>>(),
        "user_notes_count": issue.comments.iter().filter(|comment| !comment.system).count(),
        "web_url": format!("{}/{}/-/{kind}/{}", desk.root, place.repo, place.number),
        "created_at": stamp(issue.at),
        "updated_at": stamp(issue.comments.last().map_or(issue.at, |comment| comment.at)),
    })
}
