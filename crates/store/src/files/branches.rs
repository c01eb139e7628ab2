//! `stelis_threads` and `stelis_mail` in `tasks.db`: the tree of spawned threads, for people and their SQL.
//!
//! An index like the table of sessions beside it. A row is written before what it stands for, and durably: after a crash
//! the table names everything that may have to be put right. A root has its row as soon as it has a child, so that every
//! parent in the table is there; it is not listed. Parents are never a reason to refuse a row.

use super::FileStore;
use super::tasks::TaskTable;
use crate::error::odd;
use crate::tables::{BranchFilter, BranchTable, ThreadMail};
use crate::{Journal, OpenMode, Result};
use komado_core::session::State;
use komado_core::thread::{Branch, ThreadStatus};
use komado_core::{Seq, SessionId, ThreadId, thread};
use rusqlite::{Connection, Row, params};

/// Seed 003's table and indexes with ids as text, then what recovery needs.
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS stelis_threads (
    thread_id TEXT PRIMARY KEY,
    parent_thread_id TEXT,
    depth INTEGER NOT NULL DEFAULT 0,
    window_ratio REAL NOT NULL DEFAULT 0.8,
    status TEXT NOT NULL DEFAULT 'active',
    chronicle_summary TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    completed_at TIMESTAMP,
    session TEXT NOT NULL,
    thread TEXT NOT NULL,
    label TEXT,
    held_by TEXT,
    told INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (parent_thread_id) REFERENCES stelis_threads(thread_id)
);
CREATE INDEX IF NOT EXISTS idx_stelis_parent ON stelis_threads(parent_thread_id);
CREATE INDEX IF NOT EXISTS idx_stelis_status ON stelis_threads(status);
CREATE INDEX IF NOT EXISTS idx_stelis_session ON stelis_threads(session);
CREATE TABLE IF NOT EXISTS stelis_mail (
    session TEXT NOT NULL,
    to_thread TEXT NOT NULL,
    from_thread TEXT NOT NULL,
    seq INTEGER NOT NULL,
    UNIQUE (session, to_thread, from_thread, seq)
);
";

/// What someone has to look after. The index and the query say it in the same words, or the index is of no use.
const UNSETTLED: &str =
    "parent_thread_id IS NOT NULL AND (told = 0 OR (held_by IS NOT NULL AND status IN ('active', 'paused')))";

const COLUMNS: &str = "session, thread, parent_thread_id, depth, window_ratio, status, label, chronicle_summary, \
    held_by, told, created_at, completed_at";

const PUT: &str = "INSERT INTO stelis_threads (thread_id, session, thread, parent_thread_id, depth, window_ratio, status, \
    label, chronicle_summary, held_by, told, created_at, completed_at) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) \
    ON CONFLICT (thread_id) DO UPDATE SET parent_thread_id = ?4, depth = ?5, window_ratio = ?6, status = ?7, label = ?8, \
    chronicle_summary = ?9, held_by = ?10, told = ?11, created_at = ?12, completed_at = ?13";

/// Makes the tables where they are missing; refuses others of the same names.
pub(super) fn prepare(db: &Connection) -> rusqlite::Result<()> {
    // The parents are for people to join by; rows come and go in any order.
    db.pragma_update(None, "foreign_keys", "OFF")?;
    // A chronicle may have held a secret that was taken out since.
    db.pragma_update(None, "secure_delete", "ON")?;
    db.execute_batch(SCHEMA)?;
    // Asked at every turn: a session may have had thousands of children, and few of them are unsettled.
    db.execute_batch(&format!(
        "CREATE INDEX IF NOT EXISTS idx_stelis_unsettled ON stelis_threads(session, depth, created_at, thread) \
         WHERE {UNSETTLED}"
    ))?;
    db.prepare(&format!("SELECT thread_id, {COLUMNS} FROM stelis_threads LIMIT 0"))?;
    db.prepare("SELECT session, to_thread, from_thread, seq FROM stelis_mail LIMIT 0").map(|_| ())
}

