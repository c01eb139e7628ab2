//! Making again what can be made again: `tasks.db` from the folders.
//!
//! A folder tells everything the table knows: `metadata.json` says how the session was made, the half it lies in and
//! the journal's last [`Close`](komado_core::journal::Close) say where it stands, and the entries say what was done.

use super::folders::HALVES;
use super::journal::JournalAccess;
use super::tasks::{OpenedTable, TaskTable};
use super::{FileJournal, FileStore, TaskTableStore, folders};
use crate::error::IoContext;
use crate::lease::LeasePurpose;
use crate::search_index::SearchIndex;
use crate::{Error, OpenMode, Result, Store};
use komado_core::amount;
use komado_core::head::{EntrySource, Kind};
use komado_core::journal::{Close, Ending, Entry};
use komado_core::session::{Counters, Meta, MetaConfig, Session, State};
use komado_core::{Seq, SessionId, ThreadId, View};
use std::path::{Path, PathBuf};

/// What a rebuild did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rebuilt {
    /// Sessions with a row now.
    pub sessions: u64,
    /// Sessions that could not be read.
    pub unreadable: u64,
}

impl FileStore {
    /// Makes `tasks.db` again from the folders.
    pub fn rebuild(&self) -> Result<Rebuilt> {
        self.remove_left_behind(&HALVES.map(|half| self.base().path().join(half)))?;
        if let Some(done) = self.with_tasks(|tasks| tasks.is_sound().then(|| self.fill(tasks)).transpose())? {
            return Ok(done);
        }
        let mut kept = crate::locked(&self.tasks);
        kept.open = None;
        let (tasks, done) = self.replace_tasks("the file has holes")?;
        kept.open = Some(tasks);
        Ok(done)
    }

    /// Checks the base folder: removes what was left behind in it, and rows without a folder.
    pub fn check_base(&self) -> Result<()> {
        self.remove_left_behind(&HALVES.map(|half| self.base().path().join(half)))?;
        self.with_tasks(|tasks| self.forget_rows(tasks)).map(|_| ())
    }

    /// Checks one session: every line of every journal, every index, the half its folder is in, and its row. Puts
    /// right what can be, and tells what was found. A thread that cannot be read is an error after all the others were
    /// looked at.
    pub fn check(&self, id: &SessionId) -> Result<()> {
        let folder = self.base().session(id)?;
        // While someone writes, what looks left behind may be in use.
        if let Ok(lock) = self.opener.take_whole(id, &folder) {
            self.remove_left_behind(&[folder.join("threads"), folder.join("outputs")])?;
            for folder in self.base().thread(id, &ThreadId::root())?.family()? {
                for path in [folder.unfinished_journal(), folder.unfinished_current()] {
                    self.remove_leftover(&path, path.exists())?;
                }
            }
            drop(lock);
        }
        let unreadable = self.check_threads(id)?;
        self.check_half(id)?;
        self.check_shelf(id)?;
        self.check_row(id)?;
        self.check_tree(id)?;
        self.check_spots(id)?;
        unreadable.map_or(Ok(()), Err)
    }

    /// Checks every thread; gives what is wrong with the first that cannot be read. Without its root nothing can be said
    /// of a session.
    fn check_threads(&self, id: &SessionId) -> Result<Option<Error>> {
        let mut unreadable = None;
        for header in self.threads(id)? {
            match self.check_index(id, &header.thread) {
                Err(why) if !header.thread.is_root() => {
                    unreadable.get_or_insert(why);
                }
                checked => checked?,
            }
        }
        Ok(unreadable)
    }

    /// An index of words that has holes is emptied; the next search fills it.
    fn check_shelf(&self, id: &SessionId) -> Result<()> {
        if !self.base().thread(id, &ThreadId::root())?.recall().exists() {
            return Ok(());
        }
        let mut shelf = self.open_shelf(id)?;
        if !shelf.is_sound() {
            shelf.clear()?;
            self.opener.note(format!("session {id}: recall.db had holes; the next search makes it again"));
        }
        Ok(())
    }

