//! One process writes a session at a time.
//!
//! The lock is the system's own, on the file `lock` in the session's folder: it goes with the process, however that
//! ends. What is written in the file only says who holds it.

use super::folders::{SessionsFolder, ThreadFolder};
use super::journal::{FileJournal, JournalAccess, ReadProgress, WorkCount};
use super::watch::FileNews;
use super::{folders, journal};
use crate::error::{Holder, IoContext};
use crate::lease::{Lease, LeasePurpose, Leases, ThreadLease};
use crate::{Error, Journal, OpenMode, Result, locked};
use komado_core::{SessionId, ThreadId};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The system's lock. It is given back by name: closing the file alone would leave it with a child process that is
/// just being started and has not yet closed what it inherited.
#[derive(Debug)]
pub(super) struct SessionLock(File);

impl Drop for SessionLock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Lease for SessionLock {
    type Token = ();

    fn token(&self) {}
}

/// Locks the session in `folder`, or says who has it.
fn lock(id: &SessionId, folder: &Path, holder: &Holder) -> Result<SessionLock> {
    let path = folder.join("lock");
    let mut file = super::private().read(true).open(&path).tried("open", &path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(Error::Busy { session: id.clone(), holder: read_holder(&mut file) });
        }
        Err(TryLockError::Error(e)) => return Err(e).tried("lock", &path),
    }
    // Only for people, and first written, then cut: a reader in between still finds a name. The lock holds
    // whether or not there is room to say whose it is.
    let line = serde_json::to_vec(holder).unwrap_or_default();
    let _ = file.write_all_at(&line, 0).and_then(|()| file.set_len(line.len() as u64));
    Ok(SessionLock(file))
}

/// Who holds the session in `folder`, changing nothing in it. The lock is shared with others who look, for a moment.
pub(super) fn holder_of(folder: &Path) -> Result<Option<Holder>> {
    let path = folder.join("lock");
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder.is_dir() => return Ok(None),
        Err(error) => return Err(error).tried("open", &path),
    };
    match file.try_lock_shared() {
        Ok(()) => {
            drop(SessionLock(file));
            Ok(None)
        }
        Err(TryLockError::WouldBlock) => Ok(Some(read_holder(&mut file))),
        Err(TryLockError::Error(error)) => Err(error).tried("lock", &path),
    }
}

fn read_holder(file: &mut File) -> Holder {
    let mut text = Vec::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut text));
    Holder::read(if read.is_ok() { &text } else { &[] })
}

// How a thread on disk is opened: with what it goes on from, and while its session may be on the move.
//
// The store has one of these, and so has every open journal, which finds its siblings with it. It holds no file open
// and decides nothing: it knows the place, the locks, and where to tell what had to be put right.

/// How many forks may stand on one another.
const DEEPEST: usize = 1000;

/// Opens threads. Clones share everything.
#[derive(Clone)]
pub(super) struct JournalOpener {
    pub(super) base: SessionsFolder,
    pub(super) progress: Option<Arc<ReadProgress>>,
    pub(super) tally: Arc<WorkCount>,
    pub(super) chime: Arc<FileNews>,
    pub(super) leases: Arc<Leases<SessionLock>>,
    /// What had to be put right, in words.
    findings: Arc<Mutex<Vec<String>>>,
}

impl JournalOpener {
    pub(super) fn new(base: &Path, holder: Holder) -> Self {
        Self {
            base: SessionsFolder::new(base),
            progress: None,
            tally: Arc::default(),
            chime: FileNews::new(base),
            leases: Leases::new(holder),
            findings: Arc::default(),
        }
    }

    /// The same, without telling how far it has come.
    pub(super) fn silent(&self) -> Self {
        Self { progress: None, ..self.clone() }
    }

    /// Opens a thread, wherever its session is by now.
    pub(super) fn open(&self, id: &SessionId, thread: &ThreadId, mode: OpenMode) -> Result<FileJournal> {
        self.while_moving(id, || {
            let folder = self.base.thread(id, thread)?;
            if mode == OpenMode::Write && self.is_ended(folder.path()) {
                return Err(Error::Ended(id.clone(), "its folder is in completed/"));
            }
            let base = self.open_base(id, &folder)?;
            if mode == OpenMode::Read {
                return self.open_to_read(id, (thread, &folder), base);
            }
            let ticket = self.ticket(id, thread, LeasePurpose::Write)?;
            FileJournal::open(self, folder, base, JournalAccess::Write(ticket))
        })
    }

