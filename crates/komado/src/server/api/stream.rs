//! Bodies that are sent as they are read: from a file, or from whoever writes them on a thread of their own.
//!
//! Nothing is held but a piece: a writer waits for its reader, and ends when the reader has gone.

use super::problem::{Answer, Problem};
use crate::fault::Outcome;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use komado_ops::stream::Opening;
use std::io::{self, Read, Seek, SeekFrom, Write};
use tokio::sync::{mpsc, oneshot};

/// Bytes sent at a time.
const PIECE: usize = 64 << 10;

/// A body from a file, from its beginning on.
pub(super) fn file(mut file: impl Read + Seek + Send + 'static) -> Answer<Body> {
    file.seek(SeekFrom::Start(0))?;
    Ok(written(move |out| io::copy(&mut file, out).map(|_| ())))
}

/// A body that `write` writes. What goes wrong after it has begun ends the connection, so that nobody takes a part for the whole.
pub(super) fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static) -> Body {
    worked_out(move |out, _| write(out))
}

/// The same where much is done before the first piece: `write` is told how to look whether its reader has gone.
pub(super) fn worked_out(
    write: impl FnOnce(&mut dyn Write, &dyn Fn() -> bool) -> io::Result<()> + Send + 'static,
) -> Body {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(4);
    tokio::task::spawn_blocking(move || {
        let mut out = io::BufWriter::with_capacity(PIECE, Pipe(sender.clone()));
        if let Err(error) = write(&mut out, &|| sender.is_closed()).and_then(|()| out.flush()) {
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
    let broken = |_| Problem::ours("the call broke off; this is a fault in komado, please report it");
    Ok((told.await.map_err(broken)??, body))
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
    async fn who_works_for_a_reader_that_went_away_hears_of_it() {
        let (began, begun) = tokio::sync::oneshot::channel();
        let (left, ended) = tokio::sync::oneshot::channel();
        let body = worked_out(move |_, gone| {
            let _ = began.send(());
            while !gone() {
                std::thread::yield_now();
            }
            let _ = left.send(());
            Ok(())
        });
        begun.await.unwrap();
        drop(body);
        ended.await.unwrap();
    }
}
