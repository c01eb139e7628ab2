//! The reference store: everything in memory, nothing clever.
//!
//! What the other stores must do is what this one does. It keeps what it is given for as long as the process lives.

use crate::error::Holder;
use crate::files::{TaskTable, TaskTableStore, copy_blob};
use crate::lease::{LeasePurpose, Leases, ThreadLease};
use crate::queue::{SqliteQueue, SqliteQueueStore};
use crate::request_file::RequestFile;
use crate::search_index::{SearchIndex, SqliteSearchIndex};
use crate::tables::{Lessons, StoreFigures, StoreHealthFigures};
use crate::watch::{NewsSender, ThreadNews, WatchStore, Watcher};
use crate::{
    BlobRef, BlobSweep, Blobs, Error, Journal, JournalRow, OpenMode, ReadSeek, Result, SessionChange,
    SessionQuery, Store, by_age, check_rewritten, check_rows, id_of, locked,
};
use komado_core::session::{Meta, Session};
use komado_core::thread::Header;
use komado_core::{Head, Seq, SessionId, ThreadId};
use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Sessions in memory. Clones share what they hold.
#[derive(Clone)]
pub struct MemoryStore {
    rooms: Arc<Mutex<BTreeMap<SessionId, Room>>>,
    lessons: Arc<Mutex<BTreeMap<String, String>>>,
    /// Spawned threads, their mail, and where transcripts may go on; made when first asked for.
    tasks: Arc<Mutex<Option<TaskTable>>>,
    line: Arc<SqliteQueue>,
    bell: NewsSender,
    leases: Arc<Leases<()>>,
}

/// A thread's rows, shared by all who have it open.
type Rows = Arc<Mutex<Vec<JournalRow>>>;

struct Room {
    session: Session,
    threads: BTreeMap<ThreadId, (Header, Rows)>,
    blobs: BTreeMap<String, Arc<[u8]>>,
    /// The index of words, once it was asked for.
    shelf: Option<SqliteSearchIndex>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        let here = Holder {
            pid: std::process::id(),
            host: "this machine".into(),
            program: "this process".into(),
            since: "its start".into(),
        };
        let (rooms, lessons, tasks) = (Arc::default(), Arc::default(), Arc::default());
        let (line, bell, leases) = (Arc::default(), NewsSender::default(), Leases::new(here));
        Self { rooms, lessons, tasks, line, bell, leases }
    }
}

impl MemoryStore {
    fn with<T>(&self, id: &SessionId, run: impl FnOnce(&mut Room) -> Result<T>) -> Result<T> {
        let mut rooms = locked(&self.rooms);
        run(rooms.get_mut(id).ok_or_else(|| Error::NoSession(id.clone()))?)
    }

    fn is_written(&self, id: &SessionId) -> bool {
        self.leases.while_idle(id, |is_idle| !is_idle)
    }

    fn tell(&self, session: &SessionId, thread: &ThreadId, last: Seq) {
        self.bell.ring(&ThreadNews { session: session.clone(), thread: thread.clone(), last });
    }

    fn tell_changed(&self, id: &SessionId) {
        self.tell(id, &ThreadId::root(), 0);
    }
}

pub(crate) fn matches(query: &SessionQuery, id: &SessionId, session: &Session) -> bool {
    let key = (session.meta.created_at.as_str(), id);
    query.prefix.as_ref().is_none_or(|prefix| id.as_str().starts_with(prefix))
        && query.id.as_ref().is_none_or(|exact| exact == id)
        && query.status.is_none_or(|status| session.status == status)
        && query.user.as_ref().is_none_or(|user| session.meta.user.as_ref() == Some(user))
        && query
            .ended_before
            .as_ref()
            .is_none_or(|time| session.completed_at.as_ref().is_some_and(|at| at < time))
        && query.changed_from.as_ref().is_none_or(|time| session.updated_at >= *time)
        && query.made_before.as_ref().is_none_or(|time| session.meta.created_at < *time)
        && query.after.as_ref().is_none_or(|(at, last)| key > (at.as_str(), last))
}

