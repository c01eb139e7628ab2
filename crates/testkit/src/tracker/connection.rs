//! A connection that can be cut from inside: what a broken network looks like to a client.

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// Cuts a connection: so many bytes go out, and no more.
#[derive(Clone)]
pub(super) struct Knife(Arc<AtomicUsize>);

impl Knife {
    fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(usize::MAX)))
    }

    /// Only `bytes` more go out.
    pub(super) fn cut_after(&self, bytes: usize) {
        self.0.store(bytes, Ordering::SeqCst);
    }

    /// How much of `wanted` may go out.
    fn room(&self, wanted: usize) -> io::Result<usize> {
        match self.0.load(Ordering::SeqCst) {
            0 => Err(io::ErrorKind::ConnectionReset.into()),
            left => Ok(wanted.min(left)),
        }
    }

    fn went(&self, bytes: usize) {
        if self.0.load(Ordering::SeqCst) != usize::MAX {
            self.0.fetch_sub(bytes, Ordering::SeqCst);
        }
    }
}

impl Connected<IncomingStream<'_, TrackerConnections>> for Knife {
    fn connect_info(stream: IncomingStream<'_, TrackerConnections>) -> Self {
        stream.io().knife.clone()
    }
}

/// Connections that can be cut.
pub(super) struct TrackerConnections(pub(super) TcpListener);

impl Listener for TrackerConnections {
    type Io = TrackerConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, peer) = Listener::accept(&mut self.0).await;
        let _ = stream.set_nodelay(true);
        (TrackerConnection { stream, knife: Knife::new() }, peer)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

/// A connection.
pub(super) struct TrackerConnection {
    stream: TcpStream,
    knife: Knife,
}

impl AsyncRead for TrackerConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.knife.room(1)?;
        Pin::new(&mut self.stream).poll_read(context, out)
    }
}

impl AsyncWrite for TrackerConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let room = self.knife.room(bytes.len())?;
        let wrote = Pin::new(&mut self.stream).poll_write(context, &bytes[..room]);
        if let Poll::Ready(Ok(bytes)) = wrote {
            self.knife.went(bytes);
        }
        wrote
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
