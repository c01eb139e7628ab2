//! An answer is written: with a tag that says which moment it is of, and a body that is sent as it is read.
//!
//! A tag is `"root@12-4f3a…"`: the thread, its last entry, and a digest of what was sent. A reader who has it gets 304; a
//! writer who sends it as If-Match is refused with 412 when the thread has gone on since. Of a large body nothing is held but
//! a piece: its writer waits for the reader, and ends when the reader has gone.

use super::problem::{Answer, Problem};
use crate::fault::Outcome;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use komado_ops::stream::Opening;
use std::io::{self, Read, Seek, SeekFrom, Write};
use tokio::sync::{mpsc, oneshot};

/// Bytes sent at a time.
const PIECE: usize = 64 << 10;

/// A strong tag: which moment it is, and a digest of what is sent.
pub(super) fn etag(moment: &str, digest: &blake3::Hash) -> String {
    format!("\"{moment}-{}\"", &digest.to_hex()[..16])
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
pub(super) fn file(mut file: impl Read + Seek + Send + 'static) -> Answer<Body> {
    file.seek(SeekFrom::Start(0))?;
    Ok(written(move |out| io::copy(&mut file, out).map(|_| ())))
}

/// A body that `write` writes. What goes wrong after it has begun ends the connection, so that no part is taken for the whole.
pub(super) fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static) -> Body {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(4);
    tokio::task::spawn_blocking(move || {
        let mut out = io::BufWriter::with_capacity(PIECE, Pipe(sender.clone()));
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
    write: impl FnOnce(&mut dyn FnMut(Opening) -> Outcome, &mut dyn Write) -> Outcome + Send + 'static,
) -> Answer<(Opening, Body)> {
    let (tell, told) = oneshot::channel::<Answer<Opening>>();
    let body = written(move |out| {
        let mut tell = Some(tell);
        let mut begin = |opening: Opening| {
            // A caller that went away hears nothing.
            let _ = tell.take().map(|tell| tell.send(Ok(opening)));
            Ok(())
        };
        let Err(fault) = write(&mut begin, out) else { return Ok(()) };
        let why = io::Error::other(fault.message().to_owned());
        let _ = tell.take().map(|tell| tell.send(Err(fault.into())));
        Err(why)
    });
    Ok((told.await.map_err(|_| Problem::broken_off())??, body))
}

struct Pipe(mpsc::Sender<io::Result<Bytes>>);

impl Write for Pipe {
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
