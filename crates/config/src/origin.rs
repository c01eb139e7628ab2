//! Where was a value said?
//!
//! A place is as exact as possible, for errors; a listing shows beside a value where it comes from, without the column.

use std::fmt;
use std::path::PathBuf;

use super::check::Given;
use super::mask;
use super::table::Setting;

/// The exact place of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The table of settings.
    Default,
    /// A file, as the person would name it.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The column in characters, from 1.
        column: u64,
    },
    /// An environment variable.
    Env(String),
    /// A command-line flag.
    Flag(String),
}

/// One line of the listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The full key, such as `llm.openai.model`.
    pub key: String,
    /// The value in force, `(set)` for a secret, `(unset)` for none.
    pub value: String,
    /// Where the value comes from.
    pub origin: String,
    /// What the setting does.
    pub about: &'static str,
}

impl Row {
    pub(super) fn new(setting: &Setting, given: Option<&Given>, key: String) -> Self {
        let value = given.map_or(mask::UNSET, |given| given.shown.as_str()).to_owned();
        let origin = given.map_or(&Place::Default, |given| &given.place).origin();
        Self { key, value, origin, about: setting.about }
    }
}

impl Place {
    /// Where a value comes from.
    fn origin(&self) -> String {
        match self {
            Self::Default => "default".to_owned(),
            Self::File { path, line, .. } => format!("{}:{line}", path.display()),
            Self::Env(name) => format!("env {name}"),
            Self::Flag(name) => name.clone(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin())?;
        match self {
            Self::File { column, .. } => write!(f, ":{column}"),
            _ => Ok(()),
        }
    }
}
