//! What no edit takes from a view: what is fixed, and what the model has not answered yet.
//!
//! Fixed are set-up and tools, what is seen of the threads above, system messages at the beginning, anchors of open
//! threads, pins, the task and the latest instruction. The *task* is the first message of the user that is not the
//! agent's own text around it, the *latest instruction* the last such message. The *newest unit* is everything since the
//! last call of the model, with that call, or since its last words; when nothing follows those, it is they.

use crate::harness::user_text;
use crate::head::{EntrySource, Kind};
use crate::journal::Entry;
use crate::thread::ThreadStatus;
use crate::view::{ItemSource, ShownItem};
use crate::{Seq, View};

/// The items of a view, and which of them stay whatever happens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WorkingSet {
    /// Everything shown, in order.
    pub items: Vec<ShownItem>,
    /// What each item is; `None` for a summary or a marker.
    pub kinds: Vec<Option<Kind>>,
    /// Number of system messages at the beginning.
    pub leading: usize,
    /// The anchors of child threads that have not ended.
    pub open: Vec<usize>,
    /// The task.
    pub task: Option<usize>,
    /// The latest instruction.
    pub instruction: Option<usize>,
    /// Where the newest unit begins.
    pub newest: usize,
    /// Tokens of all that is fixed.
    pub fixed: u64,
}

impl WorkingSet {
    /// What must stay of `view`. Of its messages only those are read that may be the task or the latest instruction.
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
        let leading = kinds.iter().take_while(|kind| **kind == Some(Kind::System)).count();
        let mut open = Vec::new();
        for (i, item) in items.iter().enumerate().filter(|(i, _)| kinds[*i] == Some(Kind::Anchor)) {
            if is_open(view, source, item.seq)? {
                open.push(i);
            }
        }
        let users = || (0..items.len()).filter(|&i| kinds[i] == Some(Kind::User));
        let task = asked(source, &items, users())?.or_else(|| users().next());
        let instruction = asked(source, &items, users().rev())?.or_else(|| users().next_back());
        let newest = newest(view, source, &items, &kinds)?.unwrap_or_else(|| {
            let said = |&i: &usize| items[i].what != ItemSource::Shown;
            (task.unwrap_or(leading)..items.len()).find(said).unwrap_or(items.len())
        });
        let mut set = Self { items, kinds, leading, open, task, instruction, newest, fixed: 0 };
        let own: u64 = (0..set.items.len())
            .filter(|&i| set.is_fixed(view, i))
            .map(|i| u64::from(set.items[i].tokens))
            .sum();
        set.fixed = view.weight().setup + view.weight().above + own;
        Ok(set)
    }

    /// True when no edit takes item `i`, however little room there is.
    pub fn is_fixed(&self, view: &View, i: usize) -> bool {
        i < self.leading
            || Some(i) == self.task
            || Some(i) == self.instruction
            || self.open.contains(&i)
            || self.is_pinned(view, i)
    }

    /// True when a pin holds item `i`.
    pub fn is_pinned(&self, view: &View, i: usize) -> bool {
        self.kinds[i].is_some() && view.is_pinned(self.items[i].seq)
    }
}

/// The first of `users` in which the user asks for something.
fn asked<S: EntrySource + ?Sized>(
    source: &S,
    items: &[ShownItem],
    users: impl Iterator<Item = usize>,
) -> Result<Option<usize>, S::Error> {
    for i in users {
        if let Entry::Message(message, _) = source.record(items[i].seq)?.entry
            && user_text(&message.words()).any(|text| !text.trim().is_empty())
        {
            return Ok(Some(i));
        }
    }
    Ok(None)
}

/// The index of the first item that the model has not answered yet; `None` before its first words. What shows a child
/// thread is nothing to answer.
fn newest<S: EntrySource + ?Sized>(
    view: &View,
    source: &S,
    items: &[ShownItem],
    kinds: &[Option<Kind>],
) -> Result<Option<usize>, S::Error> {
    let mut follows = false;
    let mut called = view.open().unit;
    for entry in view.back(source, Seq::MAX) {
        let (seq, head) = entry?;
        if head.kind == Kind::Assistant {
            let from = if called == seq || !follows { seq } else { seq + 1 };
            let said = |i: &usize| items[*i].what != ItemSource::Shown && items[*i].seq >= from;
            let counts = |i: &usize| said(i) && kinds[*i] != Some(Kind::Anchor);
            return Ok(Some((0..items.len()).find(counts).unwrap_or(items.len())));
        }
        if head.kind == Kind::Tool {
            called = head.unit;
        }
        follows |= head.kind.is_item() && head.kind != Kind::Anchor;
    }
    Ok(None)
}

/// True when the child thread that was anchored at `first` is at work or waits.
fn is_open<S: EntrySource + ?Sized>(view: &View, source: &S, first: Seq) -> Result<bool, S::Error> {
    Ok(match source.record(view.anchor(first))?.entry {
        Entry::Anchor(anchor) => ThreadStatus::from(anchor.ending).is_open(),
        _ => false,
    })
}
