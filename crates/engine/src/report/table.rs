//! Rows by name, of which only so many are kept; the sums stay exact.
//!
//! When a table is full, its lighter half is folded into one row for all others. So no figure is lost, a row that was
//! heavy all along is exact, and one that was folded and came again is short by no more than the table says.

use std::collections::BTreeMap;

/// The longest name of a row; the rest of a longer one tells nobody anything.
const LONGEST: usize = 200;

/// What a row holds.
pub(crate) trait Row: Default {
    /// Takes another row in.
    fn merge(&mut self, other: &Self);

    /// How much it matters.
    fn weight(&self) -> u64;
}

/// Rows by name.
#[derive(Debug)]
pub(crate) struct Table<R> {
    rows: BTreeMap<String, R>,
    room: usize,
    others: Option<R>,
    short_by: u64,
}

impl<R: Row> Table<R> {
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
        let mut weights: Vec<u64> = self.rows.values().map(Row::weight).collect();
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

impl Row for u64 {
    fn merge(&mut self, other: &Self) {
        *self += other;
    }

    fn weight(&self) -> u64 {
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_often_is_never_missed_among_very_many() {
        let mut often: Table<u64> = Table::new(100);
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
    fn sums_are_exact_and_rows_bounded_whoever_comes() {
        let mut table: Table<u64> = Table::new(100);
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
        let mut table: Table<u64> = Table::new(10);
        ["b", "a", "a"].iter().for_each(|name| *table.row(name) += 1);
        *table.row(&"長".repeat(1_000)) += 1;
        assert_eq!(table.short_by(), 0);
        let (rows, others) = table.top(9);
        assert_eq!((rows.len(), others), (3, None));
        assert_eq!((rows[0].0.as_str(), rows[2].0.chars().count()), ("a", LONGEST));
    }
}
