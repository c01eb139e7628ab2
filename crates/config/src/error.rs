//! What can be wrong with a configuration?
//!
//! Each message names the place, the key and the value, and ends with what to do. No variant ever holds a
//! secret: the code that makes an error masks the value first.

use std::path::PathBuf;

use super::consent::Unconsented;
use super::origin::Place;

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
    /// The file is not UTF-8.
    #[error("{place}: the file is not UTF-8 from here on; save it as UTF-8")]
    NotUtf8 {
        /// The first byte that is not.
        place: Place,
    },
    /// The file is not YAML.
    #[error("{place}: not valid YAML: {problem}; {hint}")]
    Yaml {
        /// Where the parser stopped.
        place: Place,
        /// What the parser said.
        problem: String,
        /// What to do.
        hint: &'static str,
    },
    /// A key stands twice in one mapping.
    #[error("{place}: this key is given twice: {key}; keep one of the two")]
    DuplicateKey {
        /// The second of the two.
        place: Place,
        /// The key.
        key: String,
    },
    /// No setting has this key.
    #[error("{place}: unknown key: {key}; {hint}")]
    UnknownKey {
        /// Where it was said.
        place: Place,
        /// The key.
        key: String,
        /// What may have been meant.
        hint: String,
    },
    /// A list or a mapping where a value belongs, or the reverse.
    #[error("{place}: {key} must be {expected}, not {found}; {hint}")]
    WrongShape {
        /// Where it was said.
        place: Place,
        /// The key.
        key: String,
        /// What belongs here.
        expected: Box<str>,
        /// What is here.
        found: &'static str,
        /// What to do.
        hint: Box<str>,
    },
    /// A value that its setting refuses: another type, or out of range.
    #[error("{place}: {key} must be {expected}, not: {found}")]
    Invalid {
        /// Where it was said.
        place: Place,
        /// The key.
        key: String,
        /// What it should be.
        expected: String,
        /// What it is, masked.
        found: String,
    },
    /// A secret on the command line.
    #[error(
        "{place}: {key} is not taken from the command line, where everyone on this machine can read it in the list of \
         processes; put it into the environment as {wayout}"
    )]
    SecretFlag {
        /// Where it was said.
        place: Place,
        /// The key of the setting.
        key: String,
        /// The variable that may hold it, and the file.
        wayout: String,
    },
    /// An MCP server that cannot be reached as it is written.
    #[error("{place}: {key} {why}")]
    BadServer {
        /// Where one of its settings was said.
        place: Place,
        /// Its section.
        key: String,
        /// What is wrong with it, and what to do.
        why: &'static str,
    },
    /// A value refers to a variable that is not set.
    #[error(
        "{place}: {key} refers to an environment variable that is not set: {variable}; \
         set it, or write ${{{variable}:-some default}}"
    )]
    UnsetVariable {
        /// Where it was said.
        place: Place,
        /// The key.
        key: String,
        /// The variable.
        variable: String,
    },
    /// A value holds a `${` that does not refer to a variable.
    #[error(
        "{place}: {key} holds a ${{…}} that cannot be expanded ({problem}): {found}; write $$ for a plain $"
    )]
    BadReference {
        /// Where it was said.
        place: Place,
        /// The key.
        key: String,
        /// What is wrong with it.
        problem: &'static str,
        /// The reference.
        found: String,
    },
    /// `MEMORY_BACKEND` chooses a server whose address is nowhere.
    #[error(
        "env MEMORY_BACKEND: {backend} needs an address, and {variable} is not set; set {variable} or store.url"
    )]
    BackendWithoutUrl {
        /// The backend.
        backend: &'static str,
        /// The variable with its address.
        variable: &'static str,
    },
}
