//! Chance that comes out the same every time.

/// SplitMix64: a number from a number, and well mixed.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 when `n` is.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.next().checked_rem(n as u64).unwrap_or(0) as usize
    }

    /// A number in `from..=to`.
    pub(super) fn between(&mut self, from: usize, to: usize) -> usize {
        from + self.below(to.saturating_sub(from) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn the_same_seed_throws_the_same_numbers() {
        let throw = |seed| {
            let mut dice = Dice::new(seed);
            (0..100).map(|_| dice.between(3, 9)).collect::<Vec<_>>()
        };
        assert_eq!(throw(7), throw(7));
        assert_ne!(throw(7), throw(8));
        assert!(throw(7).iter().all(|n| (3..=9).contains(n)));
        assert_eq!(Dice::new(1).below(0), 0);
    }
}
