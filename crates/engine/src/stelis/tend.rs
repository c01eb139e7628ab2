//! Looking after children: the anchors of a thread follow their journals.
//!
//! The table of threads names the children of which the parent is still to be told; with none, nothing is read. A spawn
//! that a crash cut short is put right here, where the parent is open: a child that was never written is written and
//! closed as aborted when its anchor stands, and forgotten when it does not.
//!
//! A fork also looks after the anchors it shares with the thread it left, as long as they say that a child has not ended:
//! it says in its own journal what became of that child. The mark in the table is for the child's parent alone.

use super::anchor;
use super::anchor::AnchorFacts;
use super::finish::{Finish, unless_passed_over};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lineage;
use crate::thread::Thread;
use komado_core::journal::{Anchor, Chronicle, Entry, Ratio};
use komado_core::share::Shares;
use komado_core::thread::{Branch, Header, Moment, ThreadStatus, branch};
use komado_core::view::ViewPiece;
use komado_core::{Kind, Seq, SessionId, Span, ThreadId};
use komado_store::{BranchFilter, Error as StoreError, Journal, OpenMode};
use std::collections::BTreeSet;

/// A child that was looked after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TendedChild {
    /// The child.
    pub thread: ThreadId,
    /// Where it is in its life.
    pub status: ThreadStatus,
    /// The entry that changed what its anchor says; none when that was right already, or when a rewind left no anchor.
    pub seq: Option<Seq>,
}

/// An anchor in the part that a fork shares, which says that its child has not ended.
#[derive(Clone, Debug)]
pub(crate) struct SharedAnchor {
    child: ThreadId,
    first: Seq,
    /// The last entry of the child that was looked at.
    seen: Option<Seq>,
}

