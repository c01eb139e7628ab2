//! Folders and file names, and nothing else that knows them.
//!
//! `contexts/running/{id}/` while a session lives, `contexts/completed/{id}/` when it has ended; a child thread has
//! the same files under `threads/{id}/`. Folders are 0700, files 0600: conversations are private.

use crate::error::IoContext;
use crate::{Error, Result};
use komado_core::thread::{BadHeader, Header, Moment};
use komado_core::{SessionId, ThreadId};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A method for each file of a folder: its path.
macro_rules! files {
    ($($(#[$doc:meta])* $name:ident = $file:literal,)+) => {
        $($(#[$doc])* pub(super) fn $name(&self) -> PathBuf {
            self.0.join($file)
        })+
    };
}

/// The folder of one thread.
#[derive(Clone, Debug)]
pub(super) struct ThreadFolder(PathBuf);

impl ThreadFolder {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    files! {
        journal = "messages.jsonl",
        index = "index",
        current = "current.jsonl",
        summaries = "summaries.jsonl",
        tools = "tools.jsonl",
        /// A request on its way.
        request = "request.json",
        /// Where a journal is written anew.
        unfinished_journal = "messages.jsonl.new",
        /// Where the view is written anew.
        unfinished_current = "current.jsonl.new",
    }

    /// The session's index of words, which all its threads share.
    pub(super) fn recall(&self) -> PathBuf {
        self.session().join("recall.db")
    }

    /// The folder of the session.
    fn session(&self) -> &Path {
        match self.0.parent() {
            Some(threads) if threads.file_name().is_some_and(|name| name == "threads") => {
                threads.parent().unwrap_or(threads)
            }
            _ => &self.0,
        }
    }

    /// The session's blobs, which all its threads share.
    pub(super) fn outputs(&self) -> PathBuf {
        self.session().join("outputs")
    }

    /// True when a journal with this header belongs here.
    pub(super) fn is_of(&self, header: &Header) -> bool {
        let named = |path: &Path, name: &str| path.file_name().is_some_and(|found| found == name);
        let is_root = self.session() == self.0;
        named(self.session(), header.session.as_str())
            && header.thread.is_root() == is_root
            && (is_root || named(&self.0, header.thread.as_str()))
    }

    /// The folder of each thread of the session, the root first.
    pub(super) fn family(&self) -> Result<Vec<Self>> {
        let mut folders = vec![Self(self.session().to_owned())];
        for path in list(&self.session().join("threads"))? {
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| ThreadId::new(name).is_ok()) && path.is_dir() {
                folders.push(Self(path));
            }
        }
        Ok(folders)
    }
}

/// How the name of something begins that is not finished.
pub(super) const NEW: &str = ".new-";
/// How the name of something begins that is to be removed.
pub(super) const GONE: &str = ".gone-";

/// The two halves of the base folder.
pub(super) const HALVES: [&str; 2] = ["running", "completed"];

/// The base folder.
#[derive(Clone, Debug)]
pub(super) struct SessionsFolder(PathBuf);

impl SessionsFolder {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn running(&self, id: &SessionId) -> PathBuf {
        self.0.join("running").join(id.as_str())
    }

    pub(super) fn completed(&self, id: &SessionId) -> PathBuf {
        self.0.join("completed").join(id.as_str())
    }

    /// Where the session is now.
    pub(super) fn session(&self, id: &SessionId) -> Result<PathBuf> {
        // Looked for more than once: it may be on its way from one half to the other.
        let places = [self.running(id), self.completed(id)];
        let mut looks = (0..3).flat_map(|_| &places);
        looks.find(|path| path.is_dir()).cloned().ok_or_else(|| Error::NoSession(id.clone()))
    }

    pub(super) fn thread(&self, id: &SessionId, thread: &ThreadId) -> Result<ThreadFolder> {
        let session = self.session(id)?;
        if thread.is_root() {
            return Ok(ThreadFolder(session));
        }
        let path = session.join("threads").join(thread.as_str());
        if path.is_dir() { Ok(ThreadFolder(path)) } else { Err(Error::NoThread(id.clone(), thread.clone())) }
    }

    /// Every session folder, with true when it is in `completed`.
    pub(super) fn folders(&self) -> Result<Vec<(SessionId, PathBuf, bool)>> {
        let mut found = Vec::new();
        for half in HALVES {
            for path in list(&self.0.join(half))? {
                let name = path.file_name().and_then(|name| name.to_str());
                if let Some(id) = name.and_then(|name| SessionId::new(name).ok())
                    && path.is_dir()
                {
                    found.push((id, path, half == "completed"));
                }
            }
        }
        found.sort();
        Ok(found)
    }
}

/// What is in a folder; nothing when there is no such folder.
pub(super) fn list(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(path).tried_if_there("list", path)?;
    entries.into_iter().flatten().map(|entry| entry.map(|entry| entry.path()).tried("list", path)).collect()
}

/// How a private file is opened to write; it is made when missing.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
}

