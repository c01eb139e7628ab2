//! The one fold: from a journal to exactly what the model sees.
//!
//! The fold never reads messages. It walks the chain of operations backwards from a moment (a rewind jumps, so what
//! was abandoned is not even visited), keeps the edits and pins in force, and lays the visible entries out as a short
//! list of [`ViewPiece`]s: runs of entries, texts that stand for others, entries with other content. Its size is that of
//! the edits in force, not of the conversation, and running sums give its tokens without adding anything up.
//!
//! Rules, in full:
//! - An entry is on the *path* of a moment unless a rewind on that path jumped over it.
//! - An entry is hidden when an edit in force covers it and no pin holds it. A pin wins over every edit.
//! - What an edit shows stands where its last hidden span ended, unless a later edit in force covers that place.
//! - A replaced entry shows what the last edit in force says, unless a pin holds it.
//! - A result that came late is shown in the place of the one that it replaces, unless an edit after it says otherwise.
//! - An edit is in force when it is on the path and not reverted by a revert in force.
//! - Before its own items a spawned thread sees what its share keeps of the threads above it, as they were at the
//!   moments it names. An anchor of itself or of a thread above it is shown in brief there.

use crate::head::{EntrySource, Head, Kind};
use crate::journal::{Edit, Entry, Record};
use crate::message::{Call, ToolOutcome};
use crate::{Seq, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod fold;
mod layout;
mod render;

pub use layout::{ItemSource, ReplacedTexts, ShownItem, ViewPiece, subtract};
pub use render::shown_message;

/// What the model sees at a moment, as an index.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct View {
    last: Seq,
    path: Vec<Span>,
    setup: Option<(Seq, u32)>,
    share: Option<(Seq, u32)>,
    chronicle: Option<Seq>,
    edits: Vec<Live>,
    pins: Vec<Span>,
    cancelled: BTreeSet<Seq>,
    /// Entries with the content of a later one, an anchor's or a late result's: that entry, and its tokens.
    updates: BTreeMap<Seq, (Seq, u32)>,
    open: OpenUnit,
    closed: Option<Seq>,
    layout: Vec<ViewPiece>,
    weight: ViewWeight,
}

/// An edit in force that no later one covers.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Live {
    seq: Seq,
    hide: Vec<Span>,
    shown: u32,
    replace: Vec<(Seq, u32)>,
}

impl Live {
    fn of(seq: Seq, edit: &Edit) -> Self {
        Self {
            seq,
            hide: edit.hide.clone(),
            shown: edit.shown_tokens(),
            replace: edit.replace.iter().map(|r| (r.seq, r.tokens)).collect(),
        }
    }

    /// Where what it shows stands: the end of what it hides.
    fn place(&self) -> Option<Seq> {
        self.hide.last().map(|span| span.to)
    }

    fn hides(&self, seq: Seq) -> bool {
        self.hide.iter().any(|span| span.holds(seq))
    }

    fn covers(&self, span: Span) -> bool {
        self.hide.iter().any(|own| own.covers(span))
    }

    /// Everything `other` touches lies under what this edit hides.
    fn buries(&self, other: &Self) -> bool {
        other.hide.iter().all(|&span| self.covers(span))
            && other.replace.iter().all(|&(seq, _)| self.hides(seq))
    }
}

/// Calls that wait for their results.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpenUnit {
    /// The message that made them; 0 when none wait.
    pub unit: Seq,
    /// The calls, shared between copies of a view.
    pub calls: Vec<Arc<WaitingCall>>,
}

/// Tokens of a view, by where they come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ViewWeight {
    /// System prompt and tool definitions.
    pub setup: u64,
    /// What is seen of the threads above, their system prompts and tools included.
    pub above: u64,
    /// Messages by class: system, user, assistant, tool.
    pub said: [u64; 4],
    /// Summaries, markers and placeholders.
    pub shown: u64,
    /// Number of things shown.
    pub items: u64,
}

impl ViewWeight {
    /// All of it.
    pub fn tokens(&self) -> u64 {
        self.setup + self.above + self.said.iter().sum::<u64>() + self.shown
    }

    /// System prompt, tool definitions and system messages.
    pub const fn instructions(&self) -> u64 {
        self.setup + self.said[0]
    }
}

impl View {
    /// The view at `at`, derived from the journal alone.
    pub fn fold<S: EntrySource + ?Sized>(source: &S, at: Seq) -> Result<Self, S::Error> {
        fold::fold(source, at)
    }

    /// The head of the next entry, given everything before it.
    pub fn head_of<S: EntrySource + ?Sized>(&self, record: &Record, source: &S) -> Result<Head, S::Error> {
        let unit = match &record.entry {
            Entry::Message(message, _) => match message.outcome() {
                Some(ToolOutcome { replaces: Some(first), .. }) => source.head(*first)?.unit,
                Some(outcome) if self.open.waits_for(&outcome.call_id) => self.open.unit,
                _ => record.seq,
            },
            _ => record.seq,
        };
        let mut head = Head::next((self.last, &source.head(self.last)?), record, unit);
        if head.kind.is_edit() && head.plain {
            head.skip = fold::skip(source, &head)?;
        }
        Ok(head)
    }

