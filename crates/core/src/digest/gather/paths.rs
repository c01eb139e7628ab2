//! Files and folders: what a path looks like, and what a call does to one.
//!
//! A tool's name and its keys tell whether it reads or changes; so do the verbs of a shell. It refuses to ask the
//! disk: a path is what was written, nothing more.

use crate::digest::fact::Fact;
use serde_json::Value;
use std::collections::BTreeMap;

/// What happened to a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::digest) enum Touch {
    /// It was named.
    Seen,
    /// It was read.
    Read,
    /// It was made, changed, moved or removed.
    Changed,
}

/// Keys whose value is a path.
const KEYS: &str = "path|file_path|filepath|filePath|filename|file_name|fileName|file|target_file|\
                    targetFile|notebook_path|relative_path|relative_workspace_path|absolute_path|source|\
                    destination";

const ENDINGS: [&str; 78] = [
    "rs", "go", "py", "pyi", "ts", "tsx", "js", "jsx", "mjs", "cjs", "json", "jsonl", "md", "mdx", "toml",
    "yaml", "yml", "txt", "sh", "bash", "zsh", "c", "h", "cc", "cpp", "hpp", "cs", "java", "kt", "kts",
    "swift", "rb", "php", "pl", "lua", "sql", "html", "css", "scss", "vue", "svelte", "xml", "svg", "png",
    "jpg", "jpeg", "gif", "pdf", "csv", "tsv", "ini", "cfg", "conf", "env", "lock", "log", "proto", "ex",
    "exs", "erl", "hs", "ml", "scala", "clj", "dart", "zig", "nim", "pony", "ipynb", "tf", "gradle", "cmake",
    "mk", "mod", "sum", "db", "rst", "patch",
];

/// True when a word of a text is most likely a path.
pub(in crate::digest) fn is_path(word: &str) -> bool {
    if word.len() < 4 || !word.bytes().any(|b| b.is_ascii_alphabetic()) || word.contains("//") {
        return false;
    }
    if !word
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'-' | b'_' | b'~' | b'@' | b'+'))
    {
        return false;
    }
    const CODE: [&str; 6] =
        ["console.log", "process.env", "Node.js", "node.js", "Next.js", "import.meta.env"];
    if CODE.contains(&word) {
        return false;
    }
    let name = word.rsplit('/').next().unwrap_or(word);
    let ends = name
        .rsplit_once('.')
        .is_some_and(|(stem, ending)| !stem.is_empty() && ENDINGS.contains(&ending) && !stem.ends_with('.'));
    match word.bytes().filter(|b| *b == b'/').count() {
        0 => ends && name.len() >= 5 && !name.starts_with('.'),
        _ if word.starts_with("./") || word.starts_with("../") || word.starts_with("~/") => true,
        1 => ends,
        _ => ends || word.starts_with('/') || word.split('/').all(|part| part.len() > 2),
    }
}

/// A path without what only stands around it.
pub(in crate::digest) fn tidy(path: &str) -> &str {
    let path = path.trim().trim_matches(['"', '\'', '`']);
    let path = path.strip_prefix("./").unwrap_or(path);
    if path.len() > 1 { path.trim_end_matches('/') } else { path }
}

/// What a call to tool `name` does to the files it names.
pub(in crate::digest) fn touched(name: &str, arguments: &Value) -> Vec<(String, Touch)> {
    let Value::Object(fields) = arguments else { return Vec::new() };
    let touch = touch(name, fields.get("command").and_then(Value::as_str));
    let mut found = Vec::new();
    named(arguments, touch, &mut found);
    for list in fields.values().filter_map(Value::as_array).filter(|list| list.len() <= 200) {
        list.iter().for_each(|item| named(item, touch, &mut found));
    }
    for text in fields.values().filter_map(Value::as_str) {
        patched(text, &mut found);
    }
    found
}

fn named(value: &Value, touch: Touch, found: &mut Vec<(String, Touch)>) {
    let Value::Object(fields) = value else { return };
    for path in KEYS.split('|').filter_map(|key| fields.get(key)).filter_map(Value::as_str) {
        let path = tidy(path);
        if path.len() > 1
            && path.len() <= 400
            && !path.contains('\n')
            && path.contains(['/', '.', '\\'])
            && !path.contains("://")
        {
            found.push((path.to_owned(), touch));
        }
    }
}

