//! From the edits and pins in force to the order of things shown.

use super::{Live, View, ViewWeight};
use crate::head::{EntrySource, Head, Kind};
use crate::journal::{Edit, Entry, Replace};
use crate::{Seq, Span};
use std::collections::{BTreeMap, BinaryHeap};

/// A stretch of the view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViewPiece {
    /// Every item of these entries, as said.
    Run(Span),
    /// What edit `edit` shows in place of what it hides.
    Shown {
        /// The edit.
        edit: Seq,
        /// Its tokens.
        tokens: u32,
    },
    /// Entry `seq` with the content that entry `by` gives it.
    Replaced {
        /// The entry.
        seq: Seq,
        /// The edit or anchor that says so.
        by: Seq,
        /// Its tokens now.
        tokens: u32,
    },
}

/// How an item came into the view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ItemSource {
    /// As said.
    Said(Kind),
    /// In place of hidden entries.
    Shown,
    /// With other content, given by that entry.
    Replaced(Seq),
}

/// One thing the model sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShownItem {
    /// The entry: the message, or the edit whose text is shown.
    pub seq: Seq,
    /// How it came here.
    pub what: ItemSource,
    /// Its tokens.
    pub tokens: u32,
}

impl View {
    /// Works out the order of things shown and their weight. Cost is that of the edits and pins in force.
    pub(super) fn lay_out<S: EntrySource + ?Sized>(&mut self, source: &S) -> Result<(), S::Error> {
        let visible = subtract(&self.path, &self.hidden());
        let marks = self.marks(&visible);
        self.layout = place(&visible, &marks);
        self.weight = self.weigh(source)?;
        Ok(())
    }

    fn hidden(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = self.edits.iter().flat_map(|edit| edit.hide.iter().copied()).collect();
        spans.sort_unstable();
        subtract(&merge(spans), &self.pins)
    }

    /// Where a run is broken: after hidden stretches, and at entries with other content.
    fn marks(&self, visible: &[Span]) -> Vec<(Seq, ViewPiece)> {
        let mut replaced: BTreeMap<Seq, (Seq, u32)> = BTreeMap::new();
        for edit in &self.edits {
            replaced.extend(edit.replace.iter().map(|&(seq, tokens)| (seq, (edit.seq, tokens))));
        }
        for (&seq, &update) in &self.updates {
            let now = replaced.entry(seq).or_insert(update);
            *now = update.max(*now);
        }
        let seen = |seq: Seq| {
            let i = visible.partition_point(|span| span.to < seq);
            visible.get(i).is_some_and(|span| span.holds(seq))
        };
        let swaps = replaced.into_iter().filter(|(seq, _)| seen(*seq) && !self.is_pinned(*seq));
        let swaps = swaps.map(|(seq, (by, tokens))| (seq, ViewPiece::Replaced { seq, by, tokens }));
        let mut marks: Vec<(Seq, ViewPiece)> = swaps.collect();
        let shown = uncovered(&self.edits).into_iter();
        marks.extend(shown.map(|(at, live)| (at, ViewPiece::Shown { edit: live.seq, tokens: live.shown })));
        marks.sort_by_key(|(at, piece)| match piece {
            ViewPiece::Shown { edit, .. } => (*at, *edit),
            _ => (*at, 0),
        });
        marks
    }

    fn weigh<S: EntrySource + ?Sized>(&self, source: &S) -> Result<ViewWeight, S::Error> {
        let tokens = |entry: Option<(Seq, u32)>| entry.map_or(0, |(_, tokens)| u64::from(tokens));
        let mut weight =
            ViewWeight { setup: tokens(self.setup), above: tokens(self.share), ..ViewWeight::default() };
        for piece in &self.layout {
            match piece {
                ViewPiece::Run(span) => {
                    let (before, after) = (source.head(span.from - 1)?, source.head(span.to)?);
                    for (class, sum) in weight.said.iter_mut().enumerate() {
                        *sum += after.sums[class] - before.sums[class];
                    }
                    weight.items += u64::from(after.items - before.items);
                }
                ViewPiece::Shown { tokens, .. } | ViewPiece::Replaced { tokens, .. } => {
                    weight.shown += u64::from(*tokens);
                    weight.items += 1;
                }
            }
        }
        Ok(weight)
    }