impl Thread<'_> {
    /// Brings the anchors of children in line with their journals. Cheap when there is nothing to tell.
    pub fn tend(&mut self) -> Result<Vec<TendedChild>> {
        self.check_writer()?;
        let mut own = self.unsettled()?;
        if self.recover_own(&own)? {
            own = self.unsettled()?;
        }
        let mut tended = Vec::new();
        for row in own.iter().filter(|row| !row.told) {
            tended.extend(unless_passed_over(self.tend_one(row))?.flatten());
        }
        tended.extend(self.tend_shared()?);
        Ok(tended)
    }

    /// The rows of children that someone has to look after.
    fn unsettled(&self) -> Result<Vec<Branch>> {
        let mut rows = self.store().branches(self.session(), BranchFilter::Unsettled)?;
        rows.retain(|row| row.parent.as_ref() == Some(self.id()));
        Ok(rows)
    }

    /// Breaks off the children that lost their holders: a guard may have failed to. True when there were any.
    fn recover_own(&self, rows: &[Branch]) -> Result<bool> {
        let mut found = false;
        for row in rows.iter().filter(|row| row.held_by.is_some() && row.status.is_open()) {
            // Refused at once while its holder lives; nothing of it is read then.
            let free = self.store().open(&row.session, &row.thread, OpenMode::Write).map(drop);
            let recovered = free.map_err(Error::from).and_then(|()| self.engine().recover_one(row));
            found |= unless_passed_over(recovered)?.flatten().is_some();
        }
        Ok(found)
    }

    /// Brings the anchors in line that this fork shares with the thread it left. Those that say that a child has ended are
    /// not looked at again.
    fn tend_shared(&mut self) -> Result<Vec<TendedChild>> {
        let mut tended = Vec::new();
        for mut elder in self.elders()? {
            tended.extend(unless_passed_over(self.tend_elder(&mut elder))?.flatten());
            if let Some(known) = self.elders.as_mut() {
                known.retain(|known| known.first != elder.first);
            }
            if self.says_open(elder.first)? {
                self.elders.get_or_insert_default().push(elder);
            }
        }
        Ok(tended)
    }

    fn tend_elder(&mut self, elder: &mut SharedAnchor) -> Result<Option<TendedChild>> {
        let journal = self.store().open(self.session(), &elder.child, OpenMode::Read)?;
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
        Ok(Some(TendedChild { thread: elder.child.clone(), status, seq: Some(seq) }))
    }

    /// The anchors of others' children in the shared part of a fork that say that the child has not ended. The headers are
    /// read once; later only what is known to be open is looked at.
    fn elders(&mut self) -> Result<Vec<SharedAnchor>> {
        if self.header().base.is_none() {
            return Ok(Vec::new());
        }
        if let Some(known) = &self.elders {
            return Ok(known.clone());
        }
        let mut found = Vec::new();
        if !self.store().branches(self.session(), BranchFilter::All)?.is_empty() {
            let headers = self.store().threads(self.session())?;
            let now = Moment { thread: self.id().clone(), seq: self.last() };
            let before = &lineage::line(&headers, now)[1..];
            for header in &headers {
                let Some(Moment { thread, seq }) = &header.parent else { continue };
                let is_shared = before.iter().any(|line| line.thread == *thread && *seq <= line.seq);
                if is_shared && self.says_open(*seq)? {
                    found.push(SharedAnchor { child: header.thread.clone(), first: *seq, seen: None });
                }
            }
        }
        self.elders = Some(found.clone());
        Ok(found)
    }

    /// True when an anchor stands at `seq` in the present of this thread.
    fn has_anchor(&self, seq: Seq) -> Result<bool> {
        let is_there = self.view().on_path(seq) && seq <= self.last();
        Ok(is_there && self.source().head(seq)?.kind == Kind::Anchor)
    }

    /// True when the anchor at `first` stands and says that its child has not ended.
    fn says_open(&self, first: Seq) -> Result<bool> {
        if !self.has_anchor(first)? {
            return Ok(false);
        }
        Ok(match self.record(self.view().anchor(first))?.entry {
            Entry::Anchor(anchor) => ThreadStatus::from(anchor.ending).is_open(),
            _ => false,
        })
    }

    /// Refuses an edit that takes the anchor of a child out of the view that has not ended: how it ended would not be seen.
    pub(crate) fn check_anchors(&self, hide: &[Span]) -> Result<()> {
        for piece in self.view().pieces() {
            let run = match *piece {
                ViewPiece::Run(run) => run,
                ViewPiece::Replaced { seq, .. } => Span::new(seq, seq),
                ViewPiece::Shown { .. } => continue,
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

    /// Looks after one child; `None` when nothing is left of it.
    fn tend_one(&mut self, row: &Branch) -> Result<Option<TendedChild>> {
        let journal = match self.store().open(&row.session, &row.thread, OpenMode::Read) {
            Ok(journal) => journal,
            Err(StoreError::NoThread(..)) => return self.complete_spawn(row),
            Err(error) => return Err(error.into()),
        };
        if journal.last() == 0 {
            return self.end_unbegun(row);
        }
        let seq = match self.anchor_of(journal.header())? {
            Some(first) => self.say_anchor(first, &*journal)?,
            None => None,
        };
        let now = branch(journal.header(), &*journal)?;
        let status = now.status;
        // One that is open under a thread that has ended waits for its holder to let go: it stays marked until then.
        let told = !status.is_open() || self.status()?.is_open();
        self.store().put_branch(&Branch { told, ..now })?;
        // Who ends a child marks its row after the journal; that mark must not be lost under ours.
        let last = self.store().open(&row.session, &row.thread, OpenMode::Read)?.last();
        if last != journal.last() {
            return self.tend_one(row);
        }
        Ok(Some(TendedChild { thread: row.thread.clone(), status, seq }))
    }

    /// Says in the anchor what the child's journal says, if it says something else.
    fn say_anchor(&mut self, first: Seq, journal: &dyn Journal) -> Result<Option<Seq>> {
        let Entry::Anchor(now) = self.record(self.view().anchor(first))?.entry else { return Ok(None) };
        let tale = AnchorFacts::of(journal)?;
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
        if thread != self.id() {
            return Ok(None);
        }
        let again = self.find_anchor(&child.thread)?.filter(|again| again > seq);
        Ok(again.or(self.has_anchor(*seq)?.then_some(*seq)))
    }

    /// A child whose journal was never begun: what its anchor promised is made, and broken off at once.
    fn complete_spawn(&mut self, row: &Branch) -> Result<Option<TendedChild>> {
        let Some(seq) = self.find_anchor(&row.thread)? else {
            self.store().drop_branch(&row.session, &row.thread)?;
            return Ok(None);
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
    fn end_unbegun(&mut self, row: &Branch) -> Result<Option<TendedChild>> {
        let mut child = self.engine().open_as_left(&row.session, &row.thread, OpenMode::Write)?;
        child.break_off_unbegun(self, row)?;
        drop(child);
        self.tend_one(row)
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
        let opened = unless_passed_over(self.open_as_left(id, parent, OpenMode::Write))?;
        let Some(mut parent) = opened else { return Ok(false) };
        parent.tend()?;
        parent.settle()?;
        Ok(true)
    }

    /// Refuses a thread that was not spawned; gives its parent.
    pub(super) fn parent_of(thread: &Thread<'_>) -> Result<ThreadId> {
        match &thread.header().parent {
            Some(moment) => Ok(moment.thread.clone()),
            None => Err(Error::NotSpawned(thread.id().to_string())),
        }
    }
}

// Putting right what a process left of its threads when it ended without a word.
//
// A thread that a guard holds is open for writing as long as the guard lives. So one that another process can open
// has lost its holder: it is closed as aborted, with what the digest can tell, and its parent goes on. Threads that
// no process holds outlive processes and are left alone, unless the thread above them has ended.

/// Why a thread ended whose holder is gone.
const GONE: &str = "the process that held it ended";
/// Why a thread ended that was left under one that had.
pub(super) const ABOVE_ENDED: &str = "the thread above it ended";

/// A thread that lost its holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveredThread {
    /// The thread.
    pub thread: ThreadId,
    /// Which process had held it; none, for one that was left under a thread that ended.
    pub held_by: Option<String>,
    /// What was done in it so far.
    pub chronicle: Option<Chronicle>,
}

impl Engine {
    /// Breaks off the threads of processes that ended, and tells their parents. [`Engine::open`] does it when it opens to
    /// write.
    pub fn recover(&self, id: &SessionId) -> Result<Vec<RecoveredThread>> {
        let rows = self.store().branches(id, BranchFilter::Unsettled)?;
        self.recover_rows(&rows)
    }

    /// Looks after the session of a thread that was just opened for writing; it knows then what was broken off.
    pub(crate) fn look_after(&self, opened: &mut Thread<'_>) -> Result<()> {
        let rows = self.store().branches(opened.session(), BranchFilter::Unsettled)?;
        if rows.is_empty() && opened.header().base.is_none() {
            return Ok(());
        }
        if let Some(row) = rows.iter().find(|row| row.thread == *opened.id()) {
            // Its guard would have it open, and we have.
            if unless_passed_over(self.is_left(opened))? == Some(true) {
                let recovered = break_off(opened)?;
                opened.recovered.push(recovered);
            }
            if let (0, Some(moment)) = (opened.last(), opened.header().parent.clone()) {
                let parent = self.open_as_left(opened.session(), &moment.thread, OpenMode::Read)?;
                opened.break_off_unbegun(&parent, row)?;
            }
        }
        opened.recovered.extend(self.recover_rows(&rows)?);
        opened.tend().map(|_| ())
    }

    fn recover_rows(&self, rows: &[Branch]) -> Result<Vec<RecoveredThread>> {
        let mut recovered = Vec::new();
        // Those further down first: what they did is part of what the ones above tell.
        for row in rows.iter().rev().filter(|row| row.parent.is_some()) {
            recovered.extend(unless_passed_over(self.recover_one(row))?.flatten());
        }
        let Some(id) = rows.first().map(|row| &row.session) else { return Ok(recovered) };
        // Parents are opened for a moment, and only where there is something to tell.
        let untold = self.store().branches(id, BranchFilter::Unsettled)?.into_iter().filter(|row| !row.told);
        let parents: BTreeSet<ThreadId> = untold.filter_map(|row| row.parent).collect();
        for parent in &parents {
            unless_passed_over(self.tell_parent(id, parent))?;
        }
        Ok(recovered)
    }

    pub(super) fn recover_one(&self, row: &Branch) -> Result<Option<RecoveredThread>> {
        if !row.status.is_open() {
            return Ok(None);
        }
        let thread = self.open_as_left(&row.session, &row.thread, OpenMode::Read)?;
        if !thread.status()?.is_open() {
            thread.put_row()?;
            return Ok(None);
        }
        if !self.is_left(&thread)? {
            return Ok(None);
        }
        // Refused while its holder lives.
        let mut thread = self.open_as_left(&row.session, &row.thread, OpenMode::Write)?;
        if !self.is_left(&thread)? {
            return Ok(None);
        }
        break_off(&mut thread).map(Some)
    }

    /// True for an open thread that lost its holder, or the thread above it. One without a share has hardly begun: the process that
    /// spawns it may be at work, and if not, its parent knows.
    fn is_left(&self, thread: &Thread<'_>) -> Result<bool> {
        let Some(share) = thread.share()? else { return Ok(false) };
        if !thread.status()?.is_open() {
            return Ok(false);
        }
        // The share that a fork has from the thread it left does not say who holds the fork.
        if share.held_by.is_some() && thread.view().share() > Some(thread.header().base_seq()) {
            return Ok(true);
        }
        let Some(moment) = &thread.header().parent else { return Ok(false) };
        let parent = self.open_as_left(thread.session(), &moment.thread, OpenMode::Read)?;
        Ok(!parent.status()?.is_open())
    }
}

/// Ends a thread that is left.
fn break_off(thread: &mut Thread<'_>) -> Result<RecoveredThread> {
    let held_by = thread.share()?.and_then(|share| share.held_by);
    let why = if held_by.is_some() { GONE } else { ABOVE_ENDED };
    let chronicle = thread.finish(Finish::aborted(Some(why.to_owned())))?.chronicle;
    Ok(RecoveredThread { thread: thread.id().clone(), held_by, chronicle })
}

// The threads of a session as a tree, in numbers, to be drawn.
//
// Everything comes from the journals; the table of threads is not asked. A fork stands beside the thread it left. What a
// rewind of the parent left without an anchor is still there, and marked.

/// The threads of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionTree {
    /// The session.
    pub session: SessionId,
    /// The root first, then its forks.
    pub nodes: Vec<ThreadNode>,
}

/// One thread.
#[derive(Clone, PartialEq, Debug)]
pub struct ThreadNode {
    /// Its header; `base` says what it was forked from.
    pub header: Header,
    /// Where it is in its life.
    pub status: ThreadStatus,
    /// How far below the root it is.
    pub depth: u32,
    /// What it has of its parent's window; none for a thread that was not spawned.
    pub ratio: Option<Ratio>,
    /// The window, shared out; none for a thread that was not spawned.
    pub shares: Option<Shares>,
    /// The window by which it was shared out.
    pub window: Option<u64>,
    /// Tokens of its own: setup, messages, summaries.
    pub tokens: u64,
    /// Tokens of what it sees of the threads above.
    pub above: u64,
    /// Messages said in it.
    pub messages: u64,
    /// What was done in it.
    pub chronicle: Option<Chronicle>,
    /// What its anchor says in its parent.
    pub anchor: Option<String>,
    /// True when its parent was rewound to before its anchor.
    pub is_adrift: bool,
    /// The process that ends it by ending itself.
    pub held_by: Option<String>,
    /// The threads spawned from it, by age.
    pub children: Vec<Self>,
}

impl Engine {
    /// The threads of a session. Shares are those of `window`, or of the window each thread was spawned in.
    pub fn tree(&self, id: &SessionId, window: Option<u64>) -> Result<SessionTree> {
        let headers = self.store().threads(id)?;
        let nodes = self.nodes(id, &headers, None, window)?;
        Ok(SessionTree { session: id.clone(), nodes })
    }

    /// The threads that were spawned from `parent`, forks beside what they left.
    fn nodes(
        &self,
        id: &SessionId,
        headers: &[Header],
        parent: Option<&Thread<'_>>,
        window: Option<u64>,
    ) -> Result<Vec<ThreadNode>> {
        let name = parent.map(Thread::id);
        let own = |header: &&Header| header.parent.as_ref().map(|moment| &moment.thread) == name;
        let mut nodes = Vec::new();
        for header in headers.iter().filter(own) {
            let thread = self.open_as_left(id, &header.thread, OpenMode::Read)?;
            let mut node = node(&thread, parent, window)?;
            node.children = self.nodes(id, headers, Some(&thread), window)?;
            nodes.push(node);
        }
        Ok(nodes)
    }
}

impl SessionTree {
    /// The node of a thread.
    pub fn node(&self, thread: &ThreadId) -> Option<&ThreadNode> {
        find(&self.nodes, thread)
    }
}

fn find<'a>(nodes: &'a [ThreadNode], thread: &ThreadId) -> Option<&'a ThreadNode> {
    nodes.iter().find_map(|node| {
        if node.header.thread == *thread { Some(node) } else { find(&node.children, thread) }
    })
}

