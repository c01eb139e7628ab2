//! Which entry of a thread is which element of the client's transcript.
//!
//! Every request that was sent on left a mark: how far the transcript went, and how its new elements became entries. By
//! the marks around an entry its elements are found, without reading what is hidden: the cost is that of what is shown.

use crate::error::Result;
use crate::thread::Thread;
use komado_core::journal::{Entry, Group, Mark, Sent};
use komado_core::{Head, Kind, Seq};
use std::ops::Range;

/// Entries that stand for elements, or for none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Block {
    /// The entries, in order.
    pub(super) entries: Vec<Seq>,
    /// The elements; `None` for what only the journal knows, or tells better.
    pub(super) elements: Option<Range<u32>>,
    /// True when the elements answer calls beside answers that the client does not know of: then both are written anew, as one.
    pub(super) is_tied: bool,
}

/// The entries between two marks.
struct Turn {
    span: (Seq, Seq),
    blocks: Vec<Block>,
}

/// Looks entries up, in the order of the view.
pub(super) struct EntryMap<'a> {
    thread: &'a Thread<'a>,
    /// The mark of the request that is being written; its entry is still to come.
    now: &'a Mark,
    /// Entries up to here are not in this transcript at all.
    floor: Seq,
    turn: Option<Turn>,
}

impl<'a> EntryMap<'a> {
    pub(super) fn new(thread: &'a Thread<'a>, now: &'a Mark, floor: Seq) -> Self {
        Self { thread, now, floor, turn: None }
    }

    /// The block that holds an entry.
    pub(super) fn block(&mut self, seq: Seq) -> Result<Block> {
        let is_near = self.turn.as_ref().is_some_and(|turn| turn.span.0 < seq && seq < turn.span.1);
        if !is_near {
            self.turn = Some(self.turn_around(seq)?);
        }
        let found = self.turn.as_ref().and_then(|turn| {
            let ends = |block: &Block| block.entries.last().is_some_and(|last| *last < seq);
            turn.blocks.get(turn.blocks.partition_point(ends)).filter(|block| block.entries.contains(&seq))
        });
        let alone = || Block { entries: vec![seq], elements: None, is_tied: false };
        Ok(found.filter(|_| seq > self.floor).cloned().unwrap_or_else(alone))
    }

    fn turn_around(&self, seq: Seq) -> Result<Turn> {
        let (view, source) = (self.thread.view(), self.thread.source());
        let before = self.mark(view.back(source, seq.saturating_sub(1)))?;
        let after = self.mark(view.forth(source, seq))?;
        let from = before.as_ref().map_or(0, |(seq, _)| *seq);
        let (to, mark) = after.unwrap_or_else(|| (self.thread.last() + 1, self.now.clone()));
        let mut items = Vec::new();
        for entry in view.forth(source, from + 1) {
            let (seq, head) = entry?;
            if seq >= to {
                break;
            }
            items.extend(head.kind.is_item().then_some(seq));
        }
        let ours = self.begins_with_answers(&mark, &items)?;
        let blocks = blocks(before.map(|(_, mark)| mark), &mark, items, ours);
        Ok(Turn { span: (from, to), blocks })
    }

    /// True when what was taken in begins with answers that the client does not know of: the reply before them has calls
    /// that it does not know of either.
    fn begins_with_answers(&self, mark: &Mark, items: &[Seq]) -> Result<bool> {
        let Some(Group { elements: 0, .. }) = mark.groups.first() else { return Ok(false) };
        match items.get(items.len().saturating_sub(taken(mark))) {
            Some(first) => Ok(self.thread.source().head(*first)?.kind == Kind::Tool),
            None => Ok(false),
        }
    }

    /// The first mark among these entries.
    fn mark(
        &self,
        entries: impl Iterator<Item = komado_store::Result<(Seq, Head)>>,
    ) -> Result<Option<(Seq, Mark)>> {
        for entry in entries {
            let (seq, head) = entry?;
            if head.kind == Kind::Sent
                && let Entry::Sent(Sent { mark: Some(mark), .. }) = self.thread.record(seq)?.entry
            {
                return Ok(Some((seq, mark)));
            }
        }
        Ok(None)
    }
}

/// Entries that were taken in with a mark.
fn taken(mark: &Mark) -> usize {
    mark.groups.iter().map(|group| (group.entries as usize) * group.times as usize).sum()
}

