//! What leaves the view when spans are hidden: an index of it, and a way to read it one message at a time.
//!
//! A pinned message stays, a message hidden before does not come back for this, and what an earlier edit shows goes
//! when the place where it stands is hidden. Counting reads no message at all.

use crate::stelis::gist;
use komado_core::head::{Kind, Source};
use komado_core::journal::{Anchor, Edit, Entry, Show};
use komado_core::message::{Message, Role};
use komado_core::view::{Piece, Swaps, subtract};
use komado_core::{Seq, Span, View};

/// The pieces of a view that leave, in order. As small as the edits and pins in force.
pub(super) struct Leaving(Vec<Piece>);

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
pub(super) enum Item {
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

impl Leaving {
    /// What leaves `view` when `hide` is hidden.
    pub(super) fn of<S: Source + ?Sized>(source: &S, view: &View, hide: &[Span]) -> Result<Self, S::Error> {
        let mut spans = hide.to_vec();
        spans.sort_unstable();
        let free = subtract(&spans, view.pins());
        let mut pieces = Vec::new();
        for piece in view.pieces() {
            match *piece {
                Piece::Run(run) => {
                    let shared = meeting(&free, run);
                    pieces.extend(
                        shared.map(|s| Piece::Run(Span::new(s.from.max(run.from), s.to.min(run.to)))),
                    );
                }
                Piece::Replaced { seq, .. } if meeting(&free, Span::new(seq, seq)).next().is_some() => {
                    pieces.push(*piece);
                }
                // What an edit shows stands where its last hidden span ended; a pin there does not hold it.
                Piece::Shown { edit, .. } => {
                    let place = source.head(edit)?.operand.to;
                    if spans.iter().any(|span| span.holds(place)) {
                        pieces.push(*piece);
                    }
                }
                Piece::Replaced { .. } => {}
            }
        }
        Ok(Self(pieces))
    }

    /// How much leaves, by subtraction.
    pub(super) fn census<S: Source + ?Sized>(&self, source: &S) -> Result<Census, S::Error> {
        let mut census = Census::default();
        for piece in &self.0 {
            match *piece {
                Piece::Run(span) => {
                    let (before, after) = (source.head(span.from.saturating_sub(1))?, source.head(span.to)?);
                    census.said += u64::from(after.items - before.items);
                    census.tokens += after.sums.iter().sum::<u64>() - before.sums.iter().sum::<u64>();
                }
                Piece::Replaced { tokens, .. } => {
                    census.said += 1;
                    census.tokens += u64::from(tokens);
                }
                Piece::Shown { edit, tokens } => {
                    census.tokens += u64::from(tokens);
                    census.edit = census.edit.max(Some(edit));
                }
            }
        }
        Ok(census)
    }

    /// Everything that leaves, to be read.
    pub(super) fn items(&self) -> Items<'_> {
        Items { pieces: &self.0, at: 0, swaps: Swaps::default() }
    }
}

/// Reads what leaves, one thing at a time.
pub(super) struct Items<'a> {
    pieces: &'a [Piece],
    /// The next entry of a run that was begun; 0 when none was.
    at: Seq,
    swaps: Swaps,
}

impl Items<'_> {
    /// The next thing that leaves.
    pub(super) fn next<S: Source + ?Sized>(&mut self, source: &S) -> Result<Option<Item>, S::Error> {
        self.next_where(source, |_| true)
    }

    /// The next thing of a kind that `chosen` takes; others are passed over without being read. The text of an edit
    /// has the kind of the edit.
    pub(super) fn next_where<S: Source + ?Sized>(
        &mut self,
        source: &S,
        chosen: impl Fn(Kind) -> bool,
    ) -> Result<Option<Item>, S::Error> {
        while let Some(piece) = self.step() {
            let (seq, said) = match piece {
                Piece::Run(span) => (span.from, true),
                Piece::Replaced { seq, .. } => (seq, true),
                Piece::Shown { edit, .. } => (edit, false),
            };
            let kind = source.head(seq)?.kind;
            if (kind.is_item() || !said)
                && chosen(kind)
                && let Some(item) = read(source, piece, &mut self.swaps)?
            {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// The next piece, runs entry by entry.
    fn step(&mut self) -> Option<Piece> {
        loop {
            let (piece, rest) = self.pieces.split_first()?;
            if let Piece::Run(span) = piece {
                let seq = self.at.max(span.from);
                if seq <= span.to {
                    self.at = seq + 1;
                    return Some(Piece::Run(Span::new(seq, seq)));
                }
            }
            (self.pieces, self.at) = (rest, 0);
            if !matches!(piece, Piece::Run(_)) {
                return Some(*piece);
            }
        }
    }
}

fn read<S: Source + ?Sized>(source: &S, piece: Piece, swaps: &mut Swaps) -> Result<Option<Item>, S::Error> {
    let said = |seq, message| Some(Item::Said { seq, message, original: None, child: None });
    let anchor = |seq, anchor: Anchor| {
        let child = anchor.ending.is_some().then(|| gist(&anchor));
        Some(Item::Said { seq, message: Message::text(Role::System, anchor.text), original: None, child })
    };
    Ok(match piece {
        Piece::Run(Span { from: seq, .. }) => match source.record(seq)?.entry {
            Entry::Message(message, _) => said(seq, message),
            Entry::Anchor(now) => anchor(seq, now),
            _ => None,
        },
        Piece::Shown { edit, .. } => match source.record(edit)?.entry {
            Entry::Edit(Edit { show, .. }) => Some(Item::Earlier { show }),
            _ => None,
        },
        Piece::Replaced { seq, by, .. } => match source.record(seq)?.entry {
            Entry::Anchor(_) => match source.record(by)?.entry {
                Entry::Anchor(now) => anchor(seq, now),
                _ => None,
            },
            Entry::Message(message, _) => {
                let text = swaps.text(source, seq, by)?;
                Some(Item::Said { seq, message: message.saying(text), original: Some(message), child: None })
            }
            _ => None,
        },
    })
}

/// Those of `spans`, which are ascending and apart, that share something with `with`.
fn meeting(spans: &[Span], with: Span) -> impl Iterator<Item = &Span> {
    let from = spans.partition_point(|span| span.to < with.from);
    spans[from..].iter().take_while(move |span| span.from <= with.to)
}
