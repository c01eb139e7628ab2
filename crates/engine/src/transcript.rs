//! A conversation as people read it: who said what, when, what it takes of the window, and what stands for what.
//!
//! Two ways through a thread: what the model sees ([`Thread::each_seen`]) and everything that was said ([`Thread::each_said`]), with
//! what is hidden marked as such. Items are made one at a time from the journal and the view, so a thread of any length is read in
//! flat memory. How they look is the business of those who print them, and of [`markdown`] and [`html`].

pub mod html;
pub mod markdown;
#[cfg(feature = "client")]
mod request;

use crate::error::{Error, Result};
use crate::thread::Thread;
use komado_core::head::EntrySource;
use komado_core::journal::{Anchor, Close, Edit, Entry, Record, Setup, Show, ShowKind};
use komado_core::message::{ImageSource, Message, MessagePart, OutputRef, Role, ToolOutcome};
use komado_core::raw::RawJson;
use komado_core::view::{ItemSource, ShownItem, ViewPiece};
use komado_core::{Kind, Seq, Span, View};
use komado_store::Error as StoreError;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// One thing in a conversation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TranscriptItem {
    /// Its entry.
    pub seq: Seq,
    /// The thread above that it is from; this one when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Who speaks, or what stands here.
    pub role: TranscriptRole,
    /// The speaker's own name, the tool, or the child thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it was journaled.
    pub timestamp: String,
    /// Its tokens as Komado counts them.
    pub tokens: u32,
    /// True when no edit may hide it.
    pub pinned: bool,
    /// What is said, in order.
    pub parts: Vec<TranscriptPart>,
    /// What a tool's result says beside its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<TranscriptResult>,
    /// The edit that shows this: a summary or marker, or other content for one entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit: Option<TranscriptEdit>,
    /// The edit that hides it from the model, among everything said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_by: Option<Seq>,
    /// True when a rewind left it behind.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub left_behind: bool,
}

/// Who speaks, or what stands in a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum TranscriptRole {
    /// The system prompt and what comes with it, or a message of the system.
    System,
    /// The developer of the agent.
    Developer,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// A summary in place of a span.
    Summary,
    /// A marker in place of a span.
    Marker,
    /// A child thread that started here.
    Thread,
    /// The heading over what is seen of a thread above.
    Above,
    /// The end of the thread.
    End,
}

komado_core::names! {
    /// The word for it.
    TranscriptRole {
        System = "system", Developer = "developer", User = "user", Assistant = "assistant", Tool = "tool",
        Summary = "summary", Marker = "marker", Thread = "thread", Above = "above", End = "end",
    }
}

/// A piece of what is said.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum TranscriptPart {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// What the model thought before it spoke.
    Thought {
        /// The thought, as far as it is shown.
        text: String,
    },
    /// A call of a tool.
    Call {
        /// Its id.
        id: String,
        /// The tool.
        tool: String,
        /// The arguments, as the model wrote them.
        arguments: String,
    },
    /// A picture.
    Image {
        /// What is known of it.
        about: String,
    },
    /// The tools that are offered.
    Tools {
        /// How many.
        count: u64,
    },
    /// Something that only one API understands.
    Other {
        /// Whose it is.
        dialect: String,
    },
}

/// What a tool's result says beside its text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TranscriptResult {
    /// The call that it answers.
    pub call: String,
    /// True when the tool reported an error.
    pub is_error: bool,
    /// True when no tool answered.
    pub interrupted: bool,
    /// The id of the whole output, where the model is shown a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Its lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_lines: Option<u64>,
    /// Its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
}

/// An edit, and what it did to the window.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TranscriptEdit {
    /// The edit's entry, which `revert` takes.
    pub seq: Seq,
    /// `condense`, `truncate` or `trim`.
    pub kind: String,
    /// The entries it hides or changes, such as `2..240`.
    pub covers: String,
    /// Tokens of what was said there.
    pub before: u64,
    /// Tokens of what is shown in its place.
    pub after: u64,
    /// Why it was made.
    pub rule: String,
    /// What the model is shown in place of one entry, where the item says what was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shows: Option<String>,
}