/// Makes a folder and its parents, private and durable.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_folder(parent)?;
    }
    make_inside(path)
}

/// Makes a folder in one that must be there: a session that was moved meanwhile is not begun again where it was.
pub(super) fn make_inside(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => sync_folder(parent.unwrap_or(Path::new("."))),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(e) => Err(e).tried("make the folder", path),
    }
}

/// A folder under a name that is never looked for, to be filled and then named.
///
/// It is locked while it is being filled: one that is not was left behind.
pub(super) fn new_folder(parent: &Path) -> Result<(TempDir, File)> {
    let mut builder = tempfile::Builder::new();
    let private = std::fs::Permissions::from_mode(0o700);
    let folder =
        builder.prefix(NEW).permissions(private).tempdir_in(parent).tried("make a folder in", parent)?;
    let lock = File::open(folder.path()).tried("open", folder.path())?;
    // Where folders cannot be locked, nothing unfinished is ever taken for left behind.
    let _ = lock.try_lock();
    Ok((folder, lock))
}

/// True for what was left behind by a process that ended too early.
pub(super) fn is_left_behind(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with(GONE)
        || (name.starts_with(NEW) && File::open(path).is_ok_and(|file| file.try_lock().is_ok()))
}

/// Removes a file or a whole folder; it may be gone already.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    removed.tried_if_there("remove", path).map(drop)
}

/// Makes the folder's list of names durable.
pub(super) fn sync_folder(path: &Path) -> Result<()> {
    File::open(path).and_then(|folder| folder.sync_all()).tried("sync the folder", path)
}

// The first line of a journal, without opening the rest.

/// The first line of a thread's journal, and its length.
pub(super) fn read_header(folder: &ThreadFolder, file: &File) -> Result<(Header, u64)> {
    let path = folder.journal();
    let mut line = Vec::new();
    let mut reader = BufReader::with_capacity(512, file.try_clone().tried("open", &path)?);
    reader.seek(SeekFrom::Start(0)).tried("read_header", &path)?;
    reader.by_ref().take(1 << 20).read_until(b'\n', &mut line).tried("read_header", &path)?;
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

fn header_of(folder: &ThreadFolder) -> Result<Header> {
    let path = folder.journal();
    let file = File::open(&path).tried("open", &path)?;
    Ok(read_header(folder, &file)?.0)
}

/// The moment a fork goes on from.
pub(super) fn base_of(folder: &ThreadFolder) -> Result<Option<Moment>> {
    Ok(header_of(folder)?.base)
}

/// Every thread of the session that `folder` belongs to, the root first.
pub(super) fn family_headers(folder: &ThreadFolder) -> Result<Vec<(Header, ThreadFolder)>> {
    folder.family()?.into_iter().map(|folder| Ok((header_of(&folder)?, folder))).collect()
}