/// A session after a change.
pub(crate) fn changed(before: &Session, change: &SessionChange) -> Session {
    let mut session = before.clone();
    match change {
        SessionChange::State { to, at, why } => session.enter(*to, at, why.as_deref()),
        SessionChange::Count { by, at } => {
            session.counters += *by;
            session.updated_at.clone_from(at);
        }
        SessionChange::Row(row) => session = Session { meta: before.meta.clone(), ..(**row).clone() },
    }
    session
}

impl Blobs for MemoryStore {
    fn put_blob(&self, id: &SessionId, bytes: &mut dyn Read) -> Result<BlobRef> {
        let mut kept = Vec::new();
        let blob = copy_blob(bytes, &mut kept)?;
        self.with(id, |room| {
            room.blobs.insert(blob.id.clone(), kept.into());
            Ok(blob)
        })
    }

    fn blob(&self, id: &SessionId, blob: &str) -> Result<Box<dyn ReadSeek>> {
        self.with(id, |room| {
            let found = room.blobs.get(blob).ok_or_else(|| Error::no_blob(id, blob))?;
            Ok(Box::new(Cursor::new(Arc::clone(found))) as Box<dyn ReadSeek>)
        })
    }

    fn sweep(&self, id: &SessionId, keep: &dyn Fn(&str) -> bool) -> Result<BlobSweep> {
        self.with(id, |room| {
            let mut swept = BlobSweep::default();
            room.blobs.retain(|blob, bytes| {
                let kept = keep(blob);
                swept.blobs += u64::from(!kept);
                swept.bytes += if kept { 0 } else { bytes.len() as u64 };
                kept
            });
            Ok(swept)
        })
    }
}

impl Lessons for MemoryStore {
    fn lesson(&self, about: &str) -> Result<Option<String>> {
        Ok(locked(&self.lessons).get(about).cloned())
    }

    fn put_lesson(&self, about: &str, old: Option<&str>, new: &str) -> Result<bool> {
        let mut lessons = locked(&self.lessons);
        let is_same = lessons.get(about).map(String::as_str) == old;
        if is_same {
            lessons.insert(about.to_owned(), new.to_owned());
        }
        Ok(is_same)
    }

    fn lessons(&self) -> Result<Vec<(String, String)>> {
        Ok(locked(&self.lessons).iter().map(|(about, lesson)| (about.clone(), lesson.clone())).collect())
    }

    fn forget(&self, about: &str) -> Result<bool> {
        Ok(locked(&self.lessons).remove(about).is_some())
    }
}

impl TaskTableStore for MemoryStore {
    fn with_tasks<T>(&self, run: impl FnOnce(&TaskTable) -> Result<T>) -> Result<T> {
        let mut tasks = locked(&self.tasks);
        let made = tasks.take().map_or_else(|| TaskTable::memory(Path::new("memory")), Ok)?;
        run(tasks.insert(made))
    }

    fn check_session(&self, id: &SessionId) -> Result<()> {
        self.with(id, |_| Ok(()))
    }
}

impl SqliteQueueStore for MemoryStore {
    fn line(&self) -> &SqliteQueue {
        &self.line
    }
}

impl WatchStore for MemoryStore {
    fn watch(&self) -> Result<Box<dyn Watcher>> {
        Ok(Box::new(self.bell.listen()))
    }
}

impl StoreFigures for MemoryStore {
    fn vitals(&self) -> Result<StoreHealthFigures> {
        let rooms = locked(&self.rooms);
        Ok(StoreHealthFigures {
            kind: "memory",
            place: "this process".into(),
            durability: "is lost with this process".into(),
            may_lose: true,
            sessions: Some(rooms.len() as u64),
            leases: Some(self.leases.count() as u64),
            ..StoreHealthFigures::default()
        })
    }
}

