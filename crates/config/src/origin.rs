//! Where was a value said, and what is wrong with it?
//!
//! A place is as exact as possible, for errors; a listing shows beside a value where it comes from, without the column. Each
//! message of an error names the place, the key and the value, and ends with what to do. No error ever holds a secret: the code
//! that makes it masks the value first.

use crate::check::GivenValue;
use crate::consent::Unconsented;
use crate::table::Setting;
use crate::{BaseDirFrom, mask};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// The exact place of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingPlace {
    /// The table of settings.
    Default,
    /// The folder of the contexts, where nothing names it.
    BaseDir(BaseDirFrom),
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

/// A setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Setting")]
pub struct SettingRow {
    /// Its name.
    pub key: String,
    /// The value in force; `(set)` for a secret, `(unset)` for none.
    pub value: String,
    /// Where the value comes from.
    pub origin: String,
    /// What it does.
    pub about: &'static str,
}

impl SettingRow {
    pub(super) fn new(setting: &Setting, given: Option<&GivenValue>, key: String) -> Self {
        let value = given.map_or(mask::UNSET, |given| given.shown.as_str()).to_owned();
        let origin = given.map_or(&SettingPlace::Default, |given| &given.place).origin();
        Self { key, value, origin, about: setting.about }
    }
}

impl SettingPlace {
    /// True when no person said it.
    pub(super) fn is_default(&self) -> bool {
        matches!(self, Self::Default | Self::BaseDir(_))
    }

    /// Where a value comes from.
    fn origin(&self) -> String {
        match self {
            Self::Default | Self::BaseDir(BaseDirFrom::Setting) => "default".to_owned(),
            Self::BaseDir(BaseDirFrom::WorkingFolder) => "default: ./contexts, which is yours".to_owned(),
            Self::BaseDir(BaseDirFrom::DataFolder) => "default: your data folder".to_owned(),
            Self::BaseDir(BaseDirFrom::Nowhere) => {
                "default: not used, since neither HOME nor XDG_DATA_HOME is an absolute path".to_owned()
            }
            Self::File { path, line, .. } => format!("{}:{line}", path.display()),
            Self::Env(name) => format!("env {name}"),
            Self::Flag(name) => name.clone(),
        }
    }
}

impl fmt::Display for SettingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin())?;
        match self {
            Self::File { column, .. } => write!(f, ":{column}"),
            _ => Ok(()),
        }
    }
}

/// Why the settings could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Child threads are turned off.
    #[error("no child threads may be started: {0}")]
    ThreadsOff(String),
    /// A session's share for child threads is not one.
    #[error("default_window_ratio: {0}")]
    Ratio(String),
    /// A child would be deeper than allowed.
    #[error("{0}")]
    TooDeep(String),
    /// A file was named and is not there.
    #[error("{by} names a file that does not exist: {}; create it, or leave {by} out", path.display())]
    FileMissing {
        /// What named it: `--config` or `KOMADO_CONFIG`.
        by: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A file of the working folder holds settings that need consent.
    #[error("{0}")]
    NoConsent(Box<Unconsented>),
    /// A file is there and cannot be read.
    #[error("cannot read {}: {source}; check that it is a file and that you may read it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What was said at a place cannot be used: why, and what to do.
    #[error("{place}: {why}")]
    Wrong {
        /// Where it was said.
        place: SettingPlace,
        /// What is wrong with it, and what to do.
        why: String,
    },
}

impl ConfigError {
    pub(super) fn at(place: SettingPlace, why: String) -> Self {
        Self::Wrong { place, why }
    }
}
