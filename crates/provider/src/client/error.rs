//! Why a request did not come through. An answer that says no is not among it: that is an answer.

use crate::provider::{BadUrl, shown};
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The system gives no thread.
    #[error("cannot start the client's thread: {0}")]
    Thread(#[source] io::Error),
}

/// Why there is no answer, or no more of it. Nothing here holds a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// No server there.
    #[error("cannot reach {url}: {why}; check the address, and that the server runs")]
    Unreachable {
        /// Where it was looked for.
        url: String,
        /// What the system says.
        why: String,
    },
    /// Someone there, who cannot be trusted or understood.
    #[error("no secure connection to {url}: {why}")]
    Tls {
        /// Where.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// Too slow.
    #[error("{url}: {step} within {} s", after.as_secs_f64())]
    TimedOut {
        /// Where.
        url: String,
        /// What did not happen.
        step: SendStep,
        /// In which time.
        after: Duration,
    },
    /// [`Cancel`](crate::Cancel) was said.
    #[error("cancelled")]
    Cancelled,
    /// The connection ended in the middle of a request or an answer.
    #[error("the connection broke: {why}")]
    Broken {
        /// Where, and what the system says.
        why: String,
    },
    /// The request's file could not be read, or is no longer what it was.
    #[error("cannot send {}: {why}", path.display())]
    Body {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The provider sends us elsewhere, and a conversation does not go where its owner did not send it.
    #[error("{url} answers {status} and points to {to}; if you trust that address, make it the base URL")]
    Redirected {
        /// Where.
        url: String,
        /// The status.
        status: u16,
        /// Where it points to.
        to: String,
    },
    /// The answer to a probe does not end.
    #[error("{url} answers with more than {most} bytes")]
    TooLong {
        /// Where.
        url: String,
        /// The longest answer taken.
        most: usize,
    },
    /// The provider's address is none.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// A header of the provider that cannot be sent. Its value is never repeated.
    #[error("header {name:?} cannot be sent: {why}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// What did not happen in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendStep {
    /// A connection.
    #[error("no connection")]
    Connect,
    /// The beginning of an answer.
    #[error("no answer")]
    Answer,
    /// The next piece of an answer.
    #[error("the answer stopped, nothing more came")]
    Piece,
    /// The whole answer to a probe.
    #[error("no answer to a probe")]
    Probe,
}

/// A try that failed.
pub(super) enum SendFault {
    /// Another may succeed.
    Passing {
        /// Why it failed.
        error: SendError,
        /// True when the connection broke after the request began and before it was all sent.
        cut: bool,
    },
    /// Another would fail, too, or must not be made.
    Lasting(SendError),
}

impl SendFault {
    pub(super) fn of(error: SendError, cut: bool) -> Self {
        match error {
            SendError::Unreachable { .. }
            | SendError::Broken { .. }
            | SendError::TimedOut { step: SendStep::Connect, .. } => Self::Passing { error, cut },
            _ => Self::Lasting(error),
        }
    }
}

/// Says what went wrong before there was an answer.
pub(super) fn sending(url: &str, error: reqwest::Error, connect: Duration) -> SendError {
    let (url, why) = (shown(url), chain(&error));
    if causes(&error).any(is_tls) {
        return SendError::Tls { url, why };
    }
    if error.is_connect() && error.is_timeout() {
        return SendError::TimedOut { url, step: SendStep::Connect, after: connect };
    }
    if error.is_connect() {
        return SendError::Unreachable { url, why };
    }
    SendError::Broken { why: format!("{url}: {why}") }
}

/// Says what went wrong in the middle of an answer.
pub(super) fn reading(url: &str, error: &reqwest::Error) -> SendError {
    SendError::Broken { why: format!("{url}: the answer is not whole: {}", chain(error)) }
}

fn is_tls(error: &(dyn Error + 'static)) -> bool {
    // An error of TLS comes wrapped into those of I/O, which do not name it as their source.
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => is_tls(inner),
        None => error.is::<rustls::Error>(),
    }
}

/// What caused the error. The outermost say only that a request failed, and where: that is said already.
pub(super) fn chain(error: &reqwest::Error) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in causes(error).skip(1).map(ToString::to_string) {
        let is_said = lines.last().is_some_and(|before| before.contains(&line));
        if !is_said && !line.starts_with("client error (") {
            lines.push(line);
        }
    }
    if lines.is_empty() { "the request failed".to_owned() } else { lines.join(": ") }
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (*error).source())
}
