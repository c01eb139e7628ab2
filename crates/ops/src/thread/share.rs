//! How a window is shared out between a thread and those above it.

use komado_core::Seq;
use komado_engine::share::Portion;
use schemars::JsonSchema;
use serde::Serialize;

/// What a thread has of the window, and what protects those above it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct WindowShare {
    /// The threads above, the root first.
    pub above: Vec<AboveShare>,
    /// The thread's own share.
    pub own: u64,
    /// What the threads above leave of their shares, and lend it.
    pub lent: u64,
    /// What the threads above take beyond their shares.
    pub owed: u64,
    /// What its own items, its answer and its buffer may take together.
    pub room: u64,
    /// True when what the threads above leave is lent to it.
    pub lends: bool,
    /// All that its view may take: what it sees of the threads above, and its own room.
    pub window: u64,
}

/// A thread above.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct AboveShare {
    /// The thread.
    pub thread: String,
    /// The moment of which it is seen.
    pub at: Seq,
    /// Its window.
    pub window: u64,
    /// What is kept for it.
    pub share: u64,
    /// What is seen of it, in tokens.
    pub used: u64,
}

impl From<&Portion> for WindowShare {
    fn from(portion: &Portion) -> Self {
        let above = portion.share.slices.iter().zip(&portion.shares.above);
        let above = above.map(|(slice, protected)| AboveShare {
            thread: slice.thread.to_string(),
            at: slice.at,
            window: protected.window,
            share: protected.share,
            used: protected.used,
        });
        Self {
            above: above.collect(),
            own: portion.shares.own,
            lent: portion.shares.lent,
            owed: portion.shares.owed,
            room: portion.room(),
            lends: portion.share.lends,
            window: portion.window(),
        }
    }
}
