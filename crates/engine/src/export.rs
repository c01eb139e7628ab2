//! A session as one stream of lines, to be kept, moved or looked at.
//!
//! Journal lines go out as they are, byte for byte, so that importing and exporting again gives the same bytes. Blobs
//! follow in pieces, and the last line is a digest of everything before it.

use crate::engine::Engine;
use crate::error::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use komado_core::SessionId;
use komado_core::session::Meta;
use komado_store::{Mode, ReadSeek};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// Version of the export format.
pub const VERSION: u32 = 1;
/// Bytes of a blob in one line.
const PIECE: usize = 48 * 1024;

/// First line.
#[derive(Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) komado_export: u32,
    pub(crate) session: Meta,
}

/// Begins a thread: so many journal lines follow, its header first.
#[derive(Serialize, Deserialize)]
pub(crate) struct ThreadLine {
    pub(crate) thread: String,
    pub(crate) lines: u64,
}

/// A piece of a blob.
#[derive(Serialize, Deserialize)]
pub(crate) struct BlobLine {
    pub(crate) blob: String,
    pub(crate) base64: String,
}

/// Last line.
#[derive(Serialize, Deserialize)]
pub(crate) struct Ending {
    pub(crate) end: String,
}

/// Writes and digests.
struct Digested<'w> {
    out: &'w mut dyn Write,
    digest: blake3::Hasher,
}

impl Digested<'_> {
    fn line(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.out.write_all(bytes)
    }

    fn json<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.line(&line)
    }
}

impl Engine {
    /// Writes a session to `out`; `each` is told the entries written so far.
    pub fn export(&self, id: &SessionId, out: &mut dyn Write, mut each: impl FnMut(u64)) -> Result<()> {
        let mut out = Digested { out, digest: blake3::Hasher::new() };
        let session = self.session(id)?.meta;
        out.json(&Opening { komado_export: VERSION, session })?;
        let mut written = 0;
        for header in self.store().threads(id)? {
            let journal = self.store().open(id, &header.thread, Mode::Read)?;
            let own = header.base_seq() + 1..=journal.last();
            let lines = 1 + own.size_hint().0 as u64;
            out.json(&ThreadLine { thread: header.thread.to_string(), lines })?;
            out.line(&header.encode())?;
            for seq in own {
                out.line(&journal.line(seq)?)?;
                written += 1;
                each(written);
            }
        }
        let mut blobs: Vec<String> = self.named_blobs(id)?.into_iter().collect();
        blobs.sort();
        for blob in blobs {
            if let Some(bytes) = self.blob(id, &blob)? {
                write_blob(&blob, bytes, &mut out)?;
            }
        }
        let end = out.digest.finalize().to_hex().to_string();
        Ok(out.json(&Ending { end })?)
    }
}

/// A blob has at least one line, and no line but the first is empty.
fn write_blob(blob: &str, mut bytes: Box<dyn ReadSeek>, out: &mut Digested<'_>) -> io::Result<()> {
    let mut piece = Vec::with_capacity(PIECE);
    let mut first = true;
    while bytes.by_ref().take(PIECE as u64).read_to_end(&mut piece)? > 0 || first {
        out.json(&BlobLine { blob: blob.to_owned(), base64: STANDARD.encode(&piece) })?;
        first = false;
        piece.clear();
    }
    Ok(())
}
