//! The default store: folders that people read with `cat`, `jq` and `sqlite3`.
//!
//! The journal is the truth; `tasks.db`, `index`, `recall.db`, `current.jsonl`, `summaries.jsonl` and `tools.jsonl` are
//! made from it and made again when they are missing or wrong. A session moves from `running` to `completed` by one rename.
//! Beside them `queue.db` is what waits to be worked on, and follows from nothing else.

mod blobs;
mod branches;
mod derived;
mod folders;
mod index;
mod journal;
mod opener;
mod places;
mod rebuild;
mod session_threads;
mod tasks;
mod watch;

#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) use blobs::is_id as is_blob_id;
pub(crate) use branches::TaskTableStore;
pub(crate) use folders::{make_folder, private};
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) use index::{head_bytes, read_head};
pub use journal::{FileJournal, JournalWork, ReadProgress};
pub use rebuild::Rebuilt;
pub(crate) use tasks::{TaskTable, file_at};

use crate::error::{Holder, IoContext};
use crate::queue::{SqliteQueue, SqliteQueueStore};
use crate::search_index::{SearchIndex, SqliteSearchIndex};
use crate::tables::{Lessons, StoreFigures, StoreHealthFigures};
use crate::{
    BlobRef, Error, Journal, OpenMode, Result, SessionChange, SessionQuery, Store, by_age, id_of, locked,
};
use folders::{SessionsFolder, sync_folder};
use index::HeadIndex;
use komado_core::amount::count;
use komado_core::session::{Meta, Session};
use komado_core::thread::{Branch, Header};
use komado_core::{SessionId, ThreadId};
use opener::JournalOpener;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tasks::OpenedTable;

/// Sessions in a folder.
pub struct FileStore {
    opener: JournalOpener,
    tasks: Mutex<Table>,
    queue: SqliteQueue,
}

/// The table of sessions, once it is open, and how long it is waited for while another process holds it.
#[derive(Default)]
struct Table {
    open: Option<TaskTable>,
    patience: Option<Duration>,
    /// When it was last waited for in vain.
    gave_up: Option<Instant>,
}

impl Table {
    /// A caller that would wait in line for the same lock is told at once.
    fn check_patience(&self) -> Result<()> {
        let (Some(patience), Some(at)) = (self.patience, self.gave_up) else { return Ok(()) };
        match at.elapsed() < patience {
            true => Err(Error::Table("another process holds it, and did so a moment ago".to_owned())),
            false => Ok(()),
        }
    }

    fn waited<T>(&mut self, begun: Instant, done: &Result<T>) {
        let patience = self.patience.filter(|patience| begun.elapsed() >= *patience / 4);
        self.gave_up = patience.filter(|_| done.is_err()).map(|_| Instant::now());
    }
}

impl FileStore {
    /// A store in `base`, which is made at the first write. `holder` is what others are told while we write.
    pub fn new(base: &Path, holder: Holder) -> Self {
        let queue = SqliteQueue::at(base.join("queue.db"));
        Self { opener: JournalOpener::new(base, holder), tasks: Mutex::default(), queue }
    }

    /// Tells `progress` how far a long rebuild has come.
    #[must_use]
    pub fn with_progress(mut self, progress: Arc<ReadProgress>) -> Self {
        self.opener.progress = Some(progress);
        self
    }

    /// Waits for the table of sessions no longer than about this while another process holds it; without it, as long as
    /// a command can. For as long again everyone is refused at once.
    pub fn set_table_patience(&self, patience: Duration) {
        let mut table = locked(&self.tasks);
        table.patience = Some(patience);
        if let Some(tasks) = &table.open {
            tasks.wait_for(patience);
        }
    }

    /// The base folder.
    pub fn base_dir(&self) -> &Path {
        self.base().path()
    }

    /// The folder a session is in now.
    pub fn folder(&self, id: &SessionId) -> Result<PathBuf> {
        self.base().session(id)
    }

    /// Writes and syncs of all its journals so far.
    pub fn work(&self) -> JournalWork {
        self.opener.tally.work()
    }

    /// What had to be put right on the way, told once.
    pub fn take_findings(&self) -> Vec<String> {
        self.opener.take_findings()
    }

    /// Opens a thread as what it is here; [`Store::open`] gives the same behind the trait.
    pub fn open_file(&self, id: &SessionId, thread: &ThreadId, mode: OpenMode) -> Result<FileJournal> {
        self.opener.open(id, thread, mode)
    }

    fn base(&self) -> &SessionsFolder {
        &self.opener.base
    }

    fn open_shelf(&self, id: &SessionId) -> Result<SqliteSearchIndex> {
        self.opener.while_moving(id, || {
            SqliteSearchIndex::open(&self.base().thread(id, &ThreadId::root())?.recall())
        })
    }

