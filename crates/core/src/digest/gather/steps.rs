//! What a call says in one line of the timeline, and what of its answer.
//!
//! It refuses to judge an answer: an exit code, a count of hits and the line that tells of a failure are all it takes.

use super::paths::Touch;
use super::{commands, paths};
use crate::Seq;
use crate::digest::scan::{clip, one_line, start};
use crate::digest::timeline::{Step, StepEnd, StepKind};
use serde_json::{Map, Value};

/// Characters of each side of a change.
const SIDE: usize = 70;
/// Characters of an answer's first line.
const ANSWER: usize = 90;

/// The step of a call that gives `script` to a shell.
pub(super) fn ran(seq: Seq, script: &str, line: &str) -> Step {
    let mut files = Vec::new();
    paths::patched(script, &mut files);
    if files.is_empty() { Step::new(StepKind::Run, seq, line) } else { edited(seq, &files, patch(script)) }
}

/// The step of another tool's call, which does `most` to files.
pub(super) fn tool(
    seq: Seq,
    name: &str,
    arguments: &Value,
    touched: &[(String, Touch)],
    most: Touch,
) -> Step {
    let none = Map::new();
    let fields = arguments.as_object().unwrap_or(&none);
    match most {
        Touch::Changed => edited(seq, touched, change(fields, arguments)),
        Touch::Read => {
            let file = touched.first().map_or("", |(path, _)| path);
            Step::new(StepKind::Read, seq, &format!("{file}{}", range(fields)))
        }
        Touch::Seen => match text(fields, &["pattern", "query", "regex", "glob_pattern", "search_term"]) {
            Some(pattern) if paths::looks_around(name) => {
                let place = touched.first().map_or_else(String::new, |(path, _)| format!(" in {path}"));
                Step::new(StepKind::Search, seq, &format!("\"{}\"{place}", one_line(pattern, 90)))
            }
            _ => Step::new(StepKind::Call, seq, &commands::action(name, arguments)),
        },
    }
}

fn edited(seq: Seq, files: &[(String, Touch)], change: String) -> Step {
    let file = files.first().map_or("", |(path, _)| path);
    let more = files.iter().skip(1).filter(|(path, _)| path != file).count();
    let more = if more == 0 { String::new() } else { format!(" +{more}") };
    Step::new(StepKind::Edit, seq, &format!("{file}{more}")).changing(&change)
}

/// The lines that a call reads, as `:10-59`.
fn range(fields: &Map<String, Value>) -> String {
    let number = |keys: &[&str]| keys.iter().find_map(|key| fields.get(*key)?.as_i64());
    let pair = fields.get("view_range").and_then(Value::as_array);
    let pair = pair.map(|pair| (pair.first().and_then(Value::as_i64), pair.get(1).and_then(Value::as_i64)));
    let (from, to) = pair.unwrap_or_else(|| {
        let from = number(&["offset", "start_line", "startLine", "line_start", "line_number"]);
        let length = number(&["limit", "line_count"]).map(|limit| from.unwrap_or(1).max(1) + limit - 1);
        (from, number(&["end_line", "endLine", "line_end"]).or(length))
    });
    match (from, to) {
        (None, None) => String::new(),
        (from, None) => format!(":{}-", from.unwrap_or(1)),
        (from, Some(to)) => format!(":{}-{to}", from.unwrap_or(1)),
    }
}

fn text<'v>(fields: &'v Map<String, Value>, keys: &[&str]) -> Option<&'v str> {
    keys.iter().find_map(|key| fields.get(*key)?.as_str())
}

const OLD: [&str; 7] = ["old_string", "old_str", "oldText", "oldString", "old_text", "search", "old"];
const NEW: [&str; 7] = ["new_string", "new_str", "newText", "newString", "new_text", "replace", "new"];

/// What a changing call changes: the first line that differs, or the size of what it writes.
fn change(fields: &Map<String, Value>, arguments: &Value) -> String {
    if let Some(edits) = fields.get("edits").and_then(Value::as_array).filter(|edits| !edits.is_empty()) {
        let first = edits[0].as_object().map(differing).unwrap_or_default();
        return if edits.len() == 1 { first } else { format!("{first} (+{})", edits.len() - 1) };
    }
    if OLD.iter().chain(&NEW).any(|key| fields.contains_key(*key)) {
        return differing(fields);
    }
    if let Some(patched) = text(fields, &["input", "patch", "patchText", "diff"]).or(arguments.as_str()) {
        return patch(patched);
    }
    match text(fields, &["content", "contents", "file_text", "text"]) {
        Some(written) => format!("{} lines", written.lines().count()),
        None => String::new(),
    }
}

