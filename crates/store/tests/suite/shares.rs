//! Shares of spawned threads, written by hand.

use komado_core::journal::{Ratio, Share, Slice};
use komado_core::{Seq, Span, ThreadId};

/// What `thread` has of a window of 100,000.
pub(crate) fn share(thread: &str, slices: Vec<Slice>) -> Share {
    Share {
        anchor_tokens: None,
        thread: ThreadId::new(thread).unwrap(),
        window: 100_000,
        slices,
        lends: true,
        chronicle_prompt: None,
        held_by: None,
    }
}

/// Some items of `thread` as it was at `at`; the next one down has 0.8 of its window.
pub(crate) fn slice(thread: &str, at: Seq, keep: &[(Seq, Seq)]) -> Slice {
    Slice {
        thread: ThreadId::new(thread).unwrap(),
        at,
        ratio: Ratio::new(0.8).unwrap(),
        keep: keep.iter().map(|(from, to)| Span::new(*from, *to)).collect(),
        replace: Vec::new(),
        head: format!("[{thread} から]"),
        tokens: 40,
    }
}