impl Store for MemoryStore {
    fn create(&self, meta: &Meta) -> Result<()> {
        let id = id_of(meta)?;
        let mut rooms = locked(&self.rooms);
        if rooms.contains_key(&id) {
            return Err(Error::SessionExists(id));
        }
        let root = Header::root(id.clone(), &meta.created_at);
        let threads = BTreeMap::from([(ThreadId::root(), (root, Arc::default()))]);
        let session = Session::new(meta);
        let room = Room { session, threads, blobs: BTreeMap::new(), shelf: None };
        rooms.insert(id.clone(), room);
        self.tell_changed(&id);
        Ok(())
    }

    fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>> {
        let rooms = locked(&self.rooms);
        let mut found: Vec<_> = rooms.iter().filter(|(id, room)| matches(query, id, &room.session)).collect();
        found.sort_by(|(a, x), (b, y)| (&x.session.meta.created_at, a).cmp(&(&y.session.meta.created_at, b)));
        let limit = if query.limit == 0 { usize::MAX } else { query.limit };
        Ok(found.into_iter().take(limit).map(|(_, room)| room.session.clone()).collect())
    }

    fn change(&self, id: &SessionId, change: &SessionChange) -> Result<Session> {
        self.with(id, |room| {
            let session = &mut room.session;
            let after = changed(session, change);
            let crosses = after.status.is_ended() != session.status.is_ended();
            if crosses && self.is_written(id) {
                return Err(self.leases.busy(id));
            }
            *session = after;
            self.tell_changed(id);
            Ok(session.clone())
        })
    }

    fn remove(&self, id: &SessionId) -> Result<()> {
        let mut rooms = locked(&self.rooms);
        if self.is_written(id) {
            return Err(self.leases.busy(id));
        }
        rooms.remove(id).ok_or_else(|| Error::NoSession(id.clone()))?;
        self.with_tasks(|tasks| tasks.forget_branches(id).and_then(|()| tasks.forget_spots(id)))?;
        self.tell_changed(id);
        Ok(())
    }

    fn threads(&self, id: &SessionId) -> Result<Vec<Header>> {
        self.with(id, |room| Ok(by_age(room.threads.values().map(|(header, _)| header.clone()).collect())))
    }

    fn spawn(&self, header: &Header) -> Result<()> {
        self.with(&header.session, |room| {
            if room.threads.contains_key(&header.thread) {
                return Err(Error::ThreadExists(header.session.clone(), header.thread.clone()));
            }
            for moment in header.base.iter().chain(&header.parent) {
                if !room.threads.contains_key(&moment.thread) {
                    return Err(Error::NoThread(header.session.clone(), moment.thread.clone()));
                }
            }
            if let Some(moment) = &header.base
                && let Some((base, rows)) = room.threads.get(&moment.thread)
                && moment.seq > last(base, rows)
            {
                return Err(Error::no_entry(&base.session, &base.thread, moment.seq));
            }
            room.threads.insert(header.thread.clone(), (header.clone(), Arc::default()));
            self.tell(&header.session, &header.thread, header.base_seq());
            Ok(())
        })
    }

    fn open(&self, id: &SessionId, thread: &ThreadId, mode: OpenMode) -> Result<Box<dyn Journal>> {
        let (header, rows, ticket) = self.with(id, |room| {
            if mode == OpenMode::Write && room.session.status.is_ended() {
                return Err(Error::Ended(id.clone(), room.session.status.name()));
            }
            let (header, rows) =
                room.threads.get(thread).ok_or_else(|| Error::NoThread(id.clone(), thread.clone()))?;
            let take = |known: Option<()>| Ok((known.is_none().then_some(()), ()));
            let ticket = match mode {
                OpenMode::Read => None,
                OpenMode::Write | OpenMode::Amend => {
                    Some(self.leases.take((id, thread), LeasePurpose::Write, take)?.0)
                }
            };
            Ok((header.clone(), Arc::clone(rows), ticket))
        })?;
        let moment = header.base.clone();
        let store = self.clone();
        let mut journal = MemoryJournal { header, base: None, rows, ticket, store };
        if let Some(moment) = moment {
            journal.base = Some(self.open(id, &moment.thread, OpenMode::Read)?);
        }
        Ok(Box::new(journal))
    }

