//! What is to be done and what is done of it: lists of to-do tools, boxes that are not ticked, announced next steps.
//!
//! The latest list wins, with the status it gives each item. A tool that keeps single tasks is followed by their numbers. It
//! refuses to guess that something is done because it was talked about.

use crate::Seq;
use crate::digest::fact::{Fact, FactKind, FactTable, ToDoStatus};
use crate::digest::scan::{fold, one_line, sentences};
use crate::digest::words::{NEXT, cue};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

const LENGTH: usize = 200;
/// Items of one list, and single tasks, that are kept.
const ITEMS: usize = 64;
/// Entries after which an announced step is no longer told.
const STALE: Seq = 60;

/// Fields that hold a list, as values or as lines with boxes.
const LISTS: [&str; 9] =
    ["todos", "items", "tasks", "plan", "steps", "todo_list", "todoList", "task_progress", "checklist"];

/// Items, each with its id where it has one.
type ToDoList = Vec<(Option<String>, Fact)>;

#[derive(Clone, Debug, Default)]
pub(in crate::digest) struct ToDos {
    /// The latest whole list.
    list: ToDoList,
    /// The call that brought it, and the list before.
    before: Option<(String, ToDoList)>,
    /// Single tasks by number.
    tasks: BTreeMap<String, Fact>,
    /// Tasks whose number the result will tell, by call.
    made: BTreeMap<String, Fact>,
    /// Calls whose answer tells the list.
    asked: BTreeMap<String, Seq>,
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
        let about = ["todo", "task", "plan", "checklist"].iter().any(|word| name.contains(word));
        // A list that comes along with other work is a list, but the call is that work.
        let along = fields.contains_key("task_progress");
        if !about && !along {
            return false;
        }
        if let Some(items) = LISTS.iter().find_map(|key| items(seq, fields.get(*key)?)) {
            self.replace(id, items, fields.get("merge").and_then(Value::as_bool) == Some(true));
            return about;
        }
        if !about {
            return false;
        }
        let number = ["taskId", "task_id", "id"].iter().find_map(|key| text_of(fields.get(*key)?));
        let subject = ["subject", "title", "content"].iter().find_map(|key| fields.get(*key)?.as_str());
        match (number, subject) {
            (Some(number), _) if fields.contains_key("status") => {
                self.update(seq, number, fields, subject);
                true
            }
            (None, Some(subject)) if name.contains("create") || name.contains("add") => {
                if self.made.len() < ITEMS {
                    self.made.insert(id.to_owned(), todo(seq, subject));
                }
                true
            }
            (None, None) if name.ends_with("read") || name.ends_with("list") => {
                if self.asked.len() < ITEMS {
                    self.asked.insert(id.to_owned(), seq);
                }
                true
            }
            _ => false,
        }
    }

    /// A new list; with `merge` it changes only the items it names.
    fn replace(&mut self, call: &str, items: ToDoList, merge: bool) {
        let mut list = if merge { self.list.clone() } else { Vec::new() };
        for (id, item) in items {
            let same = |known: &&mut (Option<String>, Fact)| id.is_some() && known.0 == id;
            match list.iter_mut().filter(|_| merge).find(same) {
                Some((_, known)) if item.text.is_empty() => (known.status, known.at) = (item.status, item.at),
                Some((_, known)) => *known = item,
                None if item.text.is_empty() => {}
                None => list.push((id, item)),
            }
        }
        list.truncate(ITEMS);
        self.before = Some((call.to_owned(), std::mem::replace(&mut self.list, list)));
    }

    fn update(&mut self, seq: Seq, number: String, fields: &Map<String, Value>, subject: Option<&str>) {
        let status = status_of(fields.get("status"));
        if fields.get("status").and_then(Value::as_str) == Some("deleted") {
            self.tasks.remove(&number);
        } else if let Some(task) = self.tasks.get_mut(&number) {
            (task.at, task.status) = (seq, status);
            if let Some(subject) = subject {
                task.text = format!("#{number} {}", one_line(subject, LENGTH));
            }
        } else if let Some((_, item)) = self.list.iter_mut().find(|(id, _)| id.as_ref() == Some(&number)) {
            (item.at, item.status) = (seq, status);
        }
    }

    /// Looks at a result: it may tell the number of a task that was made, or the list, or that the call came to nothing.
    pub(in crate::digest) fn result(&mut self, id: &str, output: &str, failed: bool) {
        if let Some((_, before)) = self.before.take_if(|(call, _)| call == id).filter(|_| failed) {
            self.list = before;
        }
        if let Some(seq) = self.asked.remove(id).filter(|_| !failed) {
            self.told_list(seq, output);
        }
        let Some(mut fact) = self.made.remove(id).filter(|_| !failed) else { return };
        let number = output.split_once('#').and_then(|(_, rest)| digits(rest));
        let number = number.unwrap_or_else(|| id.to_owned());
        if number != id {
            fact.text = format!("#{number} {}", fact.text);
        }
        if self.tasks.len() < ITEMS || self.tasks.contains_key(&number) {
            self.tasks.insert(number, fact);
        }
    }

    /// The list as a tool tells it: JSON, or lines like `#4 [completed] write the page`.
    fn told_list(&mut self, seq: Seq, output: &str) {
        let value: Value = serde_json::from_str(output.trim()).unwrap_or(Value::Null);
        let inside = value.as_object().and_then(|fields| LISTS.iter().find_map(|key| fields.get(*key)));
        if let Some(items) = items(seq, inside.unwrap_or(&value)) {
            self.list = items;
            return;
        }
        for line in output.lines().map(str::trim) {
            let Some((number, rest)) = line.strip_prefix('#').and_then(|rest| rest.split_once(' ')) else {
                continue;
            };
            let number = number.trim_end_matches(['.', ':']).to_owned();
            let Some((status, subject)) = rest.strip_prefix('[').and_then(|rest| rest.split_once("] "))
            else {
                continue;
            };
            if self.tasks.len() < ITEMS || self.tasks.contains_key(&number) {
                let status = status_of(Some(&Value::String(status.to_owned())));
                let fact = todo(seq, &format!("#{number} {subject}"));
                self.tasks.insert(number, Fact { status, ..fact });
            }
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
            self.list.push((None, fact));
        }
    }

    /// All that is open, the latest list first; then what is finished.
    pub(in crate::digest) fn told(&self, last: Seq) -> (Vec<Fact>, Vec<Fact>) {
        let list = self.list.iter().map(|(_, item)| item);
        let all = list.chain(self.tasks.values()).chain(self.made.values()).cloned();
        let (mut open, mut finished): (Vec<Fact>, Vec<Fact>) = all.partition(|item| item.status.is_open());
        let done: BTreeSet<String> = finished.iter().map(|item| fold(&item.text)).collect();
        open.extend(self.boxes.ranked(last));
        // What was announced long ago is done or dropped.
        open.extend(self.next.iter().filter(|fact| fact.at.saturating_add(STALE) >= last).cloned());
        let mut seen = BTreeSet::new();
        open.retain(|fact| !done.contains(&fold(&fact.text)) && seen.insert(fold(&fact.text)));
        finished.iter_mut().for_each(|fact| fact.soft = true);
        (open, finished)
    }
}

