//! A request on its way: a file, so that no request is ever held in memory.
//!
//! It is written once, in order, and then sent straight from disk, as often as it takes. Who got an answer removes it;
//! otherwise it stays where it is, to show what could not be sent. The next one takes its place.

use crate::Result;
use crate::error::IoContext;
use crate::files::private;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// How much is gathered before it is written.
const BLOCK: usize = 64 << 10;

/// A request being written, then sent.
#[derive(Debug)]
pub struct RequestFile {
    file: BufWriter<File>,
    place: Place,
    bytes: u64,
}

#[derive(Debug)]
enum Place {
    /// Beside the journal it was made from.
    Kept(PathBuf),
    /// Somewhere; it goes with the handle.
    Passing(TempPath),
}

impl RequestFile {
    /// Begins one at `path`, in place of an earlier one.
    pub(crate) fn at(path: PathBuf) -> Result<Self> {
        let file = private().truncate(true).open(&path).tried("make", &path)?;
        Ok(Self { file: BufWriter::with_capacity(BLOCK, file), place: Place::Kept(path), bytes: 0 })
    }

    /// Begins one in the system's folder for passing things; for stores without a folder of their own.
    pub fn passing() -> Result<Self> {
        let folder = std::env::temp_dir();
        let (file, path) = tempfile::Builder::new()
            .prefix("komado-request-")
            .tempfile()
            .tried("make a file in", &folder)?
            .into_parts();
        Ok(Self { file: BufWriter::with_capacity(BLOCK, file), place: Place::Passing(path), bytes: 0 })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        match &self.place {
            Place::Kept(path) => path,
            Place::Passing(path) => path,
        }
    }

    /// Ends the writing; gives its length.
    pub fn seal(&mut self) -> Result<u64> {
        let flushed = self.file.flush();
        flushed.tried("write", self.path())?;
        Ok(self.bytes)
    }

    /// It was answered: it is not needed any more.
    pub fn answered(self) -> Result<()> {
        drop(self.file);
        match self.place {
            Place::Kept(path) => std::fs::remove_file(&path).tried("remove", &path),
            Place::Passing(path) => {
                let shown = path.to_path_buf();
                path.close().tried("remove", &shown)
            }
        }
    }
}

impl Write for RequestFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