    /// Takes in `record`, which the source already holds. The result equals a fold at `record.seq`.
    pub fn apply<S: EntrySource + ?Sized>(&mut self, record: &Record, source: &S) -> Result<(), S::Error> {
        match &record.entry {
            Entry::Rewind { to } => {
                *self = fold::fold(source, *to)?;
                self.last = record.seq;
                return Ok(());
            }
            Entry::Revert { .. } => {
                *self = fold::fold(source, record.seq)?;
                return Ok(());
            }
            _ => {}
        }
        self.extend(record.seq);
        match &record.entry {
            Entry::Message(message, _) => match message.replaces() {
                Some(first) => self.update(first, record, source)?,
                None => {
                    self.open.take(record.seq, message);
                    self.weigh_last(source.head(record.seq)?);
                }
            },
            Entry::Anchor(anchor) => match anchor.first {
                Some(first) => self.update(first, record, source)?,
                None => self.weigh_last(source.head(record.seq)?),
            },
            Entry::Setup(_) => {
                self.setup = Some((record.seq, record.tokens));
                self.weight.setup = u64::from(record.tokens);
            }
            Entry::Edit(edit) => {
                let live = Live::of(record.seq, edit);
                self.edits.retain(|old| !live.buries(old));
                self.edits.push(live);
                self.lay_out(source)?;
            }
            Entry::Pin { span } => {
                self.pins.push(*span);
                self.pins.sort_unstable();
                self.lay_out(source)?;
            }
            Entry::Unpin { span } => {
                self.pins.retain(|pin| pin != span);
                self.lay_out(source)?;
            }
            Entry::Close(_) => self.closed = Some(record.seq),
            Entry::Share(share) => {
                self.share = Some((record.seq, share.tokens()));
                self.weight.above = u64::from(share.tokens());
            }
            Entry::Chronicle(_) => self.chronicle = Some(record.seq),
            Entry::Tell { .. } | Entry::Heard { .. } | Entry::Note { .. } => {}
            Entry::Sent(_) | Entry::Lost(_) | Entry::Rewind { .. } | Entry::Revert { .. } => {}
        }
        Ok(())
    }

    /// Puts `seq` on the path and at the end of the layout.
    fn extend(&mut self, seq: Seq) {
        match self.path.last_mut() {
            Some(span) if span.to + 1 == seq => span.to = seq,
            _ => self.path.push(Span::new(seq, seq)),
        }
        match self.layout.last_mut() {
            Some(ViewPiece::Run(span)) if span.to + 1 == seq => span.to = seq,
            _ => self.layout.push(ViewPiece::Run(Span::new(seq, seq))),
        }
        self.last = seq;
    }

    /// Entry `first` has the content of `record` from now on.
    fn update<S: EntrySource + ?Sized>(
        &mut self,
        first: Seq,
        record: &Record,
        source: &S,
    ) -> Result<(), S::Error> {
        self.updates.insert(first, (record.seq, record.tokens));
        self.lay_out(source)
    }

    fn weigh_last(&mut self, head: Head) {
        if let Some(class) = head.kind.class() {
            self.weight.said[class] += u64::from(head.tokens);
            self.weight.items += 1;
        }
    }

    /// Number of the last entry taken in.
    pub fn last(&self) -> Seq {
        self.last
    }

    /// Tokens of everything shown.
    pub fn tokens(&self) -> u64 {
        self.weight.tokens()
    }

    /// Tokens by where they come from.
    pub fn weight(&self) -> &ViewWeight {
        &self.weight
    }

    /// The calls that wait for results.
    pub fn open(&self) -> &OpenUnit {
        &self.open
    }

    /// The [`Close`](crate::journal::Close) entry in force.
    pub fn closed(&self) -> Option<Seq> {
        self.closed
    }

    /// The [`Setup`](crate::journal::Setup) entry in force.
    pub fn setup(&self) -> Option<Seq> {
        self.setup.map(|(seq, _)| seq)
    }

    /// The [`Share`](crate::journal::Share) entry in force.
    pub fn share(&self) -> Option<Seq> {
        self.share.map(|(seq, _)| seq)
    }

    /// The [`Chronicle`](crate::journal::Chronicle) entry in force.
    pub fn chronicle(&self) -> Option<Seq> {
        self.chronicle
    }

    /// The entry that says what the anchor at `first` shows now: a later one, or itself.
    pub fn anchor(&self, first: Seq) -> Seq {
        self.updates.get(&first).map_or(first, |(by, _)| *by)
    }

    /// The entry that says what came of the call whose result stands at `seq`: one that came late, or itself.
    pub fn result(&self, seq: Seq) -> Seq {
        self.anchor(seq)
    }

    /// The pins in force.
    pub fn pins(&self) -> &[Span] {
        &self.pins
    }

