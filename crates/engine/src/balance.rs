//! Sharing a window out otherwise, while threads are at work.
//!
//! Every change is a new share in the journal of the thread that it is for; the shares of those below follow. Keeping the
//! slices never makes one smaller: when what protects a thread above is now less than what is seen of it, the thread
//! itself gets less. A share that would leave a thread no room is refused before anything is written.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::share::{Moments, check_room, recut};
use crate::staged::Work;
use crate::thread::Thread;
use komado_core::admit::Refusal;
use komado_core::journal::{Entry, Ratio, Share};
use komado_core::share::Shares;
use komado_core::slice::{Tools, counted};
use komado_core::thread::Branch;
use komado_core::{Seq, SessionId, ThreadId};
use komado_store::{Mode, Which};
use std::collections::BTreeSet;

/// How a window is to be shared out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Balance {
    /// What the thread gets of its parent's window; as before while absent.
    pub ratio: Option<Ratio>,
    /// The window, in tokens as the session counts them.
    pub window: u64,
    /// Share of the window kept free for what no counter sees.
    pub buffer: f64,
    /// What becomes of the slices.
    pub slices: Recut,
}

/// What becomes of the slices of the threads above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recut {
    /// They stay as they are.
    Keep,
    /// They are cut anew from what those threads see now.
    Refresh,
}

impl Thread<'_> {
    /// Shares the window out otherwise for this thread; gives the entry that says so. Those below it are not told: see
    /// [`Engine::balance_below`].
    pub fn balance(&mut self, balance: Balance) -> Result<Seq> {
        let (seq, work) = self.balanced(&self.header().thread, balance)?;
        self.commit(work)?;
        // What the parent was told is still true, but it may have asked meanwhile to be told again: it finds out.
        self.put_row()?;
        Ok(seq)
    }

    /// The share that this thread has once `changed`, which is this thread or one above it, has its new ratio: admitted,
    /// and ready to be made durable.
    fn balanced(&self, changed: &ThreadId, balance: Balance) -> Result<(Seq, Work)> {
        let thread = &self.header().thread;
        let Some(mut share) = self.share()? else { return Err(self.shareless()) };
        if let (Some(at), false) = (self.view().closed(), self.status()?.is_open()) {
            return Err(Refusal::Closed { at }.into());
        }
        share.window = balance.window;
        if let (Some(ratio), Some(link)) = (balance.ratio, link(&share, thread, changed)) {
            share.slices[link].ratio = ratio;
        }
        if balance.slices == Recut::Refresh {
            // A fork sees from now on how it came to be itself, and not the thread it left.
            share.thread = thread.clone();
            let shares = Shares::of(&share, balance.window);
            let (view, source) = (self.view(), self.source());
            share.slices =
                recut(view, source, self.meter(), &share, &shares, balance.buffer, Moments::Present)?;
        }
        check_room(&share, balance.window, balance.buffer)?;
        let mut staged = self.stage();
        let seq = staged.push(Entry::Share(share), self.engine().now())?;
        Ok((seq, staged.finish()))
    }

    /// Appends a setup or a rewind. Where that changes what the slices take, or which share is in force, the present one
    /// is said again in the same batch: what a thread sees of those above it is not its own to take back.
    pub(crate) fn said_again(&mut self, entry: Entry) -> Result<Seq> {
        let Some(share) = self.share()? else {
            // A spawned thread never works without its share.
            return if self.header().parent.is_some() { Err(self.shareless()) } else { self.append(entry) };
        };
        let mut staged = self.stage();
        let seq = staged.push(entry, self.engine().now())?;
        let now = Tools::above(staged.view().own_setup(staged.source())?.as_ref());
        let slices = counted(staged.source(), self.meter(), &share, now)?;
        let wanted = Share { slices, ..share };
        if staged.view().share_in(staged.source())?.as_ref() != Some(&wanted) {
            staged.push(Entry::Share(wanted), self.engine().now())?;
        }
        let (closed, chronicle) = (staged.view().closed(), staged.view().chronicle());
        let work = staged.finish();
        if (closed, chronicle) == (self.view().closed(), self.view().chronicle()) {
            self.commit(work)?;
            return Ok(seq);
        }
        // A rewind to before its end opens a thread again, and one to before its chronicle takes that back: the table is
        // told first, as for every change of state.
        if closed.is_none() && self.view().closed().is_some() {
            self.check_parent()?;
        }
        self.put_row()?;
        self.commit(work)?;
        self.put_row()?;
        Ok(seq)
    }

    /// The share in force with its tokens as they are now. It may say something else at a moment between two entries of one
    /// batch, where only a fork can begin.
    pub(crate) fn recounted(&self) -> Result<Option<Share>> {
        let Some(share) = self.share()? else { return Ok(None) };
        let tools = Tools::above(self.view().own_setup(self.source())?.as_ref());
        let slices = counted(self.source(), self.meter(), &share, tools)?;
        Ok(Some(Share { slices, ..share }))
    }

    /// Refuses to open a thread again under one that has ended.
    fn check_parent(&self) -> Result<()> {
        let Some(moment) = &self.header().parent else { return Ok(()) };
        let parent = self.engine().open_as_left(self.session(), &moment.thread, Mode::Read)?;
        if parent.status()?.is_open() {
            return Ok(());
        }
        let (thread, parent) = (self.header().thread.to_string(), moment.thread.to_string());
        Err(Error::ParentEnded { thread, parent })
    }
}

