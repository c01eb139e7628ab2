//! Sessions at work: handles that append, fold, undo and end.
//!
//! This is where the pure rules of `komado-core` meet a store. A [`Thread`] is a handle on one thread: it admits what
//! arrives, journals it, and only then lets it change the view. An [`Engine`] finds, makes, ends and removes sessions.
//! The clock comes from outside, so that a test or a replay can bring its own.
//!
//! Cargo features: `client` asks models over HTTP (on by default); `postgres` and `redis` add those stores. Without any,
//! sessions in files and in memory can be appended to, folded, edited, searched, replayed, exported and imported.

#![forbid(unsafe_code)]
// What only the turn and the gateway call has no caller without them.
#![cfg_attr(not(feature = "client"), allow(dead_code, unused_imports))]

pub mod cleanup;
pub mod condense;
pub mod diff;
mod edits;
pub mod engine;
pub mod error;
#[cfg(feature = "client")]
pub mod exchange;
pub mod export;
pub mod fit;
mod late;
pub mod lesson;
mod lineage;
pub mod migrate;
#[cfg(feature = "client")]
pub mod model;
pub mod output;
#[cfg(feature = "client")]
pub mod place;
pub mod recall;
pub mod redact;
#[cfg(feature = "client")]
pub mod relay;
#[cfg(feature = "client")]
pub mod repeat;
pub mod replay;
pub mod report;
pub mod share;
pub mod stelis;
pub mod thread;
mod title;
pub mod transcript;
pub mod user;

pub use engine::{Clock, Engine};
pub use error::{Error, ErrorKind, Result};
#[cfg(feature = "client")]
pub use model::{ModelChoice, ModelResolver, ModelSettings, ResolvedModel};
pub use stelis::{Child, ChronicleBy, Finish, Spawn};
pub use thread::{OnOpenCalls, Thread};

/// The examples of the page about threads compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/threads.md")]
struct ThreadsPage;
