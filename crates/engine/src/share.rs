//! What a spawned thread has of the window, and whether it can work in it.
//!
//! The share in force says how a window is divided; the numbers follow from the window that is at hand. A window that
//! became smaller first costs the thread itself. Only when that would leave it less than half of what its ratio gives it
//! are the slices of the threads above cut smaller, from the same moments: that is said in the journal before it is seen.
//! A window that is larger again by a quarter gives them back what it has room for, from the same moments too; in
//! between nothing moves, so that a window known a little better every time does not change what is seen.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::thread::{StagedBatch, Thread};
use komado_core::admit::EntryRefusal;
use komado_core::budget::{Budget, Policy, Preset};
use komado_core::head::EntrySource;
use komado_core::journal::{Entry, Ratio, Share, Slice};
use komado_core::share::Shares;
use komado_core::slice::{SliceCut, SliceTools, counted, cut};
use komado_core::thread::Branch;
use komado_core::{Kind, Meter, Seq, SessionId, ThreadId, View, budget};
use komado_store::{BranchFilter, OpenMode};
use std::collections::BTreeSet;
use std::fmt;

/// The fewest tokens that a thread can work in, beside its answer and its buffer.
pub const LEAST: u64 = 256;

/// What a spawned thread has of a window, and what protects those above it.
#[derive(Clone, PartialEq, Debug)]
pub struct ThreadPortion {
    /// The share in force.
    pub share: Share,
    /// Its numbers in the window at hand.
    pub shares: Shares,
    window: u64,
}

impl ThreadPortion {
    /// `share` in a window of `window` tokens; of the one that was shared out while none is given.
    pub fn new(share: Share, window: Option<u64>) -> Self {
        let window = window.unwrap_or(share.window);
        Self { shares: Shares::of(&share, window), share, window }
    }

    /// What is seen of the threads above, in tokens.
    pub fn above(&self) -> u64 {
        u64::from(self.share.tokens())
    }

    /// What the thread's own items, its answer and its buffer may take together.
    pub fn room(&self) -> u64 {
        self.shares.room()
    }

    /// All that its view may take: what it sees of the threads above, and its own room. Never more than the window, also
    /// where what is seen above is: then the view is over it.
    pub fn window(&self) -> u64 {
        (self.above() + self.room()).min(self.window)
    }
}

/// A share in which nothing can be said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoRoom {
    /// The thread.
    pub thread: ThreadId,
    /// The window.
    pub window: u64,
    /// The threads above, the root first: name, what protects it, what is seen of it.
    pub above: Vec<(ThreadId, u64, u64)>,
    /// What is left for the thread, answer and buffer included.
    pub room: u64,
    /// What of that it can say something in.
    pub usable: u64,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thread, window, above, room, usable } = self;
        write!(f, "thread {thread} has no room to work in: of a window of {window} tokens ")?;
        for (name, share, used) in above {
            write!(f, "{name} has {share} and takes {used}, ")?;
        }
        write!(
            f,
            "and {room} are left, of which {usable} can be used, fewer than {LEAST}; use a larger window, or share it out \
             otherwise: with --ratio when a thread starts, with `komado thread balance` once there is one"
        )
    }
}

impl std::error::Error for NoRoom {}

impl NoRoom {
    fn of(share: &Share, shares: &Shares, budget: &Budget) -> Self {
        let above = share.slices.iter().zip(&shares.above);
        Self {
            thread: share.thread.clone(),
            window: budget.window,
            above: above.map(|(slice, own)| (slice.thread.clone(), own.share, own.used)).collect(),
            room: budget.room,
            usable: budget.own(),
        }
    }
}

