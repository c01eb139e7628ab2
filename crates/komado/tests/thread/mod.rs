//! `komado thread` as a user meets it: shares in numbers, each verb of a child's life, errors, settings, and a real kill.
mod held;
mod life;
use crate::run;
mod settings;
mod shares;
mod siblings;
mod slices;
mod table;

use run::Place;
use serde_json::Value;

/// A session whose window is that of the seed's example, with something said in it.
fn session(place: &Place) -> String {
    let session = place.session_with(&["--id", "city", "--meter", "bytes4", "--window", "100000"]);
    place.ok(&["append", &session, "電卓を作って。古い方も動くままに。"]);
    session
}

/// Starts a child with the shares that the ratios alone give.
fn start(place: &Place, parent: &str, label: &str) -> Value {
    place.json(&["thread", "start", parent, label, "--no-lending"])
}

/// A thread of the tree.
fn node(tree: &Value, thread: &str) -> Value {
    let nodes = tree["threads"].as_array().unwrap();
    nodes
        .iter()
        .find(|node| node["thread"] == thread)
        .unwrap_or_else(|| panic!("no {thread} in {tree}"))
        .clone()
}

/// What the model sees, as one text.
fn shown(place: &Place, address: &str) -> String {
    let lines = place.json_lines(&["show", address]);
    lines.iter().map(|line| line["message"].to_string() + "\n").collect()
}
