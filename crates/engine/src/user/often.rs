//! What comes most often, in a fixed amount of memory.
//!
//! Of what comes rarely some is forgotten once there is too much of it; so a count may be too small by what was forgotten at
//! the most, and whatever comes often is never missed.

use std::collections::HashMap;

/// Counts of names.
#[derive(Clone, Debug)]
pub(super) struct Often {
    counts: HashMap<String, u64>,
    most: usize,
}

impl Often {
    /// Remembers the `most` most frequent names, and for a while some more.
    pub(super) fn new(most: usize) -> Self {
        Self { counts: HashMap::new(), most }
    }

    /// Counts a name once more.
    pub(super) fn add(&mut self, name: &str) {
        if let Some(count) = self.counts.get_mut(name) {
            *count += 1;
            return;
        }
        self.counts.insert(name.to_owned(), 1);
        if self.counts.len() > 2 * self.most {
            self.prune();
        }
    }

    fn prune(&mut self) {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        let (_, floor, _) = counts.select_nth_unstable_by(self.most, |a, b| b.cmp(a));
        let floor = *floor;
        self.counts.retain(|_, count| {
            *count = count.saturating_sub(floor);
            *count > 0
        });
    }

    /// The `n` most frequent, the most frequent first.
    pub(super) fn top(self, n: usize) -> Vec<(String, u64)> {
        let mut all: Vec<(String, u64)> = self.counts.into_iter().collect();
        all.sort_by(|(a, x), (b, y)| (y, a).cmp(&(x, b)));
        all.truncate(n);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_often_is_never_missed_among_very_many() {
        let mut often = Often::new(50);
        for i in 0..20_000 {
            often.add(&format!("once {i}"));
            if i % 10 == 0 {
                often.add("窓");
            }
        }
        assert!(often.counts.len() <= 100);
        let top = often.top(1);
        assert_eq!(top[0].0, "窓");
        assert!(top[0].1 <= 2_000, "{top:?}");
    }
}
