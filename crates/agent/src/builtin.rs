//! The built-in tools: read, list, grep, edit and shell, in one folder and nowhere else.
//!
//! A model's words are not trusted. Paths are opened by the kernel from the folder's own handle and never lead out of it
//! (see `folder`); commands are confined by the kernel, with an environment of their own (see [`sandbox`](crate::sandbox)). The
//! allow-list (see `allow`) is manners, not a wall: it tells a model early what is not wanted here.

mod allow;
mod edit;
mod folder;
mod reading;
mod shell;
mod spool;
mod syntax;

pub use allow::ALLOW;

use crate::sandbox::Confinement;
use crate::tools::{ToolAnswer, ToolDefinition, ToolProvider};
use folder::WorkingFolder;
use komado_engine::output::arguments::ToolArguments;
use komado_provider::Cancel;
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Every built-in tool, in the order in which they are offered.
pub const ENABLED: &[&str] = &["read", "list", "grep", "edit", "shell"];

/// What can go wrong before a tool is called.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The working folder cannot be used.
    #[error("the working folder {folder} cannot be used: {why}")]
    Folder {
        /// The folder.
        folder: String,
        /// Why, and what to do.
        why: String,
    },
    /// A tool that is not known.
    #[error("there is no built-in tool {name:?}: known are read, list, grep, edit and shell (tools.enabled)")]
    NoTool {
        /// What was named.
        name: String,
    },
}

/// The beginning of a text file in a folder, opened as `read` opens it: beneath the folder, and a regular file. `None` when
/// there is none of that name.
pub fn beginning(folder: &Path, name: &str, most: u64) -> Result<Option<String>, String> {
    let folder = WorkingFolder::open(folder).map_err(|why| why.to_string())?;
    match folder.regular_file(Path::new(name)) {
        Ok(file) => {
            let mut bytes = Vec::new();
            file.take(most).read_to_end(&mut bytes).map_err(|why| format!("{name}: {why}"))?;
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        }
        Err(folder::OpenFailure::Missing) => Ok(None),
        Err(folder::OpenFailure::Other(why)) => Err(why),
    }
}

/// Where and how the built-in tools work.
#[derive(Clone, Debug)]
pub struct BuiltinConfig {
    /// The folder.
    pub folder: PathBuf,
    /// The tools that are offered.
    pub enabled: Vec<String>,
    /// Commands that the shell may run; `*` for any.
    pub allow: Vec<String>,
    /// How long a command may take.
    pub timeout: Duration,
    /// The most bytes of a command's output that are kept; it is ended when it prints more.
    pub most_output: u64,
    /// How commands are confined.
    pub confinement: Confinement,
}

/// The built-in tools.
pub struct Builtin {
    folder: WorkingFolder,
    shell: shell::Shell,
    definitions: Vec<ToolDefinition>,
}

impl Builtin {
    /// The tools of a folder, which must be there.
    pub fn new(workshop: BuiltinConfig) -> Result<Self, Error> {
        if let Some(name) = workshop.enabled.iter().find(|name| !ENABLED.contains(&name.as_str())) {
            return Err(Error::NoTool { name: name.clone() });
        }
        let folder = WorkingFolder::open(&workshop.folder).map_err(|why| Error::Folder {
            folder: workshop.folder.display().to_string(),
            why: format!("{why}; make it, or name another one"),
        })?;
        let definitions = definitions(&workshop.enabled);
        Ok(Self { shell: shell::Shell::new(workshop, folder.path().to_owned()), folder, definitions })
    }

    fn answer(&mut self, name: &str, arguments: &str, cancel: &Cancel) -> Result<ToolAnswer, String> {
        let given = self::arguments(name, arguments)?;
        match name {
            "read" => reading::read(&self.folder, &given),
            "list" => reading::list(&self.folder, &given, cancel),
            "grep" => reading::grep(&self.folder, &given, cancel),
            "edit" => edit::edit(&self.folder, &given),
            _ => self.shell.run(&given, cancel),
        }
    }
}

impl ToolProvider for Builtin {
    fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    fn call(&mut self, name: &str, arguments: &str, cancel: &Cancel) -> ToolAnswer {
        if !self.definitions.iter().any(|tool| tool.name == name) {
            let known: Vec<&str> = self.definitions.iter().map(|tool| tool.name.as_str()).collect();
            return ToolAnswer::wrong(format!("there is no tool {name:?}; there are: {}", known.join(", ")));
        }
        self.answer(name, arguments, cancel).unwrap_or_else(ToolAnswer::wrong)
    }
}

/// The arguments of a call; a model that has nothing to say may write nothing.
fn arguments(tool: &str, text: &str) -> Result<ToolArguments, String> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    Ok(ToolArguments::parse(tool, text, r#""path":"src""#)?)
}

/// A text that must be there.
fn needed<'a>(given: &'a ToolArguments, name: &str) -> Result<&'a str, String> {
    Ok(given.text(name)?.ok_or_else(|| given.bad(format!("{name} is missing; write it as a text")))?)
}

/// A number; an empty text is nothing.
fn number(given: &ToolArguments, name: &str) -> Result<Option<u64>, String> {
    let is_blank = given.get(name).and_then(Value::as_str).is_some_and(|text| text.trim().is_empty());
    if is_blank { Ok(None) } else { Ok(given.number(name)?) }
}

// The tools as a model is told of them: always the same words, because they stand before the conversation.

/// All of them, in the order of [`ENABLED`].
const TOOLS: &str = include_str!("builtin/tools.json");

/// The definitions of those that are enabled.
fn definitions(enabled: &[String]) -> Vec<ToolDefinition> {
    // A test reads the file; it is part of the program.
    let mut all: Vec<ToolDefinition> = serde_json::from_str(TOOLS).unwrap_or_default();
    all.retain(|tool| enabled.contains(&tool.name));
    all
}

#[cfg(test)]
mod tests {
    use super::{ENABLED, arguments, definitions, needed, number};

    #[test]
    fn every_tool_is_defined_in_its_order() {
        let all: Vec<String> = ENABLED.iter().map(|name| (*name).to_owned()).collect();
        let defined: Vec<String> = definitions(&all).into_iter().map(|tool| tool.name).collect();
        assert_eq!(defined, all);
    }

    #[test]
    fn numbers_and_flags_are_read_however_a_model_writes_them() {
        let given = r#"{"a":"12","b":12.0,"c":null,"d":"True","e":"","f":7}"#;
        let given = arguments("read", given).unwrap();
        assert_eq!(number(&given, "a"), Ok(Some(12)));
        assert_eq!(number(&given, "b"), Ok(Some(12)));
        assert_eq!(number(&given, "c"), Ok(None));
        assert_eq!(number(&given, "e"), Ok(None));
        assert_eq!(number(&given, "f"), Ok(Some(7)));
        assert_eq!(given.flag("d"), Ok(true));
        assert_eq!(given.flag("c"), Ok(false));
    }

    #[test]
    fn what_cannot_be_meant_is_answered_with_what_to_write() {
        let given = arguments("read", r#"{"limit":-3,"path":7,"all":"maybe"}"#).unwrap();
        assert_eq!(
            number(&given, "limit").unwrap_err(),
            "read: limit must be a whole number, 0 or more, not -3"
        );
        assert_eq!(needed(&given, "path").unwrap_err(), "read: path must be a text, not 7");
        assert_eq!(
            given.flag("all").unwrap_err().to_string(),
            "read: all must be true or false, not \"maybe\""
        );
        assert!(arguments("read", "[1]").err().unwrap().contains("no JSON object"));
        assert!(arguments("read", "{").err().unwrap().contains("no JSON"));
    }
}