    fn open_tasks(&self, patience: Option<Duration>) -> Result<TaskTable> {
        let path = self.tasks_db();
        let opened = make_folder(self.base().path()).and_then(|()| TaskTable::open(&path, patience));
        match opened {
            Ok(OpenedTable::Ready(tasks)) => Ok(tasks),
            Ok(OpenedTable::Unfilled(tasks)) => {
                let rows = self.fill(&tasks)?.sessions;
                tasks.filled()?;
                if rows > 0 {
                    self.opener
                        .note(format!("tasks.db was missing; made again with {}", count(rows, "session")));
                }
                Ok(tasks)
            }
            Ok(OpenedTable::Broken(why)) => self.replace_tasks(&why).map(|(tasks, _)| tasks),
            // Who may only look is told what the folders say.
            Err(refused) if refused.is_permission() => {
                let tasks = TaskTable::copy(&path)?;
                self.fill(&tasks)?;
                Ok(tasks)
            }
            Err(other) => Err(other),
        }
    }

    /// Tells who listens that a session is not what it was.
    fn tell_changed(&self, id: &SessionId) {
        self.opener.chime.ring(id, &ThreadId::root(), 0);
    }

    fn tasks_db(&self) -> PathBuf {
        self.base().path().join("tasks.db")
    }

    fn row(&self, id: &SessionId) -> Result<Session> {
        match self.with_tasks(|tasks| tasks.get(id))? {
            Some(session) => Ok(session),
            None => {
                let session = self.session_of_folder(id, None)?;
                self.with_tasks(|tasks| tasks.put(&session))?;
                Ok(session)
            }
        }
    }

    fn move_to_half(&self, id: &SessionId, ended: bool) -> Result<()> {
        let (from, to) = if ended {
            (self.base().running(id), self.base().completed(id))
        } else {
            (self.base().completed(id), self.base().running(id))
        };
        if !from.is_dir() {
            return Ok(());
        }
        let _lock = self.opener.take_whole(id, &from)?;
        for path in [&from, &to] {
            make_folder(path.parent().unwrap_or(path))?;
        }
        std::fs::rename(&from, &to).tried("move", &from)?;
        for path in [&to, &from] {
            sync_folder(path.parent().unwrap_or(path))?;
        }
        Ok(())
    }

    /// Takes a session's folder out of sight, in one step; gives the name under which it waits to be removed.
    fn take_away(&self, id: &SessionId, path: &Path) -> Result<PathBuf> {
        let lock = self.opener.take_whole(id, path)?;
        let parent = path.parent().unwrap_or(path);
        let gone =
            (1..).map(|n| parent.join(format!("{}{id}.{n}", folders::GONE))).find(|path| !path.exists());
        let gone = gone.unwrap_or_else(|| parent.join(folders::GONE));
        std::fs::rename(path, &gone).tried("remove", path)?;
        drop(lock);
        sync_folder(parent)?;
        Ok(gone)
    }

    /// Fills a folder under another name and then gives it its own: it is there whole or not at all. False when the
    /// name was taken meanwhile.
    fn make_whole(path: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<bool> {
        let parent = path.parent().unwrap_or(path);
        // Held open: it may be moved, and is to be synced wherever it is then.
        let held = File::open(parent).tried("open", parent)?;
        let (new, _lock) = folders::new_folder(parent)?;
        fill(new.path())?;
        sync_folder(new.path())?;
        if let Err(error) = std::fs::rename(new.path(), path) {
            return if path.exists() { Ok(false) } else { Err(error).tried("name", path) };
        }
        let _ = new.keep();
        held.sync_all().tried("sync the folder", parent)?;
        Ok(true)
    }
}

/// Begins a journal and its index.
fn write_journal(folder: &Path, header: &Header) -> Result<()> {
    let line = header.encode();
    write_derived(&folder.join("index"), &HeadIndex::seed(line.len() as u64))?;
    write_new(&folder.join("messages.jsonl"), &line)
}

/// Writes a file that can be made again.
fn write_derived(path: &Path, bytes: &[u8]) -> Result<File> {
    let mut file = private().create_new(true).open(path).tried("make", path)?;
    file.write_all(bytes).tried("write", path)?;
    Ok(file)
}

/// Writes a small file once and for good.
fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    write_derived(path, bytes)?.sync_all().tried("write", path)
}

/// Copies a blob's bytes and names them; the one way a blob gets its id, in every store.
pub(crate) fn copy_blob(from: &mut dyn Read, to: &mut dyn Write) -> Result<BlobRef> {
    blobs::copy(from, to).tried("copy", Path::new("a blob"))
}

