//! The tools as a model is told of them: always the same words, because they stand before the conversation.

use super::ENABLED;
use crate::tools::{Again, Definition};
use serde_json::{Value, json};

/// The definitions of those that are enabled, in the order of [`ENABLED`].
pub(super) fn of(enabled: &[String]) -> Vec<Definition> {
    ENABLED
        .iter()
        .filter(|name| enabled.iter().any(|other| other == *name))
        .map(|name| definition(name))
        .collect()
}

fn definition(name: &str) -> Definition {
    let (description, again, schema) = match name {
        "read" => (READ, Again::Safe, object(&read(), &["path"])),
        "list" => (LIST, Again::Safe, object(&list(), &[])),
        "grep" => (GREP, Again::Safe, object(&grep(), &["pattern"])),
        "edit" => (EDIT, Again::Unsafe, object(&edit(), &["path"])),
        _ => (SHELL, Again::Unsafe, object(&shell(), &["command"])),
    };
    Definition { name: name.to_owned(), description: description.to_owned(), schema, again }
}

const READ: &str =
    "Read a text file in the working folder, as numbered lines. The answer says how to read on.";
const LIST: &str =
    "List files and folders in the working folder. What .gitignore names is left out, unless all is true.";
const GREP: &str = "Search the files in the working folder, line by line: a plain text, or with regex true a regular \
    expression. What .gitignore names is left out, unless path names it.";
const EDIT: &str = "Change a file in the working folder: put new in place of old, which must occur exactly once (or all \
    is true). Or write a whole file: give content alone. Folders are made.";
const SHELL: &str = "Run a command line in the working folder with the shell. Standard input is empty; output and errors \
    come together, then the exit code. It ends with everything it started in the background. It cannot reach files \
    outside the folder, except programs.";

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

fn read() -> Value {
    json!({
        "path": { "type": "string", "description": "The file, seen from the working folder." },
        "offset": { "type": "integer", "minimum": 1, "description": "The first line; 1 unless said." },
        "limit": { "type": "integer", "minimum": 1, "description": "How many lines; 2000 unless said." }
    })
}

fn list() -> Value {
    json!({
        "path": { "type": "string", "description": "The folder; the working folder unless said." },
        "depth": { "type": "integer", "minimum": 1, "description": "How many levels down; 2 unless said." },
        "all": { "type": "boolean", "description": "Also what .gitignore names, and .git." }
    })
}

fn grep() -> Value {
    json!({
        "pattern": { "type": "string", "description": "What to find in a line." },
        "path": { "type": "string", "description": "A file or a folder; the working folder unless said." },
        "regex": { "type": "boolean", "description": "The pattern is a regular expression (Rust syntax)." },
        "ignore_case": { "type": "boolean", "description": "Upper and lower case are the same." },
        "context": { "type": "integer", "minimum": 0, "description": "Lines shown around each match; 0 unless said." },
        "max": { "type": "integer", "minimum": 1, "description": "The most matches; 200 unless said." }
    })
}

fn edit() -> Value {
    json!({
        "path": { "type": "string", "description": "The file, seen from the working folder." },
        "old": { "type": "string", "description": "The text to replace, exactly as it stands in the file, without line numbers." },
        "new": { "type": "string", "description": "The text that comes in its place; may be empty." },
        "all": { "type": "boolean", "description": "Replace every occurrence." },
        "content": { "type": "string", "description": "The whole file, instead of old and new." }
    })
}

fn shell() -> Value {
    json!({
        "command": { "type": "string", "description": "The command line." },
        "timeout_seconds": { "type": "integer", "minimum": 1, "description": "End it after so long, if that is sooner than the usual time." }
    })
}
