//! Where a term occurs, as few bytes: the places of a term, packed into rows of a bounded size.
//!
//! A place is an entry and a passage of it. Places of a term are kept in order, so that only the way from one to the
//! next is written, in bytes of seven bits. A row ends when it would no longer lie whole on a page of the table. How
//! often a term occurs is kept up to eight times: what a ninth adds is nothing anyone could tell.

/// Bits of a place that number the passage.
pub(crate) const PART_BITS: u32 = 20;
/// The last passage that can be numbered.
pub(crate) const LAST_PART: u32 = (1 << PART_BITS) - 1;
/// The most often that a term is counted in one passage.
const MOST: u32 = 8;
/// A row is not made longer than this.
const ROW: usize = 900;

/// A term in a passage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Posting {
    /// The place: entry and passage.
    pub(crate) doc: u64,
    /// How often.
    pub(crate) times: u32,
}

/// The place of passage `part` of entry `entry`.
pub(crate) const fn doc(entry: u64, part: u32) -> u64 {
    entry << PART_BITS | part as u64
}

/// The entry of a place.
pub(crate) const fn entry_of(doc: u64) -> u64 {
    doc >> PART_BITS
}

const fn part_of(doc: u64) -> u64 {
    doc & LAST_PART as u64
}

/// One row: the places of a term from `first` on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PostingRow {
    pub(crate) first: u64,
    pub(crate) docs: u64,
    pub(crate) body: Vec<u8>,
    last: u64,
}

impl PostingRow {
    /// A row that begins with `first`, still without a place.
    pub(crate) fn begin(first: u64) -> Self {
        Self { first, docs: 0, body: Vec::new(), last: first }
    }

    /// A row as it was kept.
    pub(crate) fn kept(first: u64, docs: u64, body: Vec<u8>) -> Self {
        let last = unpack(first, &body).last().map_or(first, |post| post.doc);
        Self { first, docs, body, last }
    }

    /// True when there is no room for another place.
    pub(crate) fn is_full(&self) -> bool {
        self.body.len() >= ROW
    }

    /// Adds a place, which lies behind the last one. False when it does not, and nothing is added.
    pub(crate) fn push(&mut self, post: Posting) -> bool {
        if self.docs > 0 && post.doc <= self.last {
            return false;
        }
        let entries = entry_of(post.doc) - entry_of(self.last);
        let parts = if entries == 0 { part_of(post.doc) - part_of(self.last) } else { part_of(post.doc) };
        put(entries, &mut self.body);
        put(parts << 3 | u64::from(post.times.clamp(1, MOST) - 1), &mut self.body);
        self.last = post.doc;
        self.docs += 1;
        true
    }
}

/// The places in a row's bytes. Bytes that make no sense end it early: the table's own checks find such rows.
pub(crate) fn unpack(first: u64, body: &[u8]) -> Vec<Posting> {
    let mut posts = Vec::with_capacity(body.len() / 2);
    let (mut rest, mut last) = (body, first);
    while let (Some(entries), Some(word)) = (take(&mut rest), take(&mut rest)) {
        let (parts, times) = (word >> 3, (word & 7) as u32 + 1);
        let part = if entries == 0 { part_of(last) + parts } else { parts };
        let Some(entry) = entry_of(last).checked_add(entries).filter(|_| part <= u64::from(LAST_PART)) else {
            break;
        };
        last = entry << PART_BITS | part;
        posts.push(Posting { doc: last, times });
    }
    posts
}

fn put(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        n |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_as_they_were_put_also_over_great_distances() {
        let docs = [(1, 0), (1, 1), (1, 9), (2, 0), (2, LAST_PART), (3, 300), (1 << 40, 5), (1 << 40, 6)];
        let posts: Vec<Posting> = docs
            .iter()
            .zip(1..)
            .map(|(&(entry, part), times)| Posting { doc: doc(entry, part), times })
            .collect();
        let mut row = PostingRow::begin(posts[0].doc);
        assert!(posts.iter().all(|post| row.push(*post)));
        assert_eq!(unpack(row.first, &row.body), posts);
        assert_eq!(PostingRow::kept(row.first, row.docs, row.body.clone()), row);
        assert!(!row.push(posts[3]), "a place is not put behind a later one");
        assert_eq!(row.docs, posts.len() as u64);
    }

    #[test]
    fn a_term_is_counted_up_to_eight_times() {
        let mut row = PostingRow::begin(doc(7, 0));
        row.push(Posting { doc: doc(7, 0), times: 500 });
        assert_eq!(unpack(row.first, &row.body)[0].times, 8);
    }

    #[test]
    fn bytes_that_are_no_row_end_it_early() {
        for body in [&[0xff; 40][..], &[0x80], &[1], &[]] {
            assert!(unpack(doc(1, 0), body).len() <= 1);
        }
    }
}
