//! Comments that are handed on at one time: not more than can be held. The others are news the next time.

use super::Comment;
use std::collections::VecDeque;

/// The most comments.
const MOST: usize = 100;
/// The most of their words, in bytes; one comment may be longer.
const MOST_BYTES: usize = 1 << 20;

/// The oldest of those that are new, in order.
#[derive(Default)]
pub(super) struct News {
    comments: VecDeque<Comment>,
    bytes: usize,
}

impl News {
    /// One that is newer than all so far; false when there is no room for another.
    pub(super) fn newer(&mut self, comment: Comment) -> bool {
        self.bytes += comment.text.len();
        self.comments.push_back(comment);
        !self.is_full()
    }

    /// One that is older than all so far: where there is no room, the newest gives way.
    pub(super) fn older(&mut self, comment: Comment) {
        self.bytes += comment.text.len();
        self.comments.push_front(comment);
        while self.is_over() {
            self.bytes -= self.comments.pop_back().map_or(0, |newest| newest.text.len());
        }
    }

    pub(super) fn into_vec(self) -> Vec<Comment> {
        self.comments.into()
    }

    fn is_full(&self) -> bool {
        self.comments.len() >= MOST || self.bytes >= MOST_BYTES
    }

    fn is_over(&self) -> bool {
        self.comments.len() > MOST || (self.bytes > MOST_BYTES && self.comments.len() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment(id: usize, bytes: usize) -> Comment {
        Comment { id: id.to_string(), author: "ann".into(), text: "x".repeat(bytes) }
    }

    fn ids(news: News) -> Vec<String> {
        news.into_vec().into_iter().map(|comment| comment.id).collect()
    }

    #[test]
    fn the_oldest_are_kept_whichever_way_they_come() {
        let (mut forth, mut back) = (News::default(), News::default());
        let _ = (0..300).take_while(|id| forth.newer(comment(*id, 1))).count();
        (0..300).rev().for_each(|id| back.older(comment(id, 1)));
        let expect: Vec<String> = (0..MOST).map(|id| id.to_string()).collect();
        assert_eq!((ids(forth), ids(back)), (expect.clone(), expect));
    }

    #[test]
    fn long_ones_take_the_room_of_many_and_one_always_fits() {
        let mut news = News::default();
        (0..9).rev().for_each(|id| news.older(comment(id, MOST_BYTES / 2)));
        assert_eq!(ids(news), ["0", "1"]);
        let mut news = News::default();
        (0..9).rev().for_each(|id| news.older(comment(id, MOST_BYTES * 2)));
        assert_eq!(ids(news), ["0"]);
    }
}