impl TaskTableStore for FileStore {
    /// Runs `run` on the table, which is opened, made, or made again first.
    fn with_tasks<T>(&self, run: impl FnOnce(&TaskTable) -> Result<T>) -> Result<T> {
        let mut table = locked(&self.tasks);
        table.check_patience()?;
        let begun = Instant::now();
        // A file that is gone or another one by now would take rows that no process finds again.
        let kept = match table.open.take() {
            Some(tasks) if tasks.is_current()? => Some(tasks),
            _ => None,
        };
        let tasks = match kept.map_or_else(|| self.open_tasks(table.patience), Ok) {
            Ok(tasks) => tasks,
            Err(error) => {
                let failed = Err(error);
                table.waited(begun, &failed);
                return failed;
            }
        };
        let done = run(&tasks);
        table.waited(begun, &done);
        if !tasks.is_copy {
            table.open = Some(tasks);
        }
        done
    }

    fn check_session(&self, id: &SessionId) -> Result<()> {
        self.base().session(id).map(drop)
    }

    fn is_made(&self) -> bool {
        self.base().path().exists()
    }

    fn put_parents(&self, branch: &Branch) -> Result<()> {
        self.put_rows_above(branch)
    }
}

impl SqliteQueueStore for FileStore {
    fn line(&self) -> &SqliteQueue {
        &self.queue
    }
}

impl Store for FileStore {
    fn create(&self, meta: &Meta) -> Result<()> {
        let id = id_of(meta)?;
        if self.base().session(&id).is_ok() {
            return Err(Error::SessionExists(id));
        }
        // The table first: one that is missing is made from the folders that are there before this one.
        self.with_tasks(|_| Ok(()))?;
        let path = self.base().running(&id);
        make_folder(path.parent().unwrap_or(&path))?;
        let made = Self::make_whole(&path, |folder| {
            let pretty = serde_json::to_vec_pretty(meta).unwrap_or_default();
            write_new(&folder.join("metadata.json"), &[&pretty[..], b"\n"].concat())?;
            write_journal(folder, &Header::root(id.clone(), &meta.created_at))?;
            for name in ["current.jsonl", "summaries.jsonl", "tools.jsonl"] {
                write_derived(&folder.join(name), b"")?;
            }
            make_folder(&folder.join("outputs"))
        })?;
        if !made {
            return Err(Error::SessionExists(id));
        }
        let noted = self.with_tasks(|tasks| tasks.put(&Session::new(meta)));
        if noted.is_err() {
            // A session that cannot be listed is taken back, so that making it can be tried again.
            let _ = self.take_away(&id, &path).and_then(|gone| folders::remove(&gone));
        }
        noted.map(|()| self.tell_changed(&id))
    }

    fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        if !self.base().path().exists() {
            return Ok(Vec::new());
        }
        self.with_tasks(|tasks| tasks.list(query))
    }

    fn change(&self, id: &SessionId, change: &SessionChange) -> Result<Session> {
        self.base().session(id)?;
        let meta = self.row(id)?.meta;
        let to = match change {
            SessionChange::State { to, .. } => Some(*to),
            SessionChange::Row(row) => Some(row.status),
            SessionChange::Count { .. } => None,
        };
        if let Some(to) = to {
            self.opener.while_moving(id, || self.move_to_half(id, to.is_ended()))?;
        }
        let own = match change {
            SessionChange::Row(row) => {
                Some(SessionChange::Row(Box::new(Session { meta, ..(**row).clone() })))
            }
            _ => None,
        };
        self.with_tasks(|tasks| tasks.change(id, own.as_ref().unwrap_or(change)))?;
        self.tell_changed(id);
        self.row(id)
    }

    fn remove(&self, id: &SessionId) -> Result<()> {
        let path = match self.base().session(id) {
            Ok(path) => path,
            // A removal that was cut short left the row.
            Err(Error::NoSession(_)) if self.with_tasks(|tasks| tasks.get(id))?.is_some() => {
                return self.with_tasks(|tasks| tasks.remove(id));
            }
            Err(other) => return Err(other),
        };
        let gone = self.take_away(id, &path)?;
        let forgotten = self.with_tasks(|tasks| tasks.remove(id));
        self.tell_changed(id);
        folders::remove(&gone).and(forgotten)
    }

    fn threads(&self, id: &SessionId) -> Result<Vec<Header>> {
        let family = self
            .opener
            .while_moving(id, || folders::family_headers(&self.base().thread(id, &ThreadId::root())?))?;
        Ok(by_age(family.into_iter().map(|(header, _)| header).collect()))
    }

    fn spawn(&self, header: &Header) -> Result<()> {
        let (id, thread) = (&header.session, &header.thread);
        let taken = || Error::ThreadExists(id.clone(), thread.clone());
        self.opener.while_moving(id, || {
            let path = self.base().session(id)?.join("threads").join(thread.as_str());
            if thread.is_root() || path.exists() {
                return Err(taken());
            }
            if let Some(moment) = &header.parent {
                self.base().thread(id, &moment.thread)?;
            }
            if let Some(moment) = &header.base {
                self.open_file(id, &moment.thread, OpenMode::Read)?.check_moment(moment.seq)?;
            }
            folders::make_inside(path.parent().unwrap_or(&path))?;
            if Self::make_whole(&path, |folder| write_journal(folder, header))? {
                self.opener.chime.ring(id, thread, header.base_seq());
                Ok(())
            } else {
                Err(taken())
            }
        })
    }

    fn open(&self, id: &SessionId, thread: &ThreadId, mode: OpenMode) -> Result<Box<dyn Journal>> {
        Ok(Box::new(self.open_file(id, thread, mode)?))
    }

    fn writer(&self, id: &SessionId) -> Result<Option<Holder>> {
        self.opener.while_moving(id, || opener::holder_of(&self.base().session(id)?))
    }

    fn search_index(&self, id: &SessionId) -> Result<Box<dyn SearchIndex>> {
        Ok(Box::new(self.open_shelf(id)?))
    }
}

