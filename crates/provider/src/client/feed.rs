//! A request on its way from disk to socket, a piece at a time.
//!
//! The length is known before the first byte, and kept: a file that is not as long as it was said to be, or changes
//! while it is sent, ends the connection before the request is whole, so that no provider ever acts on a part of it.

use super::{ClientBody, SendError};
use crate::splice::Splice;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, spawn_blocking, yield_now};
use tokio::time::{Instant, sleep};

/// What is read and sent at a time. Three of them are held for a request: one is read, one waits, one is written.
const PIECE: usize = 32 << 10;
/// How long a server that broke off the last time may say no before it is sent the whole request again.
const LISTEN: Duration = Duration::from_secs(1);

/// How a request is sent.
#[derive(Clone, Copy)]
pub(super) enum SendPace {
    /// At once.
    Even,
    /// The head, then a moment in which the server may refuse, then the rest: for a server that broke off before. It
    /// may have done so to say that the request is too long, and sending on can destroy what it said.
    Listening,
}

impl ClientBody<'_> {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } => *len,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Spliced(splice) => splice.len(),
        }
    }

    /// Begins to read. Must be called inside a runtime.
    pub(super) fn open(&self, pace: SendPace) -> Result<(reqwest::Body, RequestFeed), SendError> {
        let len = self.len();
        let path = match self {
            Self::Bytes(_) => PathBuf::new(),
            Self::Spliced(_) => PathBuf::from("the request"),
            Self::File { path, .. } => path.to_path_buf(),
        };
        let fault = |error: io::Error| SendError::Body { path: path.clone(), why: error.to_string() };
        let reader = self.reader().map_err(fault)?;
        let (pieces, taken) = mpsc::channel(1);
        let (hold, held) = watch::channel(false);
        let state = State { begun: Instant::now(), moved: 0.into(), sent: 0.into(), fault: OnceLock::new() };
        let state = Arc::new(state);
        let feeder = Feeder { reader, left: len, pieces, held, state: Arc::clone(&state) };
        let task = tokio::spawn(feeder.run(pace)).abort_handle();
        let body = reqwest::Body::wrap(Pieces { left: len, taken });
        Ok((body, RequestFeed { path, len, hold, state, task }))
    }

    fn reader(&self) -> io::Result<Reader> {
        let len = self.len();
        match self {
            Self::Bytes(bytes) => Ok(Reader::Bytes(bytes.clone())),
            Self::Spliced(splice) => {
                let mut reader = Reader::Spliced { splice: splice.clone(), at: 0 };
                // One piece is read here and now: a thread that waits for it would take more memory than it does.
                if len <= PIECE as u64 { reader.piece(len).map(Reader::Bytes) } else { Ok(reader) }
            }
            Self::File { path, .. } => {
                let file = File::open(path)?;
                same_size(&file, len)?;
                Ok(Reader::File { file, len })
            }
        }
    }
}

/// The caller's end: how far it is, what went wrong, and a way to hold it. Dropped, it ends the feeding.
pub(super) struct RequestFeed {
    path: PathBuf,
    len: u64,
    hold: watch::Sender<bool>,
    state: Arc<State>,
    task: AbortHandle,
}

impl RequestFeed {
    /// Sends no more, and keeps the connection: the provider has said no, and its words are still to be read.
    pub(super) fn hold(&self) {
        self.hold.send_replace(true);
    }

    /// When the last piece went out.
    pub(super) fn moved(&self) -> Instant {
        self.state.begun + Duration::from_millis(self.state.moved.load(Ordering::Acquire))
    }

    /// True when a part was taken, but not all.
    pub(super) fn is_amid(&self) -> bool {
        (1..self.len).contains(&self.state.sent.load(Ordering::Acquire))
    }

    /// What is wrong with the file, if that is what ended it.
    pub(super) fn fault(&self) -> Option<SendError> {
        let why = self.state.fault.get()?.clone();
        Some(SendError::Body { path: self.path.clone(), why })
    }
}

