//! What leaves the view when spans are hidden: an index of it, and a way to read it one message at a time.
//!
//! A pinned message stays, a message hidden before does not come back for this, and what an earlier edit shows goes
//! when the place where it stands is hidden. Counting reads no message at all.

use super::render::{cut_split, strip_marker};
use crate::stelis::gist;
use komado_core::head::{EntrySource, Kind};
use komado_core::journal::{Anchor, Edit, Entry, Show, ShowKind};
use komado_core::message::{Message, Role};
use komado_core::view::{ReplacedTexts, ViewPiece, subtract};
use komado_core::{Meter, Seq, Span, View};
use std::collections::{HashSet, VecDeque};

/// The pieces of a view that leave, in order. As small as the edits and pins in force.
pub(super) struct Leaving<'a, S: ?Sized> {
    source: &'a S,
    pieces: Vec<ViewPiece>,
}

/// How much leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Census {
    /// Messages, also trimmed ones.
    pub(super) said: u64,
    /// Tokens of everything that leaves.
    pub(super) tokens: u64,
    /// The newest edit whose text leaves.
    pub(super) edit: Option<Seq>,
}

/// One thing that leaves.
pub(super) enum LeavingItem {
    /// A message.
    Said {
        /// Its entry.
        seq: Seq,
        /// As the model sees it.
        message: Message,
        /// As it was said, when that is something else.
        original: Option<Message>,
        /// For the anchor of a child thread: which one, and what came of it.
        child: Option<String>,
    },
    /// What an earlier edit shows.
    Earlier {
        /// Its texts.
        show: Vec<Show>,
    },
}

impl<'a, S: EntrySource + ?Sized> Leaving<'a, S> {
    /// What leaves `view` when `hide` is hidden.
    pub(super) fn of(source: &'a S, view: &View, hide: &[Span]) -> Result<Self, S::Error> {
        let mut spans = hide.to_vec();
        spans.sort_unstable();
        let free = subtract(&spans, view.pins());
        let mut pieces = Vec::new();
        for piece in view.pieces() {
            match *piece {
                ViewPiece::Run(run) => {
                    let shared = meeting(&free, run);
                    pieces.extend(
                        shared.map(|s| ViewPiece::Run(Span::new(s.from.max(run.from), s.to.min(run.to)))),
                    );
                }
                ViewPiece::Replaced { seq, .. } if meeting(&free, Span::new(seq, seq)).next().is_some() => {
                    pieces.push(*piece);
                }
                // What an edit shows stands where its last hidden span ended; a pin there does not hold it.
                ViewPiece::Shown { edit, .. } => {
                    let place = source.head(edit)?.operand.to;
                    if spans.iter().any(|span| span.holds(place)) {
                        pieces.push(*piece);
                    }
                }
                ViewPiece::Replaced { .. } => {}
            }
        }
        Ok(Self { source, pieces })
    }

    /// How much leaves, by subtraction.
    pub(super) fn census(&self) -> Result<Census, S::Error> {
        let (source, mut census) = (self.source, Census::default());
        for piece in &self.pieces {
            match *piece {
                ViewPiece::Run(span) => {
                    let (before, after) = (source.head(span.from.saturating_sub(1))?, source.head(span.to)?);
                    census.said += u64::from(after.items - before.items);
                    census.tokens += after.sums.iter().sum::<u64>() - before.sums.iter().sum::<u64>();
                }
                ViewPiece::Replaced { tokens, .. } => {
                    census.said += 1;
                    census.tokens += u64::from(tokens);
                }
                ViewPiece::Shown { edit, tokens } => {
                    census.tokens += u64::from(tokens);
                    census.edit = census.edit.max(Some(edit));
                }
            }
        }
        Ok(census)
    }

    /// Everything that leaves, to be read.
    pub(super) fn items(&self) -> LeavingItems<'_, S> {
        LeavingItems { source: self.source, pieces: &self.pieces, at: 0, swaps: ReplacedTexts::default() }
    }

    /// What edits that leave have kept so far, at most `cap` tokens of it, and what was over that.
    pub(super) fn retained(&self, meter: Meter, cap: u64) -> Result<(Retained, String), S::Error> {
        let (mut retained, mut items) = (Retained::new(meter, cap), self.items());
        while let Some(item) = items.next_where(|kind| kind.is_edit())? {
            let LeavingItem::Earlier { show } = item else { continue };
            for show in show.iter().filter(|show| show.kind == ShowKind::Retain) {
                retained.add(strip_marker(&show.text));
            }
        }
        let overflow = retained.shed();
        Ok((retained, overflow))
    }
}

/// Reads what leaves, one thing at a time.
pub(super) struct LeavingItems<'a, S: ?Sized> {
    source: &'a S,
    pieces: &'a [ViewPiece],
    /// The next entry of a run that was begun; 0 when none was.
    at: Seq,
    swaps: ReplacedTexts,
}

