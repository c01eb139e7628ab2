//! From settings to the model that is asked: its provider and key, its window, the budget of a conversation with it, and
//! what writes summaries.
//!
//! A choice (of a command line, of a request) is trusted over the session, the session over the settings, the settings
//! over keys that were found in the environment. An unknown window is an error before anything is sent; it is never
//! guessed. With nothing configured at all that is an error, too: the scripted model answers only where it is named.
//!
//! It reads no environment, no command line and no settings file: the caller hands over plain structs. It prints nothing:
//! what a person should know although nothing is wrong is a [`Note`].

mod error;
mod provider;
mod resolve;
mod settings;
mod summary;

pub use error::ModelError;
pub use provider::KeySource;
pub use resolve::{KnownModel, ModelResolver, Note, ResolvedModel};
pub use settings::{
    ModelChoice, ModelSettings, ProviderSettings, SummarySettings, key_variables, known_providers,
};
pub use summary::Writer;

/// The name of the built-in model, which follows a script.
pub const SCRIPTED: &str = "scripted";
/// The window of the scripted model, unless another is chosen.
pub const SCRIPTED_WINDOW: u32 = 4_096;
/// The same where it works with tools: their definitions and a child thread's share must have room in it.
pub const SCRIPTED_TOOL_WINDOW: u32 = 32_768;
