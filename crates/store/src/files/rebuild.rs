//! Making again what can be made again: `tasks.db` from the folders.
//!
//! A folder tells everything the table knows: `metadata.json` says how the session was made, the half it lies in and
//! the journal's last [`Close`](komado_core::journal::Close) say where it stands, and the entries say what was done.

use super::place::Folder;
use super::tasks::Tasks;
use super::FileStore;
use crate::error::Tried;
use crate::{Error, Mode, Note, Result, Store};
use komado_core::head::{Kind, Source};
use komado_core::journal::{Close, Ending, Entry};
use komado_core::session::{Counters, Meta, MetaConfig, Session, State, TaskKey};
use komado_core::thread::Header;
use komado_core::{SessionId, ThreadId, View};
use std::io::{BufRead, BufReader, Read};

/// Something that was not as it should be.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Finding {
    /// `tasks.db` could not be read; it was put aside and made again.
    TasksReplaced {
        /// What was wrong with it.
        why: String,
        /// Where it is now.
        aside: String,
    },
    /// `tasks.db` was not there and was made from the folders.
    TasksMade {
        /// Rows in it.
        rows: u64,
    },
    /// A session that cannot be read.
    Unreadable {
        /// The session.
        session: String,
        /// What is wrong with it.
        why: String,
    },
    /// Something put right in a thread.
    Repaired {
        /// The thread.
        thread: String,
        /// What.
        note: Note,
    },
    /// `metadata.json` was missing or could not be read.
    NoMetadata {
        /// The session.
        session: String,
    },
    /// The row said something else than the folder.
    RowChanged {
        /// The session.
        session: String,
        /// What the row said.
        was: String,
        /// What it says now.
        is: String,
    },
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TasksReplaced { why, aside } => {
                write!(f, "tasks.db could not be read ({why}); it is now {aside}, a new one was made from the folders")
            }
            Self::TasksMade { rows } => write!(f, "tasks.db was missing; made again with {rows} sessions"),
            Self::Unreadable { session, why } => write!(f, "session {session} cannot be read: {why}"),
            Self::Repaired { thread, note } => write!(f, "{thread}: {note}"),
            Self::NoMetadata { session } => write!(f, "session {session}: metadata.json cannot be read"),
            Self::RowChanged { session, was, is } => write!(f, "session {session}: the table said {was}, it is {is}"),
        }
    }
}

/// What a rebuild did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rebuilt {
    /// Sessions with a row now.
    pub sessions: u64,
    /// Sessions that could not be read.
    pub unreadable: u64,
}

pub(super) fn read_header(folder: &Folder) -> Result<Header> {
    let path = folder.journal();
    let file = std::fs::File::open(&path).tried("open", &path)?;
    let mut line = Vec::new();
    BufReader::new(file).take(1 << 16).read_until(b'\n', &mut line).tried("read", &path)?;
    Header::decode(&String::from_utf8_lossy(&line)).map_err(|source| Error::Header { path, source })
}

impl FileStore {
    /// Makes `tasks.db` again from the folders.
    pub fn rebuild(&self) -> Result<Rebuilt> {
        self.with_tasks(|tasks| self.fill(tasks, true))
    }

    /// Checks every session against its folder, puts right what can be, and tells what was found.
    pub fn check(&self, id: &SessionId) -> Result<()> {
        let before = self.with_tasks(|tasks| tasks.get(id))?;
        let now = self.session_of_folder(id)?;
        if before.as_ref() == Some(&now) {
            return Ok(());
        }
        let told = |s: &Session| {
            let Counters { llm_call_count: l, tool_call_count: t, total_tokens: n, compression_count: c } = s.counters;
            format!("{}, {l} model calls, {t} tool calls, {n} tokens, {c} edits", s.status.name())
        };
        let (was, is) = (before.as_ref().map_or_else(|| "nothing".into(), told), told(&now));
        if was != is {
            self.note(Finding::RowChanged { session: id.to_string(), was, is });
            self.with_tasks(|tasks| tasks.put(&now))?;
        }
        Ok(())
    }

    /// Every session with a folder.
    pub fn folders(&self) -> Result<Vec<SessionId>> {
        Ok(self.base.folders()?.into_iter().map(|(id, _, _)| id).collect())
    }

