//! The verbs, each in a file of the same shape: `Args`, `run`.

pub(crate) mod append;
pub(crate) mod bench;
pub(crate) mod cleanup;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod condense;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod fail;
pub(crate) mod fork;
pub(crate) mod import;
pub(crate) mod log;
pub(crate) mod new;
pub(crate) mod pause;
pub(crate) mod pin;
pub(crate) mod redact;
pub(crate) mod resume;
pub(crate) mod revert;
pub(crate) mod rewind;
pub(crate) mod sessions;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod stats;
pub(crate) mod stop;
pub(crate) mod trim;
pub(crate) mod truncate;
pub(crate) mod unpin;

mod change;
mod ending;
mod span;