    fn writer(&self, id: &SessionId) -> Result<Option<Holder>> {
        self.with(id, |_| Ok(self.is_written(id).then(|| self.leases.holder.clone())))
    }

    fn search_index(&self, id: &SessionId) -> Result<Box<dyn SearchIndex>> {
        self.with(id, |room| {
            let shelf = match &room.shelf {
                Some(shelf) => shelf.again()?,
                None => room.shelf.insert(SqliteSearchIndex::memory()?).clone(),
            };
            Ok(Box::new(shelf) as Box<dyn SearchIndex>)
        })
    }
}

struct MemoryJournal {
    header: Header,
    base: Option<Box<dyn Journal>>,
    rows: Rows,
    /// Absent for a reader.
    ticket: Option<ThreadLease<()>>,
    store: MemoryStore,
}

fn last(header: &Header, rows: &Rows) -> Seq {
    header.base_seq() + locked(rows).len() as Seq
}

impl MemoryJournal {
    fn check_writer(&self) -> Result<()> {
        self.ticket.as_ref().map(drop).ok_or(Error::ReadOnly)
    }

    fn row<T>(
        &self,
        seq: Seq,
        own: impl FnOnce(&JournalRow) -> T,
        base: impl FnOnce(&dyn Journal) -> Result<T>,
    ) -> Result<T> {
        let place = seq.checked_sub(self.header.base_seq() + 1);
        match (place, &self.base) {
            (None, Some(journal)) => base(&**journal),
            (place, _) => {
                let rows = locked(&self.rows);
                let row = place.and_then(|i| rows.get(i as usize));
                row.map(own).ok_or_else(|| Error::no_entry(&self.header.session, &self.header.thread, seq))
            }
        }
    }
}

impl Journal for MemoryJournal {
    fn header(&self) -> &Header {
        &self.header
    }

    fn last(&self) -> Seq {
        last(&self.header, &self.rows)
    }

    fn head(&self, seq: Seq) -> Result<Head> {
        if seq == 0 {
            return Ok(Head::START);
        }
        self.row(seq, |row| row.head, |base| base.head(seq))
    }

    fn line(&self, seq: Seq) -> Result<Vec<u8>> {
        self.row(seq, |row| row.line.clone(), |base| base.line(seq))
    }

    fn append(&mut self, after: Seq, rows: &[JournalRow]) -> Result<()> {
        self.check_writer()?;
        let found = self.last();
        if after != found {
            return Err(Error::Moved { expected: after, found });
        }
        check_rows(after, rows)?;
        locked(&self.rows).extend_from_slice(rows);
        let Header { session, thread, .. } = &self.header;
        self.store.tell(session, thread, self.last());
        Ok(())
    }

    fn request_file(&self) -> Result<RequestFile> {
        self.check_writer().and_then(|()| RequestFile::passing())
    }

    fn rewrite(&mut self, change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>) -> Result<u64> {
        self.check_writer()?;
        let lines: Vec<Vec<u8>> = locked(&self.rows).iter().map(|row| row.line.clone()).collect();
        let mut changed = Vec::new();
        for (i, line) in lines.iter().enumerate() {
            let seq = self.header.base_seq() + 1 + i as Seq;
            if let Some(new) = change(seq, &String::from_utf8_lossy(line)) {
                check_rewritten(line, &new)?;
                changed.push((i, new));
            }
        }
        let mut rows = locked(&self.rows);
        let count = changed.len() as u64;
        for (i, line) in changed {
            rows[i].line = line;
        }
        Ok(count)
    }

    fn relabel(&mut self, label: Option<&str>) -> Result<()> {
        self.check_writer()?;
        self.header.label = label.map(str::to_owned);
        let now = &self.header;
        self.store.with(&now.session, |room| {
            if let Some((header, _)) = room.threads.get_mut(&now.thread) {
                header.label.clone_from(&now.label);
            }
            Ok(())
        })
    }

    fn above(&self, thread: &ThreadId) -> Result<Box<dyn Journal>> {
        self.store.open(&self.header.session, thread, OpenMode::Read)
    }
}