    fn remove_left_behind(&self, folders: &[PathBuf]) -> Result<()> {
        for folder in folders {
            for path in folders::list(folder)? {
                self.remove_leftover(&path, folders::is_left_behind(&path))?;
            }
        }
        Ok(())
    }

    fn remove_leftover(&self, path: &Path, is_one: bool) -> Result<()> {
        if is_one {
            folders::remove(path)?;
            self.opener.note(format!("removed what an earlier run left behind: {}", path.display()));
        }
        Ok(())
    }

    /// Reads the whole journal and compares each head with the index.
    fn check_index(&self, id: &SessionId, thread: &ThreadId) -> Result<()> {
        let indexed = self.open_file(id, thread, OpenMode::Read)?;
        let folder = self.base().thread(id, thread)?;
        let open = |access: JournalAccess| {
            FileJournal::open(&self.opener, folder.clone(), self.opener.open_base(id, &folder)?, access)
        };
        let agrees = indexed.agrees_with(&open(JournalAccess::Anew)?);
        let ticket = match self.opener.ticket(id, thread, LeasePurpose::Repair) {
            Err(Error::Busy { .. }) => return Ok(()),
            taken => taken?,
        };
        if !agrees {
            folders::remove(&folder.index())?;
        }
        let mut journal = open(JournalAccess::Write(ticket))?;
        self.opener.note_repairs(id, thread, &journal);
        // What is derived may hold anything by now; the next writer makes it again.
        journal.index.mark(|marks| (marks.current, marks.tools, marks.summaries) = ([0; 3], [0; 3], [0; 3]));
        Ok(())
    }

    /// A process may have ended between the last word of a session and the move of its folder.
    fn check_half(&self, id: &SessionId) -> Result<()> {
        if self.with_tasks(|tasks| tasks.get(id))?.is_some_and(|row| is_unsettled(&row)) {
            return Ok(());
        }
        let root = self.open_file(id, &ThreadId::root(), OpenMode::Read)?;
        let view = View::fold(&root, EntrySource::last(&root))?;
        let close = view.closed().map(|at| EntrySource::record(&root, at)).transpose()?;
        let ended = close.is_some_and(|record| match record.entry {
            Entry::Close(close) => State::from(close.ending).is_ended(),
            _ => false,
        });
        if ended == self.opener.is_ended(&self.base().session(id)?) {
            return Ok(());
        }
        match self.move_to_half(id, ended) {
            Ok(()) => {
                let half = HALVES[usize::from(ended)];
                self.opener
                    .note(format!("session {id}: its folder was moved to {half}/, as its journal says"));
            }
            // The writer is about to say how it goes on.
            Err(Error::Busy { .. }) => {}
            Err(other) => return Err(other),
        }
        Ok(())
    }

    fn check_row(&self, id: &SessionId) -> Result<()> {
        let was_held = self.is_held(id);
        let before = self.with_tasks(|tasks| tasks.get(id))?;
        let mut now = self.session_of_folder(id, before.as_ref())?;
        let since = self.with_tasks(|tasks| tasks.get(id))?.map(|row| row.counters);
        if let Some(counters) = since
            && (was_held || self.is_held(id) || before.as_ref().is_none_or(|row| row.counters != counters))
        {
            // The writer adds what it wrote when it is done: put in here, it would count twice.
            now.counters = counters;
        }
        if let Some(row) = before.as_ref().filter(|row| row.status == State::Running)
            && now.status == State::Queued
        {
            // Taken from the queue, and nothing said yet: only the table knows.
            (now.status, now.started_at) = (row.status, row.started_at.clone());
        }
        let (was, is) = (before.as_ref().map_or_else(|| "nothing".into(), told), told(&now));
        if was != is {
            self.opener.note(format!("session {id}: the table said {was}, it is {is}"));
            self.with_tasks(|tasks| tasks.put(&now))?;
        }
        Ok(())
    }

    /// True while someone writes a thread of the session.
    fn is_held(&self, id: &SessionId) -> bool {
        let folder = self.base().session(id);
        folder.is_ok_and(|folder| matches!(self.opener.take_whole(id, &folder), Err(Error::Busy { .. })))
    }

