//! The tree of spawned threads as the file store keeps it: rows in `tasks.db`.

use super::FileStore;
use super::tasks::Tasks;
use crate::tree::{Mail, Tree, Which};
use crate::{Journal, Mode, Result};
use komado_core::thread::{self, Branch};
use komado_core::{Seq, SessionId, ThreadId};

impl FileStore {
    /// Changes rows of a session that is there.
    fn change_tree<T>(&self, id: &SessionId, run: impl FnOnce(&Tasks) -> Result<T>) -> Result<T> {
        self.base().session(id)?;
        self.with_tasks(|tasks| {
            tasks.may_change()?;
            run(tasks)
        })
    }

    /// Gives the threads above a branch their rows where they have none, up to the root. They are for people: what
    /// cannot be read is left out.
    fn put_parents(&self, branch: &Branch) -> Result<()> {
        let (id, mut next, mut left) = (&branch.session, branch.parent.clone(), branch.depth);
        while let Some(parent) = next.take_if(|_| left > 0) {
            left -= 1;
            if self.with_tasks(|tasks| tasks.has_branch(id, &parent))? {
                return Ok(());
            }
            let Ok(row) = self.branch_of(id, &parent) else { return Ok(()) };
            // A root is nobody's child: there is no anchor that could say something else.
            let row = Branch { told: row.parent.is_none(), ..row };
            self.with_tasks(|tasks| tasks.put_branch(&row))?;
            next = row.parent;
        }
        Ok(())
    }

    /// The row a thread's journal stands for.
    pub(super) fn branch_of(&self, id: &SessionId, thread: &ThreadId) -> Result<Branch> {
        let journal = self.open_file(id, thread, Mode::Read)?;
        thread::branch(journal.header(), &journal)
    }
}

impl Tree for FileStore {
    fn put_branch(&self, branch: &Branch) -> Result<()> {
        self.change_tree(&branch.session, |tasks| match branch.told {
            true => tasks.put_branch(branch),
            false => tasks.durably(|| tasks.put_branch(branch)),
        })?;
        self.put_parents(branch)
    }

    fn branches(&self, id: &SessionId, which: Which) -> Result<Vec<Branch>> {
        self.base().session(id)?;
        self.with_tasks(|tasks| tasks.branches(id, &which))
    }

    fn unsettle(&self, id: &SessionId, parent: &ThreadId) -> Result<()> {
        self.change_tree(id, |tasks| tasks.durably(|| tasks.unsettle(id, parent)))
    }

    fn drop_branch(&self, id: &SessionId, thread: &ThreadId) -> Result<()> {
        self.change_tree(id, |tasks| tasks.drop_branch(id, thread))
    }

    fn post(&self, id: &SessionId, to: &ThreadId, mail: &Mail) -> Result<()> {
        self.change_tree(id, |tasks| tasks.durably(|| tasks.post(id, to, mail)))
    }

    fn mail(&self, id: &SessionId, to: &ThreadId) -> Result<Vec<Mail>> {
        self.base().session(id)?;
        self.with_tasks(|tasks| tasks.mail(id, to))
    }

    fn taken(&self, id: &SessionId, to: &ThreadId, from: &ThreadId, upto: Seq) -> Result<()> {
        self.change_tree(id, |tasks| tasks.taken(id, to, from, upto))
    }
}
