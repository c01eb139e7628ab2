//! Journals and views as text that people write, read and compare: one entry per line.
//!
//! A journal line is JSON because programs read it; a test, a page of documentation and a terminal want the same
//! entry at a glance. This is the one notation all three share, so that what a test states is what a log prints.
//!
//! ```text
//! 1 setup "You are a careful engineer." tools [{"name":"read"}] dialect=openai ~400
//! 2 user name=ann "Fix the bug" ~120
//! 3 assistant "I'll look" call c1 read {"path":"main.py"} call c2 ls {} reply tool_calls to=9 used=100+20 ~45
//! 4 tool c1 read "def main…" ref=abc/1234b/17l took=12ms ~1200
//! 5 tool c2 ls error "no such folder" ~9
//! 6 condense 2..5 retain "the task" ~12 summary "Fixed auth…" ~80 because soft_mark 12000>800 model=gpt-4o-mini
//! 7 truncate 2,4..6 marker "3 messages left out" ~10
//! 8 trim 4 "[output left out]" ~12, 5 "[left out]" ~9 because tool_budget 900>120 "oldest first"
//! 9 revert 7
//! 10 rewind 5
//! 11 pin 2
//! 12 unpin 3..5
//! 13 anchor work "Coding session" "A thread works on this." brief="This thread began here." ~20
//! 14 anchor work completed first=13 "Done: …" ~60
//! 15 sent gpt-4o digest=ab12 4500 for=condense mark=4..7/1:1:3/inner@9f3a
//! 16 lost timeout to=15 used=100+0+5w+900r "no answer in 60 s"
//! 17 close completed "done"
//! 18 share stelis_1_1 window=100000 lends of root@12 0.8 keep 1..3,7 clip 7 "Fix…" ~90 "[root]" ~1200 of stelis_1@9 0.8 "[stelis_1]" ~9 prompt="Sum up." anchor=500 held=p1
//! 19 chronicle 1..8 partial by=digest used=100+20 "Wrote the parser." ~6
//! 20 tell stelis_2 "The parser is done."
//! 21 heard stelis_2@10
//! # a comment; empty lines are passed over as well
//! ```
//!
//! - The number in front may be left out; when it stands there it must be the entry's place. `~` says how many tokens
//!   the entry has, 0 when left out; an edit has as many as the texts in it, unless `total ~N` says otherwise.
//! - Text stands in quotes, escaped as in JSON, and so does any name that is more than letters, digits and
//!   `_ . : / @ + -`. What a terminal would act on (control characters, changes of writing direction) is escaped too:
//!   a line can be printed wherever it came from.
//! - A message's parts stand in order: `"text"`, `call ID TOOL ARGUMENTS` (`custom` for a call with free text),
//!   `image "URL"` or `image blob=ID type=T bytes=N`, `reasoning "…" signature="…"`, `opaque DIALECT JSON`.
//! - A share says whose it is, the window, whether unused room is lent, then each slice, the root's first: `of` the thread
//!   and its moment, the ratio of the next thread down, the items kept, those of them shown in part (`clip`), the heading,
//!   the tokens. It has as many tokens as its slices, unless `total ~N` says otherwise. `held=` is the process that ends the
//!   thread by ending.
//! - A chronicle says what it covers, `partial` when the thread did not come to its end, and who wrote it.
//! - `mark=` says how far a client's transcript went: the first element taken in, how many there are, each group of elements
//!   with its entries (and how often), `inner` and `apart` where they are so, and the running digest.
//! - `used=` is what a provider counted: input`+`output, then what it wrote to its cache (`w`) and read from it (`r`).
//!
//! [`entry`] leaves nothing out but the timestamp: tests read it back, with the reader in `komado-testkit`. Raw JSON (tool
//! definitions, what only one dialect knows) stands there byte for byte, unless it holds tabs between tokens or characters
//! a terminal would act on; then it keeps its meaning. [`brief`] and [`plain`] are for the eye only. Entries that
//! [`admit`](mod@crate::admit) never lets in (a message of a tool without its result, an edit that both hides and
//! replaces) have no notation.