// How a folder of sessions is doing.
//
// Figures that cost one look each. Bytes on disk are left out: only a walk through every folder would tell.

impl StoreFigures for FileStore {
    fn vitals(&self) -> Result<StoreHealthFigures> {
        let sessions = match self.base().path().exists() {
            true => self.with_tasks(|tasks| tasks.count())?,
            false => 0,
        };
        Ok(StoreHealthFigures {
            kind: "file",
            place: self.base().path().display().to_string(),
            durability: "is synced to this disk: it outlives the process and a power cut".into(),
            may_lose: false,
            sessions: Some(sessions),
            leases: Some(self.opener.leases.count() as u64),
            ..StoreHealthFigures::default()
        })
    }
}

// `learned.json`: what was learned about models, in one file that people can read; replaced whole, by a rename.

type Book = BTreeMap<String, Box<RawValue>>;

impl FileStore {
    fn learned(&self) -> PathBuf {
        self.base().path().join("learned.json")
    }

    /// A file that cannot be read teaches nothing: everything in it can be learned again.
    fn read_book(&self) -> Result<Book> {
        let path = self.learned();
        let text = std::fs::read_to_string(&path).tried_if_there("read", &path)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    fn lock_book(&self) -> Result<File> {
        make_folder(self.base().path())?;
        let path = self.learned().with_extension("lock");
        let file = private().open(&path).tried("open", &path)?;
        file.lock().tried("lock", &path)?;
        Ok(file)
    }

    fn write_book(&self, book: &Book) -> Result<()> {
        let (folder, path) = (self.base().path(), self.learned());
        let mut file = tempfile::NamedTempFile::new_in(folder).tried("make a file in", folder)?;
        let name = |about: &String| serde_json::Value::from(about.as_str());
        let lines = book.iter().map(|(about, lesson)| format!("  {}: {}", name(about), lesson.get()));
        let lines: Vec<String> = lines.collect();
        let end = if lines.is_empty() { "" } else { "\n" };
        write!(file, "{{\n{}{end}}}\n", lines.join(",\n")).tried("write", &path)?;
        file.persist(&path).map_err(|e| e.error).tried("write", &path)?;
        Ok(())
    }
}

impl Lessons for FileStore {
    fn lesson(&self, about: &str) -> Result<Option<String>> {
        Ok(self.read_book()?.get(about).map(|lesson| lesson.get().to_owned()))
    }

    fn put_lesson(&self, about: &str, old: Option<&str>, new: &str) -> Result<bool> {
        let _lock = self.lock_book()?;
        let mut book = self.read_book()?;
        if book.get(about).map(|lesson| lesson.get()) != old {
            return Ok(false);
        }
        let new = RawValue::from_string(new.to_owned());
        let new = new.map_err(|e| Error::damaged(format!("what was learned about {about}"), e))?;
        book.insert(about.to_owned(), new);
        self.write_book(&book).map(|()| true)
    }

    fn lessons(&self) -> Result<Vec<(String, String)>> {
        Ok(self.read_book()?.into_iter().map(|(about, lesson)| (about, lesson.get().to_owned())).collect())
    }

    fn forget(&self, about: &str) -> Result<bool> {
        let _lock = self.lock_book()?;
        let mut book = self.read_book()?;
        match book.remove(about) {
            Some(_) => self.write_book(&book).map(|()| true),
            None => Ok(false),
        }
    }
}
