//! An answer's body: piece by piece, with pauses, and cut where the script says so.

use super::decide::{Answer, Decision};
use super::words::Refusal;
use crate::dialect::{Dialect, Encode, Form};
use crate::event::Event;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// Time for bytes on their way to leave before the connection is cut.
const LAST_WORDS: Duration = Duration::from_millis(20);

/// The HTTP answer to a request.
pub(super) fn response(dialect: Dialect, decision: Decision) -> Response<Body> {
    let (pause, cut) = (decision.pause, decision.break_after);
    match decision.answer {
        Answer::Refused(refusal) => refused(refusal, cut),
        Answer::RefusedInStream { refusal, begun, stamp } => {
            let encoder = dialect.encoder(Form::Stream, stamp);
            let last = failed(dialect, &refusal);
            let pieces = Pieces { encoder, events: begun.into(), last: Some(last), ends: false, pause, cut };
            let mut response = streamed(dialect, pieces);
            retry_after(&mut response, refusal.retry_after);
            response
        }
        Answer::Said { form: Form::Stream, events, stamp } => {
            let encoder = dialect.encoder(Form::Stream, stamp);
            streamed(dialect, Pieces { encoder, events: events.into(), last: None, ends: true, pause, cut })
        }
        Answer::Said { form: Form::Whole, events, stamp } => {
            let mut encoder = dialect.encoder(Form::Whole, stamp);
            let mut bytes = Vec::new();
            events.iter().for_each(|event| encoder.event(event, &mut bytes));
            encoder.end(&mut bytes);
            whole(StatusCode::OK, bytes, cut)
        }
    }
}

/// An error as an answer.
pub(super) fn refused(refusal: Refusal, cut: Option<u64>) -> Response<Body> {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = whole(status, refusal.body.into_bytes(), cut);
    retry_after(&mut response, refusal.retry_after);
    response
}

fn retry_after(response: &mut Response<Body>, seconds: Option<u64>) {
    if let Some(seconds) = seconds {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
}

/// A JSON body in one piece. One that is to be cut still promises its whole length.
pub(super) fn whole(status: StatusCode, bytes: Vec<u8>, cut: Option<u64>) -> Response<Body> {
    let length = bytes.len();
    let body = match cut.map(|cut| usize::try_from(cut).unwrap_or(usize::MAX)).filter(|cut| *cut < length) {
        None => Body::from(bytes),
        Some(cut) => {
            let mut left = Some(Bytes::from(bytes).slice(..cut));
            Body::from_stream(futures_util::stream::unfold(0u8, move |state| {
                let piece = left.take().filter(|piece| !piece.is_empty());
                async move {
                    match (piece, state) {
                        (Some(piece), _) => Some((Ok(piece), 1)),
                        (None, 2) => None,
                        (None, _) => {
                            tokio::time::sleep(LAST_WORDS).await;
                            Some((Err(broken()), 2))
                        }
                    }
                }
            }))
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    response
}

fn streamed(dialect: Dialect, pieces: Pieces) -> Response<Body> {
    let stream = futures_util::stream::unfold(Some(pieces), |pieces| async move {
        let mut pieces = pieces?;
        match pieces.next().await? {
            Ok(bytes) => Some((Ok(bytes), Some(pieces))),
            Err(error) => Some((Err(error), None)),
        }
    });
    let mut response = Response::new(Body::from_stream(stream));
    let kind = match dialect {
        Dialect::Ollama => "application/x-ndjson",
        Dialect::Chat | Dialect::Responses | Dialect::Messages => "text/event-stream; charset=utf-8",
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "cut by the script")
}

/// What is still to be sent.
struct Pieces {
    encoder: Box<dyn Encode>,
    events: VecDeque<Event>,
    /// Sent as it is when the events are over.
    last: Option<Vec<u8>>,
    /// True while the encoder's own end is still to come.
    ends: bool,
    pause: Duration,
    /// Bytes that may still be sent.
    cut: Option<u64>,
}

impl Pieces {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.cut == Some(0) {
            tokio::time::sleep(LAST_WORDS).await;
            return Some(Err(broken()));
        }
        let (mut bytes, is_content) = self.encode()?;
        if is_content && !self.pause.is_zero() {
            tokio::time::sleep(self.pause).await;
        } else {
            // What was handed on leaves before the next piece is made.
            tokio::task::yield_now().await;
        }
        if let Some(cut) = &mut self.cut {
            bytes.truncate(usize::try_from(*cut).unwrap_or(usize::MAX));
            *cut -= bytes.len() as u64;
        }
        Some(Ok(Bytes::from(bytes)))
    }

    /// The next bytes, and whether a person would see something of them.
    fn encode(&mut self) -> Option<(Vec<u8>, bool)> {
        let mut bytes = Vec::new();
        while let Some(event) = self.events.pop_front() {
            self.encoder.event(&event, &mut bytes);
            if !bytes.is_empty() {
                return Some((bytes, event.is_content()));
            }
        }
        if std::mem::take(&mut self.ends) {
            self.encoder.end(&mut bytes);
        }
        bytes.extend(self.last.take().unwrap_or_default());
        (!bytes.is_empty()).then_some((bytes, false))
    }
}

/// An error as an event of a stream.
fn failed(dialect: Dialect, refusal: &Refusal) -> Vec<u8> {
    let body = refusal.body.replace('\n', "\ndata: ");
    let text = match dialect {
        Dialect::Chat => format!("data: {body}\n\n"),
        Dialect::Messages => format!("event: error\ndata: {body}\n\n"),
        Dialect::Responses => format!("event: response.failed\ndata: {}\n\n", response_failed(&refusal.body)),
        Dialect::Ollama => format!("{}\n", refusal.body.replace('\n', " ")),
    };
    text.into_bytes()
}

/// An error's words inside a response that failed.
fn response_failed(body: &str) -> Value {
    let told: Value = serde_json::from_str(body).unwrap_or_else(|_| json!({ "message": body }));
    let error = told.get("error").unwrap_or(&told);
    let message = error.get("message").or(error.is_string().then_some(error)).cloned();
    let code = error.get("code").filter(|code| code.is_string()).cloned();
    let (code, message) =
        (code.unwrap_or_else(|| json!("server_error")), message.unwrap_or_else(|| json!(body)));
    let response = json!({
        "id": "resp_failed", "object": "response", "created_at": super::decide::fixed_stamp(false).created,
        "status": "failed", "error": { "code": code, "message": message }, "output": [], "usage": null,
        "metadata": {}
    });
    json!({ "type": "response.failed", "sequence_number": 2, "response": response })
}
