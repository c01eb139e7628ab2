//! How a window is shared out between a spawned thread and the threads above it: plain numbers.
//!
//! Each thread gets its ratio of its parent's window; what remains of that window protects the parent. So every thread
//! above keeps a share, and all shares together are the window: 100,000 tokens, 0.8 and 0.8 again are 20,000 for the root,
//! 16,000 for the child and 64,000 for the grandchild. A slice that takes less than its share lends the rest; one that
//! takes more, because shares were balanced anew, keeps what it has, and the thread itself gets less.

use crate::journal::{Ratio, Share};

/// The windows of a line of threads, the root's first: each its ratio of the one before.
pub fn windows(window: u64, ratios: &[Ratio]) -> Vec<u64> {
    let mut line = vec![window];
    for ratio in ratios {
        line.push(ratio.of(line.last().copied().unwrap_or(0)));
    }
    line
}

/// What one thread above may take, and takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProtectedShare {
    /// Its own window.
    pub window: u64,
    /// What protects it there: all that the thread below it does not have.
    pub share: u64,
    /// What its slice takes.
    pub used: u64,
}

/// A window, shared out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shares {
    /// The threads above, the root first.
    pub above: Vec<ProtectedShare>,
    /// The thread's own window by its ratio.
    pub own: u64,
    /// What it may use on top of that, because slices take less than their shares.
    pub lent: u64,
    /// What it may not use of it, because slices take more than their shares.
    pub owed: u64,
}

impl Shares {
    /// `window` shared out as `share` says.
    pub fn of(share: &Share, window: u64) -> Self {
        let ratios: Vec<Ratio> = share.slices.iter().map(|slice| slice.ratio).collect();
        let line = windows(window, &ratios);
        let mut shares =
            Self { above: Vec::new(), own: line.last().copied().unwrap_or(window), lent: 0, owed: 0 };
        for (slice, pair) in share.slices.iter().zip(line.windows(2)) {
            let protected =
                ProtectedShare { window: pair[0], share: pair[0] - pair[1], used: u64::from(slice.tokens) };
            if share.lends {
                shares.lent += protected.share.saturating_sub(protected.used);
            }
            shares.owed += protected.used.saturating_sub(protected.share);
            shares.above.push(protected);
        }
        shares
    }

    /// What all slices take.
    pub fn used(&self) -> u64 {
        self.above.iter().map(|protected| protected.used).sum()
    }

    /// What the thread's own items, its answer and its buffer may take together.
    pub fn room(&self) -> u64 {
        (self.own + self.lent).saturating_sub(self.owed)
    }
}
