//! A request made of pieces of another: what is kept is read from where it lies, what is new stands between.
//!
//! The gateway forwards what a client sent. What it does not change it does not touch, and what it changes is the least
//! that will do; so a request is never read into memory, and one without changes is the client's own, byte for byte.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A piece of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SplicePiece {
    /// These bytes of the other request.
    Kept(Range<u64>),
    /// These bytes.
    New(Vec<u8>),
}

impl SplicePiece {
    /// Its length.
    pub fn len(&self) -> u64 {
        match self {
            Self::Kept(range) => range.end.saturating_sub(range.start),
            Self::New(bytes) => bytes.len() as u64,
        }
    }

    /// True when there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A request, in pieces. Clones share the file.
#[derive(Clone, Debug)]
pub struct Splice {
    from: Arc<File>,
    pieces: Arc<[SplicePiece]>,
    len: u64,
}

impl Splice {
    /// `pieces` of what is in `from`.
    pub fn new(from: Arc<File>, pieces: Vec<SplicePiece>) -> Self {
        let len = pieces.iter().map(SplicePiece::len).sum();
        Self { from, pieces: pieces.into(), len }
    }

    /// All of it, `len` bytes, untouched.
    pub fn whole(from: Arc<File>, len: u64) -> Self {
        Self::new(from, vec![SplicePiece::Kept(0..len)])
    }

    /// Its length.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True when there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pieces.
    pub fn pieces(&self) -> &[SplicePiece] {
        &self.pieces
    }

    /// Reads from `at` on into `out`; gives the number of bytes, 0 at the end.
    pub fn read_at(&self, mut at: u64, out: &mut [u8]) -> io::Result<usize> {
        for piece in self.pieces.iter() {
            if at >= piece.len() {
                at -= piece.len();
                continue;
            }
            let most = usize::try_from(piece.len() - at).unwrap_or(usize::MAX).min(out.len());
            return match piece {
                SplicePiece::Kept(range) => {
                    self.from.read_exact_at(&mut out[..most], range.start + at).map(|()| most)
                }
                SplicePiece::New(bytes) => {
                    let at = usize::try_from(at).unwrap_or(usize::MAX);
                    out[..most].copy_from_slice(&bytes[at..at + most]);
                    Ok(most)
                }
            };
        }
        Ok(0)
    }
}
