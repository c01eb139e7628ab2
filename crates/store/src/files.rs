//! The default store: folders that people read with `cat`, `jq` and `sqlite3`.
//!
//! The journal is the truth; `tasks.db`, `index`, `current.jsonl`, `summaries.jsonl` and `tools.jsonl` are made from
//! it and made again when they are missing or wrong. A session moves from `running` to `completed` by one rename.

mod blobs;
mod derived;
mod index;
mod journal;
mod lease;
mod place;
mod rebuild;
mod tasks;

pub use journal::{FileJournal, Progress, Work};
pub use rebuild::{Finding, Rebuilt};

use crate::error::{Holder, Tried};
use crate::{BlobRef, Change, Error, Journal, Mode, Query, ReadSeek, Result, Store, Swept};
use komado_core::session::{Meta, Session};
use komado_core::thread::Header;
use komado_core::{SessionId, ThreadId};
use lease::{Lease, Ticket};
use place::{Base, make_folder, sync_folder};
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tasks::Tasks;

/// Sessions in a folder.
pub struct FileStore {
    base: Base,
    holder: Holder,
    tasks: Mutex<Option<Tasks>>,
    leases: Mutex<HashMap<SessionId, Weak<Lease>>>,
    progress: Option<Arc<Progress>>,
    findings: Mutex<Vec<Finding>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileStore {
    /// A store in `base`, which is made at the first write. `holder` is what others are told while we write.
    pub fn new(base: &Path, holder: Holder) -> Self {
        Self {
            base: Base::new(base),
            holder,
            tasks: Mutex::new(None),
            leases: Mutex::default(),
            progress: None,
            findings: Mutex::default(),
        }
    }

    /// Tells `progress` how far a long rebuild has come.
    #[must_use]
    pub fn with_progress(mut self, progress: Arc<Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// The base folder.
    pub fn base_dir(&self) -> &Path {
        self.base.path()
    }

    /// The folder a session is in now.
    pub fn folder(&self, id: &SessionId) -> Result<PathBuf> {
        self.base.session(id)
    }

    /// What had to be put right on the way, told once.
    pub fn take_findings(&self) -> Vec<Finding> {
        std::mem::take(&mut locked(&self.findings))
    }

    /// Opens a thread as what it is here; [`Store::open`] gives the same behind the trait.
    pub fn open_file(&self, id: &SessionId, thread: &ThreadId, mode: Mode) -> Result<FileJournal> {
        let folder = self.base.thread(id, thread)?;
        let ended = folder.path().starts_with(self.base.path().join("completed"));
        if mode != Mode::Read {
            if ended && mode == Mode::Write {
                return Err(Error::Ended(id.clone(), "its folder is in completed/"));
            }
            return self.open_folder(id, folder, Some(self.ticket(id, thread)?));
        }
        if let Some(ticket) = self.ticket_to_repair(id, thread, &folder)? {
            let repaired = self.open_folder(id, folder.clone(), Some(ticket))?;
            for note in repaired.notes() {
                self.note(Finding::Repaired { thread: format!("{id}/{thread}"), note: note.clone() });
            }
        }
        self.open_folder(id, folder, None)
    }

    fn open_folder(&self, id: &SessionId, folder: place::Folder, ticket: Option<Ticket>) -> Result<FileJournal> {
        let base = match rebuild::read_header(&folder)?.base {
            Some(moment) => Some(Box::new(self.open_file(id, &moment.thread, Mode::Read)?)),
            None => None,
        };
        FileJournal::open(folder, base, ticket, self.progress.as_deref())
    }

    fn ticket(&self, id: &SessionId, thread: &ThreadId) -> Result<Ticket> {
        let mut leases = locked(&self.leases);
        let lease = match leases.get(id).and_then(Weak::upgrade) {
            Some(lease) => lease,
            None => {
                let lease = Arc::new(Lease::take(id, &self.base.session(id)?, &self.holder)?);
                leases.insert(id.clone(), Arc::downgrade(&lease));
                lease
            }
        };
        Ticket::new(lease, id, thread)
    }

    /// A reader needs the lock only when the index is behind and nobody is about to bring it forward.
    fn ticket_to_repair(&self, id: &SessionId, thread: &ThreadId, folder: &place::Folder) -> Result<Option<Ticket>> {
        if journal::is_settled(folder)? {
            return Ok(None);
        }
        match self.ticket(id, thread) {
            Ok(ticket) => Ok(Some(ticket)),
            Err(Error::Busy { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Runs `run` on the table, which is opened, made, or made again first.
    fn with_tasks<T>(&self, run: impl FnOnce(&Tasks) -> Result<T>) -> Result<T> {
        let mut tasks = locked(&self.tasks);
        if tasks.is_none() {
            *tasks = Some(self.open_tasks()?);
        }
        match tasks.as_ref() {
            Some(tasks) => run(tasks),
            None => Err(Error::Table("it is not open".into())),
        }
    }

    fn open_tasks(&self) -> Result<Tasks> {
        make_folder(self.base.path())?;
        let path = self.tasks_db();
        let missing = !path.exists();
        match Tasks::open(&path) {
            Ok(tasks) if missing => {
                self.fill(&tasks, false)?;
                Ok(tasks)
            }
            Ok(tasks) => Ok(tasks),
            Err(Error::Table(why)) => self.replace_tasks(&why),
            Err(other) => Err(other),
        }
    }

    fn tasks_db(&self) -> PathBuf {
        self.base.path().join("tasks.db")
    }

    fn row(&self, id: &SessionId) -> Result<Session> {
        match self.with_tasks(|tasks| tasks.get(id))? {
            Some(session) => Ok(session),
            None => {
                let session = self.session_of_folder(id)?;
                self.with_tasks(|tasks| tasks.put(&session))?;
                Ok(session)
            }
        }
    }

    /// Refused while anyone, here or elsewhere, writes the session.
    fn hold_whole(&self, id: &SessionId, folder: &Path) -> Result<Lease> {
        Lease::take(id, folder, &self.holder)
    }

    fn move_to_half(&self, id: &SessionId, ended: bool) -> Result<()> {
        let (from, to) = if ended {
            (self.base.running(id), self.base.completed(id))
        } else {
            (self.base.completed(id), self.base.running(id))
        };
        if !from.is_dir() {
            return Ok(());
        }
        let _lease = self.hold_whole(id, &from)?;
        for path in [&from, &to] {
            make_folder(path.parent().unwrap_or(path))?;
        }
        std::fs::rename(&from, &to).tried("move", &from)?;
        for path in [&from, &to] {
            sync_folder(path.parent().unwrap_or(path))?;
        }
        Ok(())
    }
}

/// Writes a small file once and for good.
fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path).tried("make", path)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).tried("write", path)
}

/// Copies a blob's bytes and names them; the one way a blob gets its id, in every store.
pub(crate) fn copy_blob(from: &mut dyn Read, to: &mut dyn Write) -> Result<BlobRef> {
    blobs::copy(from, to).tried("copy", Path::new("a blob"))
}

impl Store for FileStore {
    /// The folder is filled under another name and gets its own by rename: a session is there whole or not at all.
    fn create(&self, meta: &Meta) -> Result<()> {
        let id = SessionId::new(meta.uuid.as_str())
            .map_err(|e| Error::Damaged { place: "the session's id".into(), why: e.to_string() })?;
        if self.base.session(&id).is_ok() {
            return Err(Error::SessionExists(id));
        }
        let running = self.base.path().join("running");
        make_folder(&running)?;
        let new = tempfile::Builder::new().prefix(".new-").tempdir_in(&running).tried("make a folder in", &running)?;
        let pretty = serde_json::to_vec_pretty(meta).unwrap_or_default();
        write_new(&new.path().join("metadata.json"), &[&pretty[..], b"\n"].concat())?;
        write_new(&new.path().join("messages.jsonl"), &Header::root(id.clone(), &meta.created_at).encode())?;
        for name in ["current.jsonl", "summaries.jsonl", "tools.jsonl"] {
            write_new(&new.path().join(name), b"")?;
        }
        make_folder(&new.path().join("outputs"))?;
        sync_folder(new.path())?;
        let path = self.base.running(&id);
        std::fs::rename(new.path(), &path).tried("name", &path)?;
        let _ = new.keep();
        sync_folder(&running)?;
        self.with_tasks(|tasks| tasks.put(&Session::new(meta)))
    }

    fn sessions(&self, query: &Query) -> Result<Vec<Session>> {
        if !self.base.path().exists() {
            return Ok(Vec::new());
        }
        self.with_tasks(|tasks| tasks.list(query))
    }

    fn change(&self, id: &SessionId, change: &Change) -> Result<Session> {
        self.base.session(id)?;
        self.row(id)?;
        if let Change::State { to, .. } = change {
            self.move_to_half(id, to.is_ended())?;
        }
        self.with_tasks(|tasks| tasks.change(id, change))?;
        self.row(id)
    }

    fn remove(&self, id: &SessionId) -> Result<()> {
        let path = self.base.session(id)?;
        let lease = self.hold_whole(id, &path)?;
        let parent = path.parent().unwrap_or(&path).to_owned();
        let gone = parent.join(format!(".gone-{id}"));
        std::fs::rename(&path, &gone).tried("remove", &path)?;
        drop(lease);
        self.with_tasks(|tasks| tasks.remove(id))?;
        std::fs::remove_dir_all(&gone).tried("remove", &gone)?;
        sync_folder(&parent)
    }

    fn threads(&self, id: &SessionId) -> Result<Vec<Header>> {
        let root = rebuild::read_header(&self.base.thread(id, &ThreadId::root())?)?;
        let mut headers = Vec::new();
        let folder = self.base.session(id)?.join("threads");
        if let Ok(entries) = std::fs::read_dir(&folder) {
            for entry in entries {
                let name = entry.tried("list", &folder)?.file_name();
                let Some(thread) = name.to_str().and_then(|name| ThreadId::new(name).ok()) else { continue };
                headers.push(rebuild::read_header(&self.base.thread(id, &thread)?)?);
            }
        }
        headers.sort_by(|a, b| (&a.timestamp, a.thread.as_str()).cmp(&(&b.timestamp, b.thread.as_str())));
        headers.insert(0, root);
        Ok(headers)
    }

    fn spawn(&self, header: &Header) -> Result<()> {
        let (id, thread) = (&header.session, &header.thread);
        let threads = self.base.session(id)?.join("threads");
        let path = threads.join(thread.as_str());
        if thread.is_root() || path.exists() {
            return Err(Error::ThreadExists(id.clone(), thread.clone()));
        }
        make_folder(&threads)?;
        let new = tempfile::Builder::new().prefix(".new-").tempdir_in(&threads).tried("make a folder in", &threads)?;
        write_new(&new.path().join("messages.jsonl"), &header.encode())?;
        sync_folder(new.path())?;
        std::fs::rename(new.path(), &path).tried("name", &path)?;
        let _ = new.keep();
        sync_folder(&threads)
    }

    fn open(&self, id: &SessionId, thread: &ThreadId, mode: Mode) -> Result<Box<dyn Journal>> {
        Ok(Box::new(self.open_file(id, thread, mode)?))
    }

    fn put_blob(&self, id: &SessionId, bytes: &mut dyn Read) -> Result<BlobRef> {
        blobs::put(&self.base.session(id)?.join("outputs"), bytes)
    }

    fn blob(&self, id: &SessionId, blob: &str) -> Result<Box<dyn ReadSeek>> {
        blobs::get(id, &self.base.session(id)?.join("outputs"), blob)
    }

    fn sweep(&self, id: &SessionId, keep: &dyn Fn(&str) -> bool) -> Result<Swept> {
        blobs::sweep(&self.base.session(id)?.join("outputs"), keep)
    }
}
