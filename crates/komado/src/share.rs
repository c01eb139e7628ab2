//! A share of a window: in words, and for programs.

use crate::fault::Outcome;
use crate::paper::number;
use komado_core::journal::Share;
use komado_core::share::Shares;
use komado_engine::Thread;
use serde_json::{Value, json};

/// All that a thread's view may take of a window: the whole of it, unless the thread was spawned.
pub(crate) fn window(thread: &Thread<'_>, given: Option<u32>) -> Outcome<Option<u32>> {
    let portion = thread.share()?.map(|share| Portion::new(share, given.map(u64::from)));
    Ok(portion.map_or(given, |portion| u32::try_from(portion.window()).ok()))
}

/// What a spawned thread has of a window, and what protects those above it.
pub(crate) struct Portion {
    share: Share,
    shares: Shares,
    window: u64,
}

impl Portion {
    /// `share` in a window of `window` tokens; of the one that was shared out while none is given.
    pub(crate) fn new(share: Share, window: Option<u64>) -> Self {
        let window = window.unwrap_or(share.window);
        Self { shares: Shares::of(&share, window), share, window }
    }

    /// What is seen of the threads above, in tokens.
    pub(crate) fn above(&self) -> u64 {
        u64::from(self.share.tokens())
    }

    /// What the thread's own items, its answer and its buffer may take together.
    pub(crate) fn room(&self) -> u64 {
        self.shares.room()
    }

    /// All that its view may take: what it sees of the threads above, and its own room. Never more than the window, also
    /// where what is seen above is: then the view is over it.
    pub(crate) fn window(&self) -> u64 {
        (self.above() + self.room()).min(self.window)
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let above = self.share.slices.iter().zip(&self.shares.above);
        let above: Vec<Value> = above
            .map(|(slice, protected)| {
                json!({
                    "thread": slice.thread.as_str(),
                    "at": slice.at,
                    "window": protected.window,
                    "share": protected.share,
                    "used": protected.used,
                })
            })
            .collect();
        json!({
            "above": above,
            "own": self.shares.own,
            "lent": self.shares.lent,
            "owed": self.shares.owed,
            "room": self.room(),
            "lends": self.share.lends,
        })
    }

    /// For people: who has how much, the root first.
    pub(crate) fn line(&self) -> String {
        let above = self.share.slices.iter().zip(&self.shares.above);
        let mut parts: Vec<String> =
            above.map(|(slice, protected)| format!("{} {}", number(protected.share), slice.thread)).collect();
        parts.push(format!("{} own", number(self.shares.own)));
        format!("{}{}", parts.join(" + "), self.moved())
    }

    /// What the slices take of their shares.
    pub(crate) fn seen(&self) -> String {
        let above = self.share.slices.iter().zip(&self.shares.above);
        let one = above.map(|(slice, protected)| {
            format!("{}@{} {} of {}", slice.thread, slice.at, number(protected.used), number(protected.share))
        });
        one.collect::<Vec<_>>().join(", ")
    }

    /// What is lent, or owed.
    fn moved(&self) -> String {
        let lent = (self.shares.lent > 0).then(|| format!("{} lent", number(self.shares.lent)));
        let owed = (self.shares.owed > 0).then(|| format!("{} owed", number(self.shares.owed)));
        let moved: Vec<String> = lent.into_iter().chain(owed).collect();
        if moved.is_empty() { String::new() } else { format!(" ({})", moved.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::ThreadId;
    use komado_core::journal::{Ratio, Slice};

    fn slice(thread: &str, tokens: u32) -> Slice {
        let (thread, ratio) = (ThreadId::new(thread).unwrap(), Ratio::new(0.8).unwrap());
        Slice { thread, at: 3, ratio, keep: Vec::new(), replace: Vec::new(), head: String::new(), tokens }
    }

    #[test]
    fn the_example_of_the_seed_is_told_in_its_numbers() {
        let share = Share {
            thread: ThreadId::new("stelis_1_1").unwrap(),
            window: 100_000,
            slices: vec![slice("root", 5_000), slice("stelis_1", 17_000)],
            lends: true,
            anchor_tokens: None,
            chronicle_prompt: None,
            held_by: None,
        };
        let portion = Portion::new(share, None);
        assert_eq!(portion.line(), "20,000 root + 16,000 stelis_1 + 64,000 own (15,000 lent, 1,000 owed)");
        assert_eq!(portion.seen(), "root@3 5,000 of 20,000, stelis_1@3 17,000 of 16,000");
        assert_eq!((portion.room(), portion.window()), (78_000, 100_000));
        let small = Portion::new(portion.share.clone(), Some(5_000));
        assert_eq!((small.above(), small.room(), small.window()), (22_000, 0, 5_000));
        let json = portion.json();
        assert_eq!((&json["above"][1]["share"], &json["own"]), (&json!(16_000), &json!(64_000)));
    }
}
