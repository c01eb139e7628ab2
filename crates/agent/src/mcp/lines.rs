//! A server's output with a bound on its lines. A line is a message; whoever never ends one is given up, since what comes
//! after it cannot be told from what is still in it.

use super::MOST_MESSAGE;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Reads until a line is too long; then fails, and `too_long` says so.
pub(super) struct Lines<R> {
    inner: R,
    /// Bytes of the line that has not ended yet.
    open: usize,
    too_long: Arc<AtomicBool>,
}

impl<R> Lines<R> {
    pub(super) fn new(inner: R, too_long: Arc<AtomicBool>) -> Self {
        Self { inner, open: 0, too_long }
    }

    /// Whether the lines in `piece` keep the bound.
    fn fits(&mut self, piece: &[u8]) -> bool {
        let mut parts = piece.split(|byte| *byte == b'\n');
        let first = self.open + parts.next().map_or(0, <[u8]>::len);
        let mut longest = first;
        self.open = first;
        for part in parts {
            self.open = part.len();
            longest = longest.max(self.open);
        }
        longest <= MOST_MESSAGE
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        if self.fits(&buffer.filled()[before..]) {
            return Poll::Ready(Ok(()));
        }
        self.too_long.store(true, Ordering::Release);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_that_is_open_counts_however_it_is_cut() {
        let mut lines = Lines::new(tokio::io::empty(), Arc::default());
        let half = vec![b'x'; MOST_MESSAGE / 2];
        assert!(lines.fits(&half) && lines.fits(&half));
        assert!(lines.fits(b"\n") && lines.fits(&half) && lines.fits(b"x\nyy\nzzz"));
        assert_eq!(lines.open, 3);
        assert!(lines.fits(&half));
        assert!(!lines.fits(&half), "three bytes too many");
    }

    #[test]
    fn a_line_that_ends_in_the_same_piece_counts_too() {
        let mut lines = Lines::new(tokio::io::empty(), Arc::default());
        let mut piece = vec![b'x'; MOST_MESSAGE + 1];
        piece.push(b'\n');
        assert!(!lines.fits(&piece));
    }
}