impl Drop for RequestFeed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct State {
    begun: Instant,
    /// Milliseconds from `begun` to the last piece that was taken.
    moved: AtomicU64,
    sent: AtomicU64,
    fault: OnceLock<String>,
}

/// The reader's end. It reads on threads that may wait for a disk, so that no other connection does.
struct Feeder {
    reader: Reader,
    left: u64,
    pieces: mpsc::Sender<io::Result<Bytes>>,
    held: watch::Receiver<bool>,
    state: Arc<State>,
}

impl Feeder {
    /// The next piece; from a disk on a thread that may wait.
    async fn read(&mut self) -> io::Result<Bytes> {
        let left = self.left;
        if let Reader::Bytes(_) = self.reader {
            return self.reader.piece(left);
        }
        let mut reader = std::mem::replace(&mut self.reader, Reader::Bytes(Bytes::new()));
        let read = spawn_blocking(move || reader.piece(left).map(|piece| (piece, reader)));
        let (piece, reader) = read.await.map_err(io::Error::other).flatten()?;
        self.reader = reader;
        Ok(piece)
    }

    async fn run(mut self, pace: SendPace) {
        if let SendPace::Listening = pace {
            sleep(LISTEN).await;
        }
        while self.left > 0 {
            let piece = match self.read().await {
                Ok(piece) => piece,
                Err(error) => {
                    // The first one stays, and there is only one.
                    let _ = self.state.fault.set(error.to_string());
                    let _ = self.pieces.send(Err(error)).await;
                    return;
                }
            };
            // The connection looks for an answer before it writes on, but sees only what the system was last asked about.
            // This lets it be asked.
            yield_now().await;
            if *self.held.borrow() {
                // Until it is dropped: to end now would end the connection.
                return std::future::pending().await;
            }
            let len = piece.len() as u64;
            if self.pieces.send(Ok(piece)).await.is_err() {
                return;
            }
            self.left -= len;
            self.state.sent.fetch_add(len, Ordering::AcqRel);
            let moved = self.state.begun.elapsed().as_millis();
            self.state.moved.store(u64::try_from(moved).unwrap_or(u64::MAX), Ordering::Release);
        }
    }
}

enum Reader {
    File { file: File, len: u64 },
    Bytes(Bytes),
    Spliced { splice: Splice, at: u64 },
}

impl Reader {
    /// The next piece of `left` bytes that are still to come.
    fn piece(&mut self, left: u64) -> io::Result<Bytes> {
        let size = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        match self {
            Self::Bytes(bytes) => Ok(bytes.split_to(size)),
            Self::Spliced { splice, at } => {
                let mut piece = vec![0; size];
                let mut filled = 0;
                while filled < size {
                    match splice.read_at(*at + filled as u64, &mut piece[filled..])? {
                        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                        read => filled += read,
                    }
                }
                *at += filled as u64;
                Ok(piece.into())
            }
            Self::File { file, len } => {
                let mut piece = vec![0; size];
                let read = file.read_exact(&mut piece);
                // Before the last piece, and whenever one is not there in full: it is the size that has changed.
                if read.is_err() || size as u64 == left {
                    same_size(file, *len)?;
                }
                read?;
                Ok(piece.into())
            }
        }
    }
}

fn same_size(file: &File, len: u64) -> io::Result<()> {
    let found = file.metadata()?.len();
    if found == len {
        return Ok(());
    }
    Err(io::Error::other(format!("its size changed from {len} to {found} bytes; write the request again")))
}

/// The connection's end.
struct Pieces {
    left: u64,
    taken: mpsc::Receiver<io::Result<Bytes>>,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let next = self.taken.poll_recv(context);
        if let Poll::Ready(Some(Ok(piece))) = &next {
            self.left = self.left.saturating_sub(piece.len() as u64);
        }
        next.map(|next| next.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