    pub(super) fn note(&self, finding: Finding) {
        super::locked(&self.findings).push(finding);
    }

    pub(super) fn fill(&self, tasks: &Tasks, always: bool) -> Result<Rebuilt> {
        let mut done = Rebuilt::default();
        let folders = self.base.folders()?;
        let known = tasks.list(&crate::Query::default())?;
        for session in known.iter().filter(|s| !folders.iter().any(|(id, _, _)| id.as_str() == s.meta.uuid)) {
            if let Ok(id) = SessionId::new(session.meta.uuid.as_str()) {
                tasks.remove(&id)?;
            }
        }
        for (id, _, _) in &folders {
            match self.session_of_folder(id) {
                Ok(session) => {
                    tasks.put(&session)?;
                    done.sessions += 1;
                }
                Err(error) => {
                    self.note(Finding::Unreadable { session: id.to_string(), why: error.to_string() });
                    done.unreadable += 1;
                }
            }
        }
        if !always && done.sessions > 0 {
            self.note(Finding::TasksMade { rows: done.sessions });
        }
        Ok(done)
    }

    /// Puts a table that cannot be read aside and makes a new one.
    pub(super) fn replace_tasks(&self, why: &str) -> Result<Tasks> {
        let path = self.tasks_db();
        let aside = (1..).map(|n| path.with_extension(format!("db.broken-{n}"))).find(|p| !p.exists());
        let aside = aside.unwrap_or_else(|| path.with_extension("db.broken"));
        std::fs::rename(&path, &aside).tried("put aside", &path)?;
        for rest in ["db-wal", "db-shm"] {
            let _ = std::fs::remove_file(path.with_extension(rest));
        }
        let tasks = Tasks::open(&path)?;
        self.fill(&tasks, true)?;
        self.note(Finding::TasksReplaced { why: why.into(), aside: aside.display().to_string() });
        Ok(tasks)
    }

    /// The row a folder stands for.
    pub(super) fn session_of_folder(&self, id: &SessionId) -> Result<Session> {
        let folder = self.base.session(id)?;
        let ended = folder.starts_with(self.base.path().join("completed"));
        let journal = self.open_file(id, &ThreadId::root(), Mode::Read)?;
        let meta = self.read_meta(id, &folder, &crate::Journal::header(&journal).timestamp);
        let mut session = Session::new(&meta);
        let view = View::fold(&journal, Source::last(&journal))?;
        if Source::last(&journal) > 0 && session.status == State::Queued {
            (session.status, session.started_at) = (State::Running, Some(meta.created_at.clone()));
        }
        if let Some(at) = view.closed() {
            close_session(&mut session, Source::record(&journal, at)?);
        } else if ended {
            session.status = State::Stopped;
        }
        for header in self.threads(id)? {
            let journal = self.open_file(id, &header.thread, Mode::Read)?;
            session.counters += count(&journal)?;
        }
        Ok(session)
    }

    fn read_meta(&self, id: &SessionId, folder: &std::path::Path, made: &str) -> Meta {
        let text = std::fs::read(folder.join("metadata.json")).ok();
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_else(|| {
            self.note(Finding::NoMetadata { session: id.to_string() });
            Meta {
                uuid: id.to_string(),
                task_key: TaskKey::local(id),
                created_at: made.to_owned(),
                process_id: 0,
                hostname: String::new(),
                config: MetaConfig { meter: "o200k".into(), ..MetaConfig::default() },
                user: None,
                queued: false,
            }
        })
    }
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

/// What a thread's own entries add to the counters.
fn count(journal: &super::FileJournal) -> Result<Counters> {
    let mut sum = Counters::default();
    for seq in crate::Journal::header(journal).base_seq() + 1..=Source::last(journal) {
        match Source::head(journal, seq)?.kind {
            Kind::Assistant | Kind::Lost => sum += Counters::of(&Source::record(journal, seq)?.entry),
            Kind::Tool => sum.tool_call_count += 1,
            kind if kind.is_edit() => sum.compression_count += 1,
            _ => {}
        }
    }
    Ok(sum)
}
