//! The only serialised truth: entries, one JSON object per line.
//!
//! A line has `seq` and either a `role` (a message, with the fields people know from chat APIs) or an `op`. Entries
//! hold operands and results ("these entries are stood for by this text"), never recipes ("drop half"), so that
//! folding them later needs no rule that may have changed since. `docs/journal.md` describes each line byte for byte.

mod line;

pub(crate) use line::LineWriter;
pub use line::{BadLine, decode, encode};

use crate::message::Message;
use crate::raw::RawJson;
use crate::{Seq, Span, ThreadId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Version of the line format that this code writes, and the newest it reads.
pub const VERSION: u32 = 1;

/// An entry in its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its number.
    pub seq: Seq,
    /// When it was written, RFC 3339; for people, never for identity or order.
    pub timestamp: String,
    /// Tokens it adds to the view, counted by the session's meter.
    pub tokens: u32,
    /// What it is.
    pub entry: Entry,
}

/// Everything that can happen to a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// System prompt, tool definitions, parameters; the last one wins.
    Setup(Setup),
    /// A message; with a [`Reply`] when a provider said it.
    Message(Message, Option<Reply>),
    /// In place of this, show that.
    Edit(Edit),
    /// Undo one edit (or one revert), keep everything said since.
    Revert {
        /// The edit or revert to undo.
        target: Seq,
    },
    /// Go on as if nothing after `to` had happened.
    Rewind {
        /// The last entry that counts; 0 for none.
        to: Seq,
    },
    /// These entries survive every edit, byte for byte.
    Pin {
        /// A whole message, or a call with its results.
        span: Span,
    },
    /// Takes a pin back.
    Unpin {
        /// As it was pinned.
        span: Span,
    },
    /// A child thread started here, or changed its state.
    Anchor(Anchor),
    /// A request is about to leave.
    Sent(Sent),
    /// A request brought no message: lost in a crash, refused, or answered out of band.
    Lost(Reply),
    /// The thread ended or paused.
    Close(Close),
    /// What a spawned thread has of the window, and what it sees of the threads above it; the last one wins.
    Share(Share),
    /// What was done in the thread, told for its parent; the last one wins.
    Chronicle(Chronicle),
    /// Words for another thread of the session, which takes them in before its next request.
    Tell {
        /// For whom.
        to: ThreadId,
        /// The words.
        text: String,
    },
    /// What another thread told up to there was taken in.
    Heard {
        /// Who told.
        from: ThreadId,
        /// Its last [`Entry::Tell`] that was taken in.
        upto: Seq,
    },
    /// How far the work in the thread is; no model sees it. The last one about the same thing counts.
    Note {
        /// What it is about, such as `playbook`.
        about: String,
        /// What is noted, a JSON value.
        value: RawJson,
    },
}

/// What stands before the conversation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Setup {
    /// The system prompt.
    pub system: Option<String>,
    /// Tool definitions, a JSON array in `dialect`'s form.
    pub tools: Option<RawJson>,
    /// Other parameters of the request, a JSON object.
    pub params: Option<RawJson>,
    /// Whose form `tools` and `params` have.
    pub dialect: Option<String>,
}

/// Which rung of the ladder made an edit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditKind {
    /// A summary stands for a span.
    Condense,
    /// A marker stands for a span.
    Truncate,
    /// Placeholders stand for the content of single entries.
    Trim,
}

crate::names! {
    /// The `op` of its line.
    EditKind { Condense = "condense", Truncate = "truncate", Trim = "trim" }
}

/// In place of this, show that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// Which rung.
    pub kind: EditKind,
    /// Spans no longer shown, ascending and apart; empty for a trim.
    pub hide: Vec<Span>,
    /// Shown where the last hidden span ended.
    pub show: Vec<Show>,
    /// Entries that stay, with other content.
    pub replace: Vec<Replace>,
    /// Why, in numbers.
    pub cause: Cause,
}

impl Edit {
    /// The smallest span that holds everything the edit touches.
    pub fn hull(&self) -> Option<Span> {
        let seqs = self.hide.iter().flat_map(|s| [s.from, s.to]).chain(self.replace.iter().map(|r| r.seq));
        let (from, to) = seqs.fold((Seq::MAX, 0), |(lo, hi), seq| (lo.min(seq), hi.max(seq)));
        (to > 0).then_some(Span { from, to })
    }

    /// Tokens of what it shows in place of what it hides.
    pub fn shown_tokens(&self) -> u32 {
        self.show.iter().map(|show| show.tokens).sum()
    }
}

/// What kind of text stands for what was hidden.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShowKind {
    /// Carried over word for word.
    Retain,
    /// Told in short.
    Summary,
    /// Only says that something is not shown.
    Marker,
}

