//! What is still to be done: lists of to-do tools, boxes that are not ticked, announced next steps.
//!
//! The latest list wins. A tool that keeps single tasks is followed by their numbers. It refuses to guess that
//! something is done because it was talked about.

use crate::Seq;
use crate::digest::fact::{Fact, FactKind, FactTable};
use crate::digest::scan::{fold, one_line, sentences};
use crate::digest::words::{NEXT, cue};
use serde_json::Value;
use std::collections::BTreeMap;

const LENGTH: usize = 200;
/// Items of one list, and single tasks, that are kept.
const ITEMS: usize = 64;
/// Entries after which an announced step is no longer told.
const STALE: Seq = 60;

#[derive(Clone, Debug, Default)]
pub(in crate::digest) struct ToDos {
    /// The latest whole list.
    list: Vec<Fact>,
    /// Single tasks by number.
    tasks: BTreeMap<String, Fact>,
    /// Tasks whose number the result will tell, by call.
    made: BTreeMap<String, Fact>,
    /// Boxes that are not ticked.
    boxes: FactTable<32>,
    /// The latest announced steps.
    next: Vec<Fact>,
}

impl ToDos {
    /// Looks at a call; true when it was about to-dos.
    pub(in crate::digest) fn call(&mut self, seq: Seq, id: &str, name: &str, arguments: &Value) -> bool {
        let name = name.to_ascii_lowercase();
        let Value::Object(fields) = arguments else { return false };
        if !["todo", "task", "plan"].iter().any(|word| name.contains(word)) {
            return false;
        }
        let lists = ["todos", "items", "tasks", "plan", "steps", "todo_list"];
        if let Some(items) = lists.iter().find_map(|key| fields.get(*key)?.as_array()) {
            self.list = items.iter().filter_map(|item| open_item(seq, item)).take(ITEMS).collect();
            return true;
        }
        let number = ["taskId", "task_id", "id"].iter().find_map(|key| text_of(fields.get(*key)?));
        let subject = ["subject", "title", "content"].iter().find_map(|key| fields.get(*key)?.as_str());
        match (number, subject) {
            (Some(number), _) if fields.contains_key("status") => {
                if is_done(fields.get("status")) {
                    self.tasks.remove(&number);
                } else if let Some(task) = self.tasks.get_mut(&number) {
                    task.at = seq;
                }
                true
            }
            (None, Some(subject)) if name.contains("create") || name.contains("add") => {
                if self.made.len() < ITEMS {
                    self.made.insert(id.to_owned(), todo(seq, subject));
                }
                true
            }
            _ => false,
        }
    }

    /// Looks at a result: it may tell the number of a task that was made.
    pub(in crate::digest) fn result(&mut self, id: &str, output: &str) {
        let Some(mut fact) = self.made.remove(id) else { return };
        let number = output.split_once('#').and_then(|(_, rest)| digits(rest));
        let number = number.unwrap_or_else(|| id.to_owned());
        if number != id {
            fact.text = format!("#{number} {}", fact.text);
        }
        if self.tasks.len() < ITEMS || self.tasks.contains_key(&number) {
            self.tasks.insert(number, fact);
        }
    }

    /// Looks for boxes and announced steps in prose.
    pub(in crate::digest) fn prose(&mut self, seq: Seq, text: &str) {
        let mut next = Vec::new();
        for line in text.lines().map(str::trim_start) {
            let item = line.trim_start_matches(['-', '*', '+', ' ']);
            if let Some(item) = item.strip_prefix("[ ] ") {
                self.boxes.put(fold(item), todo(seq, item));
            } else if let Some(item) = item.strip_prefix("[x] ").or_else(|| item.strip_prefix("[X] ")) {
                self.boxes.remove(&fold(item));
            } else if item.starts_with("TODO") && item.len() < 400 {
                self.boxes.put(fold(item), todo(seq, item));
            }
        }
        let mut announced = false;
        for sentence in sentences(text) {
            let low = sentence.to_lowercase();
            let found = cue(&low, NEXT);
            let heads = low.ends_with([':', '：']) || found.is_some_and(|cue| low.trim_matches('*') == cue);
            if found.is_some() {
                announced = heads;
            } else if heads || !announced {
                continue;
            }
            if !heads && next.len() < 4 {
                next.push(todo(seq, &sentence));
            }
        }
        if !next.is_empty() {
            self.next = next;
        }
    }

