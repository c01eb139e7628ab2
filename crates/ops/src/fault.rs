//! What went wrong, of which kind, and what to do next.
//!
//! An interface turns the kind into its own: an exit code, an HTTP status, an error of a tool call. It never has to read
//! the text.

use komado_config::ConfigError;
use komado_core::BadId;
use komado_core::admit::EntryRefusal;
use komado_core::notation::tamed;
use komado_engine::Error as Engine;
use komado_engine::error::{ErrorKind, kind_of_store};
use komado_store::Error as Store;

/// Kinds of failure; their numbers are the exit codes of the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FaultKind {
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
    /// The caller may not do this.
    Forbidden = 8,
    /// As many as may do this at a time are doing it.
    TooMany = 9,
    /// The request does not fit the schema of its operation.
    Malformed = 10,
    /// What the caller has seen is no longer so.
    Changed = 11,
}

komado_core::names! {
    /// Its name in JSON.
    FaultKind {
        Failed = "failed", Usage = "usage", NotFound = "not_found", Busy = "busy", Refused = "refused",
        BadInput = "bad_input", Away = "away", Forbidden = "forbidden", TooMany = "too_many",
        Malformed = "malformed", Changed = "changed",
    }
}

/// A failure on its way to the person.
#[derive(Debug)]
pub struct OpFault {
    exit: FaultKind,
    message: String,
    /// True when a thread was closed, and nothing else is wrong.
    closed: bool,
    /// True when the place where things are kept could not be used.
    away: bool,
    /// What was named and is not there, or not for this caller.
    missing: Option<Missing>,
    /// True when a session was named, all were looked through, and none fits.
    unknown_session: bool,
}

/// Something that was named and is not there. An interface says how to list what is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Missing {
    /// A session.
    Session {
        /// The name, as it was given.
        given: String,
        /// The nearest name there is, among what the caller may see.
        near: Option<String>,
    },
    /// A thread of a session.
    Thread {
        /// The session.
        session: String,
        /// The name, as it was given.
        given: String,
        /// The nearest name there is.
        near: Option<String>,
    },
    /// A user.
    User(String),
}

/// What verbs give back.
pub type OpResult<T = ()> = Result<T, OpFault>;

impl OpFault {
    /// A failure of a kind.
    pub fn new(exit: FaultKind, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            closed: false,
            away: false,
            missing: None,
            unknown_session: false,
        }
    }

    /// Something that was named and is not there, or not for this caller.
    pub fn missing(what: Missing) -> Self {
        let message = match &what {
            Missing::Session { given, near } => format!("there is no session {given:?}{}", meant(near)),
            Missing::Thread { session, given, near } => {
                format!("session {session} has no thread {given:?}{}", meant(near))
            }
            Missing::User(user) => format!("there is no user {user:?}; `komado user list` lists them"),
        };
        let unknown_session = matches!(what, Missing::Session { .. });
        Self { missing: Some(what), unknown_session, ..Self::not_found(message) }
    }

    /// What was named and is not there.
    pub fn what_is_missing(&self) -> Option<&Missing> {
        self.missing.as_ref()
    }

    /// It would leave a view that cannot be sent, or change nothing.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Refused, message)
    }

    /// What was named is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(FaultKind::NotFound, message)
    }

    /// The caller may not do this.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Forbidden, message)
    }

    /// Something failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Failed, message)
    }

    /// The request does not fit the schema of its operation.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Malformed, message)
    }

    /// A request that cannot be meant.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Usage, message)
    }

    /// The place where things are kept cannot be used; the same call may work later.
    pub fn away(message: impl Into<String>) -> Self {
        Self { away: true, ..Self::new(FaultKind::Away, message) }
    }

    /// Input that is not what it should be.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(FaultKind::BadInput, message)
    }

    /// A file that cannot be read.
    pub fn unread(what: impl std::fmt::Display, why: &std::io::Error) -> Self {
        let is_missing = why.kind() == std::io::ErrorKind::NotFound;
        Self::new(
            if is_missing { FaultKind::NotFound } else { FaultKind::BadInput },
            format!("{what}: {why}"),
        )
    }

    /// True when the reader of the output went away.
    pub fn is_gone(&self) -> bool {
        self.message == GONE
    }

    /// What kind of failure it is.
    pub fn exit(&self) -> FaultKind {
        self.exit
    }

    /// True when the place where things are kept could not be used; the same call may work later.
    pub fn is_away(&self) -> bool {
        self.away
    }

    /// The words.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// True when a session was named, all were looked through, and none fits.
    pub fn is_about_unknown_session(&self) -> bool {
        self.unknown_session
    }

    /// True when what was to be changed is closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The same failure in other words.
    pub(crate) fn reworded(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// The same, told of a part of what was sent.
    pub fn of(self, part: &str) -> Self {
        Self { message: format!("{part}: {}; nothing was appended", self.message), ..self }
    }

    /// Adds what else is to be known.
    pub fn and(mut self, more: String) -> Self {
        // It is said once, however many pass the failure on.
        self.unknown_session = false;
        let gap = if self.message.ends_with('?') { " " } else { "; " };
        self.message = format!("{}{gap}{more}", self.message);
        self
    }
}