    /// Tokens there would be without any edit: everything said on the path, and what stands before it.
    pub fn unedited<S: EntrySource + ?Sized>(&self, source: &S) -> Result<u64, S::Error> {
        let mut tokens = self.weight.setup + self.weight.above;
        for span in &self.path {
            let (before, after) = (source.head(span.from - 1)?, source.head(span.to)?);
            tokens += after.sums.iter().sum::<u64>() - before.sums.iter().sum::<u64>();
        }
        for (&seq, &(_, now)) in &self.updates {
            tokens += u64::from(now);
            tokens -= u64::from(source.head(seq)?.tokens);
        }
        Ok(tokens)
    }

    /// True when entry `seq` itself is shown, as said or with other content.
    pub fn shows(&self, seq: Seq) -> bool {
        let end = |piece: &ViewPiece| match *piece {
            ViewPiece::Run(span) => span.to,
            ViewPiece::Replaced { seq, .. } => seq,
            ViewPiece::Shown { edit, .. } => self.live(edit).and_then(Live::place).unwrap_or(0),
        };
        match self.layout.get(self.layout.partition_point(|piece| end(piece) < seq)) {
            Some(ViewPiece::Run(span)) => span.holds(seq),
            Some(ViewPiece::Replaced { seq: own, .. }) => *own == seq,
            Some(ViewPiece::Shown { .. }) | None => false,
        }
    }

