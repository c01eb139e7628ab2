//! Which trackers do tasks come from?
//!
//! A tracker is there when it has repositories: everything else about it has a default or may be left out.

use super::check::{Given, Value};
use komado_agent::source::{Kind, Tracker};
use std::collections::BTreeMap;
use std::time::Duration;

/// The trackers that some settings speak of, GitHub first.
pub(super) fn trackers(given: &BTreeMap<String, Given>) -> Vec<Tracker> {
    let kinds = [(Kind::GitHub, "repos"), (Kind::GitLab, "projects")];
    kinds.into_iter().filter_map(|(kind, repos)| tracker(given, kind, repos)).collect()
}

fn tracker(given: &BTreeMap<String, Given>, kind: Kind, repos: &str) -> Option<Tracker> {
    let value = |leaf: &str| given.get(&format!("{}.{leaf}", kind.name()))?.value.clone();
    let text = |leaf: &str| match value(leaf)? {
        Value::Text(text) => Some(text),
        _ => None,
    };
    let word = |leaf: &str| text(leaf).unwrap_or_default();
    let Some(Value::Lines(repos)) = value(repos) else { return None };
    let Some(Value::Count(patience)) = value("patience_seconds") else { return None };
    Some(Tracker {
        kind,
        base_url: word("base_url").trim_end_matches('/').to_owned(),
        token: text("token"),
        repos,
        user: text("user"),
        label: word("label"),
        running: word("label_running"),
        done: word("label_done"),
        failed: word("label_failed"),
        paused: word("label_paused"),
        patience: Duration::from_secs(u64::from(patience)),
    })
    .filter(|tracker| !tracker.repos.is_empty())
}
