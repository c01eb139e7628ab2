//! Where a view may be cut.
//!
//! A view is a row of blocks that leave together or not at all: a message, a call with its results, a summary with
//! what stands between the spans it hides. Inside a block some items stay whatever happens.

use super::WorkingSet;
use crate::budget::share;
use crate::head::{EntrySource, Kind};
use crate::view::{ShownItem, subtract};
use crate::{Seq, Span, View};

/// The newest messages of the user that stay longer than what the model and its tools said beside them.
const RECENT: usize = 4;

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
    /// True when a message of the user in it stays.
    pub keeps_user: bool,
    /// True when it is nothing but what is shown of a child thread.
    pub report: bool,
}

/// A view as a row of blocks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Blocks {
    /// The blocks, oldest first.
    pub row: Vec<Block>,
    /// Number of blocks before the newest unit: only these leave.
    pub older: usize,
    /// Entries that stay although a cut goes over them; pins stay by themselves.
    pub kept: Vec<Seq>,
    /// Tokens of all that is fixed.
    pub fixed: u64,
    /// Tokens of system messages at the beginning.
    pub system: u64,
    /// Tokens of the anchors of child threads that have not ended: what they are for is still to be known.
    pub anchors: u64,
    /// Tokens of pinned items.
    pub pinned: u64,
    /// The task, unless it is pinned.
    pub task: Option<ShownItem>,
    /// The latest instruction, unless it is pinned.
    pub instruction: Option<ShownItem>,
    /// Messages before the task in which only the agent speaks, where they stay until there is no other way.
    pub opening: Vec<ShownItem>,
    /// The last few messages of the user before the newest unit, the newest first.
    pub recent: Vec<ShownItem>,
    /// What stayed of what a summary goes over.
    pub beside: Vec<ShownItem>,
    /// Outputs of tools before the newest unit, oldest first, whole or in part.
    pub outputs: Vec<ShownItem>,
    /// What the model said before that without calling a tool, oldest first.
    pub replies: Vec<ShownItem>,
    /// What of the newest unit may be shown in part: all but calls, pins, anchors, the task and the latest instruction.
    pub newest: Vec<ShownItem>,
    /// Words of the model in the newest unit: they are cut after everything else there.
    pub spoken: Option<ShownItem>,
}

impl Blocks {
    /// The blocks of `view`, for requests of at most `usable` tokens.
    pub fn of<S: EntrySource + ?Sized>(view: &View, source: &S, usable: u64) -> Result<Self, S::Error> {
        let set = WorkingSet::of(view, source)?;
        let mut blocks = Self { fixed: set.fixed, ..Self::default() };
        let (opening, leads) = (set.opening(view, usable), set.leads(view));
        for &i in &opening {
            if Some(i) == leads {
                blocks.pinned += u64::from(set.items[i].tokens);
            } else {
                blocks.opening.push(set.items[i]);
            }
        }
        for (i, (item, kind)) in set.items.iter().zip(&set.kinds).enumerate() {
            let held = set.is_pinned(view, i);
            let stays = set.is_fixed(view, i) || opening.contains(&i);
            blocks.weigh(&set, i, held);
            // A request stays by itself, as its pin may be taken away later; where an edit goes over it, that is too late.
            let asks = Some(i) == set.task || Some(i) == set.instruction;
            let is_over = |edit| view.hidden_by(edit).iter().any(|span| span.holds(item.seq));
            if stays && (!held || asks && !view.edits().any(is_over)) {
                blocks.kept.push(item.seq);
            }
            let head = source.head(item.seq)?;
            let extent = match kind {
                Some(_) => Span::new(head.unit, item.seq),
                None => hull(view.hidden_by(item.seq)).unwrap_or(Span::new(item.seq, item.seq)),
            };
            blocks.push(Block {
                extent,
                free: if stays { 0 } else { u64::from(item.tokens) },
                messages: u32::from(!stays && kind.is_some()),
                summary: kind.is_none() && head.kind != Kind::Truncate,
                marker: kind.is_none() && head.kind == Kind::Truncate,
                begins_turn: *kind == Some(Kind::User),
                keeps_user: stays && *kind == Some(Kind::User),
                report: *kind == Some(Kind::Anchor),
            });
            if !stays {
                blocks.sort_in(&set, i);
                blocks.beside.extend(kind.map(|_| *item));
            }
        }
        let newest = set.items.get(set.newest).map_or(Seq::MAX, |item| item.seq);
        blocks.older = blocks.row.partition_point(|block| block.extent.to < newest);
        let (row, older) = (&blocks.row, blocks.older);
        let is_over = |item: &ShownItem| row[..older].iter().any(|b| b.summary && b.extent.holds(item.seq));
        blocks.beside.retain(is_over);
        blocks.recent.reverse();
        blocks.recent.truncate(RECENT);
        let unless_pinned = |i: Option<usize>| i.filter(|&i| !set.is_pinned(view, i)).map(|i| set.items[i]);
        (blocks.task, blocks.instruction) = (unless_pinned(set.task), unless_pinned(set.instruction));
        Ok(blocks)
    }

