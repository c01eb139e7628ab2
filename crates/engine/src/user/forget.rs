//! Forgetting a user: their sessions are kept outside first, and then erased.
//!
//! What is erased was exported, read back and found whole, and has not changed since; otherwise it stays. A session that
//! somebody writes is never pulled from under them.

use crate::engine::Engine;
use crate::error::{Error, Result};
use komado_core::{SessionId, ThreadId};
use komado_store::{Mode, Query, Queued, Stage};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes of an export's last line, and more.
const TAIL: usize = 160;

/// A session's export on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The file.
    pub path: PathBuf,
    /// The digest of its bytes.
    pub digest: String,
    /// Their number.
    pub bytes: u64,
}

impl Engine {
    /// Exports a session into `folder`, reads the file back and checks it. The name means the whole of it.
    pub fn keep(&self, id: &SessionId, folder: &Path) -> Result<Kept> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let mut out = BufWriter::new(file.as_file_mut());
        self.export(id, &mut out, |_| {})?;
        out.flush()?;
        drop(out);
        file.as_file().sync_all()?;
        let path = kept_at(folder, id);
        file.persist(&path).map_err(|e| e.error)?;
        File::open(folder)?.sync_all()?;
        check(&path)
    }

    /// Erases a session that was kept in `folder` and has not changed since; false when it has. It is held while it is
    /// compared, so that nothing is said in it meanwhile that would be lost. Its job is not touched.
    pub fn erase(&self, id: &SessionId, folder: &Path) -> Result<bool> {
        let held = self.store().open(id, &ThreadId::root(), Mode::Amend)?;
        let mut now = Tail::default();
        self.export(id, &mut now, |_| {})?;
        let is_same = now.last_line() == Tail::of(&kept_at(folder, id))?.last_line();
        drop(held);
        if is_same {
            self.store().remove(id)?;
        }
        Ok(is_same)
    }

    /// Takes the user's jobs out of the queue; gives how many. One that a worker holds stays, and `held` is told.
    pub fn withdraw_jobs(&self, user: &str, mut held: impl FnMut(&SessionId)) -> Result<u64> {
        let mut gone = 0;
        for queued in self.jobs() {
            let Queued { job, stage, .. } = queued?;
            match stage {
                _ if job.user.as_deref() != Some(user) => {}
                Stage::Held(_) => held(&job.session),
                _ => gone += u64::from(self.store().withdraw(&job.session)?),
            }
        }
        Ok(gone)
    }

    /// Calls `each` for every session of a user.
    pub fn each_of_user(&self, user: &str, mut each: impl FnMut(&SessionId) -> Result<()>) -> Result<()> {
        self.each_session(Query { user: Some(user.to_owned()), ..Query::default() }, |session| {
            each(&SessionId::new(session.meta.uuid.as_str())?)
        })
    }
}

fn kept_at(folder: &Path, id: &SessionId) -> PathBuf {
    folder.join(format!("{id}.jsonl"))
}

/// Reads an export back: its last line must be the digest of all before it.
fn check(path: &Path) -> Result<Kept> {
    let mut file = BufReader::new(File::open(path)?);
    let (mut whole, mut before) = (blake3::Hasher::new(), blake3::Hasher::new());
    let (mut line, mut last, mut bytes) = (Vec::new(), Vec::new(), 0);
    while file.read_until(b'\n', &mut line)? > 0 {
        before.update(&last);
        whole.update(&line);
        bytes += line.len() as u64;
        std::mem::swap(&mut last, &mut line);
        line.clear();
    }
    let end = format!("{{\"end\":\"{}\"}}\n", before.finalize().to_hex());
    if last != end.as_bytes() {
        let why = format!("{} does not read back as it was written; nothing was erased", path.display());
        return Err(Error::Io(io::Error::new(io::ErrorKind::InvalidData, why)));
    }
    Ok(Kept { path: path.to_owned(), digest: whole.finalize().to_hex().to_string(), bytes })
}

/// The end of what is written to it.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn of(path: &Path) -> Result<Self> {
        let mut file = File::open(path)?;
        let size = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL as u64)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Self(bytes))
    }

    fn last_line(&self) -> &[u8] {
        let text = self.0.strip_suffix(b"\n").unwrap_or(&self.0);
        text.rsplit(|byte| *byte == b'\n').next().unwrap_or(text)
    }
}

impl Write for Tail {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        if self.0.len() > TAIL {
            self.0.drain(..self.0.len() - TAIL);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
