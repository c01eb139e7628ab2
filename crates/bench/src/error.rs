//! What went wrong, with an exit code.

use crate::output::say;
use komado_core::BadId;
use komado_engine::Error as Engine;
use komado_store::Error as Store;
use std::io;
use std::process::ExitCode;

/// Exit codes, with the meaning they have in `komado`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Exit {
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    BadInput = 6,
    Away = 7,
}

impl Exit {
    const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::BadInput => "bad_input",
            Self::Away => "away",
        }
    }
}

/// A failed measurement.
#[derive(Debug)]
pub(crate) struct Error {
    exit: Exit,
    message: String,
    /// True when the reader of standard output is gone, which is not a failure.
    pipe_closed: bool,
}

/// What measurements give back.
pub(crate) type Result<T = (), E = Error> = std::result::Result<T, E>;

impl Error {
    fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), pipe_closed: false }
    }

    /// Something failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// The command line is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// What was named is not there.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, message)
    }

    /// The input is not what it should be.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(Exit::BadInput, message)
    }

    /// Prints it and gives the exit code.
    pub(crate) fn report(self, json: bool) -> ExitCode {
        if self.pipe_closed {
            return ExitCode::SUCCESS;
        }
        if json {
            let error = serde_json::json!({ "error": { "kind": self.exit.name(), "message": self.message } });
            say(error.to_string());
        } else {
            say(format!("komado-bench: {}", self.message));
        }
        ExitCode::from(self.exit as u8)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        let pipe_closed = error.kind() == io::ErrorKind::BrokenPipe;
        Self { pipe_closed, ..Self::failed(error.to_string()) }
    }
}

impl From<Engine> for Error {
    fn from(error: Engine) -> Self {
        match error {
            Engine::Store(store) => store.into(),
            Engine::Io(io) => io.into(),
            other => Self::failed(other.to_string()),
        }
    }
}

impl From<Store> for Error {
    fn from(error: Store) -> Self {
        let exit = match &error {
            Store::Away { .. } => Exit::Away,
            Store::BadAddress { .. } => Exit::Usage,
            _ => Exit::Failed,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<BadId> for Error {
    fn from(error: BadId) -> Self {
        Self::input(error.to_string())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(kind) => io::Error::from(kind).into(),
            None => Self::failed(error.to_string()),
        }
    }
}
