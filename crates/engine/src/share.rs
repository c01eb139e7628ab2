//! What a spawned thread has of the window, and whether it can work in it.
//!
//! The share in force says how a window is divided; the numbers follow from the window that is at hand. A window that
//! became smaller first costs the thread itself. Only when that would leave it less than half of what its ratio gives it
//! are the slices of the threads above cut smaller, from the same moments: that is said in the journal before it is seen.
//! A window that is larger again by a quarter gives them back what it has room for, from the same moments too; in
//! between nothing moves, so that a window known a little better every time does not change what is seen.

use crate::error::{Error, Result};
use crate::thread::Thread;
use komado_core::budget::{self, Budget, Policy, Preset};
use komado_core::head::Source;
use komado_core::journal::{Share, Slice};
use komado_core::share::Shares;
use komado_core::slice::{Cut, Tools, cut};
use komado_core::{Kind, Meter, ThreadId, View};
use std::fmt;

/// The fewest tokens that a thread can work in, beside its answer and its buffer.
pub const LEAST: u64 = 256;

/// What a spawned thread has of a window, and what protects those above it.
#[derive(Clone, PartialEq, Debug)]
pub struct Portion {
    /// The share in force.
    pub share: Share,
    /// Its numbers in the window at hand.
    pub shares: Shares,
    window: u64,
}

impl Portion {
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

    /// Why the thread has no share: nobody spawned it, or it was never begun.
    pub(crate) fn shareless(&self) -> Error {
        let thread = self.id().to_string();
        if self.header().parent.is_some() {
            Error::NeverBegun { thread }
        } else {
            Error::NotSpawned { thread }
        }
    }

    /// What the thread has of a window of `window` tokens; none for a thread that was not spawned.
    pub fn portion(&self, window: Option<u64>) -> Result<Option<Portion>> {
        Ok(self.share()?.map(|share| Portion::new(share, window)))
    }

    /// A window of `window` tokens, shared out between this thread and those above it.
    pub fn shares(&self, window: u64) -> Result<Option<Shares>> {
        Ok(self.share()?.map(|share| Shares::of(&share, window)))
    }

    /// `policy` in a window of `window` tokens, of which a spawned thread has its share; `names` are the model and the
    /// profile. Slices that are to be cut anew because the window is another are counted as they will be.
    pub fn budget(&self, policy: Policy, window: u64, names: &[&str]) -> Result<Budget> {
        let Some(share) = self.share()? else { return Ok(Budget::new(policy, window, names)) };
        let moved = moved(self.view(), self.source(), self.meter(), window, policy.buffer)?;
        let share = moved.unwrap_or(share);
        let shares = Shares::of(&share, window);
        let budget = Budget::shared(policy, &shares, window, names);
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
pub(crate) fn moved<S: Source<Error = komado_store::Error> + ?Sized>(
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
        (true, _) => Moments::Same,
        (_, true) => Moments::Grown,
        _ => return Ok(None),
    };
    let slices = recut(view, source, meter, &share, &shares, buffer, moments)?;
    Ok((too_small || slices != share.slices).then_some(Share { window, slices, ..share }))
}

/// True when the slices were cut because a request was refused: what the provider takes counts more than what we are told
/// it does.
fn was_refused<S: Source<Error = komado_store::Error> + ?Sized>(view: &View, source: &S) -> Result<bool> {
    match view.share().and_then(|seq| seq.checked_sub(1)) {
        Some(before @ 1..) => Ok(source.head(before)?.kind == Kind::Lost),
        _ => Ok(false),
    }
}

/// Which moments of the threads above slices are cut from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moments {
    /// Those in force; a slice that fits its share stays as it is.
    Same,
    /// Those in force; a slice that would be smaller stays as it is.
    Grown,
    /// What those threads see now.
    Present,
}

/// The slices of a share, cut anew to what `shares` leaves each.
pub(crate) fn recut<S: Source<Error = komado_store::Error> + ?Sized>(
    view: &View,
    source: &S,
    meter: Meter,
    share: &Share,
    shares: &Shares,
    buffer: f64,
    moments: Moments,
) -> Result<Vec<Slice>> {
    let within = |thread: &ThreadId| share.is_within(thread);
    let mut tools = Tools::above(view.own_setup(source)?.as_ref());
    let mut slices = Vec::with_capacity(share.slices.len());
    // From the thread's parent up: the tools of the nearest one are offered.
    for (slice, protected) in share.slices.iter().zip(&shares.above).rev() {
        let above = source.above(&slice.thread)?;
        let most = most(protected.share, buffer);
        let at = if moments == Moments::Present { above.last() } else { slice.at };
        slices.push(if moments == Moments::Same && protected.used <= most {
            slice.clone()
        } else {
            let head = slice.head.clone();
            let wanted =
                Cut { thread: &slice.thread, at, ratio: slice.ratio, most, head, tools, within: &within };
            match cut(&*above, meter, wanted)? {
                Ok(new) if moments != Moments::Grown || new.tokens > slice.tokens => new,
                Err(why) if moments != Moments::Grown => return Err(why.into()),
                _ => slice.clone(),
            }
        });
        if View::fold(&*above, at)?.own_setup(&*above)?.is_some_and(|setup| setup.tools.is_some()) {
            tools = Tools::Left;
        }
    }
    slices.reverse();
    Ok(slices)
}
