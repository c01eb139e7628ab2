//! What can go wrong with a task, and whether to try it again helps.

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
    Limit(crate::limits::Reached),
    /// Somebody wants the task to rest or to end; its words say who and why.
    #[error("{0}")]
    Order(crate::progress::Order),
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
