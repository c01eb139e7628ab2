//! Rows by name, of which only so many are kept; the sums stay exact.
//!
//! When a table is full, its lighter half is folded into one row for all others. So no figure is lost, a row that was
//! heavy all along is exact, and one that was folded and came again is short by no more than the table says.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The longest name of a row; the rest of a longer one tells a reader nothing.
const LONGEST: usize = 200;

/// Adds the named fields of one value to those of another.
macro_rules! add_fields {
    ($to:expr, $from:expr; $($field:ident),+ $(,)?) => { $($to.$field += $from.$field;)+ };
}
pub(crate) use add_fields;

/// What a row holds.
pub(crate) trait TableRow: Default {
    /// Takes another row in.
    fn merge(&mut self, other: &Self);

    /// How much it matters.
    fn weight(&self) -> u64;
}

/// Rows by name.
#[derive(Debug)]
pub(crate) struct TopTable<R> {
    rows: BTreeMap<String, R>,
    room: usize,
    others: Option<R>,
    short_by: u64,
}

impl<R: TableRow> TopTable<R> {
    /// With room for so many rows.
    pub(crate) fn new(room: usize) -> Self {
        Self { rows: BTreeMap::new(), room: room.max(2), others: None, short_by: 0 }
    }

    /// The row of a name.
    pub(crate) fn row(&mut self, name: &str) -> &mut R {
        if self.rows.len() >= self.room && !self.rows.contains_key(shortened(name)) {
            self.fold();
        }
        self.rows.entry(shortened(name).to_owned()).or_default()
    }

    /// By how much the weight of a row may be short.
    pub(crate) fn short_by(&self) -> u64 {
        self.short_by
    }

    /// The heaviest rows, then all others as one, when there are any.
    pub(crate) fn top(self, most: usize) -> (Vec<(String, R)>, Option<R>) {
        let mut rows: Vec<(String, R)> = self.rows.into_iter().collect();
        rows.sort_by(|(a, one), (b, other)| other.weight().cmp(&one.weight()).then_with(|| a.cmp(b)));
        let mut others = self.others;
        for (_, row) in rows.iter().skip(most) {
            others.get_or_insert_default().merge(row);
        }
        rows.truncate(most);
        (rows, others)
    }

    fn fold(&mut self) {
        let mut weights: Vec<u64> = self.rows.values().map(TableRow::weight).collect();
        weights.sort_unstable();
        let middle = weights[weights.len() / 2];
        let mut left = self.rows.len() - weights.len() / 2;
        let others = self.others.get_or_insert_default();
        self.rows.retain(|_, row| {
            let stays = row.weight() > middle || row.weight() == middle && left == 0;
            if !stays {
                others.merge(row);
                left = left.saturating_sub(1);
            }
            stays
        });
        self.short_by += middle;
    }
}

fn shortened(name: &str) -> &str {
    name.char_indices().nth(LONGEST).map_or(name, |(end, _)| &name[..end])
}

impl TableRow for u64 {
    fn merge(&mut self, other: &Self) {
        *self += other;
    }

    fn weight(&self) -> u64 {
        *self
    }
}

// Figures of which only a few may be kept: how they are spread, and how many different ones there are.

/// Neighbouring steps differ by so much: a figure read back is wrong by at most one per cent.
const STEP: f64 = 1.02;
/// Below this all figures are the same.
const LEAST: f64 = 1e-3;
/// Above this too; from the least to here there are some 1,400 steps.
const MOST: f64 = 1e9;

/// How figures are spread, in steps that grow with them: a few kilobytes however many there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct FigureSpread {
    steps: BTreeMap<i32, u64>,
    count: u64,
    sum: f64,
    max: f64,
}

/// What is told of a spread. The mean and the largest are exact, the shares between within one per cent.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// How many figures.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Half of them are no larger.
    pub p50: f64,
    /// Nine of ten are no larger.
    pub p90: f64,
    /// Ninety-nine of a hundred are no larger.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

impl FigureSpread {
    /// Takes a figure in; what is below zero counts as zero.
    pub(crate) fn add(&mut self, figure: f64) {
        let figure = if figure.is_finite() { figure.max(0.0) } else { return };
        let step = if figure < LEAST { i32::MIN } else { (figure.min(MOST).ln() / STEP.ln()).ceil() as i32 };
        *self.steps.entry(step).or_default() += 1;
        self.count += 1;
        self.sum += figure;
        self.max = self.max.max(figure);
    }

    /// Takes another spread in.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (step, count) in &other.steps {
            *self.steps.entry(*step).or_default() += count;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// What is told of it; nothing of no figures.
    pub(crate) fn told(&self) -> Option<Distribution> {
        let mean = self.sum / (self.count > 0).then_some(self.count)? as f64;
        let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|share| round(self.at(share)));
        Some(Distribution { count: self.count, mean: round(mean), p50, p90, p99, max: round(self.max) })
    }

    fn at(&self, share: f64) -> f64 {
        let wanted = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (step, count) in &self.steps {
            seen += count;
            if seen >= wanted {
                // The middle of the step; never more than the largest.
                let middle = if *step == i32::MIN { 0.0 } else { STEP.powi(*step) * 2.0 / (1.0 + STEP) };
                return middle.min(self.max);
            }
        }
        self.max
    }
}

