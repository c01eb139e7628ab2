//! What a digest says was done, and what it says is still to be done, against the calls themselves.
//!
//! Read by plain means that share nothing with the digest's own readers, like the judge of facts.

use komado_core::message::{Message, MessagePart};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What became of calls and to-dos in digests of one limit.
#[derive(Clone, Copy, Default)]
pub(super) struct StepScore {
    /// Calls that do something: all but those that only keep a list of to-dos.
    pub(super) calls: u64,
    /// Calls with a line of their own, or with one that stands for several alike.
    pub(super) named: u64,
    /// Calls that are named, or lie in a stretch that is counted.
    pub(super) covered: u64,
    /// To-dos open at the end of the span, and those of them that are told as open.
    pub(super) open: u64,
    pub(super) open_told: u64,
    /// To-dos finished at the end of the span, and those of them that are told as open.
    pub(super) finished: u64,
    pub(super) finished_as_open: u64,
}

impl StepScore {
    pub(super) fn add(&mut self, text: &str, span: &[Message]) {
        let lines = timeline(text);
        let whole: BTreeSet<u64> = lines.iter().filter(|line| line.1.is_none()).map(|line| line.0).collect();
        let ranges: Vec<(u64, u64)> = lines.iter().filter_map(|line| Some((line.0, line.1?))).collect();
        let repeated: BTreeSet<String> = calls(span)
            .filter(|(seq, call)| whole.contains(seq) && call.1.len() > 2)
            .map(|(_, (name, arguments))| format!("{name} {arguments}"))
            .collect();
        for (seq, (name, arguments)) in calls(span).filter(|(_, (name, _))| !is_list(name)) {
            self.calls += 1;
            let named = whole.contains(&seq) || repeated.contains(&format!("{name} {arguments}"));
            let counted = ranges.iter().any(|(from, to)| (*from..=*to).contains(&seq));
            self.named += u64::from(named);
            self.covered += u64::from(named || counted);
        }
        let (open, finished) = to_dos(span);
        let told = |item: &String, boxes: &[&str]| {
            text.lines()
                .any(|line| boxes.iter().any(|mark| line.starts_with(mark)) && line.contains(item.as_str()))
        };
        self.open += open.len() as u64;
        self.open_told += open.iter().filter(|item| told(item, &["- [ ] ", "- [~] "])).count() as u64;
        self.finished += finished.len() as u64;
        self.finished_as_open +=
            finished.iter().filter(|item| told(item, &["- [ ] ", "- [~] "])).count() as u64;
    }
}

/// The entries of the lines under the heading of what was done: one, or the first and the last of a stretch.
fn timeline(text: &str) -> Vec<(u64, Option<u64>)> {
    let lines =
        text.lines().skip_while(|line| !matches!(*line, "## What was done" | "## 行ったこと")).skip(1);
    let lines = lines.take_while(|line| !line.starts_with("## "));
    let number = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    lines
        .filter_map(|line| {
            let rest = line.strip_prefix("- @")?;
            let place = rest.split(' ').next()?;
            Some((
                number(place)?,
                place.split_once("-@").and_then(|(_, to)| number(to)).or_else(|| {
                    // A stretch of one entry is counted, too.
                    place.ends_with(':').then(|| number(place)).flatten()
                }),
            ))
        })
        .collect()
}

/// The calls of a span with the entries that make them.
fn calls(span: &[Message]) -> impl Iterator<Item = (u64, (&str, &str))> {
    (1..).zip(span).flat_map(|(seq, message)| {
        message.calls().map(move |call| (seq, (call.name.as_str(), call.arguments.as_str())))
    })
}

/// True for the tools of the transcripts that keep lists of to-dos.
fn is_list(name: &str) -> bool {
    ["todowrite", "todoread", "taskcreate", "taskupdate", "tasklist", "taskget", "update_plan", "think"]
        .contains(&name.to_ascii_lowercase().as_str())
}

/// What is open and what is finished at the end of a span, by the words of each.
fn to_dos(span: &[Message]) -> (Vec<String>, Vec<String>) {
    let mut list: Vec<(String, bool)> = Vec::new();
    let mut tasks: BTreeMap<String, (String, bool)> = BTreeMap::new();
    let mut made: BTreeMap<&str, String> = BTreeMap::new();
    for message in span {
        for part in &message.parts {
            match part {
                MessagePart::Call(call) => {
                    let fields: Value = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
                    let word = |key: &str| fields[key].as_str().map(str::to_owned);
                    let done = |status: &Value| {
                        matches!(status.as_str(), Some("completed" | "cancelled" | "deleted"))
                    };
                    match call.name.to_ascii_lowercase().as_str() {
                        "todowrite" | "update_plan" => {
                            let items = fields["todos"].as_array().or(fields["plan"].as_array());
                            let words = |item: &Value| {
                                let words = item["content"].as_str().or(item["step"].as_str())?;
                                Some((one_line(words), done(&item["status"])))
                            };
                            list = items.into_iter().flatten().filter_map(words).collect();
                        }
                        "taskcreate" => {
                            made.extend(word("subject").map(|subject| (call.id.as_str(), subject)));
                        }
                        "taskupdate" => {
                            if let Some(task) = word("taskId").and_then(|id| tasks.get_mut(&id))
                                && fields["status"].is_string()
                            {
                                task.1 = done(&fields["status"]);
                            }
                        }
                        _ => {}
                    }
                }
                MessagePart::Result(outcome) => {
                    let words = message.words();
                    let number = words.split_once('#').map(|(_, rest)| rest);
                    let number =
                        number.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
                    if let (Some(subject), Some(number)) = (made.remove(outcome.call_id.as_str()), number) {
                        tasks.insert(number, (one_line(&subject), false));
                    }
                }
                _ => {}
            }
        }
    }
    let all = list.into_iter().chain(tasks.into_values());
    let (open, finished): (Vec<_>, Vec<_>) = all.partition(|(_, done)| !done);
    let words = |items: Vec<(String, bool)>| items.into_iter().map(|(words, _)| words).collect::<Vec<_>>();
    let (open, mut finished) = (words(open), words(finished));
    finished.retain(|item| !open.contains(item));
    (open, finished)
}

/// The words as a line has them; of long ones only the beginning.
fn one_line(text: &str) -> String {
    crate::facts::one_line(text).chars().take(150).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_named_or_counted_and_to_dos_are_told_as_they_stand() {
        let read = |line: &str| komado_core::openai::read(line).unwrap();
        let call = |name: &str, arguments: &str| {
            let arguments = serde_json::to_string(arguments).unwrap();
            read(&format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"{name}","arguments":{arguments}}}}}]}}"#
            ))
        };
        let list =
            r#"{"todos":[{"content":"write","status":"completed"},{"content":"test","status":"pending"}]}"#;
        let span = [
            call("Read", r#"{"file_path":"/a.rs"}"#),
            call("Read", r#"{"file_path":"/b.rs"}"#),
            call("Read", r#"{"file_path":"/c.rs"}"#),
            call("TodoWrite", list),
        ];
        let text = "## Open\n- [ ] test (@4)\n- [ ] write (@4)\n## What was done\n- @1-@2: 2 reads\n- @3 read /c.rs\n## Rules\n- @9 x";
        let mut score = StepScore::default();
        score.add(text, &span);
        assert_eq!((score.calls, score.named, score.covered), (3, 1, 3));
        assert_eq!((score.open, score.open_told, score.finished, score.finished_as_open), (1, 1, 1, 1));
    }
}