/// The number that `text` begins with.
fn digits(text: &str) -> Option<String> {
    Some(text.chars().take_while(char::is_ascii_digit).collect()).filter(|digits: &String| !digits.is_empty())
}

fn todo(seq: Seq, text: &str) -> Fact {
    Fact::new(FactKind::ToDo, one_line(text, LENGTH), seq)
}

/// The items of a list: values, or lines with boxes. None where there is no list.
fn items(seq: Seq, value: &Value) -> Option<ToDoList> {
    match value {
        Value::Array(items) => Some(items.iter().filter_map(|value| item(seq, value)).take(ITEMS).collect()),
        Value::String(text) => {
            let items: Vec<_> = text.lines().filter_map(|line| boxed(seq, line)).take(ITEMS).collect();
            (!items.is_empty()).then_some(items)
        }
        _ => None,
    }
}

/// `- [x] write the page`
fn boxed(seq: Seq, line: &str) -> Option<(Option<String>, Fact)> {
    let line = line.trim_start().trim_start_matches(['-', '*', '+', ' ']);
    let (mark, text) = line.strip_prefix('[')?.split_once("] ")?;
    let status = match mark.trim() {
        "x" | "X" => ToDoStatus::Done,
        "-" | "~" | ">" | "/" => ToDoStatus::Doing,
        "" => ToDoStatus::Pending,
        _ => return None,
    };
    (!text.trim().is_empty()).then(|| (None, Fact { status, ..todo(seq, text) }))
}