    fn check_spots(&self, id: &SessionId) -> Result<()> {
        let alias = self.with_tasks(|tasks| tasks.get(id))?.and_then(|row| row.meta.config.alias);
        let spots = self.spots_of(id, alias.as_deref())?;
        let count = self.with_tasks(|tasks| tasks.note_spots(&spots))?;
        if count > 0 {
            let requests = komado_core::amount::count(count as u64, "request");
            self.opener.note(format!(
                "session {id}: the index by which the gateway finds a conversation again lacked {requests}; they are in it now"
            ));
        }
        Ok(())
    }

    /// Every session with a folder.
    pub fn folders(&self) -> Result<Vec<SessionId>> {
        let mut ids: Vec<SessionId> = self.base().folders()?.into_iter().map(|(id, _, _)| id).collect();
        ids.dedup();
        Ok(ids)
    }

    /// Gives every folder its row, and takes rows without one away.
    pub(super) fn fill(&self, tasks: &TaskTable) -> Result<Rebuilt> {
        let mut done = Rebuilt::default();
        for id in self.forget_rows(tasks)? {
            let known = tasks.get(&id)?;
            let read =
                self.session_of_folder(&id, known.as_ref()).and_then(|row| Ok((row, self.family(&id)?)));
            match read {
                Ok((session, family)) => {
                    tasks.put(&session)?;
                    self.fill_tree(tasks, &id, &family)?;
                    done.sessions += 1;
                }
                Err(error) => {
                    self.opener.note(format!("session {id} cannot be read: {error}"));
                    done.unreadable += 1;
                }
            }
        }
        self.fill_spots(tasks)?;
        Ok(done)
    }

    /// Takes rows without a folder away; gives the sessions that have one. Rows are listed first: a session that is
    /// being made has its folder before its row.
    fn forget_rows(&self, tasks: &TaskTable) -> Result<Vec<SessionId>> {
        let rows = tasks.list(&crate::SessionQuery::default())?;
        let folders = self.folders()?;
        for row in rows.iter().filter(|row| !folders.iter().any(|id| id.as_str() == row.meta.uuid)) {
            if let Ok(id) = SessionId::new(row.meta.uuid.as_str()) {
                tasks.remove(&id)?;
                self.opener.note(format!("session {id}: the table said {}, it is gone", told(row)));
            }
        }
        Ok(folders)
    }

    /// Puts a table that cannot be read aside and makes a new one.
    pub(super) fn replace_tasks(&self, why: &str) -> Result<(TaskTable, Rebuilt)> {
        let path = self.tasks_db();
        let aside = (1..).map(|n| path.with_extension(format!("db.broken-{n}"))).find(|p| !p.exists());
        let aside = aside.unwrap_or_else(|| path.with_extension("db.broken"));
        std::fs::rename(&path, &aside).tried("put aside", &path)?;
        for rest in ["db-wal", "db-shm"] {
            folders::remove(&path.with_extension(rest))?;
        }
        let tasks = match TaskTable::open(&path, None)? {
            OpenedTable::Ready(tasks) | OpenedTable::Unfilled(tasks) => tasks,
            OpenedTable::Broken(why) => return Err(Error::Table(why)),
        };
        let done = self.fill(&tasks)?;
        tasks.filled()?;
        let aside = aside.display();
        self.opener.note(format!(
            "tasks.db could not be read ({why}); it is now {aside}, a new one was made from the folders"
        ));
        Ok((tasks, done))
    }

    /// The row a folder stands for. `known` is what the table has so far: its counters, and what no journal says.
    pub(super) fn session_of_folder(&self, id: &SessionId, known: Option<&Session>) -> Result<Session> {
        let folder = self.base().session(id)?;
        let ended = self.opener.is_ended(&folder);
        let journal = self.open_file(id, &ThreadId::root(), OpenMode::Read)?;
        let meta = self.read_meta(id, &folder, &crate::Journal::header(&journal).timestamp);
        let mut session = Session::new(&meta);
        let view = View::fold(&journal, EntrySource::last(&journal))?;
        if EntrySource::last(&journal) > 0 && session.status == State::Queued {
            (session.status, session.started_at) = (State::Running, Some(meta.created_at.clone()));
        }
        if let Some(at) = view.closed() {
            close_session(&mut session, EntrySource::record(&journal, at)?);
        } else if ended {
            session.status = State::Stopped;
        }
        if let Some(row) = known.filter(|row| is_unsettled(row)) {
            session = row.clone();
        }
        session.counters = self.count(id, known.map(|row| row.counters))?;
        Ok(session)
    }

