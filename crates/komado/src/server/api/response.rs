//! An answer is written: with a tag that says which moment it is of, and a body that is sent as it is read.
//!
//! A tag is `"root@12-4f3a…"`: the thread, its last entry, and a digest of what was sent. A reader who has it gets 304; a
//! writer who sends it as If-Match is refused with 412 when the thread has gone on since. Of a large body nothing is held but
//! a piece: its writer waits for the reader, and ends when the reader has gone.

use crate::server::in_header;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use komado_ops::stream::StreamHead;
use komado_ops::{FaultKind, Missing, OpFault, OpResult};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Read, Seek, SeekFrom, Write};
use tokio::sync::{mpsc, oneshot};

/// Bytes sent at a time.
const PIECE: usize = 64 << 10;

/// A strong tag: which moment it is, and a digest of what is sent.
pub(super) fn etag(moment: &str, digest: &blake3::Hash) -> String {
    format!("\"{}-{}\"", in_header(moment), &digest.to_hex()[..16])
}

/// JSON with a tag, or that nothing has changed.
pub(super) fn tagged(headers: &HeaderMap, tag: &str, body: impl Into<Body>) -> Response {
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_it = |one: &str| one == "*" || one.trim_start_matches("W/") == tag;
    let mut response = match known.split(',').any(|one| is_it(one.trim())) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => json(body),
    };
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// JSON.
pub(super) fn json(body: impl Into<Body>) -> Response {
    let mut response = body.into().into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A body from a file, from its beginning on.
pub(super) fn file(mut file: impl Read + Seek + Send + 'static) -> ApiResult<Body> {
    file.seek(SeekFrom::Start(0))?;
    Ok(written(move |out| io::copy(&mut file, out).map(|_| ())))
}

/// A body that `write` writes. What goes wrong after it has begun ends the connection, so that no part is taken for the whole.
pub(super) fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static) -> Body {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(4);
    tokio::task::spawn_blocking(move || {
        let mut out = io::BufWriter::with_capacity(PIECE, BodyWriter(sender.clone()));
        if let Err(error) = write(&mut out).and_then(|()| out.flush()) {
            // A reader that went away hears nothing.
            let _ = sender.blocking_send(Err(error));
        }
    });
    Body::from_stream(stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|piece| (piece, receiver))
    }))
}

/// A body that an operation writes, once it has begun; what goes wrong before that is a problem like any other.
pub(super) async fn begun(
    write: impl FnOnce(&mut dyn FnMut(StreamHead) -> OpResult, &mut dyn Write) -> OpResult + Send + 'static,
) -> ApiResult<(StreamHead, Body)> {
    let (tell, told) = oneshot::channel::<ApiResult<StreamHead>>();
    let body = written(move |out| {
        let mut tell = Some(tell);
        let mut begin = |opening: StreamHead| {
            // A caller that went away hears nothing.
            let _ = tell.take().map(|tell| tell.send(Ok(opening)));
            Ok(())
        };
        let Err(fault) = write(&mut begin, out) else { return Ok(()) };
        let why = io::Error::other(fault.message().to_owned());
        let _ = tell.take().map(|tell| tell.send(Err(fault.into())));
        Err(why)
    });
    Ok((told.await.map_err(|_| ApiProblem::broken_off())??, body))
}

struct BodyWriter(mpsc::Sender<io::Result<Bytes>>);

impl Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = Bytes::copy_from_slice(bytes);
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.0.blocking_send(Ok(piece)).map_err(gone)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What handlers give back.
pub(crate) type ApiResult<T> = Result<T, ApiProblem>;

/// The media type of a problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// What went wrong, as RFC 9457 says it: `application/problem+json`, with what to do about it.
///
/// 400 is for what does not fit the document of this API, 422 for what fits it and cannot be meant. A session that may not be
/// seen is said not to be there, in the same words as one that is not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ApiProblem {
    /// The status.
    pub(crate) status: StatusCode,
    /// What went wrong, and what to do.
    pub(crate) detail: String,
    /// Seconds after which the same may work.
    retry: Option<u32>,
}

/// What went wrong (RFC 9457).
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem", example = Self::example())]
pub(super) struct ProblemBody {
    /// Which kind of problem.
    r#type: String,
    /// The status in words.
    title: &'static str,
    /// The status.
    status: u16,
    /// What went wrong, and what to do.
    detail: String,
}

impl ProblemBody {
    fn example() -> Self {
        Self {
            r#type: "urn:komado:problem:not-found".to_owned(),
            title: "Not Found",
            status: 404,
            detail: ApiProblem::no_session("x").detail,
        }
    }
}

