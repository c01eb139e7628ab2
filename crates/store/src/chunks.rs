//! A blob that a server keeps in chunks, read from anywhere with one of them at hand.

use crate::Result;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of a chunk.
pub(crate) const CHUNK: u64 = 256 << 10;

/// A blob being read; `fetch` gives a chunk by its number.
pub(crate) struct Chunks<F> {
    fetch: F,
    size: u64,
    at: u64,
    chunk: Option<(u64, Vec<u8>)>,
}

impl<F: FnMut(u64) -> Result<Vec<u8>>> Chunks<F> {
    pub(crate) const fn new(size: u64, fetch: F) -> Self {
        Self { fetch, size, at: 0, chunk: None }
    }
}

impl<F: FnMut(u64) -> Result<Vec<u8>>> Read for Chunks<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.size || into.is_empty() {
            return Ok(0);
        }
        let (n, skip) = (self.at / CHUNK, (self.at % CHUNK) as usize);
        let known = self.chunk.take().filter(|(number, _)| *number == n);
        let fetched = known.map_or_else(|| Ok((n, (self.fetch)(n)?)), Ok);
        let (_, chunk) = self.chunk.insert(fetched.map_err(|e: crate::Error| io::Error::other(e))?);
        let rest = chunk.get(skip..).unwrap_or_default();
        let count = rest.len().min(into.len());
        if count == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the output is cut short"));
        }
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl<F> Seek for Chunks<F> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "before the first byte"))?;
        Ok(self.at)
    }
}