impl TranscriptItem {
    fn new(record: &Record, role: TranscriptRole, parts: Vec<TranscriptPart>) -> Self {
        Self {
            seq: record.seq,
            thread: None,
            role,
            name: None,
            timestamp: record.timestamp.clone(),
            tokens: record.tokens,
            pinned: false,
            parts,
            result: None,
            edit: None,
            hidden_by: None,
            left_behind: false,
        }
    }

    fn text(record: &Record, role: TranscriptRole, text: &str) -> Self {
        Self::new(record, role, vec![TranscriptPart::Text { text: text.to_owned() }])
    }

    fn message(record: &Record, message: &Message) -> Self {
        let role = match message.role {
            Role::System => TranscriptRole::System,
            Role::Developer => TranscriptRole::Developer,
            Role::User => TranscriptRole::User,
            Role::Assistant => TranscriptRole::Assistant,
            Role::Tool => TranscriptRole::Tool,
        };
        let (mut parts, mut result, mut tool) = (Vec::new(), None, None);
        for piece in &message.parts {
            match piece {
                MessagePart::Result(outcome) => {
                    parts.extend(outcome.content.iter().filter_map(part));
                    tool = outcome.name.clone();
                    result = Some(told(outcome));
                }
                piece => parts.extend(part(piece)),
            }
        }
        Self { name: message.name.clone().or(tool), result, ..Self::new(record, role, parts) }
    }

    fn setup(record: &Record, setup: &Setup) -> Self {
        let text = setup.system.iter().map(|text| TranscriptPart::Text { text: text.clone() });
        let count = |tools: &RawJson| {
            serde_json::from_str::<Vec<serde::de::IgnoredAny>>(tools.get())
                .map_or(0, |tools| tools.len() as u64)
        };
        let tools = setup.tools.iter().map(|tools| TranscriptPart::Tools { count: count(tools) });
        Self::new(record, TranscriptRole::System, text.chain(tools).collect())
    }

    fn anchor(record: &Record, anchor: &Anchor) -> Self {
        let name = Some(anchor.thread.to_string());
        Self { name, ..Self::text(record, TranscriptRole::Thread, &anchor.text) }
    }

    fn edit(record: &Record, edit: &Edit, before: u64) -> Self {
        let is_summary = edit.show.iter().any(|show| show.kind == ShowKind::Summary);
        let role = if is_summary { TranscriptRole::Summary } else { TranscriptRole::Marker };
        let text = |show: &Show| TranscriptPart::Text { text: show.text.clone() };
        let after = u64::from(edit.shown_tokens());
        Self {
            edit: Some(TranscriptEdit { before, after, ..TranscriptEdit::of(record.seq, edit) }),
            ..Self::new(record, role, edit.show.iter().map(text).collect())
        }
    }
}

impl TranscriptEdit {
    fn of(seq: Seq, edit: &Edit) -> Self {
        let spans: Vec<String> = edit.hide.iter().map(ToString::to_string).collect();
        let (kind, rule) = (edit.kind.name().to_owned(), edit.cause.rule.clone());
        Self { seq, kind, covers: spans.join(","), before: 0, after: 0, rule, shows: None }
    }

    /// What an edit makes of one entry.
    fn trim(seq: Seq, edit: &Edit, record: &Record, after: u32) -> Self {
        let (before, after) = (u64::from(record.tokens), u64::from(after));
        Self { covers: record.seq.to_string(), before, after, ..Self::of(seq, edit) }
    }
}

fn part(piece: &MessagePart) -> Option<TranscriptPart> {
    Some(match piece {
        MessagePart::Text { text, .. } => TranscriptPart::Text { text: text.clone() },
        MessagePart::Reasoning { text, .. } if text.is_empty() => return None,
        MessagePart::Reasoning { text, .. } => TranscriptPart::Thought { text: text.clone() },
        MessagePart::Call(call) => TranscriptPart::Call {
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
        },
        MessagePart::Image { source: ImageSource::Url { url }, .. } => {
            let about = if url.starts_with("data:") { "inline" } else { url.as_str() };
            TranscriptPart::Image { about: about.to_owned() }
        }
        MessagePart::Image { source: ImageSource::Blob { media_type, byte_size, .. }, .. } => {
            let bytes = komado_core::notation::grouped(*byte_size);
            TranscriptPart::Image { about: format!("{media_type}, {bytes} bytes") }
        }
        MessagePart::Opaque(opaque) => TranscriptPart::Other { dialect: opaque.dialect.clone() },
        MessagePart::Result(_) => return None,
    })
}