impl Thread<'_> {
    /// The share in force; none for a thread that was not spawned.
    pub fn share(&self) -> Result<Option<Share>> {
        Ok(self.view().share_in(self.source())?)
    }

    /// Why the thread has no share: it was not spawned, or it was never begun.
    pub(crate) fn shareless(&self) -> Error {
        let thread = self.id().to_string();
        if self.header().parent.is_some() { Error::NeverBegun(thread) } else { Error::NotSpawned(thread) }
    }

    /// What the thread has of a window of `window` tokens; none for a thread that was not spawned.
    pub fn portion(&self, window: Option<u64>) -> Result<Option<ThreadPortion>> {
        Ok(self.share()?.map(|share| ThreadPortion::new(share, window)))
    }

    /// A window of `window` tokens, shared out between this thread and those above it.
    pub fn shares(&self, window: u64) -> Result<Option<Shares>> {
        Ok(self.share()?.map(|share| Shares::of(&share, window)))
    }

    /// `policy` in a window of `window` tokens, of which a spawned thread has its share; `names` are the model and the
    /// profile. Slices that are to be cut anew because the window is another are counted as they will be.
    pub fn budget(&self, policy: Policy, window: u64, names: &[&str]) -> Result<Budget> {
        let Some(share) = self.share()? else {
            return Ok(Budget::new(policy, window, names).in_view(self.view()));
        };
        let moved = moved(self.view(), self.source(), self.meter(), window, policy.buffer)?;
        let share = moved.unwrap_or(share);
        let shares = Shares::of(&share, window);
        let budget = Budget::shared(policy, &shares, window, names).in_view(self.view());
        check_budget(&share, &shares, &budget)?;
        Ok(budget)
    }
}

/// Refuses a budget in which the thread could not say anything.
pub(crate) fn check_budget(share: &Share, shares: &Shares, budget: &Budget) -> Result<()> {
    if budget.own() >= LEAST {
        return Ok(());
    }
    Err(Error::NoRoom(Box::new(NoRoom::of(share, shares, budget))))
}

/// Refuses a share that leaves the thread no room in `window`, whatever the policy.
pub(crate) fn check_room(share: &Share, window: u64, buffer: f64) -> Result<()> {
    let shares = Shares::of(share, window);
    let policy = Policy { buffer, ..Preset::Komado.policy() };
    check_budget(share, &shares, &Budget::shared(policy, &shares, window, &[]))
}

/// Most tokens of a slice whose thread has `share` tokens of a window: the buffer stays free in every part of it.
pub(crate) fn most(share: u64, buffer: f64) -> u64 {
    budget::share(share, 1.0 - buffer)
}

/// The share with other slices, when `window` cannot hold those in force, or has room for larger ones again.
pub(crate) fn moved<S: EntrySource<Error = komado_store::Error> + ?Sized>(
    view: &View,
    source: &S,
    meter: Meter,
    window: u64,
    buffer: f64,
) -> Result<Option<Share>> {
    let Some(share) = view.share_in(source)? else { return Ok(None) };
    let shares = Shares::of(&share, window);
    let too_small = window < share.window && shares.owed > 0 && shares.room() < shares.own / 2;
    let is_larger = window >= share.window.saturating_add(share.window / 4);
    let moments = match (too_small, is_larger && !was_refused(view, source)?) {
        (true, _) => SliceMoments::Same,
        (_, true) => SliceMoments::Grown,
        _ => return Ok(None),
    };
    let slices = recut(view, source, meter, &share, &shares, buffer, moments)?;
    Ok((too_small || slices != share.slices).then_some(Share { window, slices, ..share }))
}

/// True when the slices were cut because a request was refused: what the provider takes counts more than what we are told
/// it does.
fn was_refused<S: EntrySource<Error = komado_store::Error> + ?Sized>(
    view: &View,
    source: &S,
) -> Result<bool> {
    match view.share().and_then(|seq| seq.checked_sub(1)) {
        Some(before @ 1..) => Ok(source.head(before)?.kind == Kind::Lost),
        _ => Ok(false),
    }
}

/// Which moments of the threads above slices are cut from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SliceMoments {
    /// Those in force; a slice that fits its share stays as it is.
    Same,
    /// Those in force; a slice that would be smaller stays as it is.
    Grown,
    /// What those threads see now.
    Present,
}

