//! What a spawned thread sees of those above it, as lines that say whose each is.

use super::{ink, item, write};
use crate::head::Source;
use crate::journal::{Anchor, Entry, Record, Share, Slice};
use crate::view::Item;
use crate::{ThreadId, View};

/// The setups of the threads above, the root's first.
pub(super) fn setups<S: Source + ?Sized>(
    share: &Share,
    source: &S,
    width: usize,
    each: &mut impl FnMut(String),
) -> Result<(), S::Error> {
    for slice in &share.slices {
        let above = source.above(&slice.thread)?;
        if let Some(seq) = View::fold(&*above, slice.at)?.setup() {
            let record = above.record(seq)?;
            let line = ink(&write::record(&record), left(&slice.thread, width));
            each(whose(&slice.thread, &line));
        }
    }
    Ok(())
}

/// The slices, each with its heading and what it keeps.
pub(super) fn slices<S: Source + ?Sized>(
    share: &Share,
    source: &S,
    width: usize,
    each: &mut impl FnMut(String),
) -> Result<(), S::Error> {
    for slice in &share.slices {
        each(ink(&write::heading(slice), width));
        let above = source.above(&slice.thread)?;
        let view = View::fold(&*above, slice.at)?;
        view.try_each_item(&*above, |shown| match slice.keeps(shown.seq) {
            true => seen(share, slice, &shown, &*above, width).map(&mut *each),
            false => Ok(()),
        })?;
    }
    Ok(())
}

/// One item of a thread above, in part where the slice says so; an anchor of the thread's own line in brief.
fn seen<S: Source + ?Sized>(
    share: &Share,
    slice: &Slice,
    shown: &Item,
    source: &S,
    width: usize,
) -> Result<String, S::Error> {
    let thread = &slice.thread;
    let left = left(thread, width);
    let record = source.record(shown.seq)?;
    let line = match (&record.entry, slice.replaced(shown.seq)) {
        (Entry::Message(message, _), Some(swap)) => {
            let now = message.saying(&swap.text);
            ink(&write::replaced(record.seq, &now, "clip".into(), swap.tokens), left)
        }
        (Entry::Anchor(Anchor { thread: child, brief: Some(text), .. }), _) if share.is_within(child) => {
            let (child, text) = (child.clone(), text.clone());
            let brief = Anchor { thread: child, label: None, ending: None, text, brief: None, first: None };
            // The tokens of the entry are those of what others see.
            ink(&write::said(&Record { tokens: 0, entry: Entry::Anchor(brief), ..record }), left)
        }
        _ => item(shown, source, left)?,
    };
    Ok(whose(thread, &line))
}

/// Columns left when a line has said whose it is.
fn left(thread: &ThreadId, width: usize) -> usize {
    if width == usize::MAX { width } else { width.saturating_sub(thread.as_str().len() + 1) }
}

/// A line that says whose it is.
fn whose(thread: &ThreadId, line: &str) -> String {
    if line.is_empty() { String::new() } else { format!("{thread}@{line}") }
}