/// An item of a list, with its id.
fn item(seq: Seq, value: &Value) -> Option<(Option<String>, Fact)> {
    let fields = match value {
        Value::String(text) => return (!text.trim().is_empty()).then(|| (None, todo(seq, text))),
        Value::Object(fields) => fields,
        _ => return None,
    };
    let text = ["content", "text", "title", "subject", "step", "task", "description"]
        .iter()
        .find_map(|key| fields.get(*key)?.as_str());
    let ticked =
        ["done", "completed"].iter().any(|key| fields.get(*key).and_then(Value::as_bool) == Some(true));
    let status = if ticked { ToDoStatus::Done } else { status_of(fields.get("status")) };
    let id = fields.get("id").and_then(text_of);
    let text = text.unwrap_or_default();
    (id.is_some() || !text.trim().is_empty()).then(|| (id, Fact { status, ..todo(seq, text) }))
}

fn status_of(status: Option<&Value>) -> ToDoStatus {
    let status =
        status.and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase().replace([' ', '-'], "_");
    match status.as_str() {
        "completed" | "complete" | "done" | "closed" | "finished" => ToDoStatus::Done,
        "cancelled" | "canceled" | "deleted" | "skipped" => ToDoStatus::Dropped,
        "in_progress" | "doing" | "active" | "started" | "running" => ToDoStatus::Doing,
        _ => ToDoStatus::Pending,
    }
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
        todos.told(40).0.into_iter().map(|fact| fact.text).collect()
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
            todos.result(call, &format!("Task #{number} created successfully: {subject}"), false);
        }
        todos.call(9, "c", "TaskUpdate", &json!({"taskId": "1", "status": "completed"}));
        assert_eq!(texts(&todos), ["#2 write"]);
    }

    #[test]
    fn a_list_that_the_tool_refused_changes_nothing() {
        let mut todos = ToDos::default();
        todos.call(1, "a", "TodoWrite", &json!({"todos": [{"content": "old", "status": "pending"}]}));
        todos.result("a", "saved", false);
        todos.call(2, "b", "TodoWrite", &json!({"todos": []}));
        todos.result("b", "<tool_use_error>no</tool_use_error>", true);
        assert_eq!(texts(&todos), ["old"]);
    }

    #[test]
    fn lists_of_many_agents_are_read_with_their_status() {
        let told = |name: &str, arguments: Value| {
            let mut todos = ToDos::default();
            todos.call(1, "a", name, &arguments);
            let (open, finished) = todos.told(1);
            let mark = |fact: &Fact| format!("{}{}", fact.status.mark(), fact.text);
            open.iter().chain(&finished).map(mark).collect::<Vec<_>>()
        };
        let wanted = ["[~] test", "[ ] ship", "[x] write"];
        let items = |text: &str| json!([{text: "write", "status": "completed"}, {text: "test", "status": "in_progress"}, {text: "ship", "status": "pending"}]);
        assert_eq!(told("TodoWrite", json!({"todos": items("content")})), wanted);
        assert_eq!(told("todowrite", json!({"todos": items("content")})), wanted);
        assert_eq!(told("update_plan", json!({"explanation": "x", "plan": items("step")})), wanted);
        assert_eq!(told("write_todos", json!({"todos": items("description")})), wanted);
        assert_eq!(told("manage_todo_list", json!({"todoList": items("title")})), wanted);
        let lines = json!({"todos": "[x] write\n[-] test\n[ ] ship"});
        assert_eq!(told("update_todo_list", lines), wanted);
        let mut asked = ToDos::default();
        asked.call(1, "a", "todoread", &json!({}));
        asked.result("a", &items("content").to_string(), false);
        assert_eq!(texts(&asked), ["test", "ship"]);
        let mut tasks = ToDos::default();
        tasks.call(1, "a", "TaskList", &json!({}));
        tasks.result("a", "#1 [completed] write\n#2 [in_progress] test", false);
        assert_eq!(texts(&tasks), ["#2 test"]);
    }

    #[test]
    fn a_merged_list_changes_only_what_it_names() {
        let mut todos = ToDos::default();
        let list = json!([{"id": "1", "content": "write", "status": "pending"}, {"id": "2", "content": "test", "status": "pending"}]);
        todos.call(1, "a", "todo_write", &json!({"merge": false, "todos": list}));
        todos.call(
            2,
            "b",
            "todo_write",
            &json!({"merge": true, "todos": [{"id": "1", "status": "completed"}]}),
        );
        assert_eq!(texts(&todos), ["test"]);
    }

    #[test]
    fn boxes_are_ticked_and_next_steps_replaced() {
        let mut todos = ToDos::default();
        todos.prose(1, "- [ ] 文書を書く\n- [ ] ship\nNext steps: run the tests.");
        todos.prose(2, "- [x] ship\n残りは文書だけです。");
        assert_eq!(texts(&todos), ["文書を書く", "残りは文書だけです。"]);
    }
}
