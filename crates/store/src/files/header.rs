//! The first line of a journal, without opening the rest.

use super::place::Folder;
use crate::error::Tried;
use crate::{Error, Result};
use komado_core::thread::{BadHeader, Header, Moment};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

/// The first line of a thread's journal, and its length.
pub(super) fn read(folder: &Folder, file: &File) -> Result<(Header, u64)> {
    let path = folder.journal();
    let mut line = Vec::new();
    let mut reader = BufReader::with_capacity(512, file.try_clone().tried("open", &path)?);
    reader.seek(SeekFrom::Start(0)).tried("read", &path)?;
    reader.by_ref().take(1 << 20).read_until(b'\n', &mut line).tried("read", &path)?;
    let header = match line.last() {
        Some(b'\n') => Header::decode(&String::from_utf8_lossy(&line)),
        _ => Err(BadHeader::Shape("the first line has no end".into())),
    };
    let header = header.map_err(|source| Error::Header { path: path.clone(), source })?;
    if folder.is_of(&header) {
        return Ok((header, line.len() as u64));
    }
    let Header { session, thread, .. } = header;
    let why = format!("it is the journal of {session}/{thread}, which belongs in another folder");
    Err(Error::damaged(path.display().to_string(), why))
}

fn header_of(folder: &Folder) -> Result<Header> {
    let path = folder.journal();
    let file = File::open(&path).tried("open", &path)?;
    Ok(read(folder, &file)?.0)
}

/// The moment a fork goes on from.
pub(super) fn base_of(folder: &Folder) -> Result<Option<Moment>> {
    Ok(header_of(folder)?.base)
}

/// Every thread of the session that `folder` belongs to, the root first.
pub(super) fn family(folder: &Folder) -> Result<Vec<(Header, Folder)>> {
    folder.family()?.into_iter().map(|folder| Ok((header_of(&folder)?, folder))).collect()
}
