//! The fold once more, written from the rules alone: slow, short, and without heads, chains or running sums.
//!
//! It shares nothing with the real one but the entry types, so that a mistake would have to be made twice.

use komado_core::journal::{Edit, Entry, Record, Share};
use komado_core::view::{ItemSource, ShownItem};
use komado_core::{Kind, Seq, Span};

/// A journal up to a moment.
pub(crate) struct Naive<'a> {
    entries: Vec<&'a Record>,
    path: Vec<Seq>,
}

impl<'a> Naive<'a> {
    pub(crate) fn at(records: impl Iterator<Item = &'a Record>, moment: Seq) -> Self {
        let entries: Vec<&Record> = records.take(moment as usize).collect();
        let path = path(&entries, moment);
        Self { entries, path }
    }

    fn record(&self, seq: Seq) -> &'a Record {
        self.entries[seq as usize - 1]
    }

    /// An entry is on the path of a moment unless a rewind on that path jumped over it.
    pub(crate) fn path(&self) -> &[Seq] {
        &self.path
    }

    /// In force is what is on the path and not reverted by a revert in force.
    fn in_force(&self, seq: Seq) -> bool {
        let undoes = |&at: &Seq| matches!(self.record(at).entry, Entry::Revert { target } if target == seq);
        !self.path.iter().filter(|at| undoes(at)).any(|&at| self.in_force(at))
    }

    fn edits(&self) -> Vec<(Seq, &'a Edit)> {
        let edit = |&seq: &Seq| match &self.record(seq).entry {
            Entry::Edit(edit) if self.in_force(seq) => Some((seq, edit)),
            _ => None,
        };
        self.path.iter().filter_map(edit).collect()
    }

    pub(crate) fn pins(&self) -> Vec<Span> {
        let mut pins = Vec::new();
        for &seq in &self.path {
            match &self.record(seq).entry {
                Entry::Pin { span } => pins.push(*span),
                Entry::Unpin { span } => pins.retain(|pin| pin != span),
                _ => {}
            }
        }
        pins.sort_unstable();
        pins
    }

    pub(crate) fn setup(&self) -> Option<&'a Record> {
        self.path.iter().rev().map(|&seq| self.record(seq)).find(|r| matches!(r.entry, Entry::Setup(_)))
    }

    /// What is kept of the threads above; the last one on the path wins.
    pub(crate) fn share(&self) -> Option<(Seq, &'a Share)> {
        let share = |&seq: &Seq| match &self.record(seq).entry {
            Entry::Share(share) => Some((seq, share)),
            _ => None,
        };
        self.path.iter().rev().find_map(share)
    }

    pub(crate) fn chronicle(&self) -> Option<Seq> {
        let is = |&&seq: &&Seq| matches!(self.record(seq).entry, Entry::Chronicle(_));
        self.path.iter().rev().find(is).copied()
    }

    /// The tokens of what is seen of the threads above.
    pub(crate) fn above(&self) -> u64 {
        let slices = self.share().map_or(&[][..], |(_, share)| &share.slices);
        slices.iter().map(|slice| u64::from(slice.tokens)).sum()
    }

    /// The last word on what entry `seq` says, if it is not its own.
    fn replaced(&self, seq: Seq, edits: &[(Seq, &Edit)]) -> Option<(Seq, u32)> {
        let by_edit = edits.iter().rev().find_map(|(by, edit)| {
            let swap = edit.replace.iter().find(|swap| swap.seq == seq)?;
            Some((*by, swap.tokens))
        });
        let by_update =
            self.path.iter().rev().map(|&at| self.record(at)).find_map(|record| match &record.entry {
                Entry::Anchor(anchor) if anchor.first == Some(seq) => Some((record.seq, record.tokens)),
                Entry::Message(late, _) if late.replaces() == Some(seq) && self.in_force(record.seq) => {
                    Some((record.seq, record.tokens))
                }
                _ => None,
            });
        by_edit.max(by_update)
    }

    /// What is shown, in order.
    pub(crate) fn items(&self) -> Vec<ShownItem> {
        let (edits, pins) = (self.edits(), self.pins());
        let pinned = |seq: Seq| pins.iter().any(|pin| pin.from <= seq && seq <= pin.to);
        let hides = |edit: &Edit, seq: Seq| edit.hide.iter().any(|span| span.from <= seq && seq <= span.to);
        let mut items = Vec::new();
        for record in &self.entries {
            let seq = record.seq;
            let hidden = edits.iter().any(|(_, edit)| hides(edit, seq)) && !pinned(seq);
            if self.path.contains(&seq) && is_item(&record.entry) && !hidden {
                items.push(match self.replaced(seq, &edits).filter(|_| !pinned(seq)) {
                    Some((by, tokens)) => ShownItem { seq, what: ItemSource::Replaced(by), tokens },
                    None => ShownItem {
                        seq,
                        what: ItemSource::Said(Kind::of(&record.entry)),
                        tokens: record.tokens,
                    },
                });
            }
            for (by, edit) in &edits {
                let ends_here = edit.hide.last().is_some_and(|span| span.to == seq);
                let covered = edits.iter().any(|(later, other)| later > by && hides(other, seq));
                if ends_here && !covered {
                    let tokens = edit.show.iter().map(|show| show.tokens).sum();
                    items.push(ShownItem { seq: *by, what: ItemSource::Shown, tokens });
                }
            }
        }
        items
    }

    pub(crate) fn tokens(&self) -> u64 {
        let setup = self.setup().map_or(0, |record| u64::from(record.tokens));
        self.items().iter().map(|item| u64::from(item.tokens)).sum::<u64>() + setup + self.above()
    }
}

fn path(entries: &[&Record], moment: Seq) -> Vec<Seq> {
    if moment == 0 {
        return Vec::new();
    }
    if let Entry::Rewind { to } = entries[moment as usize - 1].entry {
        return path(entries, to);
    }
    let mut path = path(entries, moment - 1);
    path.push(moment);
    path
}

pub(crate) fn is_item(entry: &Entry) -> bool {
    match entry {
        Entry::Message(message, _) => message.replaces().is_none(),
        Entry::Anchor(anchor) => anchor.first.is_none(),
        _ => false,
    }
}