fn node(thread: &Thread<'_>, parent: Option<&Thread<'_>>, window: Option<u64>) -> Result<ThreadNode> {
    let (view, share) = (thread.view(), thread.share()?);
    let chronicle = match view.chronicle() {
        Some(seq) => match thread.record(seq)?.entry {
            Entry::Chronicle(chronicle) => Some(chronicle),
            _ => None,
        },
        None => None,
    };
    let said = parent.map(|parent| shown_anchor(parent, thread.header())).transpose()?.flatten();
    let window = window.or(share.as_ref().map(|share| share.window));
    let shares = share.as_ref().zip(window).map(|(share, window)| Shares::of(share, window));
    Ok(ThreadNode {
        header: thread.header().clone(),
        status: thread.status()?,
        depth: share.as_ref().map_or(0, |share| u32::try_from(share.depth()).unwrap_or(u32::MAX)),
        ratio: share.as_ref().and_then(|share| share.slices.last()).map(|slice| slice.ratio),
        shares,
        window,
        tokens: view.tokens() - view.weight().above,
        above: view.weight().above,
        messages: anchor::count(thread.source(), view)?,
        chronicle,
        is_adrift: parent.is_some() && said.is_none(),
        anchor: said,
        held_by: share.and_then(|share| share.held_by),
        children: Vec::new(),
    })
}

/// What the anchor of `child` says now; none when it does not stand in the parent's present.
fn shown_anchor(parent: &Thread<'_>, child: &Header) -> Result<Option<String>> {
    let Some(first) = parent.anchor_of(child)? else { return Ok(None) };
    Ok(match parent.record(parent.view().anchor(first))?.entry {
        Entry::Anchor(anchor) => Some(anchor.text),
        _ => None,
    })
}
