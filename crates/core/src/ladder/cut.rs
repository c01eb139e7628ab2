//! Which blocks leave: everything between the beginning and the last units.

use super::{LadderStep, Scene, marker};
use crate::budget::{BudgetRule, KeepRule, share};
use crate::head::{EntrySource, Kind};
use crate::journal::Entry;
use crate::thread::ThreadStatus;
use crate::view::{ItemSource, ShownItem, subtract};
use crate::{Seq, Span, View};

/// Fewer tokens hold no summary.
const SHORTEST: u64 = 64;

impl<S: EntrySource + ?Sized> Scene<'_, S> {
    /// A summary in place of everything that is not kept; `None` when that would free less than `gain`, or stand for
    /// fewer than `messages`: a summary of little else than a summary tells nothing new.
    pub(super) fn condense(&self, gain: u64, messages: u32) -> Option<LadderStep> {
        let cut = self.tail(self.budget.summary());
        let row = &self.blocks.row[..cut];
        let said: u32 = row.iter().filter(|block| !block.summary).map(|block| block.messages).sum();
        let free: u64 = row.iter().map(|block| block.free).sum();
        let limit = self.budget.summary().min(free / 2);
        if said < messages || limit < SHORTEST || free - limit < gain {
            return None;
        }
        let hide = self.blocks.spans(self.leaving(0..cut));
        (!hide.is_empty()).then_some(LadderStep::Condense { hide, limit })
    }

    /// Where the kept end begins: as the policy says, but never so long that the low mark cannot be reached, and
    /// always with the last block.
    fn tail(&self, summary: u64) -> usize {
        let row = &self.blocks.row;
        let all: u64 = row.iter().map(|block| block.free).sum();
        let fixed = self.tokens() - all;
        let most = match self.budget.policy.keep {
            KeepRule::Share(_) => self.budget.low,
            // Those who count messages or turns come down just enough not to act again at once.
            KeepRule::Messages(_) | KeepRule::Turns(_) => self.budget.act_at.saturating_sub(1),
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
            KeepRule::Share(of) => {
                // Who condenses by hand wants it done, however much room there is.
                let whole = match self.verdict.rule {
                    BudgetRule::ByHand => self.budget.own().min(self.tokens() - self.view.weight().above),
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
    pub(super) fn truncate_to_low(&self) -> Result<Option<LadderStep>, S::Error> {
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
    pub(super) fn truncate_rest(&self) -> Result<Option<LadderStep>, S::Error> {
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
    pub(super) fn truncate_half(&self) -> Result<Option<LadderStep>, S::Error> {
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
    pub(super) fn truncate_turns(&self, turns: u32) -> Result<Option<LadderStep>, S::Error> {
        let begins = (0..self.blocks.row.len()).rev().filter(|&i| self.blocks.row[i].begins_turn);
        let Some(cut) = begins.take(turns.max(1) as usize).last() else { return Ok(None) };
        let gone: Vec<usize> = self.leaving(0..cut).collect();
        // Only a marker: that is how it already is.
        let said: u32 = gone.iter().map(|&i| self.blocks.row[i].messages).sum();
        if said == 0 { Ok(None) } else { self.leave_out(&gone) }
    }

    /// A marker in place of everything that may leave, the last block too.
    pub(super) fn truncate_all(&self) -> Result<Option<LadderStep>, S::Error> {
        self.leave_out(&self.leaving(0..self.blocks.row.len()).collect::<Vec<_>>())
    }

    /// `None` when the marker would be no smaller than what it stands for.
    fn leave_out(&self, blocks: &[usize]) -> Result<Option<LadderStep>, S::Error> {
        let hide = self.blocks.spans(blocks.iter().copied());
        if hide.is_empty() {
            return Ok(None);
        }
        let free: u64 = blocks.iter().map(|&i| self.blocks.row[i].free).sum();
        let marker = self.marker(&hide)?;
        let gains = free > u64::from(self.meter.said(&marker));
        Ok(gains.then_some(LadderStep::Truncate { hide, marker }))
    }
}

// Where a view may be cut.
//
// A view is a row of blocks that leave together or not at all: a message, a call with its results, a summary with
// whatever stands between the spans it hides. Inside a block some items stay whatever happens.

/// Things that leave together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// The entries it spans.
    pub extent: Span,
    /// Tokens that would leave with it.
    pub free: u64,
    /// Messages that would leave with it.
    pub messages: u32,
    /// True when a summary is part of it.
    pub summary: bool,
    /// True when a marker is part of it.
    pub marker: bool,
    /// True when it begins with a user's message.
    pub begins_turn: bool,
}

/// A view as a row of blocks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Blocks {
    /// The blocks, oldest first.
    pub row: Vec<Block>,
    /// Entries that stay although a cut goes over them; pins stay by themselves.
    pub kept: Vec<Seq>,
    /// Tokens of system messages at the beginning.
    pub system: u64,
    /// Tokens of the anchors of child threads that have not ended: what they are for is still to be known.
    pub anchors: u64,
    /// Tokens of pinned items.
    pub pinned: u64,
    /// The first request.
    pub first: Option<ShownItem>,
    /// The newest message of the user.
    pub newest: Option<ShownItem>,
    /// Outputs of tools, oldest first, whole or in part.
    pub outputs: Vec<ShownItem>,
}

impl Blocks {
    /// The blocks of `view`.
    pub fn of<S: EntrySource + ?Sized>(view: &View, source: &S) -> Result<Self, S::Error> {
        let items = view.items(source)?;
        let mut kinds = Vec::with_capacity(items.len());
        for item in &items {
            kinds.push(match item.what {
                ItemSource::Shown => None,
                ItemSource::Said(kind) => Some(kind),
                ItemSource::Replaced(_) => Some(source.head(item.seq)?.kind),
            });
        }
        let mut blocks = Self::default();
        let leading = kinds.iter().take_while(|kind| **kind == Some(Kind::System)).count();
        let is_user = |kind: &Option<Kind>| *kind == Some(Kind::User);
        let pinned = |item: &ShownItem| view.is_pinned(item.seq);
        let first = kinds.iter().position(is_user);
        let newest = kinds.iter().rposition(is_user);
        let mut open = vec![false; items.len()];
        for (i, item) in items.iter().enumerate().filter(|(i, _)| kinds[*i] == Some(Kind::Anchor)) {
            open[i] = is_open(view, source, item.seq)?;
        }
        let stays = |i: usize| i < leading || Some(i) == first || Some(i) == newest || open[i];
        for (i, (item, kind)) in items.iter().zip(&kinds).enumerate() {
            let held = kind.is_some() && pinned(item);
            if stays(i) && !held {
                blocks.kept.push(item.seq);
            }
            if held {
                blocks.pinned += u64::from(item.tokens);
            } else if i < leading {
                blocks.system += u64::from(item.tokens);
            } else if open[i] {
                blocks.anchors += u64::from(item.tokens);
            }
            if *kind == Some(Kind::Tool) && !held {
                blocks.outputs.push(*item);
            }
            let free = !held && !stays(i);
            let head = source.head(item.seq)?;
            let extent = match kind {
                Some(_) => Span::new(head.unit, item.seq),
                None => hull(view.hidden_by(item.seq)).unwrap_or(Span::new(item.seq, item.seq)),
            };
            blocks.push(Block {
                extent,
                free: if free { u64::from(item.tokens) } else { 0 },
                messages: u32::from(free && kind.is_some()),
                summary: kind.is_none() && head.kind != Kind::Truncate,
                marker: kind.is_none() && head.kind == Kind::Truncate,
                begins_turn: is_user(kind),
            });
        }
        let unless_pinned = |i: Option<usize>| i.map(|i| items[i]).filter(|item| !pinned(item));
        (blocks.first, blocks.newest) = (unless_pinned(first), unless_pinned(newest));
        Ok(blocks)
    }

    /// Adds a block, joined with those it reaches back over.
    fn push(&mut self, mut block: Block) {
        while let Some(before) = self.row.last().filter(|before| before.extent.to >= block.extent.from) {
            block = Block {
                extent: Span::new(
                    before.extent.from.min(block.extent.from),
                    before.extent.to.max(block.extent.to),
                ),
                free: before.free + block.free,
                messages: before.messages + block.messages,
                summary: before.summary || block.summary,
                marker: before.marker || block.marker,
                begins_turn: before.begins_turn,
            };
            self.row.pop();
        }
        self.row.push(block);
    }

    /// The spans of these blocks without what stays, neighbours joined.
    pub fn spans(&self, blocks: impl Iterator<Item = usize>) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut before = None;
        for i in blocks {
            let extent = self.row[i].extent;
            match spans.last_mut() {
                Some(last) if before == Some(i.wrapping_sub(1)) => last.to = extent.to,
                _ => spans.push(extent),
            }
            before = Some(i);
        }
        let kept: Vec<Span> = self.kept.iter().map(|&seq| Span::new(seq, seq)).collect();
        subtract(&spans, &kept)
    }
}

/// True when the child thread that was anchored at `first` is at work or waits.
fn is_open<S: EntrySource + ?Sized>(view: &View, source: &S, first: Seq) -> Result<bool, S::Error> {
    Ok(match source.record(view.anchor(first))?.entry {
        Entry::Anchor(anchor) => ThreadStatus::from(anchor.ending).is_open(),
        _ => false,
    })
}

fn hull(spans: &[Span]) -> Option<Span> {
    Some(Span::new(spans.first()?.from, spans.last()?.to))
}
