//! Bytes that are not words: tool outputs and images, named by their digest.
//!
//! A blob is written under another name while it streams in and gets its own by rename, so a name always means the
//! whole of it.

use super::{FileStore, folders};
use crate::error::IoContext;
use crate::{BlobRef, BlobSweep, Blobs, Error, ReadSeek, Result};
use komado_core::SessionId;
use std::fs::File;
use std::io;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Hex digits of a blob's id: 128 bits of its BLAKE3 digest.
const DIGITS: usize = 32;

/// True for what can be the name of a blob, and so for nothing that could leave the folder.
pub(crate) fn is_id(id: &str) -> bool {
    id.len() == DIGITS && id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

impl FileStore {
    fn outputs(&self, id: &SessionId) -> Result<PathBuf> {
        Ok(self.base().session(id)?.join("outputs"))
    }
}

impl Blobs for FileStore {
    fn put_blob(&self, id: &SessionId, bytes: &mut dyn Read) -> Result<BlobRef> {
        let outputs = &self.outputs(id)?;
        folders::make_inside(outputs)?;
        // Held open: it may be moved, and is to be synced wherever it is then.
        let held = File::open(outputs).tried("open", outputs)?;
        let mut builder = tempfile::Builder::new();
        let mut temp = builder.prefix(folders::NEW).tempfile_in(outputs).tried("make a file in", outputs)?;
        // Locked while it is being filled: one that is not was left behind.
        let _ = temp.as_file().try_lock();
        let blob = copy(bytes, temp.as_file_mut()).tried("write a blob to", outputs)?;
        let path = outputs.join(&blob.id);
        if !path.exists() {
            temp.as_file().sync_all().tried("sync a blob in", outputs)?;
            temp.persist(&path).map_err(|e| e.error).tried("name", &path)?;
        }
        // Also where another was faster: its name may not be durable yet.
        held.sync_all().tried("sync the folder", outputs)?;
        Ok(blob)
    }

    fn blob(&self, id: &SessionId, blob: &str) -> Result<Box<dyn ReadSeek>> {
        let missing = || Error::no_blob(id, blob);
        self.opener.while_moving(id, || {
            if !is_id(blob) {
                return Err(missing());
            }
            let path = self.outputs(id)?.join(blob);
            let file = File::open(&path).tried_if_there("open", &path)?.ok_or_else(missing)?;
            Ok(Box::new(file) as Box<dyn ReadSeek>)
        })
    }

    fn sweep(&self, id: &SessionId, keep: &dyn Fn(&str) -> bool) -> Result<BlobSweep> {
        let mut swept = BlobSweep::default();
        for path in folders::list(&self.outputs(id)?)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if folders::is_left_behind(&path) {
                folders::remove(&path)?;
            } else if is_id(name) && !keep(name) {
                let size = std::fs::metadata(&path).map(|m| m.len()).unwrap_or(0);
                folders::remove(&path)?;
                swept.blobs += 1;
                swept.bytes += size;
            }
        }
        Ok(swept)
    }
}

/// One pass: bytes to disk, digest, size and lines.
pub(crate) fn copy(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<BlobRef> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0u8; 1 << 16];
    let (mut size, mut lines, mut ended) = (0u64, 0u64, true);
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let chunk = &buffer[..n];
        hasher.update(chunk);
        to.write_all(chunk)?;
        size += n as u64;
        lines += chunk.iter().filter(|&&b| b == b'\n').count() as u64;
        ended = chunk.last() == Some(&b'\n');
    }
    let id = hasher.finalize().to_hex()[..DIGITS].to_owned();
    Ok(BlobRef { id, byte_size: size, line_count: lines + u64::from(!ended) })
}

/// Writes a blob as base64, a little at a time. What is no blob's id names nothing, least of all a file elsewhere.
pub(super) fn write_base64(outputs: &Path, blob: &str, out: &mut dyn Write) -> io::Result<()> {
    if !is_id(blob) {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no output {blob:?}")));
    }
    crate::write_base64(&mut File::open(outputs.join(blob))?, out)
}