/// The name of a thread among those of all sessions.
fn address(id: &SessionId, thread: &ThreadId) -> String {
    format!("{id}/{thread}")
}

/// What lists branches, with one key to give.
fn listing(which: &BranchFilter) -> String {
    let wanted = match which {
        BranchFilter::All => "session = ?1 AND parent_thread_id IS NOT NULL".to_owned(),
        BranchFilter::Unsettled => format!("session = ?1 AND {UNSETTLED}"),
        // An address has its session in it.
        BranchFilter::Under(_) => "parent_thread_id = ?1".to_owned(),
    };
    format!("SELECT {COLUMNS} FROM stelis_threads WHERE {wanted} ORDER BY depth, created_at, thread")
}

impl TaskTable {
    /// Puts a branch into the table, in place of the one with its name. Other words that stood there are gone for good.
    pub(super) fn put_branch(&self, branch: &Branch) -> Result<()> {
        let id = &branch.session;
        let other = "SELECT count(*) FROM stelis_threads WHERE thread_id = ?1 AND chronicle_summary <> COALESCE(?2, '')";
        let old = params![address(id, &branch.thread), branch.chronicle_summary];
        let replaces = self.told(self.db.query_row(other, old, |row| row.get::<_, bool>(0)))?;
        let values = params![
            address(id, &branch.thread),
            id.as_str(),
            branch.thread.as_str(),
            branch.parent.as_ref().map(|parent| address(id, parent)),
            branch.depth,
            branch.window_ratio,
            branch.status.name(),
            branch.label,
            branch.chronicle_summary,
            branch.held_by,
            branch.told,
            branch.created_at,
            branch.completed_at,
        ];
        self.write(PUT, values)?;
        if replaces {
            self.wipe();
        }
        Ok(())
    }

    /// Lets no earlier page of the table stay in the log. Where another process reads just now, its next one does it.
    fn wipe(&self) {
        let _ = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }

    /// True when the thread has its row.
    pub(super) fn has_branch(&self, id: &SessionId, thread: &ThreadId) -> Result<bool> {
        let sql = "SELECT count(*) FROM stelis_threads WHERE thread_id = ?1";
        self.told(self.db.query_row(sql, [address(id, thread)], |row| row.get(0)))
    }

    /// The spawned threads of a session, those further up first, then by age.
    pub(super) fn branches(&self, id: &SessionId, which: &BranchFilter) -> Result<Vec<Branch>> {
        let key = match which {
            BranchFilter::All | BranchFilter::Unsettled => id.to_string(),
            BranchFilter::Under(parent) => address(id, parent),
        };
        self.rows(&listing(which), [key], read)
    }

    /// Marks every child of `parent`. Also those that are marked: that may not have reached the disk yet.
    pub(super) fn unsettle(&self, id: &SessionId, parent: &ThreadId) -> Result<()> {
        let sql = "UPDATE stelis_threads SET told = 0 WHERE parent_thread_id = ?1";
        self.write(sql, [address(id, parent)]).map(drop)
    }

    /// Takes a branch out. What its chronicle said is gone for good.
    pub(super) fn drop_branch(&self, id: &SessionId, thread: &ThreadId) -> Result<()> {
        let sql = "DELETE FROM stelis_threads WHERE thread_id = ?1";
        if self.write(sql, [address(id, thread)])? > 0 {
            self.wipe();
        }
        Ok(())
    }

    pub(super) fn post(&self, id: &SessionId, to: &ThreadId, mail: &ThreadMail) -> Result<()> {
        let sql = "INSERT OR IGNORE INTO stelis_mail (session, to_thread, from_thread, seq) VALUES (?1, ?2, ?3, ?4)";
        let values = params![id.as_str(), to.as_str(), mail.from.as_str(), mail.seq];
        self.write(sql, values).map(drop)
    }

