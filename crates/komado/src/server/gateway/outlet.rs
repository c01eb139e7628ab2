//! The client's end of an exchange: from a thread that blocks to an answer that streams.
//!
//! Between the two is a short queue. When the client reads slowly the queue is full and the thread waits, so the provider
//! waits, too. When the client goes, the provider is told to stop, whether or not it was saying something.

use bytes::Bytes;
use futures_util::Stream;
use komado_engine::relay::{Gone, Notes, Outlet};
use komado_provider::Cancel;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

/// How many pieces may wait for the client.
const QUEUE: usize = 16;

/// The beginning of an answer.
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) notes: Notes,
    pub(super) rest: mpsc::Receiver<io::Result<Bytes>>,
}

/// Where the thread writes to.
pub(super) struct Pipe {
    head: Option<oneshot::Sender<Head>>,
    queue: mpsc::Sender<io::Result<Bytes>>,
    rest: Option<mpsc::Receiver<io::Result<Bytes>>>,
    cancel: Cancel,
    /// Said when the answer is over and was whole.
    is_whole: bool,
    /// The status, once the answer has begun.
    pub(super) status: Option<u16>,
    /// Bytes that went to the client.
    pub(super) bytes: u64,
    /// What is known of the exchange by now.
    pub(super) notes: Notes,
}

/// A pipe, and where its answer begins.
pub(super) fn pipe(cancel: Cancel) -> (Pipe, oneshot::Receiver<Head>) {
    let (head, begins) = oneshot::channel();
    let (queue, rest) = mpsc::channel(QUEUE);
    let pipe = Pipe {
        head: Some(head),
        queue,
        rest: Some(rest),
        cancel,
        is_whole: false,
        status: None,
        bytes: 0,
        notes: Notes::default(),
    };
    (pipe, begins)
}

impl Pipe {
    /// True once the client has heard something.
    pub(super) fn has_begun(&self) -> bool {
        self.status.is_some()
    }

    fn gone(&self) -> Gone {
        self.cancel.cancel();
        Gone
    }
}

impl Outlet for Pipe {
    fn begin(&mut self, status: u16, headers: &[(String, String)], notes: &Notes) {
        self.status = Some(status);
        self.notes = notes.clone();
        if let (Some(head), Some(rest)) = (self.head.take(), self.rest.take()) {
            let head_of = Head { status, headers: headers.to_vec(), notes: notes.clone(), rest };
            if head.send(head_of).is_err() {
                self.cancel.cancel();
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.queue.blocking_send(Ok(Bytes::copy_from_slice(bytes))).map_err(|_| self.gone())?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn end(&mut self, notes: &Notes) {
        self.notes = notes.clone();
        self.is_whole = notes.cut.is_none();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // A thread that failed in the middle must not look like an answer that ended.
        if self.has_begun() && !self.is_whole {
            let why = self.notes.cut.take().unwrap_or_else(|| "the answer broke off".to_owned());
            let _ = self.queue.blocking_send(Err(io::Error::other(why)));
        }
    }
}

/// The rest of an answer, as it comes. Dropped, it stops the provider.
pub(super) struct Rest {
    pub(super) pieces: mpsc::Receiver<io::Result<Bytes>>,
    pub(super) leave: Leave,
}

impl Stream for Rest {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.pieces.poll_recv(context);
        if let Poll::Ready(None) = polled {
            self.leave.0 = None;
        }
        polled
    }
}

/// Says stop when it is dropped: the client has gone.
pub(super) struct Leave(pub(super) Option<Cancel>);

impl Drop for Leave {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_goes_stops_the_provider() {
        let cancel = Cancel::default();
        let (mut pipe, begins) = pipe(cancel.clone());
        pipe.begin(200, &[], &Notes::default());
        drop(begins);
        assert_eq!(pipe.write(b"x"), Err(Gone));
        assert!(cancel.is_cancelled());
    }

    #[test]
    fn an_answer_that_breaks_off_ends_in_an_error_and_one_that_ends_does_not() {
        for (is_whole, cut) in [(false, None), (true, None), (false, Some("窓".to_owned()))] {
            let (mut pipe, mut begins) = pipe(Cancel::default());
            pipe.begin(200, &[], &Notes::default());
            pipe.write("窓".as_bytes()).unwrap();
            if is_whole || cut.is_some() {
                pipe.end(&Notes { cut, ..Notes::default() });
            }
            drop(pipe);
            let mut rest = begins.try_recv().unwrap().rest;
            assert_eq!(rest.try_recv().unwrap().unwrap(), "窓".as_bytes());
            assert_eq!(matches!(rest.try_recv(), Ok(Err(_))), !is_whole);
        }
    }
}
