//! The table of spawned threads, and who has words waiting.
//!
//! An index, like the table of sessions: the journals say the same, and it is made again from them. It is written before
//! the journals are, so that after a crash it names everything that may have to be put right, and sometimes more.

use crate::Result;
use komado_core::thread::Branch;
use komado_core::{Seq, SessionId, ThreadId};

/// Which branches to list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Which {
    /// All of them.
    All,
    /// Those that a process holds, and those of which the parent was not told.
    Unsettled,
    /// The children of this thread, and not theirs.
    Under(ThreadId),
}

/// Words that one thread has for another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mail {
    /// Who has them.
    pub from: ThreadId,
    /// The entry that says them.
    pub seq: Seq,
}

/// The table of spawned threads.
pub trait Tree: Send + Sync {
    /// Puts a branch into the table, in place of the one with its name. That of a root may be put, and is not listed.
    fn put_branch(&self, branch: &Branch) -> Result<()>;

    /// The spawned threads of a session, those further up first, then by age.
    fn branches(&self, id: &SessionId, which: Which) -> Result<Vec<Branch>>;

    /// Marks every child of `parent` as one of which it was not told, in one step that outlives a power cut: its anchors
    /// may say what was true once.
    fn unsettle(&self, id: &SessionId, parent: &ThreadId) -> Result<()>;

    /// Takes a branch out: one that never came to be.
    fn drop_branch(&self, id: &SessionId, thread: &ThreadId) -> Result<()>;

    /// Notes that entry `seq` of thread `from` is for `to`.
    fn post(&self, id: &SessionId, to: &ThreadId, mail: &Mail) -> Result<()>;

    /// What waits for `to`, in the order it was posted.
    fn mail(&self, id: &SessionId, to: &ThreadId) -> Result<Vec<Mail>>;

    /// Forgets what `from` had for `to` up to entry `upto`.
    fn taken(&self, id: &SessionId, to: &ThreadId, from: &ThreadId, upto: Seq) -> Result<()>;
}

/// The table in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grove {
    branches: Vec<Branch>,
    mail: Vec<(ThreadId, Mail)>,
}

impl Grove {
    pub(crate) fn put(&mut self, branch: &Branch) {
        self.branches.retain(|known| known.thread != branch.thread);
        self.branches.push(branch.clone());
        self.branches
            .sort_by(|a, b| (a.depth, &a.created_at, &a.thread).cmp(&(b.depth, &b.created_at, &b.thread)));
    }

    pub(crate) fn list(&self, which: &Which) -> Vec<Branch> {
        let wanted = |branch: &&Branch| match (which, &branch.parent) {
            (_, None) => false,
            (Which::All, _) => true,
            (Which::Unsettled, _) => is_unsettled(branch),
            (Which::Under(thread), Some(parent)) => thread == parent,
        };
        self.branches.iter().filter(wanted).cloned().collect()
    }

    pub(crate) fn unsettle(&mut self, parent: &ThreadId) {
        let children = self.branches.iter_mut().filter(|branch| branch.parent.as_ref() == Some(parent));
        children.for_each(|branch| branch.told = false);
    }

    pub(crate) fn forget(&mut self, thread: &ThreadId) {
        self.branches.retain(|known| known.thread != *thread);
    }

    pub(crate) fn post(&mut self, to: &ThreadId, mail: &Mail) {
        let new = (to.clone(), mail.clone());
        if !self.mail.contains(&new) {
            self.mail.push(new);
        }
    }

    pub(crate) fn mail(&self, to: &ThreadId) -> Vec<Mail> {
        self.mail.iter().filter(|(whose, _)| whose == to).map(|(_, mail)| mail.clone()).collect()
    }

    pub(crate) fn taken(&mut self, to: &ThreadId, from: &ThreadId, upto: Seq) {
        self.mail.retain(|(whose, mail)| !(whose == to && mail.from == *from && mail.seq <= upto));
    }
}

/// True when someone has to look after it.
pub(crate) fn is_unsettled(branch: &Branch) -> bool {
    !branch.told || (branch.held_by.is_some() && branch.status.is_open())
}