crate::names! {
    /// The word for it.
    ShowKind { Retain = "retain", Summary = "summary", Marker = "marker" }
}

/// A text in place of a span.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Show {
    /// What it is.
    pub kind: ShowKind,
    /// The text.
    pub text: String,
    /// Its tokens.
    pub tokens: u32,
}

/// Other content for one entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Replace {
    /// The entry.
    pub seq: Seq,
    /// What it now says.
    pub text: String,
    /// Tokens of the whole entry saying that.
    pub tokens: u32,
}

/// Why an edit was made.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cause {
    /// The rule, such as `soft_mark` or `by_hand`.
    pub rule: String,
    /// Tokens of the view before.
    #[serde(default)]
    pub before: u64,
    /// Tokens of the view after.
    #[serde(default)]
    pub after: u64,
    /// The model that wrote the text, when one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What that took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Anything else worth knowing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a provider counted, normalised so that the sum of the four is the total.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TokenUsage"))]
pub struct Usage {
    /// Read and paid in full.
    #[serde(default)]
    pub input_tokens: u64,
    /// Written by the model.
    #[serde(default)]
    pub output_tokens: u64,
    /// Read and put into the provider's cache.
    #[serde(default)]
    pub cache_creation_tokens: u64,
    /// Read from the provider's cache.
    #[serde(default)]
    pub cache_read_tokens: u64,
}

impl Usage {
    /// Everything that was read or written.
    pub const fn total(&self) -> u64 {
        self.input_tokens + self.output_tokens + self.cache_creation_tokens + self.cache_read_tokens
    }
}

/// How far a child thread has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Done.
    Completed,
    /// Ended by an error.
    Failed,
    /// Ended by its user.
    Stopped,
    /// Ended by a crash or by its parent.
    Aborted,
    /// Not ended; waits to go on.
    Paused,
}

crate::names! {
    /// The word in the journal.
    Ending {
        Completed = "completed", Failed = "failed", Stopped = "stopped", Aborted = "aborted",
        Paused = "paused",
    }
}

/// A child thread, seen from its parent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anchor {
    /// The child.
    pub thread: ThreadId,
    /// What people call it.
    pub label: Option<String>,
    /// How it ended; active while absent.
    pub ending: Option<Ending>,
    /// What the parent's model is shown.
    pub text: String,
    /// What the child itself and those below it are shown instead; only the first anchor of a child says it.
    pub brief: Option<String>,
    /// The child's first anchor, when this one only changes what that one says.
    pub first: Option<Seq>,
}

/// A request that is about to leave.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sent {
    /// Digest of the request's bytes.
    pub digest: String,
    /// The model asked.
    pub model: String,
    /// Tokens of the view as we count them.
    #[serde(default)]
    pub context_tokens: u64,
    /// What for, when not for the conversation itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// How far the client's own transcript went, for a request that a client sent through the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<TranscriptMark>,
}

/// Where a client's transcript stood when it was sent, and which of its elements are which entries.
///
/// A client sends everything each time. The mark says how much of it is known: by it the next request is placed, and by it
/// the client's own bytes are found again for what is still shown.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TranscriptMark {
    /// The first element that was taken in with this request. Those before it, from where the mark before ended, are the
    /// reply as the client tells it.
    pub from: u32,
    /// Elements of the transcript, all in all.
    pub elements: u32,
    /// Running digest over them, by which the request is found again. Empty where the elements are not the whole
    /// transcript (they follow on a `previous_response_id`): such a mark is never found by it.
    pub digest: String,
    /// How the elements from `from` on became entries, in order: so many elements are so many entries, so many times.
    /// The entries are the messages of this thread since the reply before, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<ElementGroup>,
    /// True for a request that only the gateway knows of: it answered calls of its own tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inner: bool,
    /// True when the thread shows, here or before, what the client does not tell: words added by hand, anchors, answers of
    /// our own tools. Then the client's bytes alone are not the view. Kept from mark to mark.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

/// Elements of a client's transcript that are entries of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "[u32; 3]", into = "[u32; 3]")]
pub struct ElementGroup {
    /// Elements; 0 for entries that the client does not know of.
    pub elements: u32,
    /// Entries.
    pub entries: u32,
    /// How often in a row.
    pub times: u32,
}

impl From<[u32; 3]> for ElementGroup {
    fn from([elements, entries, times]: [u32; 3]) -> Self {
        Self { elements, entries, times }
    }
}

impl From<ElementGroup> for [u32; 3] {
    fn from(group: ElementGroup) -> Self {
        [group.elements, group.entries, group.times]
    }
}