mod line;
mod write;

use line::columns;
pub(crate) use line::is_wild;
pub use line::{clipped, columns as width, grouped, shown, tamed};

use crate::head::EntrySource;
use crate::journal::{Anchor, Entry, Record, Share, Slice};
use crate::view::{ItemSource, ShownItem};
use crate::{ThreadId, View};
use line::NotationLine;

/// One entry as one line, without a line break. Nothing but the timestamp is left out.
pub fn entry(record: &Record) -> String {
    write::record(record).whole()
}

/// Like [`entry`], with long texts shortened so that the line takes at most `width` columns of a terminal.
pub fn brief(record: &Record, width: usize) -> String {
    write::record(record).fit(width)
}

/// Like [`brief`] for the eye of a person: without digests and ids that only programs compare, and an edit says that it is one.
pub fn plain(record: &Record, width: usize) -> String {
    ink(&write::plain(record), width)
}

/// What the model sees, one item per line of at most `width` columns of a terminal, the setup first. A text in place of
/// others begins with what it stands for: `2..4 condense@7 summary "…" ~80`. What a spawned thread sees of those above it
/// comes first, each line with the thread it is from: `root@3 user "…" ~5`, under a line with the slice's heading:
/// `of root@12 0.8 "…" ~1200`.
pub fn each_item<S: EntrySource + ?Sized>(
    view: &View,
    source: &S,
    width: usize,
    mut each: impl FnMut(String),
) -> Result<(), S::Error> {
    let share = view.share_in(source)?;
    if let Some(share) = &share {
        setups(share, source, width, &mut each)?;
    }
    if let Some(seq) = view.setup() {
        each(ink(&write::record(&source.record(seq)?), width));
    }
    if let Some(share) = &share {
        slices(share, source, width, &mut each)?;
    }
    view.try_each_item(source, |shown| item(&shown, source, width).map(&mut each))
}

/// One thing the model sees, as one line of at most `width` columns.
pub fn item<S: EntrySource + ?Sized>(item: &ShownItem, source: &S, width: usize) -> Result<String, S::Error> {
    let record = source.record(item.seq)?;
    Ok(match item.what {
        ItemSource::Said(_) => ink(&write::said(&record), width),
        ItemSource::Shown => ink(&write::shown(&record), width),
        ItemSource::Replaced(by) => replaced(&record, &source.record(by)?, item.tokens, width),
    })
}

fn ink(line: &NotationLine<'_>, width: usize) -> String {
    if width == usize::MAX { line.whole() } else { line.fit(width) }
}

fn replaced(record: &Record, by: &Record, tokens: u32, width: usize) -> String {
    match (&record.entry, &by.entry) {
        (Entry::Message(message, _), Entry::Edit(edit)) => {
            let text = edit.replace.iter().find(|r| r.seq == record.seq).map_or("", |r| r.text.as_str());
            let now = message.saying(text);
            ink(&write::replaced(record.seq, &now, format!("{}@{}", edit.kind.name(), by.seq), tokens), width)
        }
        (_, Entry::Message(late, _)) => {
            let (now, mark) = (late.clone().in_place(), format!("late@{}", by.seq));
            ink(&write::replaced(record.seq, &now, mark, tokens), width)
        }
        (_, Entry::Anchor(now)) => ink(&write::moved_anchor(record.seq, now, by.seq, tokens), width),
        _ => ink(&write::said(record), width),
    }
}

// What a spawned thread sees of those above it, as lines that say whose each is.

/// The setups of the threads above, the root's first.
fn setups<S: EntrySource + ?Sized>(
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
fn slices<S: EntrySource + ?Sized>(
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
fn seen<S: EntrySource + ?Sized>(
    share: &Share,
    slice: &Slice,
    shown: &ShownItem,
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
    if width == usize::MAX { width } else { width.saturating_sub(columns(thread.as_str()) + 1) }
}

/// A line that says whose it is.
fn whose(thread: &ThreadId, line: &str) -> String {
    if line.is_empty() { String::new() } else { format!("{thread}@{line}") }
}
