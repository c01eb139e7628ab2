//! Comments that are handed on at one time: not more than can be held. The others are news the next time.

use super::Comment;
use std::collections::BTreeMap;

/// The most comments.
const MOST: usize = 100;
/// The most of their words, in bytes; one comment may be longer.
const MOST_BYTES: usize = 1 << 20;

/// The oldest of those that are new, by where they stand.
pub(super) struct News<K> {
    comments: BTreeMap<K, Comment>,
    bytes: usize,
    /// The oldest that gave way: nothing from there on is taken, or whoever goes on behind the last one would miss it.
    end: Option<K>,
}

impl<K: Ord> News<K> {
    pub(super) fn new() -> Self {
        Self { comments: BTreeMap::new(), bytes: 0, end: None }
    }

    /// One more: where there is no room, the newest give way. False when there is none for what is newer than all so far.
    pub(super) fn add(&mut self, at: K, comment: Comment) -> bool {
        if self.end.as_ref().is_some_and(|end| at >= *end) {
            return false;
        }
        self.bytes += comment.text.len();
        let before = self.comments.insert(at, comment);
        self.bytes -= before.map_or(0, |before| before.text.len());
        while self.is_over() {
            let Some((end, newest)) = self.comments.pop_last() else { break };
            self.bytes -= newest.text.len();
            self.end = Some(end);
        }
        !self.is_full()
    }

    /// True when others gave way, or would have to.
    pub(super) fn is_full(&self) -> bool {
        self.end.is_some() || self.comments.len() >= MOST || self.bytes >= MOST_BYTES
    }

    /// In order, with where they stand.
    pub(super) fn into_all(self) -> impl Iterator<Item = (K, Comment)> {
        self.comments.into_iter()
    }

    fn is_over(&self) -> bool {
        self.comments.len() > MOST || (self.bytes > MOST_BYTES && self.comments.len() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment(bytes: usize) -> Comment {
        Comment { id: String::new(), author: "ann".into(), text: "x".repeat(bytes) }
    }

    fn places(news: News<usize>) -> Vec<usize> {
        news.into_all().map(|(at, _)| at).collect()
    }

    #[test]
    fn the_oldest_are_kept_whichever_way_they_come() {
        let (mut forth, mut back) = (News::new(), News::new());
        let read = (0..300).take_while(|at| forth.add(*at, comment(1))).count();
        (0..300).rev().for_each(|at| _ = back.add(at, comment(1)));
        assert_eq!(read, MOST - 1, "nobody reads on where there is no room");
        let expect: Vec<usize> = (0..MOST).collect();
        assert_eq!((places(forth), places(back)), (expect.clone(), expect));
    }

    #[test]
    fn long_ones_take_the_room_of_many_and_one_always_fits() {
        for (bytes, expect) in [(MOST_BYTES / 2, vec![0, 1]), (MOST_BYTES * 2, vec![0])] {
            let mut news = News::new();
            (0..9).rev().for_each(|at| _ = news.add(at, comment(bytes)));
            assert_eq!(places(news), expect);
        }
    }

    #[test]
    fn nothing_is_taken_behind_what_gave_way() {
        let mut news = News::new();
        [1, 2, 3].into_iter().for_each(|at| _ = news.add(at, comment(MOST_BYTES * 2 / 5)));
        assert!(!news.add(4, comment(1)), "3 gave way, and comes first the next time");
        assert!(!news.add(0, comment(1)) && news.is_full());
        assert_eq!(places(news), [0, 1, 2]);
    }

    #[test]
    fn what_comes_twice_is_there_once_and_takes_its_room_once() {
        let mut news = News::new();
        (0..9).for_each(|_| _ = news.add(1, comment(MOST_BYTES / 2)));
        assert!(news.add(2, comment(1)));
        assert_eq!(places(news), [1, 2]);
    }
}