impl Engine {
    /// Shares the window out otherwise for a thread and for every thread below it that has not ended. `thread` may be the
    /// root, which has no share itself and so no ratio. Refused, before anything is written, when one of them would have
    /// no room or is open elsewhere. Gives the entries that say so.
    pub fn balance_below(
        &self,
        id: &SessionId,
        thread: &ThreadId,
        balance: Balance,
    ) -> Result<Vec<(ThreadId, Seq)>> {
        if balance.ratio.is_some() && thread.is_root() {
            return Err(Error::NotSpawned { thread: thread.to_string() });
        }
        self.recover(id)?;
        let branches = self.store().branches(id, Which::All)?;
        let mut told = Vec::new();
        for name in line_below(&branches, thread).into_iter().filter(|name| !name.is_root()) {
            let handle = self.open_as_left(id, name, Mode::Write)?;
            let (seq, work) = handle.balanced(thread, balance)?;
            told.push((handle, seq, work));
        }
        let (mut said, mut parents) = (Vec::with_capacity(told.len()), BTreeSet::new());
        for (mut handle, seq, work) in told {
            handle.commit(work)?;
            handle.put_row()?;
            parents.extend(handle.header().parent.as_ref().map(|moment| moment.thread.clone()));
            handle.settle()?;
            said.push((handle.header().thread.clone(), seq));
        }
        for parent in &parents {
            self.tell_parent(id, parent)?;
        }
        Ok(said)
    }
}

/// Which slice's ratio is that of `changed`: the one above it in the line of `thread`.
fn link(share: &Share, thread: &ThreadId, changed: &ThreadId) -> Option<usize> {
    if thread == changed {
        return share.slices.len().checked_sub(1);
    }
    share.slices.iter().position(|slice| slice.thread == *changed)?.checked_sub(1)
}

/// The thread, and all below it that have not ended; those further up first.
fn line_below<'a>(branches: &'a [Branch], thread: &'a ThreadId) -> Vec<&'a ThreadId> {
    let mut line: Vec<&ThreadId> = vec![thread];
    let mut next = 0;
    while let Some(&above) = line.get(next) {
        let below = branches.iter().filter(|branch| branch.parent.as_ref() == Some(above));
        line.extend(below.filter(|branch| branch.status.is_open()).map(|branch| &branch.thread));
        next += 1;
    }
    line
}