    /// True when block `i` is not of the newest unit: what stands before it, or shows a child thread that has ended.
    pub fn is_rest(&self, i: usize) -> bool {
        i < self.older || self.row[i].report
    }

    /// Tokens that can leave without the newest unit.
    pub fn rest(&self) -> u64 {
        self.row.iter().enumerate().filter(|(i, _)| self.is_rest(*i)).map(|(_, block)| block.free).sum()
    }

    /// Adds item `i` to the sums of what must stay.
    fn weigh(&mut self, set: &WorkingSet, i: usize, held: bool) {
        let tokens = u64::from(set.items[i].tokens);
        if held {
            self.pinned += tokens;
        } else if i < set.leading {
            self.system += tokens;
        } else if set.open.contains(&i) {
            self.anchors += tokens;
        }
    }

    /// Puts item `i`, which may change, where steps look for it.
    fn sort_in(&mut self, set: &WorkingSet, i: usize) {
        let item = set.items[i];
        match set.kinds[i] {
            None | Some(Kind::Anchor) => {}
            Some(Kind::Assistant) if i >= set.newest => self.spoken = Some(item),
            Some(_) if i >= set.newest => self.newest.push(item),
            Some(Kind::Tool) => self.outputs.push(item),
            Some(Kind::Assistant) if set.kinds.get(i + 1) != Some(&Some(Kind::Tool)) => {
                self.replies.push(item)
            }
            Some(Kind::User) => self.recent.push(item),
            Some(_) => {}
        }
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
                keeps_user: before.keeps_user || block.keeps_user,
                report: before.report && block.report,
            };
            self.row.pop();
        }
        self.row.push(block);
    }

    /// The spans of these blocks without what stays, and without `more`; neighbours are joined.
    pub fn spans(&self, blocks: impl Iterator<Item = usize>, more: &[ShownItem]) -> Vec<Span> {
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
        let mut kept: Vec<Seq> = self.kept.iter().copied().chain(more.iter().map(|item| item.seq)).collect();
        kept.sort_unstable();
        let kept: Vec<Span> = kept.into_iter().map(|seq| Span::new(seq, seq)).collect();
        subtract(&spans, &kept)
    }
}

impl WorkingSet {
    /// The agent's messages before the task, when they take at most a quarter of what may move. One stays, too, where a
    /// pin holds a message of the model's that would else come before every user's.
    fn opening(&self, view: &View, usable: u64) -> Vec<usize> {
        let before = self.leading..self.task.unwrap_or(0).min(self.newest).max(self.leading);
        let mut opening: Vec<usize> = before.filter(|&i| self.is_own(view, i)).collect();
        let tokens: u64 = opening.iter().map(|&i| u64::from(self.items[i].tokens)).sum();
        if tokens > share(usable.saturating_sub(self.fixed), 0.25) {
            opening.retain(|&i| Some(i) == self.leads(view));
        }
        opening
    }

    /// What stands first where one of the model's messages before the task stays, because a pin holds it or because it is
    /// of the newest unit: the last of the agent's own before it. A request begins with a user's message.
    fn leads(&self, view: &View) -> Option<usize> {
        let is_other = |i: usize| matches!(self.kinds[i], Some(Kind::Assistant | Kind::Tool));
        let stays = |&i: &usize| is_other(i) && (i >= self.newest || self.is_pinned(view, i));
        let held = (self.leading..self.task.unwrap_or(0).max(self.leading)).find(stays)?;
        let is_user = |i: usize| self.kinds[i] == Some(Kind::User);
        let has_other = (self.leading..held).any(|i| is_user(i) && self.is_pinned(view, i));
        if has_other { None } else { (self.leading..held).rfind(|&i| self.is_own(view, i)) }
    }

    /// True for a user's message before the task that no pin holds: the agent's own words.
    fn is_own(&self, view: &View, i: usize) -> bool {
        self.kinds[i] == Some(Kind::User) && !self.is_pinned(view, i)
    }
}

fn hull(spans: &[Span]) -> Option<Span> {
    Some(Span::new(spans.first()?.from, spans.last()?.to))
}
