//! An agent around a context: tasks that wait in a queue, a worker that takes them, and what it works with.
//!
//! A [`Task`](task::Task) is a session that came from a queue. A [`TaskSource`](source::TaskSource) brings tasks and hears how they
//! end. The [`handler`] works on one: it follows a [`playbook`], asks the model through a [`ModelSession`](model_session::ModelSession) and lets it
//! call [`tools`]. The [`worker`] takes tasks from the queue and gives each its own process. Nothing of a conversation is
//! held in memory, and nothing is known here that the journal does not say: a worker that is killed is followed by another
//! that goes on where the journal ends.

#![forbid(unsafe_code)]

pub mod builtin;
pub mod handler;
pub mod limits;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod model_session;
pub mod playbook;
pub mod prepare;
pub mod progress;
pub mod sandbox;
pub mod source;
pub mod task;
pub mod tools;
pub mod worker;

// What can go wrong with a task, and whether to try it again helps.

/// What the agent gives back.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine could not.
    #[error(transparent)]
    Engine(#[from] komado_engine::Error),
    /// A playbook that cannot be followed.
    #[error(transparent)]
    Playbook(#[from] crate::playbook::Error),
    /// A tracker could not be reached, or refused.
    #[error(transparent)]
    Source(#[from] crate::source::Error),
    /// An MCP server could not be used.
    #[cfg(feature = "mcp")]
    #[error(transparent)]
    Mcp(#[from] crate::mcp::Error),
    /// The working folder or what is done in it.
    #[error(transparent)]
    Builtin(#[from] crate::builtin::Error),
    /// A bound that was set for the task was reached.
    #[error("{0}")]
    Limit(crate::limits::LimitReached),
    /// A user wants the task to rest or to end; its words say who and why.
    #[error("{0}")]
    Order(crate::progress::TaskOrder),
    /// Something in the surroundings that is none of the task's making.
    #[error("{what}: {why}")]
    Surroundings {
        /// What was tried.
        what: String,
        /// What went wrong, and what to do.
        why: String,
    },
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl From<komado_store::Error> for Error {
    fn from(error: komado_store::Error) -> Self {
        Self::Engine(error.into())
    }
}
