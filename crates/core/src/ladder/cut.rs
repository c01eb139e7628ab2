//! Which blocks leave: everything between the beginning and the last units.

use super::{Block, Scene, Step, marker};
use crate::Span;
use crate::budget::{Keep, Rule, share};
use crate::head::Source;
use crate::journal::Entry;

/// Fewer tokens hold no summary.
const SHORTEST: u64 = 64;

impl<S: Source + ?Sized> Scene<'_, S> {
    /// A summary in place of everything that is not kept; `None` when that would free less than `gain`, or stand for
    /// fewer than `messages`: a summary of little else than a summary tells nothing new.
    pub(super) fn condense(&self, gain: u64, messages: u32) -> Option<Step> {
        let cut = self.tail(self.budget.summary());
        let row = &self.blocks.row[..cut];
        let said: u32 = row.iter().filter(|block| !block.summary).map(|block| block.messages).sum();
        let free: u64 = row.iter().map(|block| block.free).sum();
        let limit = self.budget.summary().min(free / 2);
        if said < messages || limit < SHORTEST || free - limit < gain {
            return None;
        }
        let hide = self.blocks.spans(self.leaving(0..cut));
        (!hide.is_empty()).then_some(Step::Condense { hide, limit })
    }

    /// Where the kept end begins: as the policy says, but never so long that the low mark cannot be reached, and
    /// always with the last block.
    fn tail(&self, summary: u64) -> usize {
        let row = &self.blocks.row;
        let all: u64 = row.iter().map(|block| block.free).sum();
        let fixed = self.tokens() - all;
        let most = match self.budget.policy.keep {
            Keep::Share(_) => self.budget.low,
            // Those who count messages or turns come down just enough not to act again at once.
            Keep::Messages(_) | Keep::Turns(_) => self.budget.act_at.saturating_sub(1),
        };
        let room = most.saturating_sub(fixed + summary);
        let wanted = self.wanted();
        let mut tokens = 0;
        let mut cut = row.len();
        while cut > wanted {
            tokens += row[cut - 1].free;
            if tokens > room && cut < row.len() {
                break;
            }
            cut -= 1;
        }
        cut
    }

    /// Where the end begins that a trim spares. Turns may be as long as the whole conversation, and messages as large:
    /// outputs are spared by their size.
    pub(super) fn spare(&self) -> usize {
        let most = share(self.budget.own(), 0.25);
        match (self.verdict.rule, self.budget.tools) {
            (Rule::ToolBudget, Some(tools)) => self.last(most.min(tools / 4)),
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
            Keep::Messages(n) => {
                let mut left = u64::from(n);
                from_end(&mut |i| {
                    // What stays anyway is a message too.
                    left = left.saturating_sub(u64::from(row[i].messages.max(1)));
                    left == 0
                })
            }
            Keep::Turns(n) => {
                let mut left = n;
                from_end(&mut |i| {
                    left = left.saturating_sub(u32::from(row[i].begins_turn));
                    left == 0
                })
            }
            Keep::Share(of) => {
                // Who condenses by hand wants it done, however much room there is.
                let whole = match self.verdict.rule {
                    Rule::ByHand => self.budget.own().min(self.tokens() - self.view.weight().above),
                    _ => self.budget.own(),
                };
                self.last(share(whole, of))
            }
        }
    }

    /// Blocks of a range in which something leaves.
    fn leaving(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let leaves = |block: &Block| block.messages > 0 || block.summary || block.marker;
        range.filter(move |&i| leaves(&self.blocks.row[i]))
    }

    /// A marker in place of the oldest, and of the marker before it, down to the low mark; summaries stay. `None` when
    /// that is not enough.
    pub(super) fn truncate_to_low(&self) -> Result<Option<Step>, S::Error> {
        let row = &self.blocks.row;
        let last = row.len().saturating_sub(1);
        let mut tokens = self.tokens();
        let mut gone = Vec::new();
        for i in self.leaving(0..last).filter(|&i| !row[i].summary) {
            if tokens <= self.budget.low {
                break;
            }
            tokens -= row[i].free;
            gone.push(i);
        }
        if tokens <= self.budget.usable { self.leave_out(&gone) } else { Ok(None) }
    }

    /// A marker in place of everything but the last block, summaries too.
    pub(super) fn truncate_rest(&self) -> Result<Option<Step>, S::Error> {
        let last = self.blocks.row.len().saturating_sub(1);
        self.leave_out(&self.leaving(0..last).collect::<Vec<_>>())
    }

    /// The marker for spans, in the language of the newest message of the user.
    pub(super) fn marker(&self, hide: &[Span]) -> Result<String, S::Error> {
        let words = match self.blocks.newest.or(self.blocks.first) {
            Some(item) => match self.source.record(item.seq)?.entry {
                Entry::Message(message, _) => message.words(),
                _ => String::new(),
            },
            None => String::new(),
        };
        Ok(marker(hide, &words))
    }

    /// A marker in place of half of the messages after the first, an even number of them; summaries stay.
    pub(super) fn truncate_half(&self) -> Result<Option<Step>, S::Error> {
        let row = &self.blocks.row;
        let markers = row.iter().filter(|block| block.marker).count() as u64;
        let visible = self.view.weight().items.saturating_sub(1 + markers);
        let most = (visible / 2) & !1;
        let mut count = 0;
        let gone: Vec<usize> = self
            .leaving(0..row.len().saturating_sub(1))
            .filter(|&i| !row[i].summary)
            .take_while(|&i| {
                // The marker of an earlier one is taken in and does not count.
                count += u64::from(row[i].messages);
                count <= most
            })
            .collect();
        let free: u64 = gone.iter().map(|&i| row[i].free).sum();
        if self.tokens() - free > self.budget.usable { Ok(None) } else { self.leave_out(&gone) }
    }

    /// A marker in place of everything before the last `turns` turns.
    pub(super) fn truncate_turns(&self, turns: u32) -> Result<Option<Step>, S::Error> {
        let begins = (0..self.blocks.row.len()).rev().filter(|&i| self.blocks.row[i].begins_turn);
        let Some(cut) = begins.take(turns.max(1) as usize).last() else { return Ok(None) };
        let gone: Vec<usize> = self.leaving(0..cut).collect();
        // Only a marker: that is how it already is.
        let said: u32 = gone.iter().map(|&i| self.blocks.row[i].messages).sum();
        if said == 0 { Ok(None) } else { self.leave_out(&gone) }
    }

    /// A marker in place of everything that may leave, the last block too.
    pub(super) fn truncate_all(&self) -> Result<Option<Step>, S::Error> {
        self.leave_out(&self.leaving(0..self.blocks.row.len()).collect::<Vec<_>>())
    }

    /// `None` when the marker would be no smaller than what it stands for.
    fn leave_out(&self, blocks: &[usize]) -> Result<Option<Step>, S::Error> {
        let hide = self.blocks.spans(blocks.iter().copied());
        if hide.is_empty() {
            return Ok(None);
        }
        let free: u64 = blocks.iter().map(|&i| self.blocks.row[i].free).sum();
        let marker = self.marker(&hide)?;
        let gains = free > u64::from(self.meter.said(&marker));
        Ok(gains.then_some(Step::Truncate { hide, marker }))
    }
}