    /// True when hiding `spans` would take something out of the view.
    pub(crate) fn shows_within<S: EntrySource + ?Sized>(
        &self,
        source: &S,
        spans: &[Span],
    ) -> Result<bool, S::Error> {
        let free = subtract(spans, &self.pins);
        let within = |seq: Seq| free.iter().any(|span| span.holds(seq));
        for piece in &self.layout {
            let hit = match piece {
                ViewPiece::Run(run) => {
                    let mut items = 0;
                    for span in free.iter().filter(|span| span.meets(*run)) {
                        let (from, to) = (span.from.max(run.from), span.to.min(run.to));
                        items += source.head(to)?.items - source.head(from - 1)?.items;
                    }
                    items > 0
                }
                ViewPiece::Replaced { seq, .. } => within(*seq),
                ViewPiece::Shown { edit, .. } => {
                    let place = self.live(*edit).and_then(Live::place);
                    place.is_some_and(|place| spans.iter().any(|span| span.holds(place)))
                }
            };
            if hit {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// An edit in force that `hide` would cover only in part.
    pub(crate) fn overlapped(&self, hide: &[Span]) -> Option<Seq> {
        self.conflicts(Seq::MAX, hide)
    }

    /// An edit in force that neither is apart from edit `seq` over `hide`, nor wholly under it (when older), nor
    /// wholly over it (when newer).
    pub(crate) fn conflicts(&self, seq: Seq, hide: &[Span]) -> Option<Seq> {
        let over = |a: &[Span], b: &[Span]| b.iter().all(|b| a.iter().any(|a| a.covers(*b)));
        let clash = |live: &&Live| {
            let meets = live.hide.iter().any(|a| hide.iter().any(|b| a.meets(*b)));
            let fits = if live.seq < seq { over(hide, &live.hide) } else { over(&live.hide, hide) };
            meets && !fits
        };
        self.edits.iter().find(clash).map(|live| live.seq)
    }

    /// The later edit under which edit `seq`, were it in force, would wholly lie.
    pub(crate) fn buried_by(&self, seq: Seq, edit: &Edit) -> Option<Seq> {
        let live = Live::of(seq, edit);
        self.edits.iter().find(|later| later.seq > seq && later.buries(&live)).map(|later| later.seq)
    }

    /// Calls `each` for every thing shown, in order, without reading any of them.
    pub fn each_item<S: EntrySource + ?Sized>(
        &self,
        source: &S,
        mut each: impl FnMut(ShownItem),
    ) -> Result<(), S::Error> {
        self.try_each_item(source, |item| {
            each(item);
            Ok(())
        })
    }

    /// Like [`View::each_item`], until `each` fails.
    pub fn try_each_item<S: EntrySource + ?Sized, E: From<S::Error>>(
        &self,
        source: &S,
        mut each: impl FnMut(ShownItem) -> Result<(), E>,
    ) -> Result<(), E> {
        for piece in &self.layout {
            match *piece {
                ViewPiece::Run(span) => {
                    for seq in span.from..=span.to {
                        let Head { kind, tokens, .. } = source.head(seq)?;
                        if kind.is_item() {
                            each(ShownItem { seq, what: ItemSource::Said(kind), tokens })?;
                        }
                    }
                }
                ViewPiece::Shown { edit, tokens } => {
                    each(ShownItem { seq: edit, what: ItemSource::Shown, tokens })?
                }
                ViewPiece::Replaced { seq, by, tokens } => {
                    each(ShownItem { seq, what: ItemSource::Replaced(by), tokens })?
                }
            }
        }
        Ok(())
    }

    /// All things shown, in order.
    pub fn items<S: EntrySource + ?Sized>(&self, source: &S) -> Result<Vec<ShownItem>, S::Error> {
        let mut items = Vec::new();
        self.each_item(source, |item| items.push(item))?;
        Ok(items)
    }
}

/// The edits whose place no later edit hides, each with that place. One pass along the thread: of all that hides a
/// place the latest is on top of the heap, and what has ended before it is never asked for again.
fn uncovered(edits: &[Live]) -> Vec<(Seq, &Live)> {
    let spans = |(i, live): (usize, &Live)| live.hide.iter().map(move |span| (*span, i)).collect::<Vec<_>>();
    let mut hiding: Vec<(Span, usize)> = edits.iter().enumerate().flat_map(spans).collect();
    hiding.sort_unstable();
    let mut places: Vec<(Seq, usize)> =
        edits.iter().enumerate().filter_map(|(i, live)| Some((live.place()?, i))).collect();
    places.sort_unstable();
    let mut hiding = hiding.into_iter().peekable();
    let mut over: BinaryHeap<(usize, Seq)> = BinaryHeap::new();
    let mut found = Vec::with_capacity(places.len());
    for (place, i) in places {
        while let Some((span, by)) = hiding.next_if(|(span, _)| span.from <= place) {
            over.push((by, span.to));
        }
        while over.peek().is_some_and(|(_, to)| *to < place) {
            over.pop();
        }
        if over.peek().is_some_and(|(by, _)| *by == i) {
            found.push((place, &edits[i]));
        }
    }
    found
}

/// Walks the visible stretches and breaks them at the marks.
fn place(visible: &[Span], marks: &[(Seq, ViewPiece)]) -> Vec<ViewPiece> {
    let mut pieces = Vec::with_capacity(visible.len() + 2 * marks.len());
    let mut marks = marks.iter().peekable();
    for &span in visible {
        while let Some((_, piece)) = marks.next_if(|(at, _)| *at < span.from) {
            pieces.push(*piece);
        }
        let mut from = span.from;
        while let Some((at, piece)) = marks.next_if(|(at, _)| span.holds(*at)) {
            let end = if matches!(piece, ViewPiece::Replaced { .. }) { at - 1 } else { *at };
            if from <= end {
                pieces.push(ViewPiece::Run(Span::new(from, end)));
            }
            pieces.push(*piece);
            from = at + 1;
        }
        if from <= span.to {
            pieces.push(ViewPiece::Run(Span::new(from, span.to)));
        }
    }
    pieces.extend(marks.map(|(_, piece)| *piece));
    pieces
}

/// Joins what touches; `spans` must be sorted.
fn merge(spans: Vec<Span>) -> Vec<Span> {
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.from <= last.to.saturating_add(1) => last.to = last.to.max(span.to),
            _ => merged.push(span),
        }
    }
    merged
}

/// What of `spans` lies in none of `holes`; both sorted and apart.
pub fn subtract(spans: &[Span], holes: &[Span]) -> Vec<Span> {
    let mut left = Vec::with_capacity(spans.len());
    for &span in spans {
        let mut from = span.from;
        let start = holes.partition_point(|hole| hole.to < span.from);
        for hole in holes[start..].iter().take_while(|hole| hole.from <= span.to) {
            if from < hole.from {
                left.push(Span::new(from, hole.from - 1));
            }
            from = from.max(hole.to.saturating_add(1));
        }
        if from <= span.to {
            left.push(Span::new(from, span.to));
        }
    }
    left
}

// What replaced entries say now.
//
// One trim replaces hundreds of outputs. Were its line read again for each of them, a view would cost the square of
// that, so the texts of the last few edits are remembered: placeholders, a line each. No message is, and no edit
// beyond those few, however many there are.

/// How many edits are remembered. Two trims in a row take turns: one took what was stale, the other the rest.
const FEW: usize = 4;

/// Looks up what edits say in place of entries.
#[derive(Debug, Default)]
pub struct ReplacedTexts {
    /// Edits with their texts in the order of entries, the one asked for last at the end.
    known: Vec<(Seq, Vec<Replace>)>,
}

impl ReplacedTexts {
    /// What edit `by` says in place of entry `seq`; nothing when it says nothing there.
    pub fn text<S: EntrySource + ?Sized>(&mut self, source: &S, seq: Seq, by: Seq) -> Result<&str, S::Error> {
        match self.known.iter().rposition(|(edit, _)| *edit == by) {
            Some(i) => self.known[i..].rotate_left(1),
            None => {
                let mut replace = match source.record(by)?.entry {
                    Entry::Edit(edit) => edit.replace,
                    _ => Vec::new(),
                };
                replace.sort_by_key(|replace| replace.seq);
                if self.known.len() == FEW {
                    self.known.remove(0);
                }
                self.known.push((by, replace));
            }
        }
        let texts = self.known.last().map_or(&[][..], |(_, replace)| replace);
        let i = texts.partition_point(|replace| replace.seq < seq);
        Ok(texts.get(i).filter(|replace| replace.seq == seq).map_or("", |replace| &replace.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::Head;
    use crate::journal::{Cause, Edit, EditKind, Record};
    use std::cell::Cell;

    /// Edits that each replace every entry before the hundredth, and a count of those that were read.
    struct Edits(Cell<usize>);

    impl EntrySource for Edits {
        type Error = std::convert::Infallible;

        fn last(&self) -> Seq {
            200
        }

        fn head(&self, _: Seq) -> Result<Head, Self::Error> {
            Ok(Head::START)
        }

        fn above(
            &self,
            _: &crate::ThreadId,
        ) -> Result<Box<dyn EntrySource<Error = Self::Error> + '_>, Self::Error> {
            Ok(Box::new(Self(Cell::new(0))))
        }

        fn record(&self, by: Seq) -> Result<Record, Self::Error> {
            self.0.set(self.0.get() + 1);
            let replace = (1..100).map(|seq| Replace { seq, text: format!("{seq} by {by}"), tokens: 1 });
            let entry = Entry::Edit(Edit {
                kind: EditKind::Trim,
                hide: vec![],
                show: vec![],
                replace: replace.collect(),
                cause: Cause::default(),
            });
            Ok(Record { seq: by, timestamp: "t".into(), tokens: 0, entry })
        }
    }

    #[test]
    fn an_edit_is_read_once_while_a_few_take_turns() {
        let source = Edits(Cell::new(0));
        let mut swaps = ReplacedTexts::default();
        for seq in 1..100 {
            let by = 101 + seq % 3;
            let Ok(text) = swaps.text(&source, seq, by);
            assert_eq!(text, format!("{seq} by {by}"));
        }
        assert_eq!(source.0.get(), 3);
        assert_eq!(swaps.text(&source, 100, 101), Ok(""));
        for by in 110..120 {
            assert!(swaps.text(&source, 1, by).is_ok());
        }
        assert_eq!((source.0.get(), swaps.known.len()), (13, FEW));
    }
}