    /// What all threads add to the counters. Where something cannot be read, that is told, and what was known before
    /// stands: it was counted when it could be.
    fn count(&self, id: &SessionId, known: Option<Counters>) -> Result<Counters> {
        let (mut sum, mut is_whole) = (Counters::default(), true);
        for header in self.threads(id)? {
            let counted = self.open_file(id, &header.thread, OpenMode::Read).map(|journal| count(&journal));
            let (own, unread) = counted.unwrap_or_else(|why| (Counters::default(), Some(why)));
            sum += own;
            if let Some(why) = unread {
                self.opener.note_unreadable(id, &header.thread, &why.to_string());
                is_whole = false;
            }
        }
        Ok(known.filter(|_| !is_whole).unwrap_or(sum))
    }

    fn read_meta(&self, id: &SessionId, folder: &std::path::Path, made: &str) -> Meta {
        let text = std::fs::read(folder.join("metadata.json")).ok();
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_else(|| {
            self.opener.note(format!("session {id}: metadata.json cannot be read"));
            Meta::new(id, made, MetaConfig { meter: "o200k".into(), ..MetaConfig::default() })
        })
    }
}

/// True when something is the matter with a session that goes on, as with one whose import was broken off: then what its
/// journal says is not all of it, and the row is left to the process that finishes it.
fn is_unsettled(row: &Session) -> bool {
    !row.status.is_ended() && row.error_message.is_some()
}

fn told(s: &Session) -> String {
    let Counters { llm_call_count: l, tool_call_count: t, total_tokens: n, compression_count: c, .. } =
        s.counters;
    let Counters { input_tokens, cached_tokens, cache_write_tokens, output_tokens, saved_tokens, .. } =
        s.counters;
    let counts = [(l, "model call"), (t, "tool call"), (n, "token"), (c, "edit")];
    let counts = counts.map(|(n, one)| amount::count(n, one)).join(", ");
    format!(
        "{}, {counts} ({input_tokens} input, {cached_tokens} cached, {cache_write_tokens} cache writes, \
         {output_tokens} output; edits saved {saved_tokens})",
        s.status.name()
    )
}

fn close_session(session: &mut Session, record: komado_core::journal::Record) {
    let Entry::Close(Close { ending, result }) = record.entry else { return };
    session.status = State::from(ending);
    session.updated_at.clone_from(&record.timestamp);
    if session.status.is_ended() {
        session.completed_at = Some(record.timestamp);
    }
    session.error_message = result.filter(|_| ending != Ending::Completed && ending != Ending::Paused);
}

/// What a thread's own entries add to the counters, and what is wrong with the first that cannot be read.
fn count(journal: &FileJournal) -> (Counters, Option<Error>) {
    let (mut sum, mut unread) = (Counters::default(), None);
    for seq in crate::Journal::header(journal).base_seq() + 1..=EntrySource::last(journal) {
        let counted = EntrySource::head(journal, seq).and_then(|head| count_entry(journal, seq, head.kind));
        match counted {
            Ok(one) => sum += one,
            Err(why) => {
                unread.get_or_insert(why);
            }
        }
    }
    (sum, unread)
}

/// What [`Counters::of`] says of an entry, read only where its kind leaves that open.
fn count_entry(journal: &FileJournal, seq: Seq, kind: Kind) -> Result<Counters> {
    match kind {
        Kind::Tool => Ok(Counters { tool_call_count: 1, ..Counters::default() }),
        Kind::Assistant | Kind::Lost | Kind::Chronicle | Kind::Condense | Kind::Truncate | Kind::Trim => {
            Ok(Counters::of(&EntrySource::record(journal, seq)?.entry))
        }
        _ => Ok(Counters::default()),
    }
}
