//! How a thread on disk is opened: with what it goes on from, and while its session may be on the move.
//!
//! The store has one of these, and so has every open journal, which finds its siblings with it. It holds no file open
//! and decides nothing: it knows the place, the locks, and where to tell what had to be put right.

use super::header;
use super::journal::{self, Access, FileJournal, Progress, Tally};
use super::lease::{Leases, Purpose, Ticket};
use super::place::{Base, Folder};
use super::rebuild::Finding;
use super::watch::Chime;
use crate::error::Holder;
use crate::{Error, Journal, Mode, Result, locked};
use komado_core::{SessionId, ThreadId};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// How many forks may stand on one another.
const DEEPEST: usize = 1000;

/// Opens threads. Clones share everything.
#[derive(Clone)]
pub(super) struct Opener {
    pub(super) base: Base,
    pub(super) progress: Option<Arc<Progress>>,
    pub(super) tally: Arc<Tally>,
    pub(super) chime: Arc<Chime>,
    pub(super) leases: Arc<Leases>,
    findings: Arc<Mutex<Vec<Finding>>>,
}

impl Opener {
    pub(super) fn new(base: &Path, holder: Holder) -> Self {
        Self {
            base: Base::new(base),
            progress: None,
            tally: Arc::default(),
            chime: Chime::new(base),
            leases: Leases::new(holder),
            findings: Arc::default(),
        }
    }

    /// The same, telling nobody how far it has come.
    pub(super) fn silent(&self) -> Self {
        Self { progress: None, ..self.clone() }
    }

    /// Opens a thread, wherever its session is by now.
    pub(super) fn open(&self, id: &SessionId, thread: &ThreadId, mode: Mode) -> Result<FileJournal> {
        self.while_moving(id, || {
            let folder = self.base.thread(id, thread)?;
            if mode == Mode::Write && self.is_ended(folder.path()) {
                return Err(Error::Ended(id.clone(), "its folder is in completed/"));
            }
            let base = self.open_base(id, &folder)?;
            if mode == Mode::Read {
                return self.open_to_read(id, (thread, &folder), base);
            }
            let ticket = self.ticket(id, thread, Purpose::Write)?;
            FileJournal::open(self, folder, base, Access::Write(ticket))
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
    pub(super) fn open_base(&self, id: &SessionId, folder: &Folder) -> Result<Option<Box<FileJournal>>> {
        let mut chain = Vec::new();
        let mut next = header::base_of(folder)?;
        while let Some(moment) = next {
            if chain.len() >= DEEPEST {
                let why =
                    format!("more than {DEEPEST} forks stand on one another, or they go round in a circle");
                return Err(Error::damaged(folder.path().display().to_string(), why));
            }
            let folder = self.base.thread(id, &moment.thread)?;
            next = header::base_of(&folder)?;
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
        (thread, folder): (&ThreadId, &Folder),
        mut base: Option<Box<FileJournal>>,
    ) -> Result<FileJournal> {
        let mut access = Access::Follow;
        if !journal::is_settled(folder)? {
            // The lock is needed only when the index is behind and nobody is about to bring it forward. Where it
            // cannot be had, or not be made use of, there is still the journal.
            match self.ticket(id, thread, Purpose::Repair) {
                Ok(ticket) => match FileJournal::open(self, folder.clone(), base, Access::Write(ticket)) {
                    Ok(repaired) => {
                        self.note_repairs(id, thread, &repaired);
                        base = repaired.into_base();
                    }
                    Err(_) => (base, access) = (self.open_base(id, folder)?, Access::Read),
                },
                Err(Error::Busy { .. }) => {}
                Err(_) => access = Access::Read,
            }
        }
        FileJournal::open(self, folder.clone(), base, access)
    }

    pub(super) fn note_repairs(&self, id: &SessionId, thread: &ThreadId, journal: &FileJournal) {
        for note in journal.notes() {
            self.note(Finding::Repaired { thread: format!("{id}/{thread}"), note: note.clone() });
        }
    }

    /// Notes what of a thread cannot be read, once: whoever counts and whoever looks at the tree come across the same line.
    pub(super) fn note_unreadable(&self, id: &SessionId, thread: &ThreadId, why: String) {
        let found = Finding::UnreadableThread { thread: format!("{id}/{thread}"), why };
        let mut findings = locked(&self.findings);
        if !findings.contains(&found) {
            findings.push(found);
        }
    }

    pub(super) fn note(&self, finding: Finding) {
        locked(&self.findings).push(finding);
    }

    pub(super) fn take_findings(&self) -> Vec<Finding> {
        std::mem::take(&mut locked(&self.findings))
    }

    /// True for a folder in `completed`.
    pub(super) fn is_ended(&self, folder: &Path) -> bool {
        folder.starts_with(self.base.path().join("completed"))
    }

    pub(super) fn ticket(&self, id: &SessionId, thread: &ThreadId, purpose: Purpose) -> Result<Ticket> {
        self.leases.take(id, thread, &self.base.session(id)?, purpose)
    }
}
