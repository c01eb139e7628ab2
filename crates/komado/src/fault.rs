//! What went wrong, with an exit code and what to do next.

use crate::config::ConfigError;
use crate::paper::say;
use komado_core::BadId;
use komado_core::admit::Refusal;
use komado_core::notation::tamed;
use komado_engine::Error as Engine;
use komado_store::Error as Store;
use std::process::ExitCode;

/// Exit codes; a script can tell these apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Something failed.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// What was named is not there.
    NotFound = 3,
    /// Someone else is writing.
    Busy = 4,
    /// It would leave a view that cannot be sent, or change nothing.
    Refused = 5,
    /// The input is not what it should be.
    BadInput = 6,
    /// The server that holds the sessions does not answer.
    Away = 7,
}

impl Exit {
    const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::Busy => "busy",
            Self::Refused => "refused",
            Self::BadInput => "bad_input",
            Self::Away => "away",
        }
    }
}

/// A failure on its way to the person.
#[derive(Debug)]
pub(crate) struct Fault {
    exit: Exit,
    message: String,
    /// True when a thread was closed, and nothing else is wrong.
    closed: bool,
    /// True when the place where things are kept could not be used.
    away: bool,
}

/// What verbs give back.
pub(crate) type Outcome<T = ()> = Result<T, Fault>;

impl Fault {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), closed: false, away: false }
    }

    /// A wrong command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Input that is not what it should be.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(Exit::BadInput, message)
    }

    /// True when whoever read the output went away.
    pub(crate) fn is_gone(&self) -> bool {
        self.message == GONE
    }

    /// What kind of failure it is.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// True when the place where things are kept could not be used; the same call may work later.
    pub(crate) fn is_away(&self) -> bool {
        self.away
    }

    /// The words.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// True when what was to be changed is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Adds what else is to be known.
    pub(crate) fn and(mut self, more: String) -> Self {
        self.message = format!("{}; {more}", self.message);
        self
    }

    /// Prints it and gives the exit code. A reader that went away is no failure.
    pub(crate) fn report(self, json: bool) -> ExitCode {
        if self.is_gone() {
            return ExitCode::SUCCESS;
        }
        if json {
            let error = serde_json::json!({ "error": { "kind": self.exit.name(), "message": self.message } });
            say(error.to_string());
        } else {
            say(format!("komado: {}", self.message));
        }
        ExitCode::from(self.exit as u8)
    }
}

/// The message of a closed pipe.
const GONE: &str = "the reader has gone";

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Failed, GONE);
        }
        Self::new(Exit::Failed, error.to_string())
    }
}

impl From<Engine> for Fault {
    fn from(error: Engine) -> Self {
        match error {
            Engine::Store(store) => store.into(),
            Engine::Io(io) => io.into(),
            Engine::Refused(Refusal::Closed { .. }) => {
                Self { closed: true, ..Self::new(Exit::Refused, error.to_string()) }
            }
            Engine::Refused(_)
            | Engine::NoCallFits { .. }
            | Engine::WrongState { .. }
            | Engine::NoGain { .. }
            | Engine::NoRoom(_)
            | Engine::TooMuch(_)
            | Engine::TooDeep { .. }
            | Engine::AnchorCap { .. }
            | Engine::OpenAnchor { .. }
            | Engine::NotSpawned { .. }
            | Engine::NeverBegun { .. }
            | Engine::Crowded { .. }
            | Engine::NotClosed { .. }
            | Engine::NoListener { .. }
            | Engine::ParentEnded { .. }
            | Engine::Floor(_) => Self::new(Exit::Refused, error.to_string()),
            Engine::ParentBusy { .. } => Self::new(Exit::Busy, error.to_string()),
            Engine::Unknown { .. } | Engine::Ambiguous { .. } | Engine::NoMoment { .. } => {
                Self::new(Exit::NotFound, error.to_string())
            }
            Engine::Id(_)
            | Engine::BadExport { .. }
            | Engine::BadPattern(_)
            | Engine::MatchesAll { .. }
            | Engine::NoWords { .. }
            | Engine::NoQuery => Self::new(Exit::BadInput, error.to_string()),
            other => Self::new(Exit::Failed, other.to_string()),
        }
    }
}

impl From<Store> for Fault {
    fn from(error: Store) -> Self {
        let exit = match &error {
            Store::NoSession(_) | Store::NoThread(..) | Store::NoBlob(..) => Exit::NotFound,
            Store::Busy { .. } => Exit::Busy,
            Store::Away { .. } => Exit::Away,
            Store::BadAddress { .. } => Exit::Usage,
            Store::Ended(..)
            | Store::SessionExists(_)
            | Store::ThreadExists(..)
            | Store::Moved { .. }
            | Store::TakenOver(_)
            | Store::NotYours(_) => Exit::Refused,
            _ => Exit::Failed,
        };
        let away = matches!(
            error,
            Store::Io { .. } | Store::Table(_) | Store::Shelf(_) | Store::Poisoned | Store::Away { .. }
        );
        Self { away, ..Self::new(exit, error.to_string()) }
    }
}

impl From<BadId> for Fault {
    fn from(error: BadId) -> Self {
        Self::new(Exit::BadInput, error.to_string())
    }
}

impl From<ConfigError> for Fault {
    fn from(error: ConfigError) -> Self {
        // It quotes a file that may have come from elsewhere.
        Self::new(Exit::Usage, tamed(&error.to_string()))
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(kind) => std::io::Error::from(kind).into(),
            None => Self::new(Exit::Failed, error.to_string()),
        }
    }
}
