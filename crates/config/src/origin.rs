//! Where was a value said?
//!
//! `Place` is as exact as possible, for errors; `Origin` is what a listing shows beside a value.

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

/// Where a setting's value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The file.
    File {
        /// The file, as the person would name it.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
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
    pub origin: Origin,
    /// What the setting does.
    pub about: &'static str,
}

impl Row {
    pub(super) fn new(setting: &Setting, given: Option<&Given>, key: String) -> Self {
        let value = given.map_or(mask::UNSET, |given| given.shown.as_str()).to_owned();
        let origin = given.map_or(Origin::Default, |given| given.place.clone().into());
        Self { key, value, origin, about: setting.about }
    }
}

impl From<Place> for Origin {
    fn from(place: Place) -> Self {
        match place {
            Place::Default => Self::Default,
            Place::File { path, line, .. } => Self::File { path, line },
            Place::Env(name) => Self::Env(name),
            Place::Flag(name) => Self::Flag(name),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { column, .. } => write!(f, "{}:{column}", Origin::from(self.clone())),
            _ => Origin::from(self.clone()).fmt(f),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Env(name) => write!(f, "env {name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}
