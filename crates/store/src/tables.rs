//! The table of spawned threads, and who has words waiting.
//!
//! An index, like the table of sessions: the journals say the same, and it is made again from them. It is written before
//! the journals are, so that after a crash it names everything that may have to be put right, and sometimes more.

use crate::Result;
use komado_core::journal::{Entry, Record};
use komado_core::thread::Branch;
use komado_core::{Seq, SessionId, ThreadId};
use serde::Serialize;
use std::collections::BTreeMap;

/// Which branches to list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BranchFilter {
    /// All of them.
    All,
    /// Those that a process holds, and those of which the parent was not told.
    Unsettled,
    /// The children of this thread, and not theirs.
    Under(ThreadId),
}

/// Words that one thread has for another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadMail {
    /// Who has them.
    pub from: ThreadId,
    /// The entry that says them.
    pub seq: Seq,
}

/// The table of spawned threads.
pub trait BranchTable: Send + Sync {
    /// Puts a branch into the table, in place of the one with its name. That of a root may be put, and is not listed.
    fn put_branch(&self, branch: &Branch) -> Result<()>;

    /// The spawned threads of a session, those further up first, then by age.
    fn branches(&self, id: &SessionId, which: BranchFilter) -> Result<Vec<Branch>>;

    /// Marks every child of `parent` as one of which it was not told, in one step that outlives a power cut: its anchors
    /// may say what was true once.
    fn unsettle(&self, id: &SessionId, parent: &ThreadId) -> Result<()>;

    /// Takes a branch out: one that never came to be.
    fn drop_branch(&self, id: &SessionId, thread: &ThreadId) -> Result<()>;

    /// Notes that entry `seq` of thread `from` is for `to`.
    fn post(&self, id: &SessionId, to: &ThreadId, mail: &ThreadMail) -> Result<()>;

    /// What waits for `to`, in the order it was posted.
    fn mail(&self, id: &SessionId, to: &ThreadId) -> Result<Vec<ThreadMail>>;

    /// Forgets what `from` had for `to` up to entry `upto`.
    fn taken(&self, id: &SessionId, to: &ThreadId, from: &ThreadId, upto: Seq) -> Result<()>;
}

/// Words that the threads of a session told each other, as their journals say, also those that were gone back on: what was
/// told was told.
#[derive(Default)]
pub struct ToldWords {
    /// Who told whom, and when.
    pub told: Vec<(String, ThreadId, ThreadMail)>,
    /// What each thread has heard of each other one.
    pub heard: BTreeMap<(ThreadId, ThreadId), Seq>,
}

impl ToldWords {
    /// Takes in an entry of `thread`.
    pub fn take(&mut self, thread: &ThreadId, record: Record) {
        match record.entry {
            Entry::Tell { to, .. } => {
                self.told.push((record.timestamp, to, ThreadMail { from: thread.clone(), seq: record.seq }));
            }
            Entry::Heard { from, upto } => {
                let most = self.heard.entry((thread.clone(), from)).or_default();
                *most = upto.max(*most);
            }
            _ => {}
        }
    }

    /// True when these words were heard.
    pub fn was_heard(&self, to: &ThreadId, mail: &ThreadMail) -> bool {
        self.heard.get(&(to.clone(), mail.from.clone())).is_some_and(|upto| mail.seq <= *upto)
    }

    /// What waits for each thread, in the order it was told.
    pub fn waiting(&self) -> impl Iterator<Item = (&ThreadId, &ThreadMail)> {
        let mut all: Vec<_> = self.told.iter().collect();
        all.sort_by_key(|(at, _, mail)| (at, &mail.from, mail.seq));
        all.into_iter().map(|(_, to, mail)| (to, mail)).filter(|(to, mail)| !self.was_heard(to, mail))
    }
}

// Where a client's transcript may go on: a running digest leads to the moments at which it stood.
//
// An index, like the other tables: every mark stands in a journal, and the table is made again from them. It may be
// behind, or name what is no more; the caller checks what it finds against the journal.

