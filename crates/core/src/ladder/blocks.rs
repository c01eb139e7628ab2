//! Where a view may be cut.
//!
//! A view is a row of blocks that leave together or not at all: a message, a call with its results, a summary with
//! whatever stands between the spans it hides. Inside a block some items stay whatever happens.

use crate::head::{Kind, Source};
use crate::journal::Entry;
use crate::thread::Status;
use crate::view::{Item, What, subtract};
use crate::{Seq, Span, View};

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
    pub first: Option<Item>,
    /// The newest message of the user.
    pub newest: Option<Item>,
    /// Outputs of tools, oldest first, whole or in part.
    pub outputs: Vec<Item>,
}

impl Blocks {
    /// The blocks of `view`.
    pub fn of<S: Source + ?Sized>(view: &View, source: &S) -> Result<Self, S::Error> {
        let items = view.items(source)?;
        let mut kinds = Vec::with_capacity(items.len());
        for item in &items {
            kinds.push(match item.what {
                What::Shown => None,
                What::Said(kind) => Some(kind),
                What::Replaced(_) => Some(source.head(item.seq)?.kind),
            });
        }
        let mut blocks = Self::default();
        let leading = kinds.iter().take_while(|kind| **kind == Some(Kind::System)).count();
        let is_user = |kind: &Option<Kind>| *kind == Some(Kind::User);
        let pinned = |item: &Item| view.is_pinned(item.seq);
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
fn is_open<S: Source + ?Sized>(view: &View, source: &S, first: Seq) -> Result<bool, S::Error> {
    Ok(match source.record(view.anchor(first))?.entry {
        Entry::Anchor(anchor) => Status::from(anchor.ending).is_open(),
        _ => false,
    })
}

fn hull(spans: &[Span]) -> Option<Span> {
    Some(Span::new(spans.first()?.from, spans.last()?.to))
}