fn told(outcome: &ToolOutcome) -> TranscriptResult {
    let output = outcome.output_ref.clone();
    let OutputRef { byte_size, line_count, .. } =
        output.clone().unwrap_or(OutputRef { id: String::new(), byte_size: None, line_count: None });
    TranscriptResult {
        call: outcome.call_id.clone(),
        is_error: outcome.is_error,
        interrupted: outcome.interrupted,
        output: output.map(|output| output.id),
        output_lines: line_count,
        output_bytes: byte_size,
    }
}

/// Where entries are looked up.
trait Source: EntrySource<Error = StoreError> {}
impl<S: EntrySource<Error = StoreError> + ?Sized> Source for S {}

/// What takes items; its failure ends the reading.
type EachItem<'a, E> = dyn FnMut(TranscriptItem) -> std::result::Result<(), E> + 'a;

impl Thread<'_> {
    /// What the model sees in a view of this thread, the setup first; what a spawned thread sees of those above it comes before
    /// its own.
    pub fn each_seen<E: From<Error> + From<StoreError>>(
        &self,
        view: &View,
        each: &mut EachItem<'_, E>,
    ) -> std::result::Result<(), E> {
        let source = self.source();
        let share = view.share_in(source)?;
        for slice in share.iter().flat_map(|share| &share.slices) {
            let above = source.above(&slice.thread)?;
            if let Some(seq) = View::fold(&*above, slice.at)?.setup() {
                let thread = Some(slice.thread.to_string());
                each(TranscriptItem { thread, ..entry_of(&*above, seq)? })?;
            }
        }
        if let Some(seq) = view.setup() {
            each(entry_of(source, seq)?)?;
        }
        for (share, seq) in share.iter().zip(view.share()) {
            let begun = source.record(seq)?;
            for slice in &share.slices {
                let thread = Some(slice.thread.to_string());
                let heading = TranscriptItem::text(&begun, TranscriptRole::Above, &slice.head);
                each(TranscriptItem {
                    seq: slice.at,
                    tokens: slice.tokens,
                    thread: thread.clone(),
                    ..heading
                })?;
                let above = source.above(&slice.thread)?;
                let view = View::fold(&*above, slice.at)?;
                view.try_each_item(&*above, |shown| -> std::result::Result<(), E> {
                    if !slice.keeps(shown.seq) {
                        return Ok(());
                    }
                    let mut item = seen(&view, &*above, &shown)?;
                    if let Some(swap) = slice.replaced(shown.seq) {
                        item.parts = vec![TranscriptPart::Text { text: swap.text.clone() }];
                        item.tokens = swap.tokens;
                    }
                    each(TranscriptItem { thread: thread.clone(), ..item })
                })?;
            }
        }
        view.try_each_item(source, |shown| each(seen(view, source, &shown)?))
    }

    /// Everything that was said from an entry until a view of this thread. An edit stands before the first entry that it hides.
    pub fn each_said<E: From<Error> + From<StoreError>>(
        &self,
        from: Seq,
        view: &View,
        each: &mut EachItem<'_, E>,
    ) -> std::result::Result<(), E> {
        let source = self.source();
        let edits: Vec<(Seq, &[Span])> = view.edits().map(|edit| (edit, view.hidden_by(edit))).collect();
        let hides = |seq: Seq| {
            let later = edits.iter().rev();
            later.filter(|(_, spans)| spans.iter().any(|span| span.holds(seq))).map(|(edit, _)| *edit).next()
        };
        let trims: HashMap<Seq, (Seq, u32)> = view.pieces().iter().filter_map(swapped).collect();
        let mut told = HashSet::new();
        for seq in from..=view.last() {
            let head = EntrySource::head(source, seq)?;
            let is_said = head.kind.is_said() || matches!(head.kind, Kind::Setup | Kind::Close);
            if !is_said {
                continue;
            }
            let record = source.record(seq)?;
            let Some(mut item) = said(&record) else { continue };
            item.left_behind = !view.on_path(seq);
            item.pinned = view.is_pinned(seq);
            if head.kind.is_item() && !item.left_behind && !view.shows(seq) {
                item.hidden_by = hides(seq);
            }
            if let Some(edit) = item.hidden_by
                && told.insert(edit)
            {
                each(edit_of(view, source, edit)?)?;
            }
            if let Some((by, tokens)) = trims.get(&seq)
                && let Entry::Edit(edit) = source.record(*by)?.entry
            {
                let shows = edit.replace.iter().find(|swap| swap.seq == seq).map(|swap| swap.text.clone());
                item.edit =
                    Some(TranscriptEdit { shows, ..TranscriptEdit::trim(*by, &edit, &record, *tokens) });
            }
            each(item)?;
        }
        Ok(())
    }
}

