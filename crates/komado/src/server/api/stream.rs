//! Bodies that are sent as they are read: from a file, or from whoever writes them on a thread of their own.
//!
//! Nothing is held but a piece: a writer waits for its reader, and ends when the reader has gone.

use super::problem::Answer;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use std::io::{self, Read, Seek, SeekFrom, Write};
use tokio::sync::mpsc;

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