/// Asks whether the nearest name was meant.
fn meant(near: &Option<String>) -> String {
    near.as_ref().map_or_else(String::new, |near| format!("; did you mean {near:?}?"))
}

/// The message of a closed pipe.
const GONE: &str = "the reader has gone";

impl From<ErrorKind> for FaultKind {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Setting => Self::Usage,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::Busy => Self::Busy,
            ErrorKind::Refused => Self::Refused,
            ErrorKind::Input => Self::BadInput,
            ErrorKind::Away => Self::Away,
            _ => Self::Failed,
        }
    }
}

impl std::fmt::Display for OpFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for OpFault {}

impl From<std::io::Error> for OpFault {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::failed(GONE);
        }
        Self::failed(error.to_string())
    }
}

impl From<Engine> for OpFault {
    fn from(error: Engine) -> Self {
        match error {
            Engine::Store(store) => store.into(),
            Engine::Io(io) => io.into(),
            error => Self {
                closed: matches!(error, Engine::Refused(EntryRefusal::Closed { .. })),
                unknown_session: matches!(error, Engine::Unknown { what: "session", .. }),
                ..Self::new(error.kind().into(), error.to_string())
            },
        }
    }
}

impl From<komado_engine::output::Error> for OpFault {
    fn from(error: komado_engine::output::Error) -> Self {
        use komado_engine::output::Error;
        let exit = match error {
            Error::Engine(error) => return error.into(),
            Error::Io(error) => return error.into(),
            Error::NoOutput { .. } | Error::NoLine { .. } | Error::NoChars { .. } => FaultKind::NotFound,
            Error::NoWords { .. } => FaultKind::Refused,
            Error::BadPattern(_) | Error::BadReference { .. } => FaultKind::BadInput,
            _ => FaultKind::Usage,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<komado_engine::model::ModelError> for OpFault {
    fn from(error: komado_engine::model::ModelError) -> Self {
        Engine::from(error).into()
    }
}

impl From<komado_agent::Error> for OpFault {
    fn from(error: komado_agent::Error) -> Self {
        use komado_agent::Error;
        use komado_agent::source;
        match error {
            Error::Engine(error) => error.into(),
            Error::Io(error) => error.into(),
            Error::Source(source::Error::Away { .. }) => Self::new(FaultKind::Away, error.to_string()),
            Error::Source(source::Error::Refused { .. }) => Self::refused(error.to_string()),
            Error::Source(_) | Error::Playbook(_) | Error::Builtin(_) => Self::input(error.to_string()),
            other => Self::failed(other.to_string()),
        }
    }
}

impl From<Store> for OpFault {
    fn from(error: Store) -> Self {
        let away = matches!(
            error,
            Store::Io { .. } | Store::Table(_) | Store::Shelf(_) | Store::Poisoned | Store::Away { .. }
        );
        let unknown_session = matches!(error, Store::NoSession(_));
        Self { away, unknown_session, ..Self::new(kind_of_store(&error).into(), error.to_string()) }
    }
}

impl From<BadId> for OpFault {
    fn from(error: BadId) -> Self {
        Self::new(FaultKind::BadInput, error.to_string())
    }
}

impl From<ConfigError> for OpFault {
    fn from(error: ConfigError) -> Self {
        let exit = match error {
            ConfigError::ThreadsOff(_) | ConfigError::TooDeep(_) => FaultKind::Refused,
            ConfigError::Ratio(_) => FaultKind::BadInput,
            _ => FaultKind::Usage,
        };
        // It quotes a file that may have come from elsewhere.
        Self::new(exit, tamed(&error.to_string()))
    }
}

impl From<serde_json::Error> for OpFault {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(kind) => std::io::Error::from(kind).into(),
            None => Self::failed(error.to_string()),
        }
    }
}
