//! What can go wrong in a store, each with what to do about it.

use komado_core::thread::BadHeader;
use komado_core::{Seq, SessionId, ThreadId};
use rusqlite::ErrorCode;
use rusqlite::types::Type;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Who holds a session for writing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// The machine.
    pub host: String,
    /// What it runs.
    pub program: String,
    /// Since when.
    pub since: String,
}

impl Holder {
    /// Who holds something, as it was written down.
    pub(crate) fn read(text: &[u8]) -> Self {
        let known = serde_json::Deserializer::from_slice(text).into_iter().next().and_then(Result::ok);
        known.unwrap_or_else(|| Self {
            pid: 0,
            host: "?".into(),
            program: "unknown".into(),
            since: "?".into(),
        })
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} ({}) on {} since {}", self.pid, self.program, self.host, self.since)
    }
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such session.
    #[error("there is no session {0}; `komado sessions` lists them")]
    NoSession(SessionId),
    /// The id is taken.
    #[error("session {0} exists already; choose another id")]
    SessionExists(SessionId),
    /// No such thread.
    #[error("session {0} has no thread {1}")]
    NoThread(SessionId, ThreadId),
    /// The thread's name is taken.
    #[error("session {0} has a thread {1} already; choose another name")]
    ThreadExists(SessionId, ThreadId),
    /// No such blob.
    #[error("session {0} has no output {1:?}")]
    NoBlob(SessionId, String),
    /// Someone else writes.
    #[error("session {session} is being written by {holder}; wait for it to end, or stop it")]
    Busy {
        /// The session.
        session: SessionId,
        /// Who holds it.
        holder: Holder,
    },
    /// The session has ended.
    #[error("session {0} has ended ({1}); `komado session resume {0}` opens it again")]
    Ended(SessionId, &'static str),
    /// Opened to look, asked to write.
    #[error("the journal was opened for reading only")]
    ReadOnly,
    /// The thread is longer than the caller thought.
    #[error("the thread is at @{found}, not at @{expected}; read what came in between, then try again")]
    Moved {
        /// Where the caller thought it was.
        expected: Seq,
        /// Where it is.
        found: Seq,
    },
    /// An append failed and could not be taken back; the handle is of no more use.
    #[error("an earlier write failed; open the session again")]
    Poisoned,
    /// More than a journal can number or a line can hold.
    #[error("the journal cannot hold {0}")]
    TooMuch(String),
    /// A line that cannot be read.
    #[error(
        "{place} is damaged: {why}; `komado admin doctor` makes an index again, a journal line must be put right by hand or from an export"
    )]
    Damaged {
        /// Which entry or file.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// A header that cannot be read, or a newer version's.
    #[error("{}: {source}", .path.display())]
    Header {
        /// The journal.
        path: PathBuf,
        /// What is wrong.
        source: BadHeader,
    },
    /// The system refused.
    #[error("cannot {what} {}: {source}{}", .path.display(), advice(.source))]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The table of sessions refused.
    #[error("tasks.db: {0}; `komado admin doctor --rebuild` makes it again from the folders")]
    Table(String),
    /// A session's index of words refused.
    #[error("recall.db: {0}; `komado admin doctor --rebuild` makes it again from the journals")]
    Shelf(String),
    /// A server does not answer, or not in time.
    #[error(
        "the store at {place} does not answer: {why}; nothing that was acknowledged is lost: try again once it is back"
    )]
    Away {
        /// Where it is, without secrets.
        place: String,
        /// What happened.
        why: String,
    },
    /// An address that leads to no store, whatever is there.
    #[error("the address of the store is wrong: {why}")]
    BadAddress {
        /// What is wrong with it, without secrets, and what to do.
        why: String,
    },
    /// A server refused.
    #[error("the store at {place} refused: {why}")]
    Refused {
        /// Where it is, without secrets.
        place: String,
        /// What it said, and what to do.
        why: String,
    },
    /// The session was taken over while its holder was not heard of.
    #[error("session {0} was taken over by another process, since this one was not heard of; open it again")]
    TakenOver(SessionId),
    /// A job that another works on by now, or that is no longer in the queue.
    #[error("the job of session {0} is not ours any more: it was taken over, finished or withdrawn")]
    NotYours(SessionId),
}

impl Error {
    /// That there is no such blob, whatever was asked for: it may be long, and from anyone.
    pub(crate) fn no_blob(id: &SessionId, blob: &str) -> Self {
        Self::NoBlob(id.clone(), blob.chars().take(80).collect())
    }

    /// That something cannot be read.
    pub(crate) fn damaged(place: impl Into<String>, why: impl ToString) -> Self {
        Self::Damaged { place: place.into(), why: why.to_string() }
    }

    /// That a thread has no such entry.
    pub(crate) fn no_entry(session: &SessionId, thread: &ThreadId, seq: Seq) -> Self {
        Self::damaged(format!("{session}/{thread}"), format!("it has no entry @{seq}"))
    }

    /// That a server does not answer.
    pub(crate) fn away(place: &str, why: String) -> Self {
        Self::Away { place: place.to_owned(), why }
    }

    /// True when the store itself could not be reached: the same call may succeed later.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Away { .. })
    }

    /// True when a file or folder was not there.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    }

    /// True when the place may only be looked at.
    pub(crate) fn is_permission(&self) -> bool {
        use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem))
    }
}

/// What to do about errors people can do something about.
fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            "; nothing was lost: free some space and try again"
        }
        std::io::ErrorKind::FileTooLarge => {
            "; nothing was lost: raise the limit for file sizes and try again"
        }
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            "; nothing was changed: make the folder writable, or choose another with --base-dir"
        }
        _ => "",
    }
}

/// What SQLite says of the system it is on, not of the file at `path`.
pub(crate) fn of_system(path: &Path, error: &rusqlite::Error) -> Option<Error> {
    let kind = match error.sqlite_error_code()? {
        ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
            std::io::ErrorKind::PermissionDenied
        }
        ErrorCode::DiskFull => std::io::ErrorKind::StorageFull,
        _ => return None,
    };
    Some(Error::Io {
        what: "write",
        path: path.to_owned(),
        source: std::io::Error::new(kind, error.to_string()),
    })
}

/// That another program wrote something else into a column.
pub(crate) fn odd(column: usize, why: impl ToString) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.to_string().into())
}

/// Adds what was tried, and on what, to the system's error.
pub(crate) trait IoContext<T>: Sized {
    fn tried(self, what: &'static str, path: &Path) -> Result<T, Error>;

    /// The same, but `None` when nothing is there.
    fn tried_if_there(self, what: &'static str, path: &Path) -> Result<Option<T>, Error> {
        match self.tried(what, path) {
            Err(error) if error.is_missing() => Ok(None),
            done => done.map(Some),
        }
    }
}

impl<T> IoContext<T> for std::io::Result<T> {
    fn tried(self, what: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io { what, path: path.to_owned(), source })
    }
}

impl<T> IoContext<T> for Result<T, rustix::io::Errno> {
    fn tried(self, what: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(std::io::Error::from).tried(what, path)
    }
}
