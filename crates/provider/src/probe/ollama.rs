//! Ollama's `/api/ps` and `/api/show`.

use super::{Method, Step};
use serde_json::{Value, json};

pub(super) fn show(model: &str) -> Step {
    Step { method: Method::Post, path: "/api/show", body: Some(json!({ "model": model }).to_string()) }
}

/// The window `model` is loaded with now.
pub(super) fn loaded(body: &str, model: &str) -> Option<u64> {
    let value: Value = serde_json::from_str(body).ok()?;
    let rows = value.get("models")?.as_array()?;
    let is = |row: &&Value| {
        ["model", "name"]
            .iter()
            .any(|key| row.get(key).and_then(Value::as_str).is_some_and(|name| same(name, model)))
    };
    rows.iter().find(is)?.get("context_length")?.as_u64()
}

/// `num_ctx` as the model file sets it.
pub(super) fn set(body: &str) -> Option<u64> {
    let value: Value = serde_json::from_str(body).ok()?;
    let parameters = value.get("parameters")?.as_str()?;
    let mut set = parameters.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == "num_ctx").then(|| words.next()?.parse().ok())?
    });
    set.next_back()
}

/// `llama3.1` is `llama3.1:latest`.
fn same(a: &str, b: &str) -> bool {
    let full = |name: &str| {
        let last = name.rsplit('/').next().unwrap_or(name);
        if last.contains(':') { name.to_lowercase() } else { format!("{name}:latest").to_lowercase() }
    };
    full(a) == full(b)
}
