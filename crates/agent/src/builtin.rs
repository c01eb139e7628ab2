//! The built-in tools: read, list, grep, edit and shell, in one folder and nowhere else.
//!
//! A model's words are not trusted. Paths are opened by the kernel from the folder's own handle and never lead out of it
//! (see `folder`); commands are confined by the kernel, with an environment of their own (see [`sandbox`](crate::sandbox)). The
//! allow-list (see `allow`) is manners, not a wall: it tells a model early what is not wanted here.

mod allow;
mod arguments;
mod definitions;
mod disk;
mod edit;
mod folder;
mod grep;
mod line;
mod list;
mod pruned;
mod read;
mod shell;
mod spool;
mod syntax;

pub use allow::ALLOW;

use crate::sandbox::Confinement;
use crate::tools::{Answer, Definition, Tools};
use arguments::Arguments;
use folder::Folder;
use komado_provider::Cancel;
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
    let folder = Folder::open(folder).map_err(|why| why.to_string())?;
    match folder.regular_file(Path::new(name)) {
        Ok(file) => {
            let mut bytes = Vec::new();
            file.take(most).read_to_end(&mut bytes).map_err(|why| format!("{name}: {why}"))?;
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        }
        Err(folder::Closed::Missing) => Ok(None),
        Err(folder::Closed::Other(why)) => Err(why),
    }
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
    /// How commands are confined.
    pub confinement: Confinement,
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