/// The first line of the old text that differs from the new one's, and that one.
fn differing(edit: &Map<String, Value>) -> String {
    let (old, new) = (text(edit, &OLD).unwrap_or_default(), text(edit, &NEW).unwrap_or_default());
    let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
    let line = |text: &str| {
        let line = text.lines().skip(same).find(|line| !line.trim().is_empty()).unwrap_or_default();
        clip(&one_line(start(line, 400), 400), SIDE)
    };
    match (line(old), line(new)) {
        (old, new) if old.is_empty() && new.is_empty() => String::new(),
        (old, new) if old.is_empty() => format!("+ {new}"),
        (old, new) if new.is_empty() => format!("- {old}"),
        (old, new) => format!("- {old} + {new}"),
    }
}

/// The size of a patch and its first new line.
fn patch(text: &str) -> String {
    let of = |sign: char, head: &str| {
        text.lines().filter(|line| line.starts_with(sign) && !line.starts_with(head)).count()
    };
    let (more, less) = (of('+', "+++"), of('-', "---"));
    let mut added =
        text.lines().filter(|line| !line.starts_with("+++")).filter_map(|line| line.strip_prefix('+'));
    let first = added.find(|line| !line.trim().is_empty()).unwrap_or_default();
    clip(format!("+{more} -{less} {}", one_line(start(first, 400), 400)).trim_end(), SIDE * 2)
}

/// The file of a step's target, without the lines or the number of further files.
pub(super) fn file(target: &str) -> &str {
    let file = target.split(" +").next().unwrap_or(target);
    let is_range = |range: &str| !range.is_empty() && range.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    file.rsplit_once(':').filter(|(_, range)| is_range(range)).map_or(file, |(file, _)| file)
}

/// How many things a search found.
pub(super) fn hits(output: &str) -> StepEnd {
    let text = output.trim();
    let low = start(text, 60).to_lowercase();
    if text.is_empty() || ["no matches", "no files", "no results"].iter().any(|none| low.starts_with(none)) {
        return StepEnd::Hits(0);
    }
    let told =
        low.strip_prefix("found ").and_then(|rest| rest.split(' ').next()).and_then(|n| n.parse().ok());
    let lines = || text.lines().filter(|line| !line.trim().is_empty()).count() as u64;
    StepEnd::Hits(told.unwrap_or_else(lines))
}

/// The first line of an answer, or the last one of a run that failed.
pub(super) fn first_line(output: &str) -> String {
    let line = output.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    one_line(start(line, 4 * ANSWER), ANSWER)
}

pub(super) fn last_line(output: &str) -> String {
    let lines = output.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let mut lines = lines.filter(|line| commands::exit_code(line).is_none());
    one_line(start(lines.next().unwrap_or_default(), 4 * ANSWER), ANSWER)
}

/// A hash of what `before` is the hash of, and `text` behind it; never 0.
pub(super) fn hash(before: u64, text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(step(before ^ 0xcbf2_9ce4_8422_2325, 0xff), step).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_step_names_the_file_the_range_and_the_change() {
        let read = tool(
            3,
            "Read",
            &json!({"file_path": "/w/a.rs", "offset": 10, "limit": 50}),
            &[("/w/a.rs".into(), Touch::Read)],
            Touch::Read,
        );
        assert_eq!(read.target, "/w/a.rs:10-59");
        let edit = json!({"old_string": "fn a() {\n  one()\n}", "new_string": "fn a() {\n  two()\n}"});
        let edit = tool(4, "Edit", &edit, &[("/w/a.rs".into(), Touch::Changed)], Touch::Changed);
        assert_eq!((edit.target.as_str(), edit.change.as_str()), ("/w/a.rs", "- one() + two()"));
        let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n-one\n+two\n+three\n*** End Patch";
        assert_eq!(ran(5, patch, "apply_patch").change, "+2 -1 two");
    }

    #[test]
    fn hits_are_counted_as_the_tool_tells_them_or_by_lines() {
        for (output, found) in
            [("", 0), ("No matches found", 0), ("Found 12 files\na\nb", 12), ("a:1\nb:2\n\n", 2)]
        {
            assert_eq!(hits(output), StepEnd::Hits(found), "{output}");
        }
    }
}