/// What came back for a request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Reply {
    /// The [`Sent`] entry it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Seq>,
    /// The model that answered, as it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it took, as the provider says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why it stopped: `stop`, `length`, `tool_calls`, `lost`, …
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub finish: String,
    /// What went wrong, when something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What had been said when it broke off. Kept, and not shown to the model: it was never finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<String>,
    /// The name by which the gateway finds the reply again when a client only names it: a digest of the provider's own id
    /// and of who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// How a thread ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Close {
    /// In what way.
    pub ending: Ending,
    /// Its result, or the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// What was done in a thread, told for its parent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Chronicle {
    /// The words.
    pub text: String,
    /// First and last entry it tells of.
    pub covers: [Seq; 2],
    /// True when the thread did not come to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Who wrote it: a model, `digest`, or `by_hand`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What that took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Entry {
    /// True when the entry changes which other entries are seen or how; the fold reads only these.
    pub fn is_op(&self) -> bool {
        match self {
            Self::Message(message, _) => message.replaces().is_some(),
            Self::Sent(_) | Self::Lost(_) | Self::Note { .. } => false,
            _ => true,
        }
    }
}

// What a spawned thread has of the window, and what it sees of the threads above it.
//
// Both are said in one entry, the first of its journal, so that its view follows from its own journal and from moments
// of journals that never change. A slice names what is shown, not how it was chosen: choosing is done once, by
// [`slice`](mod@crate::slice), and a later choice is a later entry.

/// A part of a window, between 0.01 and 0.99, exact to a millionth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ratio(u32);

/// One, in millionths.
const WHOLE: u32 = 1_000_000;

/// Not a part of a window.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("a thread cannot have {0} of its parent's window; give it between 0.01 and 0.99, such as 0.8")]
pub struct BadRatio(pub f64);

impl Ratio {
    /// `of` one.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn new(of: f64) -> Result<Self, BadRatio> {
        if (0.01..=0.99).contains(&of) {
            Ok(Self((of * f64::from(WHOLE)).round() as u32))
        } else {
            Err(BadRatio(of))
        }
    }

    /// As a number.
    pub fn get(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// That part of `whole`, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.0) / u128::from(WHOLE);
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

/// Four fifths: what a child has of its parent's window, unless said otherwise.
impl Default for Ratio {
    fn default() -> Self {
        Self(WHOLE / 5 * 4)
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.get())
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.get())
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

/// What a spawned thread has of the window, and what it sees of the threads above it; the last one wins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// The thread it was said for: its anchor, and those of the threads above it, are shown to it in brief.
    pub thread: ThreadId,
    /// The window that was shared out, in tokens as the session counts them.
    pub window: u64,
    /// What it sees of the threads above it, the root's first.
    pub slices: Vec<Slice>,
    /// True when what the slices leave of their shares is lent to it.
    pub lends: bool,
    /// Most tokens of its anchor; as many as usual when absent.
    pub anchor_tokens: Option<u32>,
    /// What the writer of the chronicle is asked, at the end.
    pub chronicle_prompt: Option<String>,
    /// The process that ends it by ending itself; none for a thread that outlives processes.
    pub held_by: Option<String>,
}

/// What is seen of one thread above.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Slice {
    /// The thread.
    pub thread: ThreadId,
    /// Its last entry that counts.
    pub at: Seq,
    /// What the next thread down has of its window; the rest is what this slice may take.
    pub ratio: Ratio,
    /// The items of its view at that moment that are shown: messages by their own number, a summary by its edit's.
    pub keep: Vec<Span>,
    /// Of those, the ones that are shown with other content, because they were too large.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<Replace>,
    /// Says, before them, whose they are.
    pub head: String,
    /// Tokens of all that: heading, items, and its part of the system prompt and the tools.
    pub tokens: u32,
}

impl Share {
    /// Tokens of all slices.
    pub fn tokens(&self) -> u32 {
        self.slices.iter().fold(0, |sum, slice| sum.saturating_add(slice.tokens))
    }

    /// True when `thread` is the thread itself or one above it.
    pub fn is_within(&self, thread: &ThreadId) -> bool {
        *thread == self.thread || self.slices.iter().any(|slice| slice.thread == *thread)
    }

    /// How far below the root it is.
    pub fn depth(&self) -> usize {
        self.slices.len()
    }
}

impl Slice {
    /// True when the item with this number is shown.
    pub fn keeps(&self, item: Seq) -> bool {
        let i = self.keep.partition_point(|span| span.to < item);
        self.keep.get(i).is_some_and(|span| span.holds(item))
    }

    /// What is shown in place of the item with this number; none for one that is shown as it is.
    pub fn replaced(&self, item: Seq) -> Option<&Replace> {
        self.replace.iter().find(|swap| swap.seq == item)
    }
}
