//! An agent around a context: tasks that wait in a queue, a worker that takes them, and what it works with.
//!
//! A [`Task`](task::Task) is a session that came from a queue. A [`Source`](source::Source) brings tasks and hears how they
//! end. The [`handler`] works on one: it follows a [`playbook`], asks the model through a [`Mind`](mind::Mind) and lets it
//! call [`tools`]. The [`worker`] takes tasks from the queue and gives each its own process. Nothing of a conversation is
//! held in memory, and nothing is known here that the journal does not say: whoever is killed is followed by another one
//! that goes on where the journal ends.

#![forbid(unsafe_code)]

pub mod builtin;
pub mod error;
pub mod handler;
pub mod limits;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod mind;
mod percent;
pub mod playbook;
pub mod prepare;
pub mod progress;
pub mod sandbox;
pub mod source;
pub mod task;
pub mod tools;
pub mod worker;

pub use error::{Error, Result};
