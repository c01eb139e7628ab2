//! Commands and agents that go on after their call was answered.
//!
//! An answer that names an id and says that the work goes on opens one; an answer, a notice or a call that ends it
//! closes it. It refuses to guess that something ended because nothing more was heard of it.

use crate::Seq;
use crate::digest::fact::{Fact, FactKind};
use crate::digest::scan::{one_line, start};
use serde_json::Value;
use std::collections::BTreeMap;

/// Work that is followed at once.
const RUNNING: usize = 64;

/// How an answer names what goes on.
const NAMES: [&str; 9] = [
    "background with id: ",
    "shell started with id: ",
    "running with session id ",
    "session id: ",
    "agentid: ",
    "agent_id\":\"",
    "agent_id\": \"",
    "task_id: ",
    "shell id: ",
];

/// How an answer says that it ended.
const ENDS: [&str; 11] = [
    "<status>completed",
    "<status>failed",
    "<status>killed",
    "<status>stopped",
    "status: completed",
    "status: failed",
    "\"completed\"",
    "\"shutdown\"",
    "exited with code",
    "exit code",
    "successfully killed",
];

#[derive(Clone, Debug, Default)]
pub(in crate::digest) struct Background(BTreeMap<String, Fact>);

impl Background {
    /// The ids of running work that a call names.
    pub(super) fn named(&self, arguments: &Value) -> Vec<String> {
        let mut named = Vec::new();
        if let (false, Value::Object(fields)) = (self.0.is_empty(), arguments) {
            for value in fields.values() {
                let each = value.as_array().map_or_else(|| vec![value], |list| list.iter().collect());
                for value in each {
                    let id = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    named.extend(Some(id).filter(|id| self.0.contains_key(id)));
                }
            }
        }
        named
    }

    /// An answer to a call of `tool`, which named the running work `ids`.
    pub(super) fn answered(&mut self, seq: Seq, tool: &str, brief: &str, ids: &[String], output: &str) {
        let low = start(output, 4000).to_lowercase();
        let tool = tool.to_ascii_lowercase();
        let kills = ["kill", "stop", "close", "terminate", "cancel"].iter().any(|word| tool.contains(word));
        if !ids.is_empty() {
            if kills || ENDS.iter().any(|end| low.contains(end)) {
                ids.iter().for_each(|id| _ = self.0.remove(id));
            }
            return;
        }
        let goes_on = ["running", "launched", "started", "spawned", "agent_id"];
        if !goes_on.iter().any(|word| start(&low, 400).contains(word)) || self.0.len() >= RUNNING {
            return;
        }
        // The lower case of a few letters has another length; then there is no id at that place.
        let id = NAMES.iter().find_map(|name| output.get(low.find(name)? + name.len()..)).map(word);
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            let text = format!("background {id}: {}", one_line(brief, 120));
            self.0.insert(id.to_owned(), Fact::new(FactKind::OpenCall, text, seq));
        }
    }

    /// What an agent wrote beside the user's words: notices of what ended.
    pub(super) fn noticed(&mut self, text: &str) {
        for notice in text.split("<task-notification>").skip(1) {
            let id = notice.split_once("<task-id>").map(|(_, rest)| word(rest.trim_start()));
            if let Some(id) = id.filter(|_| ENDS.iter().any(|end| notice.contains(end))) {
                self.0.remove(id);
            }
        }
    }

    /// What an earlier digest told; true when it was about running work.
    pub(in crate::digest) fn recall(&mut self, fact: &Fact) -> bool {
        let id = fact.text.strip_prefix("background ").and_then(|rest| rest.split_once(": "));
        if let Some((id, _)) = id {
            self.0.insert(id.to_owned(), fact.clone());
        }
        id.is_some()
    }

    pub(in crate::digest) fn values(&self) -> impl Iterator<Item = &Fact> {
        self.0.values()
    }
}

/// The id that a text begins with.
fn word(text: &str) -> &str {
    let end =
        text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(text.len());
    &text[..end]
}