impl<S: EntrySource + ?Sized> LeavingItems<'_, S> {
    /// The next thing that leaves.
    pub(super) fn next(&mut self) -> Result<Option<LeavingItem>, S::Error> {
        self.next_where(|_| true)
    }

    /// The next thing of a kind that `chosen` takes; others are passed over without being read. The text of an edit
    /// has the kind of the edit.
    pub(super) fn next_where(
        &mut self,
        chosen: impl Fn(Kind) -> bool,
    ) -> Result<Option<LeavingItem>, S::Error> {
        while let Some(piece) = self.step() {
            let (seq, said) = match piece {
                ViewPiece::Run(span) => (span.from, true),
                ViewPiece::Replaced { seq, .. } => (seq, true),
                ViewPiece::Shown { edit, .. } => (edit, false),
            };
            let kind = self.source.head(seq)?.kind;
            if (kind.is_item() || !said)
                && chosen(kind)
                && let Some(item) = self.read(piece)?
            {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// The next piece, runs entry by entry.
    fn step(&mut self) -> Option<ViewPiece> {
        loop {
            let (piece, rest) = self.pieces.split_first()?;
            if let ViewPiece::Run(span) = piece {
                let seq = self.at.max(span.from);
                if seq <= span.to {
                    self.at = seq + 1;
                    return Some(ViewPiece::Run(Span::new(seq, seq)));
                }
            }
            (self.pieces, self.at) = (rest, 0);
            if !matches!(piece, ViewPiece::Run(_)) {
                return Some(*piece);
            }
        }
    }

    fn read(&mut self, piece: ViewPiece) -> Result<Option<LeavingItem>, S::Error> {
        let source = self.source;
        let said = |seq, message| Some(LeavingItem::Said { seq, message, original: None, child: None });
        let anchor = |seq, anchor: Anchor| {
            let child = anchor.ending.is_some().then(|| gist(&anchor));
            Some(LeavingItem::Said {
                seq,
                message: Message::text(Role::System, anchor.text),
                original: None,
                child,
            })
        };
        Ok(match piece {
            ViewPiece::Run(Span { from: seq, .. }) => match source.record(seq)?.entry {
                Entry::Message(message, _) => said(seq, message),
                Entry::Anchor(now) => anchor(seq, now),
                _ => None,
            },
            ViewPiece::Shown { edit, .. } => match source.record(edit)?.entry {
                Entry::Edit(Edit { show, .. }) => Some(LeavingItem::Earlier { show }),
                _ => None,
            },
            ViewPiece::Replaced { seq, by, .. } => match source.record(seq)?.entry {
                Entry::Anchor(_) => match source.record(by)?.entry {
                    Entry::Anchor(now) => anchor(seq, now),
                    _ => None,
                },
                Entry::Message(message, _) => {
                    let text = self.swaps.text(source, seq, by)?;
                    Some(LeavingItem::Said {
                        seq,
                        message: message.saying(text),
                        original: Some(message),
                        child: None,
                    })
                }
                _ => None,
            },
        })
    }
}

/// Those of `spans`, which are ascending and apart, that share something with `with`.
fn meeting(spans: &[Span], with: Span) -> impl Iterator<Item = &Span> {
    let from = spans.partition_point(|span| span.to < with.from);
    spans[from..].iter().take_while(move |span| span.from <= with.to)
}

// What is kept word for word through any number of summaries, line by line and without doubles.
//
// It may not grow for ever: there is a cap in tokens. What leaves for it is handed back, never dropped here.

/// Lines kept word for word, oldest first.
#[derive(Debug)]
pub(super) struct Retained {
    lines: VecDeque<String>,
    known: HashSet<String>,
    meter: Meter,
    cap: u64,
}

impl Retained {
    pub(super) fn new(meter: Meter, cap: u64) -> Self {
        Self { lines: VecDeque::new(), known: HashSet::new(), meter, cap }
    }

    /// Adds the lines of `text` that are not there yet.
    pub(super) fn add(&mut self, text: &str) {
        for line in text.lines().map(str::trim_end) {
            if !is_blank(line) && self.known.insert(plain(line)) {
                self.lines.push_back(line.to_owned());
            }
        }
    }

    /// Lets the oldest lines go until the rest fits the cap; gives them back.
    pub(super) fn shed(&mut self) -> String {
        let mut gone = Vec::new();
        // Line by line first, so that many lines are not counted again for each that goes.
        let cost = |line: &String| self.meter.text(line) + 1;
        let mut total: u64 = self.lines.iter().map(cost).sum();
        while self.lines.len() > 1 && total > self.cap.saturating_add(1) {
            let Some(line) = self.lines.pop_front() else { break };
            total -= self.meter.text(&line) + 1;
            self.known.remove(&plain(&line));
            gone.push(line);
        }
        // A single line larger than all there is room for keeps its beginning.
        if self.meter.text(&self.text()) > self.cap
            && let Some(line) = self.lines.pop_front()
        {
            let (head, tail) = cut_split(self.meter, &line, self.cap);
            gone.push(tail.to_owned());
            self.add(head);
        }
        gone.join("\n")
    }

    /// All lines.
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// A line without what may differ between two spellings of it: bullets and space around it.
fn plain(line: &str) -> String {
    line.trim().trim_start_matches(['-', '*', '•', '・']).trim().to_owned()
}

fn is_blank(line: &str) -> bool {
    plain(line).is_empty()
}

#[cfg(test)]
mod retain_tests {
    use super::*;

    #[test]
    fn lines_are_kept_once_and_in_order() {
        let mut retained = Retained::new(Meter::Chars4, 100);
        retained.add("- port 8080\n\n* 合言葉は「山」\n");
        retained.add("  port 8080\n- use tabs\n-\n合言葉は「山」");
        assert_eq!(retained.text(), "- port 8080\n* 合言葉は「山」\n- use tabs");
        assert_eq!(retained.shed(), "");
    }

    #[test]
    fn over_the_cap_the_oldest_lines_are_handed_back() {
        let mut retained = Retained::new(Meter::Chars4, 5);
        retained.add("- the first\n- the second\n- the third");
        assert_eq!(retained.shed(), "- the first\n- the second");
        assert_eq!(retained.text(), "- the third");
        let mut long = Retained::new(Meter::Chars4, 2);
        long.add("one line that is far too long");
        let gone = long.shed();
        assert_eq!((long.text(), gone), ("one line".into(), "that is far too long".into()));
        let mut none = Retained::new(Meter::Chars4, 0);
        none.add("anything at all");
        assert_eq!((none.shed().len(), none.is_empty()), (15 - 3, false));
    }
}