    /// A to-do that an earlier digest told.
    pub(in crate::digest) fn recall(&mut self, fact: Fact) {
        if let Some(number) = fact.text.strip_prefix('#').and_then(digits) {
            self.tasks.insert(number, fact);
        } else if self.list.len() < ITEMS {
            self.list.push(fact);
        }
    }

    /// All that is open, the latest list first.
    pub(in crate::digest) fn open(&self, last: Seq) -> Vec<Fact> {
        let mut open: Vec<Fact> =
            self.list.iter().chain(self.tasks.values()).chain(self.made.values()).cloned().collect();
        open.extend(self.boxes.ranked(last));
        // What was announced long ago is done or dropped.
        open.extend(self.next.iter().filter(|fact| fact.at.saturating_add(STALE) >= last).cloned());
        let mut seen = std::collections::BTreeSet::new();
        open.retain(|fact| seen.insert(fold(&fact.text)));
        open
    }
}

/// The number that `text` begins with.
fn digits(text: &str) -> Option<String> {
    Some(text.chars().take_while(char::is_ascii_digit).collect()).filter(|digits: &String| !digits.is_empty())
}

fn todo(seq: Seq, text: &str) -> Fact {
    Fact::new(FactKind::ToDo, one_line(text, LENGTH), seq)
}

/// An item of a list, unless it is done.
fn open_item(seq: Seq, item: &Value) -> Option<Fact> {
    let text = match item {
        Value::String(text) => text.as_str(),
        Value::Object(fields) => {
            if is_done(fields.get("status")) || fields.get("done").and_then(Value::as_bool) == Some(true) {
                return None;
            }
            ["content", "text", "title", "subject", "step", "task", "description"]
                .iter()
                .find_map(|key| fields.get(*key)?.as_str())?
        }
        _ => return None,
    };
    (!text.trim().is_empty()).then(|| todo(seq, text))
}

fn is_done(status: Option<&Value>) -> bool {
    let status = status.and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    matches!(
        status.as_str(),
        "completed" | "complete" | "done" | "cancelled" | "canceled" | "deleted" | "closed"
    )
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(todos: &ToDos) -> Vec<String> {
        todos.open(40).into_iter().map(|fact| fact.text).collect()
    }

    #[test]
    fn the_latest_list_wins_and_done_items_are_gone() {
        let mut todos = ToDos::default();
        todos.call(1, "a", "TodoWrite", &json!({"todos": [{"content": "old", "status": "pending"}]}));
        let list = json!({"todos": [{"content": "write", "status": "completed"}, {"content": "test", "status": "pending"}]});
        assert!(todos.call(5, "b", "TodoWrite", &list));
        assert_eq!(texts(&todos), ["test"]);
    }

    #[test]
    fn single_tasks_are_followed_by_number() {
        let mut todos = ToDos::default();
        for (call, number, subject) in [("a", 1, "read"), ("b", 2, "write")] {
            todos.call(1, call, "TaskCreate", &json!({"subject": subject}));
            todos.result(call, &format!("Task #{number} created successfully: {subject}"));
        }
        todos.call(9, "c", "TaskUpdate", &json!({"taskId": "1", "status": "completed"}));
        assert_eq!(texts(&todos), ["#2 write"]);
    }

    #[test]
    fn boxes_are_ticked_and_next_steps_replaced() {
        let mut todos = ToDos::default();
        todos.prose(1, "- [ ] 文書を書く\n- [ ] ship\nNext steps: run the tests.");
        todos.prose(2, "- [x] ship\n残りは文書だけです。");
        assert_eq!(texts(&todos), ["文書を書く", "残りは文書だけです。"]);
    }
}
