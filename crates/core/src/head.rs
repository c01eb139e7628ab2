//! What the fold must know of an entry without reading it: a fixed few bytes.
//!
//! A thread may hold millions of entries and gigabytes of words. Its heads form a table that answers, each with one
//! look-up: how many tokens lie between two entries (running sums), where a call and its results begin, and which
//! entry last changed what is seen (a chain of operations). A store keeps that table next to the words.

use crate::journal::{Anchor, EditKind, Entry, Record};
use crate::message::Role;
use crate::{Seq, Span, ThreadId};

/// Declares the kinds of entries, each with the number under which stores keep it.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal,)+) => {
        /// What sort of entry it is.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Kind {
            $($(#[$doc])* $kind = $number,)+
        }

        impl Kind {
            /// The kind with this number.
            pub const fn from_u8(n: u8) -> Option<Self> {
                match n {
                    $($number => Some(Self::$kind),)+
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    Header = 0,
    System = 1,
    User = 2,
    Assistant = 3,
    Tool = 4,
    Anchor = 5,
    Setup = 6,
    Condense = 7,
    Truncate = 8,
    Trim = 9,
    Revert = 10,
    Rewind = 11,
    Pin = 12,
    Unpin = 13,
    AnchorUpdate = 14,
    Close = 15,
    Sent = 16,
    Lost = 17,
    Share = 18,
    Chronicle = 19,
    Tell = 20,
    Heard = 21,
    /// How far the work in the thread is.
    Note = 22,
    /// A result that takes the place of an earlier one of its call.
    LateResult = 23,
}

impl Kind {
    /// True for what the model can see in its place.
    pub const fn is_item(self) -> bool {
        matches!(self, Self::System | Self::User | Self::Assistant | Self::Tool | Self::Anchor)
    }

    /// True for what changes which other entries are seen.
    pub const fn is_op(self) -> bool {
        let n = self as u8;
        n >= Self::Setup as u8 && n <= Self::Close as u8
            || n >= Self::Share as u8 && n <= Self::Heard as u8
            || matches!(self, Self::LateResult)
    }

    /// True for what stands in the order in which things were said: an item, or a result that came late.
    pub const fn is_said(self) -> bool {
        self.is_item() || matches!(self, Self::LateResult)
    }

    /// True for an edit.
    pub const fn is_edit(self) -> bool {
        matches!(self, Self::Condense | Self::Truncate | Self::Trim)
    }

    /// Which running sum its tokens go to: system, user, assistant, tool.
    pub const fn class(self) -> Option<usize> {
        match self {
            Self::System | Self::Anchor => Some(0),
            Self::User => Some(1),
            Self::Assistant => Some(2),
            Self::Tool => Some(3),
            _ => None,
        }
    }

    /// The kind of an entry.
    pub fn of(entry: &Entry) -> Self {
        match entry {
            Entry::Setup(_) => Self::Setup,
            Entry::Message(message, _) if message.replaces().is_some() => Self::LateResult,
            Entry::Message(message, _) => match message.role {
                Role::System | Role::Developer => Self::System,
                Role::User => Self::User,
                Role::Assistant => Self::Assistant,
                Role::Tool => Self::Tool,
            },
            Entry::Edit(edit) => match edit.kind {
                EditKind::Condense => Self::Condense,
                EditKind::Truncate => Self::Truncate,
                EditKind::Trim => Self::Trim,
            },
            Entry::Revert { .. } => Self::Revert,
            Entry::Rewind { .. } => Self::Rewind,
            Entry::Pin { .. } => Self::Pin,
            Entry::Unpin { .. } => Self::Unpin,
            Entry::Anchor(anchor) if anchor.first.is_some() => Self::AnchorUpdate,
            Entry::Anchor(_) => Self::Anchor,
            Entry::Sent(_) => Self::Sent,
            Entry::Lost(_) => Self::Lost,
            Entry::Close(_) => Self::Close,
            Entry::Share(_) => Self::Share,
            Entry::Chronicle(_) => Self::Chronicle,
            Entry::Tell { .. } => Self::Tell,
            Entry::Heard { .. } => Self::Heard,
            Entry::Note { .. } => Self::Note,
        }
    }
}

/// The fixed few bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// What sort of entry.
    pub kind: Kind,
    /// True when [`Head::operand`] says all there is to say about an edit's span.
    pub plain: bool,
    /// Its own tokens; of an edit, those of the texts it shows, and of a share, those of its slices, whatever the line
    /// says.
    pub tokens: u32,
    /// Tokens of all items up to and with this one: system, user, assistant, tool.
    pub sums: [u64; 4],
    /// Number of items up to and with this one.
    pub items: u32,
    /// First entry of the unit it belongs to: a message, or a call with its results.
    pub unit: Seq,
    /// The last operation before it, 0 for none.
    pub prev_op: Seq,
    /// For an edit of one span: the last operation before it that is not an edit under it. While the edit is in force
    /// the fold goes on from there. [`Head::prev_op`] for everything else.
    pub skip: Seq,
    /// Its operand: what an edit touches, a pin holds, a revert undoes, a rewind goes to, an anchor changes, a late result replaces.
    pub operand: Span,
}

impl Head {
    /// The head of the place before the first entry.
    pub const START: Self = Self {
        kind: Kind::Header,
        plain: true,
        tokens: 0,
        sums: [0; 4],
        items: 0,
        unit: 0,
        prev_op: 0,
        skip: 0,
        operand: Span::new(0, 0),
    };

    /// The head of `record`, which follows the entry `before`; `unit` is where its unit begins.
    pub fn next(before: (Seq, &Self), record: &Record, unit: Seq) -> Self {
        let (prev, last) = before;
        let kind = Kind::of(&record.entry);
        let prev_op = if last.kind.is_op() { prev } else { last.prev_op };
        let mut sums = last.sums;
        if let Some(class) = kind.class() {
            sums[class] += u64::from(record.tokens);
        }
        Self {
            kind,
            plain: is_plain(&record.entry),
            tokens: match &record.entry {
                Entry::Edit(edit) => edit.shown_tokens(),
                Entry::Share(share) => share.tokens(),
                _ => record.tokens,
            },
            sums,
            items: last.items + u32::from(kind.is_item()),
            unit,
            prev_op,
            skip: prev_op,
            operand: operand(&record.entry),
        }
    }
}

fn is_plain(entry: &Entry) -> bool {
    match entry {
        Entry::Edit(edit) => edit.hide.len() == 1 && edit.replace.is_empty(),
        _ => true,
    }
}

fn operand(entry: &Entry) -> Span {
    match entry {
        Entry::Edit(edit) => edit.hull().unwrap_or(Span::new(0, 0)),
        Entry::Pin { span } | Entry::Unpin { span } => *span,
        Entry::Revert { target } => Span::new(*target, *target),
        Entry::Rewind { to } => Span::new(*to, *to),
        Entry::Heard { upto, .. } => Span::new(*upto, *upto),
        Entry::Anchor(Anchor { first: Some(at), .. }) => Span::new(*at, *at),
        Entry::Message(message, _) => message.replaces().map_or(Span::new(0, 0), |at| Span::new(at, at)),
        _ => Span::new(0, 0),
    }
}

/// A thread's entries and heads, wherever they are kept. For a fork, entries up to its base are those of the thread
/// it left.
pub trait EntrySource {
    /// What can go wrong when looking something up.
    type Error;

    /// Number of the last entry; 0 when there is none.
    fn last(&self) -> Seq;

    /// The head of entry `seq`; [`Head::START`] for 0.
    fn head(&self, seq: Seq) -> Result<Head, Self::Error>;

    /// The entry `seq` itself.
    fn record(&self, seq: Seq) -> Result<Record, Self::Error>;

    /// Another thread of the session, to be looked up: one that this thread was spawned from.
    fn above(&self, thread: &ThreadId)
    -> Result<Box<dyn EntrySource<Error = Self::Error> + '_>, Self::Error>;
}

/// Every entry after `after` with its head, the newest first, also those that were gone back from: no more is read than is
/// taken. [`View::back`](crate::View::back) walks the path alone.
pub fn back<S: EntrySource + ?Sized>(
    source: &S,
    after: Seq,
) -> impl Iterator<Item = Result<(Seq, Head), S::Error>> + '_ {
    (after + 1..=source.last()).rev().map(|seq| Ok((seq, source.head(seq)?)))
}