/// The slices of a share, cut anew to what `shares` leaves each.
pub(crate) fn recut<S: EntrySource<Error = komado_store::Error> + ?Sized>(
    view: &View,
    source: &S,
    meter: Meter,
    share: &Share,
    shares: &Shares,
    buffer: f64,
    moments: SliceMoments,
) -> Result<Vec<Slice>> {
    let within = |thread: &ThreadId| share.is_within(thread);
    let mut tools = SliceTools::above(view.own_setup(source)?.as_ref());
    let mut slices = Vec::with_capacity(share.slices.len());
    // From the thread's parent up: the tools of the nearest one are offered.
    for (slice, protected) in share.slices.iter().zip(&shares.above).rev() {
        let above = source.above(&slice.thread)?;
        let most = most(protected.share, buffer);
        let at = if moments == SliceMoments::Present { above.last() } else { slice.at };
        slices.push(if moments == SliceMoments::Same && protected.used <= most {
            slice.clone()
        } else {
            let head = slice.head.clone();
            let wanted = SliceCut {
                thread: &slice.thread,
                at,
                ratio: slice.ratio,
                most,
                head,
                tools,
                within: &within,
            };
            match cut(&*above, meter, wanted)? {
                Ok(new) if moments != SliceMoments::Grown || new.tokens > slice.tokens => new,
                Err(why) if moments != SliceMoments::Grown => return Err(why.into()),
                _ => slice.clone(),
            }
        });
        if View::fold(&*above, at)?.own_setup(&*above)?.is_some_and(|setup| setup.tools.is_some()) {
            tools = SliceTools::Left;
        }
    }
    slices.reverse();
    Ok(slices)
}

// Sharing a window out otherwise, while threads are at work.
//
// Every change is a new share in the journal of the thread that it is for; the shares of those below follow. Keeping the
// slices never makes one smaller: when what protects a thread above is now less than what is seen of it, the thread
// itself gets less. A share that would leave a thread no room is refused before anything is written.

/// How a window is to be shared out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ShareBalance {
    /// What the thread gets of its parent's window; as before while absent.
    pub ratio: Option<Ratio>,
    /// The window, in tokens as the session counts them.
    pub window: u64,
    /// Share of the window kept free for what no counter sees.
    pub buffer: f64,
    /// What becomes of the slices.
    pub slices: SliceRecut,
}

/// What becomes of the slices of the threads above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceRecut {
    /// They stay as they are.
    Keep,
    /// They are cut anew from what those threads see now.
    Refresh,
}

impl Thread<'_> {
    /// Shares the window out otherwise for this thread; gives the entry that says so. Those below it are not told: see
    /// [`Engine::balance_below`].
    pub fn balance(&mut self, balance: ShareBalance) -> Result<Seq> {
        let (seq, work) = self.balanced(&self.header().thread, balance)?;
        self.commit(work)?;
        // What the parent was told is still true, but it may have asked meanwhile to be told again: it finds out.
        self.put_row()?;
        Ok(seq)
    }

    /// The share that this thread has once `changed`, which is this thread or one above it, has its new ratio: admitted,
    /// and ready to be made durable.
    fn balanced(&self, changed: &ThreadId, balance: ShareBalance) -> Result<(Seq, StagedBatch)> {
        let thread = &self.header().thread;
        let Some(mut share) = self.share()? else { return Err(self.shareless()) };
        if let (Some(at), false) = (self.view().closed(), self.status()?.is_open()) {
            return Err(EntryRefusal::Closed { at }.into());
        }
        share.window = balance.window;
        if let (Some(ratio), Some(link)) = (balance.ratio, link(&share, thread, changed)) {
            share.slices[link].ratio = ratio;
        }
        if balance.slices == SliceRecut::Refresh {
            // A fork sees from now on how it came to be itself, and not the thread it left.
            share.thread = thread.clone();
            let shares = Shares::of(&share, balance.window);
            let (view, source) = (self.view(), self.source());
            share.slices =
                recut(view, source, self.meter(), &share, &shares, balance.buffer, SliceMoments::Present)?;
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
        let now = SliceTools::above(staged.view().own_setup(staged.source())?.as_ref());
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
        let tools = SliceTools::above(self.view().own_setup(self.source())?.as_ref());
        let slices = counted(self.source(), self.meter(), &share, tools)?;
        Ok(Some(Share { slices, ..share }))
    }

    /// Refuses to open a thread again under one that has ended.
    fn check_parent(&self) -> Result<()> {
        let Some(moment) = &self.header().parent else { return Ok(()) };
        let parent = self.engine().open_as_left(self.session(), &moment.thread, OpenMode::Read)?;
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
        balance: ShareBalance,
    ) -> Result<Vec<(ThreadId, Seq)>> {
        if balance.ratio.is_some() && thread.is_root() {
            return Err(Error::NotSpawned(thread.to_string()));
        }
        self.recover(id)?;
        let branches = self.store().branches(id, BranchFilter::All)?;
        let mut told = Vec::new();
        for name in line_below(&branches, thread).into_iter().filter(|name| !name.is_root()) {
            let handle = self.open_as_left(id, name, OpenMode::Write)?;
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
