//! Why no model can be asked, and what to do about it.

use super::known_providers;
use crate::error::ErrorKind;
use std::io;
use std::path::PathBuf;

/// Why no model can be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Nothing is configured. Words that follow a script must not be taken for an answer, so no model is asked.
    #[error(
        "no model is configured: set OPENAI_API_KEY or ANTHROPIC_API_KEY and give --model NAME, or give --provider ollama \
         --model NAME, or set llm.provider and llm.<provider>.model; --provider scripted (or llm.provider: scripted) asks \
         the built-in scripted model, which only follows a script"
    )]
    NothingConfigured,
    /// A provider, and none of its models.
    #[error("which model of {provider}? give --model NAME, or set llm.{provider}.model")]
    NoModel {
        /// The provider.
        provider: String,
    },
    /// The same for the model that writes summaries.
    #[error("which model of {provider} writes summaries? set compaction.model, or llm.{provider}.model")]
    NoSummaryModel {
        /// The provider.
        provider: String,
    },
    /// An unknown window.
    #[error(
        "the window of model {model:?} is not known{}: give --window TOKENS, or set llm.{provider}.context_length",
        .silent.as_ref().map(|why| format!(", and its server did not answer ({why})")).unwrap_or_default()
    )]
    UnknownWindow {
        /// The model.
        model: String,
        /// Its provider.
        provider: String,
        /// Why its server did not say, where it was asked in vain.
        silent: Option<String>,
    },
    /// An unknown provider without an address.
    #[error(
        "nothing is known of provider {name:?}; {}known by name are {}; any other needs --base-url URL or llm.{name}.base_url",
        .near.as_ref().map(|near| format!("did you mean {near}? ")).unwrap_or_default(),
        known_providers().collect::<Vec<_>>().join(", ")
    )]
    UnknownProvider {
        /// The name.
        name: String,
        /// The known name that is nearest.
        near: Option<String>,
    },
    /// A provider that wants a key, and none is there.
    #[error(
        "{provider} asks for a key, and there is none: set {variables}, or name a file that holds it in \
         llm.{provider}.api_key_file"
    )]
    NoKey {
        /// The provider.
        provider: String,
        /// The variables that may hold it.
        variables: String,
    },
    /// A key or an address that cannot be one, or cannot be read; `place` says where it stands.
    #[error("{place}: {why}")]
    BadValue {
        /// The setting, the flag or the variable.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// A table of models that is none.
    #[error(
        "{}: {why}; mend the file, remove it, or replace it with `komado models update`", .path.display()
    )]
    BadRegistry {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A table of models that cannot be read.
    #[error("{}: {why}", .path.display())]
    RegistryUnread {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// A build that leaves the scripted model out.
    #[cfg(not(feature = "server"))]
    #[error(
        "this build has no scripted model; build it with the Cargo feature `server`, or ask another model"
    )]
    NoScriptedModel,
    /// A command for summaries without a program.
    #[error("compaction.command names no program")]
    EmptyCommand,
    /// The client or the scripted model could not be started.
    #[error("{0}")]
    NotStarted(String),
}

impl ModelError {
    /// What kind of failure it is.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::BadRegistry { .. } => ErrorKind::Input,
            Self::RegistryUnread { .. } | Self::NotStarted(_) => ErrorKind::Failed,
            _ => ErrorKind::Setting,
        }
    }
}
