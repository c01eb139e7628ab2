//! How far what is said of a task was heard, as an id that outlives whoever heard it.
//!
//! An issue has one list of comments, and the number of the last one says it all. A pull request has reviews beside it, with
//! numbers of their own, and those say nothing of the order in which people see them: a review gets its number when
//! somebody begins to write it, and is shown once they send it. So reviews count by the time when they were sent.

use std::fmt;
use std::str::FromStr;

/// Where something stands among all that was said.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Spot {
    /// When people saw it, in seconds since 1970.
    pub(super) time: u64,
    /// The review it belongs to; 0 for what belongs to none.
    pub(super) review: u64,
    /// The number of the comment; 0 for what a review says as a whole.
    pub(super) comment: u64,
}

/// How far the talk and the reviews were heard. As text, a later one is longer than an earlier one, or sorts behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Cursor {
    /// The last comment that belongs to no review.
    pub(super) comment: u64,
    /// The last that was heard of reviews.
    pub(super) review: Spot,
}

impl Cursor {
    /// This was heard, too.
    pub(super) fn pass(&mut self, spot: Spot) {
        if spot.review == 0 {
            self.comment = spot.comment;
        } else {
            self.review = spot;
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spot { time, review, comment } = self.review;
        match self.review == Spot::default() {
            true => write!(f, "{}", self.comment),
            // Of one width, so that a later one is never shorter.
            false => write!(f, "c{}.r{time:012}-{review:020}-{comment:020}", self.comment),
        }
    }
}

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| NoCursor);
        let Some((comment, review)) = text.strip_prefix('c').and_then(|rest| rest.split_once(".r")) else {
            return Ok(Self { comment: number(text)?, review: Spot::default() });
        };
        let mut numbers = review.splitn(3, '-').map(number);
        let mut next = || numbers.next().unwrap_or(Err(NoCursor));
        let review = Spot { time: next()?, review: next()?, comment: next()? };
        Ok(Self { comment: number(comment)?, review })
    }
}

/// A text that says nothing of how far somebody heard.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct NoCursor;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_one_is_longer_or_sorts_behind_whatever_was_heard_in_between() {
        let spots = [(9, 0, 7), (10, 0, 99), (11, 500, 0), (11, 500, 3), (12, 8, 0), (12, 8, 4_000_000_000)];
        let more =
            [(13, 0, 100), (13, 9, u64::MAX), (1_767_225_600, 1, 0), (1_767_225_601, 0, 9_999_999_999)];
        let mut cursor = Cursor::default();
        let mut before = (0, String::new());
        for (time, review, comment) in spots.into_iter().chain(more) {
            cursor.pass(Spot { time, review, comment });
            let text = cursor.to_string();
            assert_eq!(text.parse(), Ok(cursor), "{text}");
            let key = (text.len(), text);
            assert!(before < key, "{before:?} {key:?}");
            before = key;
        }
    }

    #[test]
    fn a_plain_number_is_a_comment_and_anything_else_is_none() {
        let plain = Cursor { comment: 1_234, review: Spot::default() };
        assert_eq!("1234".parse(), Ok(plain));
        assert_eq!(plain.to_string(), "1234");
        for text in ["", "c1", "c1.r2", "c1.r2-3", "c1.r2-3-4-5", "c.r1-2-3", "窓", "-1", "c1.r-1-2-3"] {
            assert_eq!(text.parse::<Cursor>(), Err(NoCursor), "{text}");
        }
    }
}
