//! A listener with time limits.
//!
//! A client that connects and does not say what it wants holds a place that others need. Only the head of the first request
//! has to come in time: a body has its own patience, and an answer may take as long as it takes. A client that does not take
//! what is sent to it for that long is let go, too.

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

/// Who is at the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) SocketAddr);

impl Connected<IncomingStream<'_, TimedListener>> for PeerAddress {
    fn connect_info(stream: IncomingStream<'_, TimedListener>) -> Self {
        Self(*stream.remote_addr())
    }
}

/// Connections whose first head must come within some time.
pub(crate) struct TimedListener {
    inner: TcpListener,
    patience: Duration,
}

impl TimedListener {
    /// Waits `patience` for a head.
    pub(crate) fn new(inner: TcpListener, patience: Duration) -> Self {
        Self { inner, patience }
    }
}

impl Listener for TimedListener {
    type Io = TimedConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, peer) = Listener::accept(&mut self.inner).await;
        // Pieces of a stream are small and must not wait for each other.
        let _ = stream.set_nodelay(true);
        let until = Some(Box::pin(sleep(self.patience)));
        (TimedConnection { stream, patience: self.patience, until, stalled: None, ends: 0 }, peer)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.inner.local_addr()
    }
}

/// A connection.
pub(crate) struct TimedConnection {
    stream: TcpStream,
    patience: Duration,
    /// Until when the head must have come; `None` once it has.
    until: Option<Pin<Box<Sleep>>>,
    /// Until when something must be taken; `None` while there is room.
    stalled: Option<Pin<Box<Sleep>>>,
    /// How much of the empty line that ends a head was seen.
    ends: usize,
}

impl TimedConnection {
    /// What became of a write; one that makes no way for too long is an error.
    fn wrote<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.stalled = None;
            return done;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Looks for the end of the head in what came.
    fn look(&mut self, bytes: &[u8]) {
        const END: &[u8] = b"\r\n\r\n";
        for byte in bytes {
            self.ends = if *byte == END[self.ends] { self.ends + 1 } else { usize::from(*byte == b'\r') };
            if self.ends == END.len() {
                self.until = None;
                return;
            }
        }
    }
}

impl AsyncRead for TimedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, out);
        if let Some(until) = &mut self.until {
            if read.is_pending() && until.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            let came = out.filled()[before..].to_vec();
            self.look(&came);
        }
        read
    }
}

impl AsyncWrite for TimedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(context, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.wrote(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn pair(patience: Duration) -> (TcpStream, TimedConnection) {
        let inner = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(inner.local_addr().unwrap()).await.unwrap();
        (client, TimedListener::new(inner, patience).accept().await.0)
    }

    #[test]
    fn a_head_that_does_not_come_ends_the_connection_and_one_that_came_may_take_its_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(heads());
        runtime.block_on(takes());
    }

    async fn takes() {
        let (client, mut served) = pair(Duration::from_millis(20)).await;
        let piece = vec![0; 1 << 20];
        let gone = loop {
            if let Err(error) = served.write_all(&piece).await {
                break error;
            }
        };
        assert_eq!(gone.kind(), io::ErrorKind::TimedOut);
        drop(client);
    }

    async fn heads() {
        let mut out = [0; 64];
        let (mut client, mut served) = pair(Duration::from_millis(20)).await;
        client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        assert!(served.read(&mut out).await.unwrap() > 0);
        assert_eq!(served.read(&mut out).await.unwrap_err().kind(), io::ErrorKind::TimedOut);

        let (mut client, mut served) = pair(Duration::from_millis(20)).await;
        for part in ["GET / HTTP/1.1\r", "\n\r", "\n"] {
            client.write_all(part.as_bytes()).await.unwrap();
            assert!(served.read(&mut out).await.unwrap() > 0);
        }
        assert!(served.until.is_none());
    }
}
