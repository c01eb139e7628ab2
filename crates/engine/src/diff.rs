//! What two views do not share.

use komado_core::head::EntrySource;
use komado_core::view::{ItemSource, ShownItem};
use komado_core::{Seq, View};
use std::collections::HashSet;

/// A thing that only one of two views shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViewChange {
    /// Shown before, not after.
    Gone(ShownItem),
    /// Shown after, not before.
    New(ShownItem),
}

/// What `after` shows that `before` did not and the other way round, in the order of the conversation.
///
/// `shared` is the last entry that both threads share ([`Thread::shared_with`](crate::Thread::shared_with)): up to
/// there the same number is the same entry; after it, it is not.
pub fn diff<S: EntrySource + ?Sized>(
    before: (&View, &S),
    after: (&View, &S),
    shared: Seq,
) -> Result<Vec<ViewChange>, S::Error> {
    let (old, new) = (before.0.items(before.1)?, after.0.items(after.1)?);
    let names =
        |items: &[ShownItem]| items.iter().filter_map(|item| name(item, shared)).collect::<HashSet<_>>();
    let (in_old, in_new) = (names(&old), names(&new));
    let both =
        |item: &ShownItem| name(item, shared).is_some_and(|n| in_old.contains(&n) && in_new.contains(&n));
    let mut changes = Vec::new();
    // What both show comes in the same order in both, so one step over the other catches up.
    let mut fresh = new.iter().peekable();
    for item in &old {
        if !both(item) {
            changes.push(ViewChange::Gone(*item));
            continue;
        }
        while let Some(other) = fresh.next_if(|other| !both(other)) {
            changes.push(ViewChange::New(*other));
        }
        fresh.next();
    }
    changes.extend(fresh.map(|item| ViewChange::New(*item)));
    Ok(changes)
}

/// What makes an item the same in both views; `None` for what only one thread can show.
fn name(item: &ShownItem, shared: Seq) -> Option<(Seq, bool, Seq)> {
    let (is_shown, by) = match item.what {
        ItemSource::Said(_) => (false, 0),
        ItemSource::Shown => (true, 0),
        ItemSource::Replaced(by) => (false, by),
    };
    (item.seq.max(by) <= shared).then_some((item.seq, is_shown, by))
}
