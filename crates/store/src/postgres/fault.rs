//! What the driver says went wrong, in the store's own words: away, and worth another try, or refused, and what to do.

use crate::Error;
use deadpool_postgres::PoolError;
use tokio_postgres::error::{DbError, SqlState};

/// What a conversation with the server comes to.
pub(super) type Sql<T> = std::result::Result<T, Fault>;

/// What went wrong.
#[derive(Debug)]
pub(super) enum Fault {
    /// The driver or the server said so.
    Driver(tokio_postgres::Error),
    /// There was no connection to speak on.
    Pool(String),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<PoolError> for Fault {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Driver(error),
            PoolError::Timeout(_) => Self::Pool("no connection became free in time".to_owned()),
            other => Self::Pool(other.to_string()),
        }
    }
}

impl Fault {
    /// That a connection was given away.
    pub(super) fn gone() -> Self {
        Self::Pool("the connection is closed".to_owned())
    }

    /// The server's own code.
    pub(super) fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Driver(error) => error.code(),
            Self::Pool(_) => None,
        }
    }

    /// True when a connection that was there is there no more, or two were in each other's way: the same may succeed at
    /// once.
    pub(super) fn passes(&self) -> bool {
        match (self, self.code()) {
            (_, Some(code)) => {
                is_ending(code)
                    || *code == SqlState::T_R_SERIALIZATION_FAILURE
                    || *code == SqlState::T_R_DEADLOCK_DETECTED
            }
            (Self::Driver(error), None) => {
                error.is_closed() || words(error).starts_with("error communicating")
            }
            (Self::Pool(_), None) => false,
        }
    }
}

/// True when the server itself ends or begins.
fn is_ending(code: &SqlState) -> bool {
    matches!(code.code(), "57P01" | "57P02" | "57P03")
}

/// That a server refused.
pub(super) fn refused_by(place: &str, why: String) -> Error {
    Error::Refused { place: place.to_owned(), why }
}

/// The error in the store's words.
pub(super) fn told(place: &str, fault: Fault) -> Error {
    match fault {
        Fault::Pool(why) => Error::away(place, why),
        Fault::Driver(error) => match error.as_db_error() {
            Some(said) => told_by_server(place, said),
            None => told_by_driver(place, &error),
        },
    }
}

fn told_by_server(place: &str, said: &DbError) -> Error {
    let (code, message) = (said.code(), said.message());
    let advice = match code.code() {
        "28P01" | "28000" => "check the user and the password in the URL",
        "3D000" => "make the database first, with createdb, or name another in the URL",
        "42501" => "let the user make and use the schema: GRANT CREATE ON DATABASE … TO …",
        "25006" => return Error::away(place, format!("it only lets itself be read ({message})")),
        "25P03" => {
            return Error::away(place, format!("we were silent for too long between two steps ({message})"));
        }
        other if is_away(other) => return Error::away(place, format!("{message} ({other})")),
        _ => "this is no fault of the server; please report it",
    };
    refused_by(place, format!("{message} ({}); {advice}", code.code()))
}

/// True for codes that tell of the server's state, not of what was asked: connections, room, ends, time-outs, others in
/// the way.
fn is_away(code: &str) -> bool {
    ["08", "53", "57", "58", "40", "55"].iter().any(|class| code.starts_with(class))
}

fn told_by_driver(place: &str, error: &tokio_postgres::Error) -> Error {
    let why = words(error);
    if why.starts_with("error performing TLS handshake") {
        let advice = "check the server's certificate, or say sslmode=disable where the way to it is safe";
        return refused_by(place, format!("{why}; {advice}"));
    }
    if why.starts_with("invalid configuration") || why.starts_with("authentication error") {
        return refused_by(place, format!("{why}; check the user and the password in the URL"));
    }
    Error::away(place, why)
}

/// The error with all its causes.
fn words(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause {
        let more = deeper.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = deeper.source();
    }
    text
}