impl ApiProblem {
    /// A problem of a status.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry: None }
    }

    /// What does not fit the document.
    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// What fits the document and cannot be meant.
    pub(super) fn unusable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// What may not be done with this key.
    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    /// What is not there.
    pub(super) fn missing(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// A session that is not there, or not for this caller.
    pub(super) fn no_session(id: &str) -> Self {
        Self::missing(format!("there is no session {id:?}; GET /api/v1/sessions lists yours"))
    }

    /// The fault is ours.
    pub(super) fn ours(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    /// A call that ended without an answer.
    pub(super) fn broken_off() -> Self {
        Self::ours("the call broke off; this is a fault in komado, please report it")
    }

    /// A body that does not come.
    pub(super) fn slow(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, detail)
    }

    /// Another process is at it.
    pub(super) fn busy(detail: impl Into<String>) -> Self {
        Self { retry: Some(1), ..Self::new(StatusCode::CONFLICT, detail) }
    }

    /// Enough are at it already; seconds after which to come again.
    pub(super) fn too_many(detail: impl Into<String>, seconds: u32) -> Self {
        Self { retry: Some(seconds), ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }

    /// The last word of its type.
    fn kind(&self) -> &'static str {
        match self.status.as_u16() {
            400 => "bad-request",
            401 => "no-key",
            403 => "not-allowed",
            404 => "not-found",
            405 => "wrong-method",
            406 => "not-acceptable",
            408 => "too-slow",
            409 if self.retry.is_some() => "busy",
            409 => "refused",
            412 => "changed-meanwhile",
            413 => "too-large",
            415 => "wrong-media-type",
            422 => "unusable",
            429 => "too-many",
            503 => "unavailable",
            _ => "fault",
        }
    }
}

impl IntoResponse for ApiProblem {
    fn into_response(self) -> Response {
        let body = ProblemBody {
            r#type: format!("urn:komado:problem:{}", self.kind()),
            title: self.status.canonical_reason().unwrap_or("Problem"),
            status: self.status.as_u16(),
            detail: self.detail,
        };
        let mut response = (self.status, serde_json::to_string(&body).unwrap_or_default()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(seconds) = self.retry {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<OpFault> for ApiProblem {
    fn from(fault: OpFault) -> Self {
        match fault.what_is_missing() {
            Some(Missing::Session { .. }) => {
                return Self::missing(fault.and("GET /api/v1/sessions lists yours".to_owned()).message());
            }
            Some(Missing::Thread { session, .. }) => {
                let lists = format!("GET /api/v1/sessions/{session}/threads lists them");
                return Self::missing(fault.and(lists).message());
            }
            Some(Missing::User(user)) => {
                let why = format!("there is no user {user:?} that you may see");
                return Self::missing(format!("{why}; GET /api/v1/users lists yours"));
            }
            None => {}
        }
        let detail = fault.message().to_owned();
        match fault.exit() {
            FaultKind::Malformed => Self::bad(detail),
            FaultKind::Changed => Self::new(StatusCode::PRECONDITION_FAILED, detail),
            FaultKind::Forbidden => Self::forbidden(detail),
            FaultKind::TooMany => Self::too_many(detail, 5),
            FaultKind::NotFound => Self::missing(detail),
            FaultKind::Busy => Self::busy(detail),
            FaultKind::Refused => Self::new(StatusCode::CONFLICT, detail),
            FaultKind::Usage | FaultKind::BadInput => Self::unusable(detail),
            FaultKind::Failed | FaultKind::Away if fault.is_away() => {
                Self { retry: Some(5), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
            }
            FaultKind::Failed | FaultKind::Away => Self::ours(detail),
        }
    }
}

impl From<std::io::Error> for ApiProblem {
    fn from(error: std::io::Error) -> Self {
        Self { retry: Some(5), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()) }
    }
}

impl From<serde_json::Error> for ApiProblem {
    fn from(error: serde_json::Error) -> Self {
        Self::ours(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_writer_ends_when_its_reader_has_gone() {
        let (left, ended) = oneshot::channel();
        let body = written(move |out| {
            let failed = loop {
                if let Err(error) = out.write_all(&[0; PIECE]) {
                    break error;
                }
            };
            let _ = left.send(failed.kind());
            Ok(())
        });
        drop(body);
        assert_eq!(ended.await.unwrap(), io::ErrorKind::BrokenPipe);
    }
}