/// Whether a tool reads, changes or only looks around, by its name and its sub-command.
fn touch(name: &str, command: Option<&str>) -> Touch {
    const CHANGES: [&str; 15] = [
        "write", "edit", "create", "replace", "patch", "insert", "delete", "remove", "move", "rename",
        "append", "save", "update", "modify", "put",
    ];
    let (name, command) = (name.to_ascii_lowercase(), command.unwrap_or_default());
    let changes = |text: &str| CHANGES.iter().any(|word| text.contains(word));
    if matches!(command.to_ascii_lowercase().as_str(), "view" | "read" | "open" | "cat" | "show") {
        Touch::Read
    } else if looks_around(&name) {
        Touch::Seen
    } else if changes(&name) || changes(command) {
        Touch::Changed
    } else {
        Touch::Read
    }
}

/// True for a tool that searches.
pub(in crate::digest) fn looks_around(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["grep", "glob", "search", "find", "list", "ls"].iter().any(|word| name.contains(word))
}

/// The files of a patch.
pub(in crate::digest) fn patched(text: &str, found: &mut Vec<(String, Touch)>) {
    if !text.contains("*** Begin Patch") && !text.contains("+++ ") {
        return;
    }
    const MARKS: [&str; 5] =
        ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ", "+++ b/"];
    for line in text.lines() {
        if let Some(path) = MARKS.iter().find_map(|mark| line.strip_prefix(mark)) {
            let path = tidy(path.split('\t').next().unwrap_or(path));
            if !path.is_empty() && path.len() <= 400 {
                found.push((path.to_owned(), Touch::Changed));
            }
        }
    }
}

/// Joins a short form with the one long form it ends, so that no file is told twice.
pub(in crate::digest) fn joined(facts: &[Fact]) -> Vec<Fact> {
    let mut longest: Vec<Fact> = Vec::new();
    let mut order: Vec<usize> = (0..facts.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(facts[*i].text.len()), *i));
    // Which long form each last component belongs to.
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut ranks = Vec::new();
    for i in order {
        let fact = &facts[i];
        let homes = by_name.entry(last_name(&fact.text)).or_default();
        let mut fits = homes.iter().filter(|home| ends_with(&longest[**home].text, &fact.text));
        match (fits.next(), fits.next()) {
            (Some(home), None) => {
                let (home, text) = (*home, longest[*home].text.clone());
                longest[home].join(fact.clone());
                longest[home].text = text;
                ranks[home] = std::cmp::min(ranks[home], i);
            }
            _ => {
                homes.push(longest.len());
                longest.push(fact.clone());
                ranks.push(i);
            }
        }
    }
    let mut ranked: Vec<(usize, Fact)> = ranks.into_iter().zip(longest).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, fact)| fact).collect()
}

fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn ends_with(long: &str, short: &str) -> bool {
    long.strip_suffix(short).is_some_and(|head| head.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::fact::FactKind;
    use serde_json::json;

    #[test]
    fn a_tool_and_its_keys_tell_what_happens_to_a_file() {
        let touch = |name: &str, arguments: Value| touched(name, &arguments);
        assert_eq!(touch("Read", json!({"file_path": "/a/b.rs"})), [("/a/b.rs".to_owned(), Touch::Read)]);
        assert_eq!(touch("Edit", json!({"file_path": "/a/b.rs"})), [("/a/b.rs".to_owned(), Touch::Changed)]);
        assert_eq!(
            touch("str_replace_editor", json!({"command": "view", "path": "/a/b.rs"})),
            [("/a/b.rs".to_owned(), Touch::Read)]
        );
        assert_eq!(
            touch("editor", json!({"command": "str_replace", "path": "./設計.md"})),
            [("設計.md".to_owned(), Touch::Changed)]
        );
        assert_eq!(
            touch("apply_patch", json!({"input": "*** Begin Patch\n*** Update File: src/x.rs\n@@"})),
            [("src/x.rs".to_owned(), Touch::Changed)]
        );
        assert_eq!(touch("Grep", json!({"path": "/a/src"})), [("/a/src".to_owned(), Touch::Seen)]);
        assert_eq!(touch("search_flight", json!({"destination": "DTW"})), []);
    }

    #[test]
    fn a_short_form_joins_the_long_form_it_ends() {
        let fact = |text: &str, at| Fact::new(FactKind::Path, text, at);
        let (long, short, other) = (fact("/w/src/a.rs", 3), fact("src/a.rs", 9), fact("lib/a.rs", 4));
        let joined = joined(&[short, other, long]);
        let told: Vec<_> = joined.iter().map(|f| (f.text.as_str(), f.at, f.count)).collect();
        assert_eq!(told, [("/w/src/a.rs", 9, 2), ("lib/a.rs", 4, 1)]);
    }
}