    /// The edits in force that are not buried under later ones, oldest first.
    pub fn edits(&self) -> impl DoubleEndedIterator<Item = Seq> + '_ {
        self.edits.iter().map(|live| live.seq)
    }

    /// What edit `edit`, if it is in force, hides.
    pub fn hidden_by(&self, edit: Seq) -> &[Span] {
        self.live(edit).map_or(&[], |live| &live.hide)
    }

    /// Edit `edit`, if it is in force; they stand in the order they came.
    fn live(&self, edit: Seq) -> Option<&Live> {
        self.edits.binary_search_by_key(&edit, |live| live.seq).ok().map(|i| &self.edits[i])
    }

    /// True when a pin holds `seq`.
    pub fn is_pinned(&self, seq: Seq) -> bool {
        let i = self.pins.partition_point(|pin| pin.to < seq);
        self.pins.get(i).is_some_and(|pin| pin.holds(seq))
    }

    /// What is shown, in order.
    pub fn pieces(&self) -> &[ViewPiece] {
        &self.layout
    }

    /// The entries that count, in order: what lies between was gone back from.
    pub fn path(&self) -> &[Span] {
        &self.path
    }

    /// True when `seq` is on the path.
    pub fn on_path(&self, seq: Seq) -> bool {
        let i = self.path.partition_point(|span| span.to < seq);
        self.path.get(i).is_some_and(|span| span.holds(seq))
    }

    /// True when nothing is on the path.
    pub(crate) fn is_blank(&self) -> bool {
        self.path.is_empty()
    }

    pub(crate) fn is_cancelled(&self, seq: Seq) -> bool {
        self.cancelled.contains(&seq)
    }

    /// The entries on the path from `seq` on, each with its head: no more is read than is taken.
    pub fn forth<'a, S: EntrySource + ?Sized>(
        &'a self,
        source: &'a S,
        seq: Seq,
    ) -> impl Iterator<Item = Result<(Seq, Head), S::Error>> + 'a {
        let i = self.path.partition_point(|span| span.to < seq);
        let path = self.path[i..].iter().flat_map(move |span| span.from.max(seq)..=span.to);
        path.map(move |at| Ok((at, source.head(at)?)))
    }

    /// The same from `seq` back, the newest first.
    pub fn back<'a, S: EntrySource + ?Sized>(
        &'a self,
        source: &'a S,
        seq: Seq,
    ) -> impl Iterator<Item = Result<(Seq, Head), S::Error>> + 'a {
        let end = self.path.partition_point(|span| span.from <= seq);
        let path = self.path[..end].iter().rev().flat_map(move |span| (span.from..=span.to.min(seq)).rev());
        path.map(move |at| Ok((at, source.head(at)?)))
    }

    /// First item at or after `seq` on the path.
    pub(crate) fn item_from<S: EntrySource + ?Sized>(
        &self,
        source: &S,
        seq: Seq,
    ) -> Result<Option<(Seq, Head)>, S::Error> {
        self.forth(source, seq).find(is_item_or_error).transpose()
    }

    /// Last item on the path.
    fn last_item<S: EntrySource + ?Sized>(&self, source: &S) -> Result<Option<(Seq, Head)>, S::Error> {
        self.back(source, Seq::MAX).find(is_item_or_error).transpose()
    }

    /// The whole unit around `seq`: a message alone, or a call with all its results. `None` for what is not an item.
    pub fn unit<S: EntrySource + ?Sized>(&self, source: &S, seq: Seq) -> Result<Option<Span>, S::Error> {
        if !self.on_path(seq) {
            return Ok(None);
        }
        let head = source.head(seq)?;
        if !head.kind.is_item() {
            return Ok(None);
        }
        let mut unit = Span::new(head.unit, seq);
        while let Some((at, next)) = self.item_from(source, unit.to + 1)? {
            if next.unit != unit.from || next.kind != Kind::Tool {
                break;
            }
            unit.to = at;
        }
        Ok(Some(unit))
    }
}

fn is_item_or_error<E>(found: &Result<(Seq, Head), E>) -> bool {
    found.as_ref().map_or(true, |(_, head)| head.kind.is_item())
}

/// A call that waits for its result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingCall {
    /// The call.
    pub id: String,
    /// The tool.
    pub name: String,
}

impl std::fmt::Display for WaitingCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.id, self.name)
    }
}

impl OpenUnit {
    /// True when call `id` waits.
    pub fn waits_for(&self, id: &str) -> bool {
        self.calls.iter().any(|call| call.id == id)
    }

    fn take(&mut self, seq: Seq, message: &crate::Message) {
        if let Some(outcome) = message.outcome() {
            self.calls.retain(|call| call.id != outcome.call_id);
        } else {
            self.unit = seq;
            let waiting =
                |call: &Call| Arc::new(WaitingCall { id: call.id.clone(), name: call.name.clone() });
            self.calls = message.calls().map(waiting).collect();
        }
        if self.calls.is_empty() {
            self.unit = 0;
        }
    }
}
