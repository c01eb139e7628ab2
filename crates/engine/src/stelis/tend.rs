//! Looking after children: the anchors of a thread follow their journals.
//!
//! The table of threads names the children of which the parent is still to be told; with none, nothing is read. A spawn
//! that a crash cut short is put right here, where the parent is open: a child that was never written is written and
//! closed as aborted when its anchor stands, and forgotten when it does not.

use super::anchor::{self, Tale};
use super::finish::{Finish, is_passed_over};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::thread::Thread;
use komado_core::journal::{Anchor, Entry};
use komado_core::thread::{Branch, Header, Moment, Status, branch};
use komado_core::{Kind, Seq, SessionId, ThreadId};
use komado_store::{Error as StoreError, Journal, Mode, Which};

/// A child that was looked after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tended {
    /// The child.
    pub thread: ThreadId,
    /// Where it is in its life.
    pub status: Status,
    /// The entry that changed what its anchor says; none when that was right already, or when a rewind left no anchor.
    pub seq: Option<Seq>,
}

/// What became of looking after one child.
enum Look {
    Told(Tended),
    /// It changed while it was looked at.
    Again,
    /// Someone else has it, or nothing is left of it.
    Passed,
}

impl Thread<'_> {
    /// Brings the anchors of children in line with their journals. Cheap when there is nothing to tell.
    pub fn tend(&mut self) -> Result<Vec<Tended>> {
        self.check_writer()?;
        let rows = self.store().branches(self.session(), Which::Unsettled)?;
        let own = rows.into_iter().filter(|row| !row.told && row.parent.as_ref() == Some(self.id()));
        self.tend_rows(own.collect())
    }

    /// Has every child looked at again: after a rewind, anchors may say what was true then.
    pub(crate) fn unsettle_children(&self) -> Result<()> {
        let rows = self.store().branches(self.session(), Which::All)?;
        for row in rows.into_iter().filter(|row| row.parent.as_ref() == Some(self.id())) {
            self.store().put_branch(&Branch { told: false, ..row })?;
        }
        Ok(())
    }

    fn tend_rows(&mut self, rows: Vec<Branch>) -> Result<Vec<Tended>> {
        let mut tended = Vec::new();
        for row in rows {
            loop {
                match self.tend_one(&row) {
                    Ok(Look::Told(told)) => tended.push(told),
                    Ok(Look::Again) => continue,
                    Ok(Look::Passed) => {}
                    Err(error) if is_passed_over(&error) => {}
                    Err(error) => return Err(error),
                }
                break;
            }
        }
        Ok(tended)
    }

    fn tend_one(&mut self, row: &Branch) -> Result<Look> {
        let journal = match self.store().open(&row.session, &row.thread, Mode::Read) {
            Ok(journal) => journal,
            Err(StoreError::NoThread(..)) => return self.complete_spawn(row),
            Err(error) => return Err(error.into()),
        };
        if journal.last() == 0 {
            return self.end_unbegun(row);
        }
        let seq = self.update_anchor(&*journal)?;
        let now = branch(journal.header(), &*journal)?;
        let status = now.status;
        // One that is open under a thread that has ended waits for its holder to let go: it stays marked until then.
        let told = !status.is_open() || self.status()?.is_open();
        self.store().put_branch(&Branch { told, ..now })?;
        // Who ends a child marks its row after the journal; that mark must not be lost under ours.
        let last = self.store().open(&row.session, &row.thread, Mode::Read)?.last();
        if last != journal.last() {
            return Ok(Look::Again);
        }
        Ok(Look::Told(Tended { thread: row.thread.clone(), status, seq }))
    }

    /// Says in the anchor what the child's journal says, if it says something else.
    fn update_anchor(&mut self, journal: &dyn Journal) -> Result<Option<Seq>> {
        let Some(first) = self.anchor_of(journal.header())? else { return Ok(None) };
        let Entry::Anchor(now) = self.record(self.view().anchor(first))?.entry else { return Ok(None) };
        let tale = Tale::of(journal)?;
        let text = tale.full(anchor::language(&now.text), self.meter(), tale.cap);
        if now.text == text && now.ending == tale.ending() {
            return Ok(None);
        }
        let (thread, label, ending) = (tale.thread.clone(), tale.label.clone(), tale.ending());
        let update = Anchor { thread, label, ending, text, brief: None, first: Some(first) };
        self.append(Entry::Anchor(update)).map(Some)
    }

    /// The first anchor of a child, if it stands in the present of this thread.
    pub(super) fn anchor_of(&self, child: &Header) -> Result<Option<Seq>> {
        let Some(Moment { thread, seq }) = &child.parent else { return Ok(None) };
        let stands = thread == self.id()
            && self.view().on_path(*seq)
            && *seq <= self.last()
            && self.source().head(*seq)?.kind == Kind::Anchor;
        Ok(stands.then_some(*seq))
    }

    /// A child whose journal was never begun: what its anchor promised is made, and broken off at once.
    fn complete_spawn(&mut self, row: &Branch) -> Result<Look> {
        let Some(seq) = self.find_anchor(&row.thread)? else {
            self.store().drop_branch(&row.session, &row.thread)?;
            return Ok(Look::Passed);
        };
        let header = Header {
            session: row.session.clone(),
            thread: row.thread.clone(),
            base: None,
            parent: Some(Moment { thread: self.id().clone(), seq }),
            label: row.label.clone(),
            timestamp: row.created_at.clone(),
        };
        self.store().spawn(&header)?;
        self.end_unbegun(row)
    }

    /// A child that has a journal and nothing in it.
    fn end_unbegun(&mut self, row: &Branch) -> Result<Look> {
        let mut child = self.engine().open_as_left(&row.session, &row.thread, Mode::Write)?;
        let why = Some("it was never begun: the process that spawned it ended".to_owned());
        child.finish(Finish::aborted(why))?;
        Ok(Look::Again)
    }

    /// The anchor in the present of this thread that names `child`.
    fn find_anchor(&self, child: &ThreadId) -> Result<Option<Seq>> {
        for seq in (1..=self.last()).rev().filter(|seq| self.view().on_path(*seq)) {
            if self.source().head(seq)?.kind == Kind::Anchor
                && matches!(self.record(seq)?.entry, Entry::Anchor(anchor) if anchor.thread == *child)
            {
                return Ok(Some(seq));
            }
        }
        Ok(None)
    }
}

impl Engine {
    /// Lets a thread look after its children, unless someone else writes it: then they do, later. True when it did.
    pub(super) fn tell_parent(&self, id: &SessionId, parent: &ThreadId) -> Result<bool> {
        match self.open_as_left(id, parent, Mode::Write) {
            Ok(mut parent) => {
                parent.tend()?;
                parent.settle()?;
                Ok(true)
            }
            Err(error) if is_passed_over(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Refuses a thread that nobody spawned; gives its parent.
    pub(super) fn parent_of(thread: &Thread<'_>) -> Result<ThreadId> {
        match &thread.header().parent {
            Some(moment) => Ok(moment.thread.clone()),
            None => Err(Error::NotSpawned { thread: thread.id().to_string() }),
        }
    }
}