    pub(super) fn mail(&self, id: &SessionId, to: &ThreadId) -> Result<Vec<ThreadMail>> {
        let sql =
            "SELECT from_thread, seq FROM stelis_mail WHERE session = ?1 AND to_thread = ?2 ORDER BY rowid";
        let read = |row: &Row<'_>| Ok(ThreadMail { from: thread(row, 0)?, seq: row.get(1)? });
        self.rows(sql, [id.as_str(), to.as_str()], read)
    }

    pub(super) fn taken(&self, id: &SessionId, to: &ThreadId, from: &ThreadId, upto: Seq) -> Result<()> {
        let sql = "DELETE FROM stelis_mail WHERE session = ?1 AND to_thread = ?2 AND from_thread = ?3 AND seq <= ?4";
        let values = params![id.as_str(), to.as_str(), from.as_str(), upto];
        self.write(sql, values).map(drop)
    }

    /// Takes all rows of a session out.
    pub(crate) fn forget_branches(&self, id: &SessionId) -> Result<()> {
        for sql in
            ["DELETE FROM stelis_threads WHERE session = ?1", "DELETE FROM stelis_mail WHERE session = ?1"]
        {
            if self.write(sql, [id.as_str()])? > 0 {
                self.wipe();
            }
        }
        Ok(())
    }

    /// The row of a root follows its session.
    pub(super) fn turn_root(&self, id: &str, to: State, at: &str) -> Result<()> {
        let status = match to {
            State::Queued | State::Running => ThreadStatus::Active,
            State::Paused => ThreadStatus::Paused,
            State::Completed => ThreadStatus::Completed,
            State::Failed | State::Stopped => ThreadStatus::Aborted,
        };
        let sql = "UPDATE stelis_threads SET status = ?2, completed_at = ?3 WHERE thread_id = ?1 || '/root'";
        let ended = to.is_ended().then_some(at);
        self.write(sql, params![id, status.name(), ended]).map(drop)
    }

    /// Runs `run` so that what it writes outlives a power cut, as the journals do.
    pub(super) fn durably<T>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let sync = |how: &str| self.told(self.db.pragma_update(None, "synchronous", how));
        sync("FULL")?;
        let done = run();
        sync("NORMAL")?;
        done
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Branch> {
    let session: String = row.get(0)?;
    let status: String = row.get(5)?;
    let parent: Option<String> = row.get(2)?;
    let parent = parent.map(|parent| {
        let own = parent.strip_prefix(&session).and_then(|rest| rest.strip_prefix('/'));
        ThreadId::new(own.unwrap_or(&parent)).map_err(|e| odd(2, e))
    });
    let wrong = || odd(5, format!("no status: {status:?}: it is active, paused, completed or aborted"));
    Ok(Branch {
        parent: parent.transpose()?,
        thread: thread(row, 1)?,
        depth: row.get(3)?,
        window_ratio: row.get(4)?,
        status: ThreadStatus::named(&status).ok_or_else(wrong)?,
        label: row.get(6)?,
        chronicle_summary: row.get(7)?,
        held_by: row.get(8)?,
        told: row.get(9)?,
        created_at: row.get::<_, Option<String>>(10)?.unwrap_or_default(),
        completed_at: row.get(11)?,
        session: SessionId::new(session).map_err(|e| odd(0, e))?,
    })
}

fn thread(row: &Row<'_>, column: usize) -> rusqlite::Result<ThreadId> {
    ThreadId::new(row.get::<_, String>(column)?).map_err(|e| odd(column, e))
}

/// A store with this table.
pub(crate) trait TaskTableStore: Send + Sync {
    /// Runs `run` on the table.
    fn with_tasks<T>(&self, run: impl FnOnce(&TaskTable) -> Result<T>) -> Result<T>;

    /// An error when there is no such session.
    fn check_session(&self, id: &SessionId) -> Result<()>;

    /// False while the table was not made, and looking is to make none.
    fn is_made(&self) -> bool {
        true
    }

    /// Gives the threads above a branch their rows, where people read the table.
    fn put_parents(&self, _branch: &Branch) -> Result<()> {
        Ok(())
    }