    /// Tries again when the session was moved to the other half meanwhile, and maybe back.
    pub(super) fn while_moving<T>(&self, id: &SessionId, run: impl Fn() -> Result<T>) -> Result<T> {
        let mut left = 64;
        loop {
            let folder = self.base.session(id)?;
            match run() {
                Err(error) if left > 0 && (error.is_missing() || !folder.is_dir()) => left -= 1,
                done => return done,
            }
        }
    }

    /// Opens what a fork goes on from: the eldest first, each to be the base of the next.
    pub(super) fn open_base(
        &self,
        id: &SessionId,
        folder: &ThreadFolder,
    ) -> Result<Option<Box<FileJournal>>> {
        let mut chain = Vec::new();
        let mut next = folders::base_of(folder)?;
        while let Some(moment) = next {
            if chain.len() >= DEEPEST {
                let why =
                    format!("more than {DEEPEST} forks stand on one another, or they go round in a circle");
                return Err(Error::damaged(folder.path().display().to_string(), why));
            }
            let folder = self.base.thread(id, &moment.thread)?;
            next = folders::base_of(&folder)?;
            chain.push((moment.thread, folder));
        }
        let mut base = None;
        for (thread, folder) in chain.iter().rev() {
            base = Some(Box::new(self.open_to_read(id, (thread, folder), base)?));
        }
        Ok(base)
    }

    /// Opens a thread to look, and brings its index forward first where that can be done.
    fn open_to_read(
        &self,
        id: &SessionId,
        (thread, folder): (&ThreadId, &ThreadFolder),
        mut base: Option<Box<FileJournal>>,
    ) -> Result<FileJournal> {
        let mut access = JournalAccess::Follow;
        if !journal::is_settled(folder)? {
            // The lock is needed only when the index is behind and no writer is about to bring it forward. Where it
            // cannot be had, or not be made use of, there is still the journal.
            match self.ticket(id, thread, LeasePurpose::Repair) {
                Ok(ticket) => {
                    match FileJournal::open(self, folder.clone(), base, JournalAccess::Write(ticket)) {
                        Ok(repaired) => {
                            self.note_repairs(id, thread, &repaired);
                            base = repaired.into_base();
                        }
                        Err(_) => (base, access) = (self.open_base(id, folder)?, JournalAccess::Read),
                    }
                }
                Err(Error::Busy { .. }) => {}
                Err(_) => access = JournalAccess::Read,
            }
        }
        FileJournal::open(self, folder.clone(), base, access)
    }

    pub(super) fn note_repairs(&self, id: &SessionId, thread: &ThreadId, journal: &FileJournal) {
        for note in journal.notes() {
            self.note(format!("{id}/{thread}: {note}"));
        }
    }

    /// Notes what of a thread cannot be read, once: counting and checking the tree come across the same line.
    pub(super) fn note_unreadable(&self, id: &SessionId, thread: &ThreadId, why: &str) {
        let found = format!("{id}/{thread}: not all of it can be read: {why}");
        let mut findings = locked(&self.findings);
        if !findings.contains(&found) {
            findings.push(found);
        }
    }

    pub(super) fn note(&self, finding: String) {
        locked(&self.findings).push(finding);
    }

    pub(super) fn take_findings(&self) -> Vec<String> {
        std::mem::take(&mut locked(&self.findings))
    }

    /// True for a folder in `completed`.
    pub(super) fn is_ended(&self, folder: &Path) -> bool {
        folder.starts_with(self.base.path().join("completed"))
    }

    /// Takes the whole session in `folder`; refused while a thread of it is written, here or elsewhere.
    pub(super) fn take_whole(&self, id: &SessionId, folder: &Path) -> Result<SessionLock> {
        self.leases.while_idle(id, |is_idle| match is_idle {
            true => lock(id, folder, &self.leases.holder),
            false => Err(self.leases.busy(id)),
        })
    }

    pub(super) fn ticket(
        &self,
        id: &SessionId,
        thread: &ThreadId,
        purpose: LeasePurpose,
    ) -> Result<ThreadLease<SessionLock>> {
        let folder = self.base.session(id)?;
        let take = |known: Option<()>| {
            let lock = known.is_none().then(|| lock(id, &folder, &self.leases.holder));
            Ok((lock.transpose()?, ()))
        };
        self.leases.take((id, thread), purpose, take).map(|(ticket, ())| ticket)
    }
}
