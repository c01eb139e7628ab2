//! Which blocks leave: the oldest, and none of the newest unit.

use super::clip::LEAST;
use super::{Block, LadderStep, Scene, marker};
use crate::Span;
use crate::budget::{BudgetRule, KeepRule, share};
use crate::head::EntrySource;
use crate::journal::Entry;
use crate::view::ShownItem;

/// Fewer tokens hold no summary.
const SHORTEST: u64 = 64;

/// What leaves.
struct Cut {
    /// The blocks, oldest first.
    blocks: Vec<usize>,
    /// Messages of the user among them that stay.
    stay: Vec<ShownItem>,
}

impl<S: EntrySource + ?Sized> Scene<'_, S> {
    /// A summary in place of everything that is not kept; `None` when that would free less than `gain`, or stand for
    /// fewer than `messages`: a summary of little else than a summary tells nothing new.
    pub(super) fn condense(&self, gain: u64, messages: u32) -> Option<LadderStep> {
        let cut = self.cut(self.marks.summary);
        let row = cut.blocks.iter().map(|&i| &self.blocks.row[i]);
        let said: u32 = row.clone().filter(|block| !block.summary).map(|block| block.messages).sum();
        let free: u64 = row.map(|block| block.free).sum();
        let kept: u64 = cut.stay.iter().map(|item| u64::from(item.tokens)).sum();
        let (said, free) = (said.saturating_sub(count(&cut.stay)), free.saturating_sub(kept));
        let limit = self.marks.summary.min(free / 2);
        if said < messages || limit < SHORTEST || free - limit < gain {
            return None;
        }
        let hide = self.blocks.spans(cut.blocks.iter().copied(), &cut.stay);
        (!hide.is_empty()).then_some(LadderStep::Condense { hide, limit })
    }

    /// What leaves when a text of `shown` tokens takes its place.
    fn cut(&self, shown: u64) -> Cut {
        match self.budget.policy.keep {
            KeepRule::Room if self.verdict.rule != BudgetRule::ByHand => self.cut_to_room(shown, true),
            _ => Cut { blocks: self.leaving(0..self.tail(shown)).collect(), stay: Vec::new() },
        }
    }

    /// As few of the oldest as bring the view down to the low mark. The last few messages of the user stay before anything
    /// else does. What reaches over the mark stays whole up to the high mark, and beyond that where a part of it may stay:
    /// it is cut by the next step, if there `is_next`. What is too large for either is passed over, as long as something
    /// older fits. Where messages of the user reach over the mark, what was said just before may, too.
    fn cut_to_room(&self, shown: u64, is_next: bool) -> Cut {
        let blocks = &self.blocks;
        let all: u64 = blocks.row[..blocks.older].iter().map(|block| block.free).sum();
        let base = self.tokens().saturating_sub(all) + shown;
        let (room, most) = (self.marks.low.saturating_sub(base), self.marks.high.saturating_sub(base));
        let (mut used, mut stay) = (0, Vec::new());
        for item in &blocks.recent {
            let tokens = u64::from(item.tokens);
            if used > room || used + tokens > most && (!is_next || used + LEAST > room) {
                break;
            }
            stay.push(*item);
            used += tokens;
        }
        let (mut gone, reach_over) = (Vec::new(), used >= room);
        for i in self.leaving(0..blocks.older).rev() {
            let block = &blocks.row[i];
            let inside = stay.iter().filter(|item| block.extent.holds(item.seq));
            let kept: u64 = inside.map(|item| u64::from(item.tokens)).sum();
            let tokens = block.free.saturating_sub(kept);
            let is_text = block.summary || block.marker;
            let in_part = is_next
                && used + LEAST <= room
                && self.may_shrink(block, (used + tokens).saturating_sub(room));
            let may_reach = used < room || reach_over && gone.is_empty();
            let fits = used + tokens <= room || may_reach && used + tokens <= most || used < room && in_part;
            if !is_text && (tokens == 0 || fits) {
                used += tokens;
            } else {
                gone.push(i);
            }
        }
        gone.reverse();
        self.begin_with_user(&mut gone, &stay);
        stay.retain(|item| gone.iter().any(|&i| blocks.row[i].extent.holds(item.seq)));
        Cut { blocks: gone, stay }
    }

    /// Where what users said at the beginning leaves, what the model said after it leaves too: a request begins with a
    /// user's message.
    fn begin_with_user(&self, gone: &mut Vec<usize>, stay: &[ShownItem]) {
        let blocks = &self.blocks;
        let holds = |i: usize| stay.iter().any(|item| blocks.row[i].extent.holds(item.seq));
        let begins = |&i: &usize| {
            let block = &blocks.row[i];
            block.keeps_user || block.begins_turn && !gone.contains(&i) || holds(i)
        };
        let first = (0..blocks.older).find(begins).unwrap_or(blocks.older);
        if !gone.iter().any(|&i| i < first && blocks.row[i].begins_turn) {
            return;
        }
        let speaks = |&i: &usize| !blocks.row[i].begins_turn && !gone.contains(&i);
        let led: Vec<usize> = self.leaving(0..first).filter(speaks).collect();
        gone.extend(led);
        gone.sort_unstable();
    }

    /// True when the outputs and replies in a block can give `tokens` and something of each stays.
    fn may_shrink(&self, block: &Block, tokens: u64) -> bool {
        let spare = |item: &ShownItem| u64::from(item.tokens).saturating_sub(LEAST);
        self.in_part(block).iter().map(spare).sum::<u64>() >= tokens
    }

    /// What of a block may be shown in part: outputs, or a reply.
    fn in_part(&self, block: &Block) -> Vec<ShownItem> {
        let inside = |item: &&ShownItem| block.extent.holds(item.seq);
        self.blocks.outputs.iter().chain(&self.blocks.replies).filter(inside).copied().collect()
    }

    /// Outputs or the reply of the oldest block that can give what the view has above the low mark.
    pub(super) fn reaching_over(&self) -> Option<Vec<ShownItem>> {
        let over = self.tokens().saturating_sub(self.marks.low);
        let row = &self.blocks.row;
        let block = self.leaving(0..self.blocks.older).find(|&i| self.may_shrink(&row[i], over))?;
        Some(self.in_part(&row[block]))
    }

    /// Where the kept end begins: as the policy says, but never so long that the low mark cannot be reached, and
    /// always with the newest unit.
    fn tail(&self, summary: u64) -> usize {
        let row = &self.blocks.row[..self.blocks.older];
        let all: u64 = row.iter().map(|block| block.free).sum();
        let base = self.tokens() - all;
        let most = match self.budget.policy.keep {
            KeepRule::Share(_) | KeepRule::Room => self.marks.low,
            // Those who count messages or turns come down just enough not to act again at once.
            KeepRule::Messages(_) | KeepRule::Turns(_) => self.marks.act_at.saturating_sub(1),
        };
        let room = most.saturating_sub(base + summary);
        let wanted = self.wanted();
        let mut tokens = 0;
        let mut cut = row.len();
        while cut > wanted {
            tokens += row[cut - 1].free;
            if tokens > room {
                break;
            }
            cut -= 1;
        }
        cut
    }

    /// Where the end begins that a trim spares. Turns may be as long as the whole conversation, and messages as large:
    /// outputs are spared by their size.
    pub(super) fn spare(&self) -> usize {
        // So much of what stays is words and outputs of late, not what became of earlier ones.
        let most = share(self.movable(), if self.counts_movable() { 0.4 } else { 0.25 });
        match (self.verdict.rule, self.budget.tools) {
            (BudgetRule::ToolBudget, Some(tools)) => self.last(most.min(tools / 4)),
            _ => self.last(most),
        }
    }

    /// Where the last blocks begin that together have no more than `most` tokens.
    fn last(&self, most: u64) -> usize {
        let row = &self.blocks.row;
        let mut tokens = 0;
        let fitting = (0..row.len()).rev().take_while(|&i| {
            tokens += row[i].free;
            tokens <= most
        });
        fitting.last().unwrap_or(row.len().saturating_sub(1))
    }

    /// Where the end begins that the policy wants to keep.
    fn wanted(&self) -> usize {
        let row = &self.blocks.row;
        let from_end =
            |enough: &mut dyn FnMut(usize) -> bool| (0..row.len()).rev().find(|&i| enough(i)).unwrap_or(0);
        match self.budget.policy.keep {
            KeepRule::Messages(n) => {
                let mut left = u64::from(n);
                from_end(&mut |i| {
                    // What stays anyway is a message too.
                    left = left.saturating_sub(u64::from(row[i].messages.max(1)));
                    left == 0
                })
            }
            KeepRule::Turns(n) => {
                let mut left = n;
                from_end(&mut |i| {
                    left = left.saturating_sub(u32::from(row[i].begins_turn));
                    left == 0
                })
            }
            KeepRule::Share(of) => self.last_share(of),
            KeepRule::Room => self.last_share(0.25),
        }
    }

    /// Where the last blocks begin that have a share of what is usable.
    fn last_share(&self, of: f64) -> usize {
        // Who condenses by hand wants it done, however much room there is.
        let whole = match self.verdict.rule {
            BudgetRule::ByHand => self.budget.own().min(self.tokens() - self.view.weight().above),
            _ => self.budget.own(),
        };
        self.last(share(whole, of))
    }

    /// Blocks of a range in which something leaves.
    fn leaving(&self, range: std::ops::Range<usize>) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let leaves = |block: &Block| block.messages > 0 || block.summary || block.marker;
        range.filter(move |&i| leaves(&self.blocks.row[i]))
    }

    /// Blocks before the newest unit that are no summaries.
    fn plain(&self, before: usize) -> Vec<usize> {
        self.leaving(0..before).filter(|&i| !self.blocks.row[i].summary).collect()
    }

    /// A marker in place of the oldest, and of the marker before it, down to the low mark; summaries stay. `None` when
    /// that is not enough.
    pub(super) fn truncate_to_low(&self) -> Result<Option<LadderStep>, S::Error> {
        let row = &self.blocks.row;
        if self.budget.policy.keep == KeepRule::Room {
            return self.leave_out_over_room(true);
        }
        let mut tokens = self.tokens();
        let mut gone = Vec::new();
        for i in self.plain(self.blocks.older) {
            if tokens <= self.marks.low {
                break;
            }
            tokens -= row[i].free;
            gone.push(i);
        }
        if tokens <= self.budget.usable { self.leave_out(&gone, &[]) } else { Ok(None) }
    }

    /// The same where what reaches over the mark cannot be shown in part.
    pub(super) fn truncate_whole(&self) -> Result<Option<LadderStep>, S::Error> {
        if self.budget.policy.keep == KeepRule::Room { self.leave_out_over_room(false) } else { Ok(None) }
    }

    fn leave_out_over_room(&self, is_next: bool) -> Result<Option<LadderStep>, S::Error> {
        let older = &self.blocks.row[..self.blocks.older];
        let summaries = || older.iter().filter(|block| block.summary);
        let is_beside = |item: &&ShownItem| summaries().any(|block| block.extent.holds(item.seq));
        let recent: u64 =
            self.blocks.recent.iter().filter(is_beside).map(|item| u64::from(item.tokens)).sum();
        let stays = summaries().map(|block| block.free).sum::<u64>().saturating_sub(recent);
        let mut cut = self.cut_to_room(self.marker_tokens()? + stays, is_next);
        cut.blocks.retain(|&i| !older[i].summary);
        self.leave_out(&cut.blocks, &cut.stay)
    }

    /// A marker in place of everything that was said before the newest unit; summaries stay.
    pub(super) fn truncate_older(&self) -> Result<Option<LadderStep>, S::Error> {
        self.leave_out_said(&[])
    }

    /// A marker in place of everything that is not the newest unit, summaries and what child threads came to, too.
    pub(super) fn truncate_rest(&self) -> Result<Option<LadderStep>, S::Error> {
        let all = self.leaving(0..self.blocks.row.len());
        self.leave_out(&all.filter(|&i| self.blocks.is_rest(i)).collect::<Vec<_>>(), &[])
    }

    /// The same, and the agent's own messages before the task.
    pub(super) fn truncate_opening(&self) -> Result<Option<LadderStep>, S::Error> {
        match self.blocks.opening.as_slice() {
            [] => Ok(None),
            opening => self.leave_out_said(opening),
        }
    }

    /// A marker in place of everything that was said before the newest unit, and of `more`.
    fn leave_out_said(&self, more: &[ShownItem]) -> Result<Option<LadderStep>, S::Error> {
        let plain = self.plain(self.blocks.older);
        let alone = || self.blocks.beside.iter().chain(more);
        let mut spans = self.blocks.spans(plain.iter().copied(), &[]);
        for item in alone() {
            let unit = self.view.unit(self.source, item.seq)?;
            spans.push(unit.unwrap_or_else(|| Span::new(item.seq, item.seq)));
        }
        spans.sort_unstable_by_key(|span| span.from);
        let mut hide: Vec<Span> = Vec::new();
        for span in spans {
            match hide.last_mut() {
                Some(last) if last.to + 1 >= span.from => last.to = last.to.max(span.to),
                _ => hide.push(span),
            }
        }
        let free: u64 = plain.iter().map(|&i| self.blocks.row[i].free).sum();
        self.mark_out(hide, free + alone().map(|item| u64::from(item.tokens)).sum::<u64>())
    }

    /// The marker for spans, in the language of the latest instruction.
    pub(super) fn marker(&self, hide: &[Span]) -> Result<String, S::Error> {
        let words = match self.blocks.instruction.or(self.blocks.task) {
            Some(item) => match self.source.record(item.seq)?.entry {
                Entry::Message(message, _) => message.words(),
                _ => String::new(),
            },
            None => String::new(),
        };
        Ok(marker(hide, &words, self.reach))
    }

    /// Tokens of a marker.
    pub(super) fn marker_tokens(&self) -> Result<u64, S::Error> {
        let last = self.view.last();
        Ok(u64::from(self.meter.said(&self.marker(&[Span::new(last, last)])?)))
    }

    /// A marker in place of half of the messages after the first, an even number of them; summaries stay.
    pub(super) fn truncate_half(&self) -> Result<Option<LadderStep>, S::Error> {
        let row = &self.blocks.row;
        let markers = row.iter().filter(|block| block.marker).count() as u64;
        let visible = self.view.weight().items.saturating_sub(1 + markers);
        let most = (visible / 2) & !1;
        let mut count = 0;
        let gone: Vec<usize> = self
            .plain(self.blocks.older)
            .into_iter()
            .take_while(|&i| {
                // The marker of an earlier one is taken in and does not count.
                count += u64::from(row[i].messages);
                count <= most
            })
            .collect();
        let free: u64 = gone.iter().map(|&i| row[i].free).sum();
        if self.tokens() - free > self.budget.usable { Ok(None) } else { self.leave_out(&gone, &[]) }
    }

    /// A marker in place of everything before the last `turns` turns.
    pub(super) fn truncate_turns(&self, turns: u32) -> Result<Option<LadderStep>, S::Error> {
        let begins = (0..self.blocks.row.len()).rev().filter(|&i| self.blocks.row[i].begins_turn);
        let Some(cut) = begins.take(turns.max(1) as usize).last() else { return Ok(None) };
        let gone: Vec<usize> = self.leaving(0..cut.min(self.blocks.older)).collect();
        // Only a marker: that is how it already is.
        let said: u32 = gone.iter().map(|&i| self.blocks.row[i].messages).sum();
        if said == 0 { Ok(None) } else { self.leave_out(&gone, &[]) }
    }

    /// A marker in place of blocks, without the messages that `stay`.
    fn leave_out(&self, blocks: &[usize], stay: &[ShownItem]) -> Result<Option<LadderStep>, S::Error> {
        let free: u64 = blocks.iter().map(|&i| self.blocks.row[i].free).sum();
        let stay: Vec<ShownItem> = stay
            .iter()
            .filter(|item| blocks.iter().any(|&i| self.blocks.row[i].extent.holds(item.seq)))
            .copied()
            .collect();
        let kept: u64 = stay.iter().map(|item| u64::from(item.tokens)).sum();
        self.mark_out(self.blocks.spans(blocks.iter().copied(), &stay), free - kept.min(free))
    }

    /// `None` when the marker does not pay.
    fn mark_out(&self, hide: Vec<Span>, free: u64) -> Result<Option<LadderStep>, S::Error> {
        if hide.is_empty() {
            return Ok(None);
        }
        let marker = self.marker(&hide)?;
        let pays = self.pays(free, u64::from(self.meter.said(&marker)));
        Ok(pays.then_some(LadderStep::Truncate { hide, marker }))
    }
}

fn count(items: &[ShownItem]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}