fn swapped(piece: &ViewPiece) -> Option<(Seq, (Seq, u32))> {
    match *piece {
        ViewPiece::Replaced { seq, by, tokens } => Some((seq, (by, tokens))),
        ViewPiece::Run(_) | ViewPiece::Shown { .. } => None,
    }
}

fn entry_of<S: Source + ?Sized>(source: &S, seq: Seq) -> Result<TranscriptItem> {
    let record = source.record(seq)?;
    Ok(said(&record).unwrap_or_else(|| TranscriptItem::new(&record, TranscriptRole::System, Vec::new())))
}

/// What an entry says, unless it only keeps the books.
fn said(record: &Record) -> Option<TranscriptItem> {
    match &record.entry {
        Entry::Setup(setup) => Some(TranscriptItem::setup(record, setup)),
        Entry::Message(message, _) => Some(TranscriptItem::message(record, message)),
        Entry::Anchor(anchor) => Some(TranscriptItem::anchor(record, anchor)),
        Entry::Close(Close { ending, result }) => {
            let name = Some(ending.name().to_owned());
            let text = result.as_deref().unwrap_or_default();
            Some(TranscriptItem { name, ..TranscriptItem::text(record, TranscriptRole::End, text) })
        }
        _ => None,
    }
}

/// An edit that shows something in place of spans.
fn edit_of<S: Source + ?Sized>(view: &View, source: &S, seq: Seq) -> Result<TranscriptItem> {
    let record = source.record(seq)?;
    match &record.entry {
        Entry::Edit(edit) => Ok(TranscriptItem::edit(&record, edit, tokens_in(view, source, &edit.hide)?)),
        _ => Ok(TranscriptItem::new(&record, TranscriptRole::Marker, Vec::new())),
    }
}

/// Tokens of what was said in some spans, of what is on the path.
fn tokens_in<S: Source + ?Sized>(view: &View, source: &S, spans: &[Span]) -> Result<u64> {
    let mut tokens = 0;
    for span in spans {
        for path in view.path() {
            let (from, to) = (span.from.max(path.from), span.to.min(path.to));
            if from <= to {
                let (before, after) = (source.head(from - 1)?, source.head(to)?);
                tokens += after.sums.iter().sum::<u64>() - before.sums.iter().sum::<u64>();
            }
        }
    }
    Ok(tokens)
}

/// One thing that a view shows.
fn seen<S: Source + ?Sized>(view: &View, source: &S, shown: &ShownItem) -> Result<TranscriptItem> {
    let record = source.record(shown.seq)?;
    let item = match (shown.what, &record.entry) {
        (ItemSource::Shown, _) => return edit_of(view, source, shown.seq),
        (ItemSource::Replaced(by), Entry::Message(message, _)) => {
            let edit = match source.record(by)?.entry {
                Entry::Edit(edit) => edit,
                Entry::Message(late, _) => {
                    let now = TranscriptItem::message(&record, &late);
                    return Ok(TranscriptItem { tokens: shown.tokens, ..now });
                }
                _ => return entry_of(source, shown.seq),
            };
            let text = edit.replace.iter().find(|swap| swap.seq == shown.seq).map_or("", |swap| &swap.text);
            let now = TranscriptItem::message(&record, &message.saying(text));
            TranscriptItem { edit: Some(TranscriptEdit::trim(by, &edit, &record, shown.tokens)), ..now }
        }
        (ItemSource::Replaced(by), Entry::Anchor(_)) => match source.record(by)?.entry {
            Entry::Anchor(now) => TranscriptItem::anchor(&record, &now),
            _ => entry_of(source, shown.seq)?,
        },
        _ => entry_of(source, shown.seq)?,
    };
    Ok(TranscriptItem { tokens: shown.tokens, pinned: view.is_pinned(shown.seq), ..item })
}
