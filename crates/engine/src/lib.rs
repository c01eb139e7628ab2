//! Sessions at work: handles that append, fold, undo and end.
//!
//! This is where the pure rules of `komado-core` meet a store. A [`Thread`] is a handle on one thread: it admits what
//! arrives, journals it, and only then lets it change the view. An [`Engine`] finds, makes, ends and removes sessions.
//! The clock comes from outside, so that a test or a replay can bring its own.

#![forbid(unsafe_code)]

pub mod arrive;
pub mod balance;
pub mod cleanup;
pub mod condense;
pub mod converse;
pub mod diff;
pub mod engine;
pub mod error;
mod exchange;
pub mod export;
pub mod fit;
pub mod import;
pub mod lesson;
mod lineage;
pub mod migrate;
pub mod note;
pub mod output;
pub mod place;
pub mod recall;
pub mod recount;
pub mod redact;
pub mod relay;
pub mod replay;
pub mod report;
mod request_entries;
pub mod share;
pub mod staged;
pub mod stelis;
pub mod thread;
pub mod turn;
pub mod user;
pub mod window;

pub use engine::{Clock, Engine};
pub use error::{Error, Result};
pub use stelis::{Child, Finish, Spawn, Telling};
pub use thread::{OnOpenCalls, Thread};

/// The examples on the front page compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;

/// The examples of the page about threads compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/threads.md")]
struct ThreadsPage;