/// A moment that a transcript came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TranscriptPlace {
    /// The name it is found by: a running digest, or the digest of a name that a client gave its session.
    pub name: String,
    /// The session.
    pub session: SessionId,
    /// The thread.
    pub thread: ThreadId,
    /// The entry with the mark or the reply; 0 for a session's own name.
    pub seq: Seq,
}

/// Most moments that are given for one name. A batch may begin with the same words any number of times; what is asked for
/// is among the newest.
pub const MOST_SPOTS: usize = 256;

/// The table of moments.
pub trait TranscriptPlaces: Send + Sync {
    /// Notes moments; one that is there already is there once.
    fn note(&self, spots: &[TranscriptPlace]) -> Result<()>;

    /// The moments called `name`, the newest first; [`MOST_SPOTS`] at the most.
    fn spots(&self, name: &str) -> Result<Vec<TranscriptPlace>>;
}

/// The name by which an entry is found: the digest of a client's request, or the name of a reply. A request that only the
/// gateway knows of has none, nor has one whose elements are not the whole transcript.
pub fn spot_of(entry: &Entry) -> Option<&str> {
    let name = match entry {
        Entry::Sent(sent) => sent.mark.as_ref().filter(|mark| !mark.inner).map(|mark| &mark.digest),
        Entry::Message(_, Some(reply)) => reply.id.as_ref(),
        _ => None,
    };
    name.map(String::as_str).filter(|name| !name.is_empty())
}

// What was learned about models, kept for next time.
//
// A lesson is a small JSON text under a name (a base URL and a model). What it says is the engine's business; a store
// keeps it whole, and lets two who learn at once both be heard.

/// From the old text to the new one; `None` to leave it as it is.
pub type Learning<'a> = dyn FnMut(Option<&str>) -> Option<String> + 'a;

/// What was learned.
pub trait Lessons: Send + Sync {
    /// What is known about `about`.
    fn lesson(&self, about: &str) -> Result<Option<String>>;

    /// Everything that is known, by name.
    fn lessons(&self) -> Result<Vec<(String, String)>>;

    /// Puts `new` in the place of `old`, in one step; false when something else is known by now.
    fn put_lesson(&self, about: &str, old: Option<&str>, new: &str) -> Result<bool>;

    /// Forgets what is known about `about`; false when nothing was.
    fn forget(&self, about: &str) -> Result<bool>;

    /// Changes what is known about `about`. What another process learned in between is read, and learned on top of.
    fn learn(&self, about: &str, learning: &mut Learning<'_>) -> Result<()> {
        loop {
            let old = self.lesson(about)?;
            let Some(new) = learning(old.as_deref()) else { return Ok(()) };
            if self.put_lesson(about, old.as_deref(), &new)? {
                return Ok(());
            }
        }
    }
}

// How a store is doing: figures for monitoring.

/// Figures of a store. What a store cannot know cheaply it leaves out.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoreHealthFigures {
    /// `file`, `memory`, `postgres` or `redis`.
    pub kind: &'static str,
    /// Where it is, without secrets.
    pub place: String,
    /// What becomes of an acknowledged entry, in words for people: `outlives …`, `is lost with …`.
    pub durability: String,
    /// True when an acknowledged entry may be lost with the store's process or machine.
    pub may_lose: bool,
    /// What its settings put at risk beyond what one expects of such a store, and which setting ends it.
    pub warnings: Vec<String>,
    /// Sessions it holds.
    pub sessions: Option<u64>,
    /// Keys, rows or files it holds them in.
    pub keys: Option<u64>,
    /// Bytes on its disk.
    pub disk_bytes: Option<u64>,
    /// Bytes in its memory.
    pub memory_bytes: Option<u64>,
    /// Connections that this process has to it.
    pub connections: Option<u64>,
    /// Sessions that ended with their time to live, as far as was noticed.
    pub expired: Option<u64>,
    /// Leases that this process holds.
    #[serde(skip)]
    pub leases: Option<u64>,
}

/// A store that tells how it is doing.
pub trait StoreFigures: Send + Sync {
    /// Asks the store itself; an error when it is away.
    fn vitals(&self) -> Result<StoreHealthFigures>;
}