/// Three decimals are as many as anyone reads.
pub(crate) fn round(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}

/// How many different ones there are: exact up to [`Different::KEPT`], within some twelve per cent above.
#[derive(Clone, Debug, Default)]
pub(crate) struct DistinctCount {
    least: BTreeSet<u64>,
}

impl DistinctCount {
    /// The least digests that are kept: where they lie tells how many there are.
    const KEPT: usize = 64;

    pub(crate) fn add(&mut self, digest: u64) {
        if self.least.len() == Self::KEPT && self.least.last().is_some_and(|last| digest >= *last) {
            return;
        }
        self.least.insert(digest);
        if self.least.len() > Self::KEPT {
            self.least.pop_last();
        }
    }

    pub(crate) fn count(&self) -> u64 {
        match self.least.last() {
            Some(last) if self.least.len() == Self::KEPT => {
                let share = (*last as f64 / u64::MAX as f64).max(f64::MIN_POSITIVE);
                ((Self::KEPT - 1) as f64 / share).round().max(Self::KEPT as f64) as u64
            }
            _ => self.least.len() as u64,
        }
    }
}

/// A number that stands for a text.
pub(crate) fn digest(text: &str) -> u64 {
    let hash = blake3::hash(text.as_bytes());
    hash.as_bytes()[..8].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_often_is_never_missed_among_very_many() {
        let mut often: TopTable<u64> = TopTable::new(100);
        for i in 0..20_000 {
            *often.row(&format!("once {i}")) += 1;
            if i % 10 == 0 {
                *often.row("窓") += 1;
            }
        }
        assert!(often.rows.len() <= 100);
        let top = often.top(1).0;
        assert_eq!(top[0].0, "窓");
        assert!(top[0].1 <= 2_000, "{top:?}");
    }

    #[test]
    fn sums_are_exact_and_rows_bounded_for_any_users() {
        let mut table: TopTable<u64> = TopTable::new(100);
        for n in 0..50_000u64 {
            *table.row(&format!("利用者{n}")) += 1;
            *table.row("heavy") += 3;
            assert!(table.rows.len() <= 100);
        }
        let short = table.short_by();
        let (rows, others) = table.top(5);
        assert_eq!(rows[0], ("heavy".to_owned(), 150_000));
        assert_eq!(rows.iter().map(|(_, n)| n).sum::<u64>() + others.unwrap(), 200_000);
        assert!((1..2_000).contains(&short), "{short}");
    }

    #[test]
    fn a_table_that_never_was_full_has_no_others() {
        let mut table: TopTable<u64> = TopTable::new(10);
        ["b", "a", "a"].iter().for_each(|name| *table.row(name) += 1);
        *table.row(&"長".repeat(1_000)) += 1;
        assert_eq!(table.short_by(), 0);
        let (rows, others) = table.top(9);
        assert_eq!((rows.len(), others), (3, None));
        assert_eq!((rows[0].0.as_str(), rows[2].0.chars().count()), ("a", LONGEST));
    }
}

#[cfg(test)]
mod sketch_tests {
    use super::*;

    #[test]
    fn shares_are_right_within_a_hundredth_and_small_counts_exactly() {
        let mut spread = FigureSpread::default();
        (1..=10_000).for_each(|n| spread.add(f64::from(n)));
        let told = spread.told().unwrap();
        for (is, wanted) in [(told.p50, 5_000.0), (told.p90, 9_000.0), (told.p99, 9_900.0)] {
            assert!((is / wanted - 1.0_f64).abs() <= 0.011, "{is} for {wanted}");
        }
        assert_eq!((told.count, told.mean, told.max), (10_000, 5_000.5, 10_000.0));
        let mut turns = FigureSpread::default();
        [1.0, 2.0, 2.0, 3.0].iter().for_each(|n| turns.add(*n));
        assert_eq!(turns.told().unwrap().p50.round(), 2.0);
        assert_eq!(FigureSpread::default().told(), None);
    }

    #[test]
    fn whatever_comes_a_spread_stays_small() {
        let mut spread = FigureSpread::default();
        (0..200_000).for_each(|n| spread.add((f64::from(n) * 1e4).powi(2) * 1e-9));
        spread.add(f64::NAN);
        spread.add(-5.0);
        assert!(spread.steps.len() < 1_500, "{}", spread.steps.len());
        let mut twice = spread.clone();
        twice.merge(&spread);
        assert_eq!(twice.told().unwrap().count, 2 * spread.told().unwrap().count);
        assert_eq!(twice.told().unwrap().p90, spread.told().unwrap().p90);
    }

    #[test]
    fn few_different_ones_are_counted_exactly_and_many_nearly() {
        let mut different = DistinctCount::default();
        for n in 0..50 {
            (0..3).for_each(|_| different.add(digest(&format!("利用者{n}"))));
        }
        assert_eq!(different.count(), 50);
        (0..20_000).for_each(|n| different.add(digest(&format!("利用者{n}"))));
        let off = different.count() as f64 / 20_000.0 - 1.0;
        assert!(off.abs() < 0.4, "{}", different.count());
        assert_eq!(different.least.len(), DistinctCount::KEPT);
    }
}
