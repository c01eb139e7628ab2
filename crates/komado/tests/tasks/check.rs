//! What must hold when all is done.

use crate::tasks::course::{self, CALLS};
use crate::tasks::town::{LABEL, Town};
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks everything; gives a line about it.
pub(crate) fn all(town: &Town) -> String {
    for task in 0..town.tasks {
        tracker(town, task);
    }
    let sessions = town.json_lines(&["sessions", "-n", "1000"]);
    assert_eq!(sessions.len(), town.tasks, "one session for each task");
    let calls: usize = sessions.iter().map(|session| journal(town, session)).sum();
    town.ok(&["admin", "doctor"]);
    assert!(town.json_lines(&["task", "list"]).is_empty(), "nothing is left in the queue");
    let again = calls - town.tasks * CALLS;
    format!("{} tasks done once each, {calls} calls, {again} of them made again after a kill", town.tasks)
}

/// One comment with the result, and the labels of a task that is done.
fn tracker(town: &Town, task: usize) {
    let issue = town.issue(task);
    assert_eq!(issue.labels, [format!("{LABEL} done")], "{issue:?}");
    let told = issue.comments.iter().filter(|comment| comment.text.contains(&course::last_words(task)));
    assert_eq!(told.count(), 1, "{issue:?}");
    let marks: Vec<&str> = issue.comments.iter().filter_map(|comment| comment.text.lines().next()).collect();
    assert_eq!(marks.iter().collect::<BTreeSet<_>>().len(), marks.len(), "nothing is said twice: {marks:?}");
}

/// The journal of a task is whole; gives its calls.
fn journal(town: &Town, session: &Value) -> usize {
    let id = session["session"].as_str().unwrap();
    assert_eq!(session["status"], "completed", "{session}");
    let lines = town.json_lines(&["show", id]);
    let messages: Vec<&Value> = lines.iter().map(|line| &line["message"]).collect();
    let said =
        |role: &str| messages.iter().copied().filter(|message| message["role"] == role).collect::<Vec<_>>();
    let prompts =
        said("user").iter().filter(|message| message.to_string().contains("直してください")).count();
    assert_eq!(prompts, 1, "{id}: told once");
    let asked: Vec<&str> = said("assistant").iter().flat_map(|message| ids(message)).collect();
    let answered: Vec<&str> =
        said("tool").iter().filter_map(|message| message["tool_call_id"].as_str()).collect();
    assert_eq!(asked, answered, "{id}: every call has its result, once and in order");
    assert!(asked.len() >= CALLS, "{id}: {asked:?}");
    assert_eq!(session["tool_call_count"], asked.len(), "{session}");
    kept(town, id, asked.len());
    asked.len()
}

fn ids(message: &Value) -> impl Iterator<Item = &str> {
    message["tool_calls"].as_array().into_iter().flatten().filter_map(|call| call["id"].as_str())
}

/// Where files are the store, the folder has moved and has a line for each call.
fn kept(town: &Town, id: &str, calls: usize) {
    let (completed, running) =
        (town.place.base().join("completed").join(id), town.place.base().join("running").join(id));
    assert!(!running.exists(), "{id} is still under running");
    if completed.exists() {
        let tools = std::fs::read_to_string(completed.join("tools.jsonl")).unwrap();
        assert_eq!(tools.lines().count(), calls, "{id}: {tools}");
    }
}
