//! The built-in tools: read, list, grep, edit and shell, in one folder and nowhere else.
//!
//! A model's words are not trusted. Paths are opened by the kernel from the folder's own handle and never lead out of it
//! (see `folder`); commands run under Landlock with an environment of their own (see [`confine`] and `shell`). The
//! allow-list (see `allow`) is manners, not a wall: it tells a model early what is not wanted here.

mod allow;
mod arguments;
pub mod confine;
mod definitions;
mod edit;
mod folder;
mod grep;
mod home;
mod identity;
mod keeper;
mod line;
mod list;
mod pruned;
mod read;
mod shell;
mod spool;
mod syntax;

pub use allow::ALLOW;

use crate::tools::{Answer, Definition, Tools};
use arguments::Arguments;
use folder::Folder;
use komado_provider::Cancel;
use std::ffi::OsString;
use std::path::PathBuf;
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

/// How commands are kept inside the folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sandbox {
    /// By the kernel; where it cannot, there is no shell.
    #[default]
    Required,
    /// By the allow-list alone.
    Off,
}

/// Where and how the built-in tools work.
#[derive(Clone, Debug)]
pub struct Workshop {
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
    /// How commands are kept inside.
    pub sandbox: Sandbox,
    /// What runs a command, keeps it inside and ends all it started: a program and its first arguments, which ends up in
    /// [`confine`]. Without one there is no wall, and only the command's own group ends with it.
    pub jailer: Vec<OsString>,
}

/// The built-in tools.
pub struct Builtin {
    folder: Folder,
    shell: shell::Shell,
    definitions: Vec<Definition>,
}

impl Builtin {
    /// The tools of a folder, which must be there.
    pub fn new(workshop: Workshop) -> Result<Self, Error> {
        if let Some(name) = workshop.enabled.iter().find(|name| !ENABLED.contains(&name.as_str())) {
            return Err(Error::NoTool { name: name.clone() });
        }
        let folder = Folder::open(&workshop.folder).map_err(|why| Error::Folder {
            folder: workshop.folder.display().to_string(),
            why: format!("{why}; make it, or name another one"),
        })?;
        let definitions = definitions::of(&workshop.enabled);
        Ok(Self { shell: shell::Shell::new(workshop, folder.path().to_owned()), folder, definitions })
    }

    fn answer(&mut self, name: &str, arguments: &str, cancel: &Cancel) -> Result<Answer, String> {
        let given = Arguments::parse(name, arguments)?;
        match name {
            "read" => read::read(&self.folder, &given),
            "list" => list::list(&self.folder, &given, cancel),
            "grep" => grep::grep(&self.folder, &given, cancel),
            "edit" => edit::edit(&self.folder, &given),
            _ => self.shell.run(&given, cancel),
        }
    }
}

impl Tools for Builtin {
    fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    fn call(&mut self, name: &str, arguments: &str, cancel: &Cancel) -> Answer {
        if !self.definitions.iter().any(|tool| tool.name == name) {
            let known: Vec<&str> = self.definitions.iter().map(|tool| tool.name.as_str()).collect();
            return Answer::wrong(format!("there is no tool {name:?}; there are: {}", known.join(", ")));
        }
        self.answer(name, arguments, cancel).unwrap_or_else(Answer::wrong)
    }
}
