//! A few entries read ahead, in the direction in which they are asked for: a look at one is cheap, and a walk through all asks a
//! server few times.

use komado_core::Seq;

/// The most that is read ahead.
const MOST: u32 = 256;

/// What was read last.
#[derive(Default)]
pub(crate) struct Page {
    /// Which of the threads that make up the journal.
    leg: usize,
    first: Seq,
    values: Vec<Vec<u8>>,
    /// How many are read next time, when the next one is asked for.
    reach: u32,
}

/// What is to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub(crate) leg: usize,
    pub(crate) from: Seq,
    pub(crate) count: u32,
    pub(crate) is_backward: bool,
    /// True when it stands apart from what was read before.
    pub(crate) is_apart: bool,
}

impl Page {
    /// An entry, when it was read.
    pub(crate) fn get(&self, leg: usize, seq: Seq) -> Option<&[u8]> {
        let at = seq.checked_sub(self.first).filter(|_| leg == self.leg)?;
        self.values.get(at as usize).map(Vec::as_slice)
    }

    /// How to read entry `seq` and what is likely to be asked for next; the leg has the entries from `low` to `high`.
    pub(crate) fn plan(&self, leg: usize, seq: Seq, (low, high): (Seq, Seq), start: u32) -> Plan {
        let is_known = !self.values.is_empty() && leg == self.leg;
        let goes_on = is_known && u64::from(seq) == u64::from(self.first) + self.values.len() as u64;
        let is_backward = is_known && seq + 1 == self.first;
        let wish = if goes_on || is_backward { (self.reach * 4).min(MOST) } else { start };
        let room = if is_backward { seq - low } else { high - seq };
        let is_apart = !goes_on && !is_backward;
        Plan { leg, from: seq, count: wish.min(room.saturating_add(1)), is_backward, is_apart }
    }

    /// Keeps what was read: from the entry that was asked for, in the direction of the plan.
    pub(crate) fn keep(&mut self, plan: Plan, mut values: Vec<Vec<u8>>, start: u32) {
        self.first = plan.from;
        if plan.is_backward {
            self.first = plan.from + 1 - values.len() as u32;
            values.reverse();
        }
        (self.leg, self.reach, self.values) = (plan.leg, plan.count.max(start), values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_read_ahead_the_longer_one_goes_on_in_either_direction() {
        let mut page = Page::default();
        let read = |page: &mut Page, seq| {
            let plan = page.plan(0, seq, (1, 5000), 8);
            page.keep(plan, vec![Vec::new(); plan.count as usize], 8);
            (plan.from, plan.count, plan.is_backward)
        };
        assert_eq!(read(&mut page, 1000), (1000, 8, false));
        assert_eq!(read(&mut page, 1008), (1008, 32, false));
        assert_eq!(read(&mut page, 1007), (1007, 128, true));
        assert_eq!(page.get(0, 880).map(<[u8]>::len), Some(0));
        assert_eq!((page.get(0, 879), page.get(1, 900)), (None, None));
        assert_eq!(read(&mut page, 879), (879, 256, true));
        assert_eq!(read(&mut page, 4999), (4999, 2, false));
        assert_eq!(page.plan(1, 3, (2, 3), 8).count, 1);
    }
}