    /// Changes rows of a session that is there.
    fn change_tree<T>(&self, id: &SessionId, run: impl FnOnce(&TaskTable) -> Result<T>) -> Result<T> {
        self.check_session(id)?;
        self.with_tasks(|tasks| {
            tasks.may_change()?;
            run(tasks)
        })
    }
}

impl FileStore {
    /// Gives the threads above a branch their rows where they have none, up to the root. They are for people: what
    /// cannot be read is left out.
    pub(super) fn put_rows_above(&self, branch: &Branch) -> Result<()> {
        let (id, mut next, mut left) = (&branch.session, branch.parent.clone(), branch.depth);
        while let Some(parent) = next.take_if(|_| left > 0) {
            left -= 1;
            if self.with_tasks(|tasks| tasks.has_branch(id, &parent))? {
                return Ok(());
            }
            let Ok(row) = self.branch_of(id, &parent) else { return Ok(()) };
            // A root has no parent: there is no anchor that could say something else.
            let row = Branch { told: row.parent.is_none(), ..row };
            self.with_tasks(|tasks| tasks.put_branch(&row))?;
            next = row.parent;
        }
        Ok(())
    }

    /// The row a thread's journal stands for.
    pub(super) fn branch_of(&self, id: &SessionId, thread: &ThreadId) -> Result<Branch> {
        let journal = self.open_file(id, thread, OpenMode::Read)?;
        thread::branch(journal.header(), &journal)
    }
}

impl<S: TaskTableStore> BranchTable for S {
    fn put_branch(&self, branch: &Branch) -> Result<()> {
        self.change_tree(&branch.session, |tasks| match branch.told {
            true => tasks.put_branch(branch),
            false => tasks.durably(|| tasks.put_branch(branch)),
        })?;
        self.put_parents(branch)
    }

    fn branches(&self, id: &SessionId, which: BranchFilter) -> Result<Vec<Branch>> {
        self.check_session(id)?;
        self.with_tasks(|tasks| tasks.branches(id, &which))
    }

    fn unsettle(&self, id: &SessionId, parent: &ThreadId) -> Result<()> {
        self.change_tree(id, |tasks| tasks.durably(|| tasks.unsettle(id, parent)))
    }

    fn drop_branch(&self, id: &SessionId, thread: &ThreadId) -> Result<()> {
        self.change_tree(id, |tasks| tasks.drop_branch(id, thread))
    }

    fn post(&self, id: &SessionId, to: &ThreadId, mail: &ThreadMail) -> Result<()> {
        self.change_tree(id, |tasks| tasks.durably(|| tasks.post(id, to, mail)))
    }

    fn mail(&self, id: &SessionId, to: &ThreadId) -> Result<Vec<ThreadMail>> {
        self.check_session(id)?;
        self.with_tasks(|tasks| tasks.mail(id, to))
    }

    fn taken(&self, id: &SessionId, to: &ThreadId, from: &ThreadId, upto: Seq) -> Result<()> {
        self.change_tree(id, |tasks| tasks.taken(id, to, from, upto))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// How the table goes about it.
    fn plan(tasks: &TaskTable, sql: &str) -> String {
        let mut statement = tasks.db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.query_map(["s"], |row| row.get::<_, String>(3)).unwrap();
        steps.map(|step| step.unwrap()).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn no_listing_looks_at_more_rows_than_it_gives() {
        let tasks = TaskTable::copy(Path::new("tasks.db")).unwrap();
        let unsettled = plan(&tasks, &listing(&BranchFilter::Unsettled));
        assert_eq!(unsettled, "SEARCH stelis_threads USING INDEX idx_stelis_unsettled (session=?)");
        let under = plan(&tasks, &listing(&BranchFilter::Under(ThreadId::root())));
        assert!(under.contains("USING INDEX idx_stelis_parent (parent_thread_id=?)"), "{under}");
        let all = plan(&tasks, &listing(&BranchFilter::All));
        assert!(all.contains("USING INDEX idx_stelis_session (session=?)"), "{all}");
    }
}
