//! Looking after children: the anchors of a thread follow their journals.
//!
//! The table of threads names the children of which the parent is still to be told; with none, nothing is read. A spawn
//! that a crash cut short is put right here, where the parent is open: a child that was never written is written and
//! closed as aborted when its anchor stands, and forgotten when it does not.
//!
//! A fork also looks after the anchors it shares with the thread it left, as long as they say that a child has not ended:
//! it says in its own journal what became of that child. The mark in the table is for the child's parent alone.

use super::anchor::{self, Tale};
use super::finish::{Finish, is_passed_over};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lineage;
use crate::thread::Thread;
use komado_core::journal::{Anchor, Entry};
use komado_core::thread::{Branch, Header, Moment, Status, branch};
use komado_core::view::Piece;
use komado_core::{Kind, Seq, SessionId, Span, ThreadId};
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

/// An anchor in the part that a fork shares, which says that its child has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Elder {
    child: ThreadId,
    first: Seq,
    /// The last entry of the child that was looked at.
    seen: Option<Seq>,
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
        let mut own = self.unsettled()?;
        if self.recover_own(&own)? {
            own = self.unsettled()?;
        }
        let mut tended = self.tend_rows(own.into_iter().filter(|row| !row.told).collect())?;
        tended.extend(self.tend_shared()?);
        Ok(tended)
    }

    /// The rows of children that someone has to look after.
    fn unsettled(&self) -> Result<Vec<Branch>> {
        let mut rows = self.store().branches(self.session(), Which::Unsettled)?;
        rows.retain(|row| row.parent.as_ref() == Some(self.id()));
        Ok(rows)
    }

    /// Breaks off the children that lost their holders: a guard may have failed to. True when there were any.
    fn recover_own(&self, rows: &[Branch]) -> Result<bool> {
        let mut found = false;
        for row in rows.iter().filter(|row| row.held_by.is_some() && row.status.is_open()) {
            // Refused at once while its holder lives; nothing of it is read then.
            let free = self.store().open(&row.session, &row.thread, Mode::Write).map(drop);
            match free.map_err(Error::from).and_then(|()| self.engine().recover_one(row)) {
                Ok(recovered) => found |= recovered.is_some(),
                Err(error) if is_passed_over(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Brings the anchors in line that this fork shares with the thread it left. Those that say that a child has ended are
    /// not looked at again.
    fn tend_shared(&mut self) -> Result<Vec<Tended>> {
        let mut tended = Vec::new();
        for mut elder in self.elders()? {
            match self.tend_elder(&mut elder) {
                Ok(told) => tended.extend(told),
                Err(error) if is_passed_over(&error) => {}
                Err(error) => return Err(error),
            }
            if let Some(known) = self.elders.as_mut() {
                known.retain(|known| known.first != elder.first);
            }
            if self.says_open(elder.first)? {
                self.elders.get_or_insert_default().push(elder);
            }
        }
        Ok(tended)
    }

    fn tend_elder(&mut self, elder: &mut Elder) -> Result<Option<Tended>> {
        let journal = self.store().open(self.session(), &elder.child, Mode::Read)?;
        let last = journal.last();
        // One without a share is for its parent to put right.
        if last == 0 || elder.seen == Some(last) {
            return Ok(None);
        }
        let Some(seq) = self.say_anchor(elder.first, &*journal)? else {
            elder.seen = Some(last);
            return Ok(None);
        };
        elder.seen = Some(last);
        let status = branch(journal.header(), &*journal)?.status;
        Ok(Some(Tended { thread: elder.child.clone(), status, seq: Some(seq) }))
    }

    /// The anchors of others' children in the shared part of a fork that say that the child has not ended. The headers are
    /// read once; later only what is known to be open is looked at.
    fn elders(&mut self) -> Result<Vec<Elder>> {
        if self.header().base.is_none() {
            return Ok(Vec::new());
        }
        if let Some(known) = &self.elders {
            return Ok(known.clone());
        }
        let mut found = Vec::new();
        if !self.store().branches(self.session(), Which::All)?.is_empty() {
            let headers = self.store().threads(self.session())?;
            let now = Moment { thread: self.id().clone(), seq: self.last() };
            let before = &lineage::line(&headers, now)[1..];
            for header in &headers {
                let Some(Moment { thread, seq }) = &header.parent else { continue };
                let is_shared = before.iter().any(|line| line.thread == *thread && *seq <= line.seq);
                if is_shared && self.says_open(*seq)? {
                    found.push(Elder { child: header.thread.clone(), first: *seq, seen: None });
                }
            }
        }
        self.elders = Some(found.clone());
        Ok(found)
    }

    /// True when the anchor at `first` stands and says that its child has not ended.
    fn says_open(&self, first: Seq) -> Result<bool> {
        let stands = self.view().on_path(first)
            && first <= self.last()
            && self.source().head(first)?.kind == Kind::Anchor;
        if !stands {
            return Ok(false);
        }
        Ok(match self.record(self.view().anchor(first))?.entry {
            Entry::Anchor(anchor) => Status::from(anchor.ending).is_open(),
            _ => false,
        })
    }

    /// Refuses an edit that takes the anchor of a child out of the view that has not ended: how it ended would not be seen.
    pub(crate) fn check_anchors(&self, hide: &[Span]) -> Result<()> {
        for piece in self.view().pieces() {
            let run = match *piece {
                Piece::Run(run) => run,
                Piece::Replaced { seq, .. } => Span::new(seq, seq),
                Piece::Shown { .. } => continue,
            };
            for span in hide.iter().filter(|span| span.meets(run)) {
                for seq in span.from.max(run.from)..=span.to.min(run.to) {
                    self.check_anchor(seq)?;
                }
            }
        }
        Ok(())
    }

    fn check_anchor(&self, seq: Seq) -> Result<()> {
        if self.source().head(seq)?.kind != Kind::Anchor
            || self.view().is_pinned(seq)
            || !self.says_open(seq)?
        {
            return Ok(());
        }
        match self.record(seq)?.entry {
            Entry::Anchor(anchor) => Err(Error::OpenAnchor { seq, thread: anchor.thread.to_string() }),
            _ => Ok(()),
        }
    }

    /// Has every child looked at again: after a rewind, anchors may say what was true then.
    pub(crate) fn unsettle_children(&self) -> Result<()> {
        Ok(self.store().unsettle(self.session(), self.id())?)
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
        self.say_anchor(first, journal)
    }

    fn say_anchor(&mut self, first: Seq, journal: &dyn Journal) -> Result<Option<Seq>> {
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

    /// The first anchor of a child, if it stands in the present of this thread; the newest one, where it got another
    /// when it was resumed.
    pub(super) fn anchor_of(&self, child: &Header) -> Result<Option<Seq>> {
        let Some(Moment { thread, seq }) = &child.parent else { return Ok(None) };
        if thread == self.id()
            && let Some(again) = self.find_anchor(&child.thread)?.filter(|again| again > seq)
        {
            return Ok(Some(again));
        }
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
        child.break_off_unbegun(self, row)?;
        Ok(Look::Again)
    }

    /// Closes a thread in which nothing was ever written; first it gets the share that it was to have, as far as that is
    /// still known, so that it can be resumed like any other.
    pub(super) fn break_off_unbegun(&mut self, parent: &Thread<'_>, row: &Branch) -> Result<()> {
        let share = self.least_share(parent, row)?;
        self.append(Entry::Share(share))?;
        let why = Some("it was never begun: the process that spawned it ended".to_owned());
        self.finish(Finish::aborted(why))?;
        Ok(())
    }

    /// The anchor in the present of this thread that names `child`.
    fn find_anchor(&self, child: &ThreadId) -> Result<Option<Seq>> {
        let is_its = |entry| matches!(entry, Entry::Anchor(anchor) if anchor.thread == *child);
        self.newest(|kind| kind == Kind::Anchor, |record| is_its(record.entry).then_some(record.seq))
    }
}

impl Engine {
    /// Lets a thread look after its children, unless someone else writes it: then they do, later. True when it did.
    pub(crate) fn tell_parent(&self, id: &SessionId, parent: &ThreadId) -> Result<bool> {
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
