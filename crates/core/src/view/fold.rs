//! The walk from a moment back to the beginning.

use super::{Live, OpenUnit, View};
use crate::head::{EntrySource, Head, Kind};
use crate::journal::Entry;
use crate::{Seq, Span};
use std::collections::BTreeSet;

pub(super) fn fold<S: EntrySource + ?Sized>(source: &S, at: Seq) -> Result<View, S::Error> {
    let mut walk = Walk { view: View { last: at, ..View::default() }, unpinned: BTreeSet::new() };
    let mut end = at;
    let mut seq = at;
    while seq > 0 {
        let head = source.head(seq)?;
        if !head.kind.is_op() {
            seq = head.prev_op;
            continue;
        }
        if head.kind == Kind::Rewind {
            walk.on_path(seq + 1, end);
            end = head.operand.from.min(seq - 1);
            seq = end;
            continue;
        }
        walk.take(source, seq)?;
        let in_force = head.kind.is_edit() && !walk.view.cancelled.contains(&seq);
        seq = if in_force { head.skip } else { head.prev_op };
    }
    walk.on_path(1, end);
    walk.finish(source)
}

/// The last operation before an edit that is not an edit under it. A chain of condensations, each over the one before,
/// is so passed over in one step, however long it is.
pub(super) fn skip<S: EntrySource + ?Sized>(source: &S, edit: &Head) -> Result<Seq, S::Error> {
    let mut seq = edit.prev_op;
    while seq > 0 {
        let head = source.head(seq)?;
        if !head.kind.is_edit() || !edit.operand.covers(head.operand) {
            break;
        }
        seq = head.skip;
    }
    Ok(seq)
}

/// Operations are met latest first, which settles every contest: the first one met wins.
struct Walk {
    view: View,
    unpinned: BTreeSet<Span>,
}

impl Walk {
    fn on_path(&mut self, from: Seq, to: Seq) {
        if from <= to {
            self.view.path.push(Span::new(from, to));
        }
    }

    fn take<S: EntrySource + ?Sized>(&mut self, source: &S, seq: Seq) -> Result<(), S::Error> {
        let head = source.head(seq)?;
        let view = &mut self.view;
        match head.kind {
            Kind::Setup if view.setup.is_none() => view.setup = Some((seq, head.tokens)),
            Kind::Share if view.share.is_none() => view.share = Some((seq, head.tokens)),
            Kind::Chronicle if view.chronicle.is_none() => view.chronicle = Some(seq),
            Kind::Close if view.closed.is_none() => view.closed = Some(seq),
            Kind::Unpin => {
                self.unpinned.insert(head.operand);
            }
            Kind::Pin => {
                let taken_back = self.unpinned.remove(&head.operand);
                if !taken_back && !view.pins.contains(&head.operand) {
                    view.pins.push(head.operand);
                }
            }
            Kind::AnchorUpdate | Kind::LateResult if !view.cancelled.contains(&seq) => {
                view.updates.entry(head.operand.from).or_insert((seq, head.tokens));
            }
            Kind::Revert if !view.cancelled.contains(&seq) => {
                view.cancelled.insert(head.operand.from);
            }
            kind if kind.is_edit() && !view.cancelled.contains(&seq) => self.take_edit(source, seq)?,
            _ => {}
        }
        Ok(())
    }

    /// An edit under a later one says nothing now; it is not read.
    fn take_edit<S: EntrySource + ?Sized>(&mut self, source: &S, seq: Seq) -> Result<(), S::Error> {
        let head = source.head(seq)?;
        let edits = &mut self.view.edits;
        if edits.iter().any(|later| later.covers(head.operand)) {
            return Ok(());
        }
        let live = if head.plain {
            Live { seq, hide: vec![head.operand], shown: head.tokens, replace: Vec::new() }
        } else {
            let Entry::Edit(edit) = source.record(seq)?.entry else { return Ok(()) };
            Live::of(seq, &edit)
        };
        if !edits.iter().any(|later| later.buries(&live)) {
            edits.push(live);
        }
        Ok(())
    }

    fn finish<S: EntrySource + ?Sized>(mut self, source: &S) -> Result<View, S::Error> {
        let view = &mut self.view;
        view.path.reverse();
        view.edits.reverse();
        view.pins.sort_unstable();
        view.open = open(source, view)?;
        view.lay_out(source)?;
        Ok(self.view)
    }
}

/// The calls that wait at the end of the path.
fn open<S: EntrySource + ?Sized>(source: &S, view: &View) -> Result<OpenUnit, S::Error> {
    let mut open = OpenUnit::default();
    let Some((last, head)) = view.last_item(source)? else { return Ok(open) };
    if !matches!(head.kind, Kind::Assistant | Kind::Tool) {
        return Ok(open);
    }
    let mut at = head.unit;
    while let Some((seq, item)) = view.item_from(source, at)? {
        if item.unit == head.unit
            && let Entry::Message(message, _) = source.record(seq)?.entry
        {
            open.take(seq, &message);
        }
        at = seq + 1;
        if seq >= last {
            break;
        }
    }
    Ok(open)
}