/// The blocks between two marks. The first entry is the reply to the request before, unless that brought none. `ours`
/// says that answers of ours to its calls come next.
fn blocks(before: Option<Mark>, mark: &Mark, items: Vec<Seq>, ours: bool) -> Vec<Block> {
    let taken = taken(mark);
    let mut items = items.into_iter();
    let mut blocks = Vec::new();
    while items.len() > taken {
        let Some(seq) = items.next() else { break };
        let is_reply = blocks.is_empty();
        let told = before.as_ref().filter(|before| is_reply && !ours && !mark.inner && !before.inner);
        let elements = told.map(|before| before.elements..mark.from).filter(|range| !range.is_empty());
        blocks.push(Block { entries: vec![seq], elements, is_tied: false });
    }
    // Elements that became no entry of their own go with the entries around them.
    let (mut at, mut begun) = (mark.from, mark.from);
    for group in mark.groups.iter().flat_map(|group| (0..group.times).map(move |_| group)) {
        let Group { elements, entries, .. } = *group;
        at += elements;
        let entries: Vec<Seq> = items.by_ref().take(entries as usize).collect();
        let last = blocks.last_mut().and_then(|block: &mut Block| block.elements.as_mut());
        match last.filter(|range| entries.is_empty() && range.end == begun) {
            Some(range) => (range.end, begun) = (at, at),
            None if entries.is_empty() => {}
            None if elements == 0 => blocks.push(Block { entries, elements: None, is_tied: false }),
            None => {
                blocks.push(Block { entries, elements: Some(begun..at), is_tied: ours });
                begun = at;
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(from: u32, elements: u32, groups: &[[u32; 3]]) -> Mark {
        let groups = groups.iter().copied().map(Group::from).collect();
        Mark { from, elements, digest: String::new(), groups, inner: false, apart: false }
    }

    fn told(blocks: &[Block]) -> Vec<(Vec<Seq>, Option<Range<u32>>)> {
        blocks.iter().map(|block| (block.entries.clone(), block.elements.clone())).collect()
    }

    #[test]
    fn the_reply_is_what_the_client_tells_between_two_marks() {
        let found =
            blocks(Some(mark(0, 3, &[])), &mark(4, 6, &[[1, 1, 1], [1, 2, 1]]), vec![7, 8, 9, 10], false);
        let expected = [(vec![7], Some(3..4)), (vec![8], Some(4..5)), (vec![9, 10], Some(5..6))];
        assert_eq!(told(&found), expected);
    }

    #[test]
    fn a_request_without_a_reply_leaves_none_behind() {
        let found = blocks(Some(mark(0, 3, &[])), &mark(3, 4, &[[1, 1, 1]]), vec![7], false);
        assert_eq!(told(&found), [(vec![7], Some(3..4))]);
    }

    #[test]
    fn an_inner_exchange_is_told_from_the_journal() {
        let inner = Mark { inner: true, ..mark(3, 3, &[[0, 1, 1]]) };
        let first = blocks(Some(mark(0, 3, &[])), &inner, vec![7, 8], true);
        assert_eq!(told(&first), [(vec![7], None), (vec![8], None)]);
        let second = blocks(Some(inner), &mark(4, 5, &[[1, 1, 1]]), vec![9, 10], false);
        assert_eq!(told(&second), [(vec![9], None), (vec![10], Some(4..5))]);
    }

    #[test]
    fn an_answer_of_ours_beside_the_clients_ties_the_two() {
        let found = blocks(Some(mark(0, 3, &[])), &mark(4, 5, &[[0, 1, 1], [1, 1, 1]]), vec![7, 8, 9], true);
        assert_eq!(told(&found), [(vec![7], None), (vec![8], None), (vec![9], Some(4..5))]);
        assert!(found[2].is_tied && !found[1].is_tied);
    }

    #[test]
    fn words_that_the_client_does_not_know_stand_between_its_own() {
        let found = blocks(Some(mark(0, 3, &[])), &mark(4, 5, &[[0, 1, 1], [1, 1, 1]]), vec![7, 8, 9], false);
        assert_eq!(told(&found), [(vec![7], Some(3..4)), (vec![8], None), (vec![9], Some(4..5))]);
        assert!(found.iter().all(|block| !block.is_tied));
    }
}
