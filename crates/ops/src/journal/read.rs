//! What was said, as it stands in the journal and as the model sees it.

use super::columns;
use crate::address::{AtEntry, AtMoment, AtThread};
use crate::page::{self, USUAL};
use crate::stream::{StreamForm, StreamSink};
use crate::{Interfaces, OpResult, Operation, OperationContext, OperationLabel, Route, Streamed};
use komado_core::message::Message;
use komado_core::openai::{self, BlobReader};
use komado_core::{Seq, SessionId, View, notation};
use komado_engine::transcript::TranscriptItem;
use komado_engine::{Error, Thread};
use komado_store::{Journal, OpenMode, Store};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::io::{self, Write};

/// Read one entry of a journal.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct GetEntry {
    /// The entry.
    #[serde(flatten)]
    pub at: AtEntry,
}

/// A line of a journal, as it stands there.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct JournalLine {
    /// The line.
    pub line: Box<RawValue>,
    #[serde(skip)]
    moment: String,
}

impl JournalLine {
    /// The entry `seq` of a journal.
    pub(super) fn read(journal: &dyn Journal, seq: Seq, moment: String) -> OpResult<Self> {
        let line = journal.line(seq)?;
        Ok(Self { line: serde_json::from_slice(&line)?, moment })
    }
}

/// A line of a journal; what else is in it depends on its kind, and `docs/journal.md` describes it.
#[derive(JsonSchema)]
#[schemars(rename = "Entry")]
#[allow(dead_code, reason = "the line itself is sent")]
struct Shape {
    /// Its number.
    seq: Seq,
}

impl JsonSchema for JournalLine {
    fn schema_name() -> Cow<'static, str> {
        Shape::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Shape::json_schema(generator)
    }
}

impl Operation for GetEntry {
    const ABOUT: OperationLabel = OperationLabel::read("entry", "Read one entry of a journal");
    const INTERFACES: Interfaces = Interfaces::only_http(
        Route::get("journal", "/sessions/{session}/threads/{thread}/entries/{seq}").tagged(),
        "`komado log SESSION@SEQ -n 1 --json` prints it",
    )
    .not_mcp("`tool_output_cache` reads any entry, @SEQ, as text");
    type Output = JournalLine;

    fn run(self, context: &OperationContext) -> OpResult<JournalLine> {
        let (found, seq) = (context.find(&self.at)?, self.at.seq);
        let journal = context.engine.store().open(&found.session, &found.thread, OpenMode::Read)?;
        let (thread, last) = (&found.thread, journal.last());
        if seq == 0 || seq > last {
            return Err(Error::NoMoment { thread: format!("{}/{thread}", found.session), seq, last }.into());
        }
        JournalLine::read(&*journal, seq, format!("{thread}@{seq}"))
    }

    fn moment(entry: &JournalLine) -> Option<String> {
        Some(entry.moment.clone())
    }
}

/// Bytes of a page; it ends after the entry that goes over them.
const PAGE: usize = 4 << 20;

/// Read a journal by pages, each entry as it stands there.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct EntriesOf {
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
    /// The first.
    #[schemars(range(min = 1))]
    pub from: Option<Seq>,
    /// The last.
    #[schemars(range(min = 1))]
    pub to: Option<Seq>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// A page of a journal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct JournalPage {
    /// Lines of the journal; docs/journal.md describes them.
    pub items: Vec<JournalLine>,
    /// The cursor of the next page; null at the end.
    pub next: Option<String>,
    #[serde(skip)]
    moment: String,
}

impl Operation for EntriesOf {
    const ABOUT: OperationLabel = OperationLabel::read("entries", "Read a journal by pages");
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "log --json",
        Route::get("journal", "/sessions/{session}/threads/{thread}/entries").tagged(),
    )
    .not_mcp("`log` tells the same in fewer words");
    type Output = JournalPage;

    fn run(self, context: &OperationContext) -> OpResult<JournalPage> {
        let found = context.find(&self.at)?;
        let what = format!("entries of {}/{}", found.session, found.thread);
        let cursor: Option<Seq> = page::after(&what, self.cursor.as_deref())?;
        let journal = context.engine.store().open(&found.session, &found.thread, OpenMode::Read)?;
        let moment = format!("{}@{}", found.thread, journal.last());
        let end = self.to.unwrap_or(Seq::MAX).min(journal.last());
        let limit = self.limit.unwrap_or(USUAL) as usize;
        let mut seq = cursor.or(self.from).unwrap_or(1);
        let (mut items, mut bytes) = (Vec::new(), 0);
        while seq <= end && items.len() < limit && bytes < PAGE {
            let entry = JournalLine::read(&*journal, seq, String::new())?;
            bytes += entry.line.get().len();
            items.push(entry);
            seq += 1;
        }
        let next = (seq <= end).then(|| page::cursor(&what, &seq)).transpose()?;
        Ok(JournalPage { items, next, moment })
    }

    fn moment(entries: &JournalPage) -> Option<String> {
        Some(entries.moment.clone())
    }
}

/// Entries in one answer, unless more are asked for.
const ENTRIES: u32 = 50;

/// List what happened in a thread, one line for each entry, with its number. Entries that a rewind left behind begin with #.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Log {
    /// The thread; with an entry, everything up to there.
    #[serde(flatten)]
    pub at: AtMoment,
    /// First entry; the last ones when left out.
    #[schemars(range(min = 1))]
    pub from: Option<Seq>,
    /// Entries at most; 50 when left out.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// Give long texts whole.
    #[serde(default)]
    pub full: bool,
    /// Columns of a line, where texts are not given whole; 160 when left out.
    #[schemars(range(min = 20, max = 10000))]
    pub width: Option<u32>,
    /// Give digests and ids that only programs compare, too.
    #[serde(default)]
    pub verbose: bool,
}

/// Entries, one line each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Logged {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The first entry.
    pub first: Seq,
    /// The last one.
    pub last: Seq,
    /// The entry to read on from; null at the end.
    pub next: Option<Seq>,
    /// The last entry that could be read.
    pub end: Seq,
    /// The lines.
    pub text: String,
    /// When the entry of each line was journaled.
    pub times: Vec<String>,
}

impl Operation for Log {
    const ABOUT: OperationLabel = OperationLabel::read("log", "Entries of the journal");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("log", Route::get("journal", "/sessions/{session}/threads/{thread}/log"));
    type Output = Logged;

    fn run(self, context: &OperationContext) -> OpResult<Logged> {
        let found = context.find(&self.at)?;
        let thread = context.engine.open(&found.session, &found.thread, OpenMode::Read)?;
        let end = found.seq.unwrap_or(thread.last());
        let now = thread.view_at(end)?;
        if let Some(from) = self.from.filter(|from| *from > end.max(1)) {
            thread.view_at(from)?;
        }
        let limit = self.limit.unwrap_or(ENTRIES);
        let first = self.from.unwrap_or_else(|| end.saturating_sub(limit - 1)).max(1);
        let last = end.min(first.saturating_add(limit - 1));
        let width = columns(self.full, self.width);
        let (mut lines, mut times) = (Vec::new(), Vec::new());
        for seq in first..=last {
            let record = thread.record(seq)?;
            // What a rewind left behind is set off as a comment of the notation.
            let mark = if now.on_path(seq) { "" } else { "# " };
            let width = if self.full { usize::MAX } else { width - mark.len() };
            let text = match (self.verbose, self.full) {
                (true, true) => notation::entry(&record),
                (true, false) => notation::brief(&record, width),
                (false, _) => notation::plain(&record, width),
            };
            lines.push(format!("{mark}{text}"));
            times.push(record.timestamp);
        }
        Ok(Logged {
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            first,
            last,
            next: (last < end).then_some(last + 1),
            end,
            text: lines.join("\n"),
            times,
        })
    }

    fn text(logged: &Logged) -> Option<String> {
        Some(logged.text.clone())
    }
}

/// Print the view of a thread: exactly what the model sees, now or at any moment.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct ShowView {
    /// The moment.
    #[serde(flatten)]
    pub at: AtMoment,
    /// How it is told; messages when left out, and lines for a model.
    pub format: Option<ViewFormat>,
    /// Give long texts whole, where it is told in lines.
    #[serde(default)]
    pub full: bool,
    /// Columns of a line, where texts are not given whole; 160 when left out.
    #[schemars(range(min = 20, max = 10000))]
    pub width: Option<u32>,
}

/// How a view is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ViewFormat {
    /// Messages as OpenAI's chat API has them.
    #[default]
    Messages,
    /// Its own items, each with its number and tokens.
    Items,
    /// One line for each thing the model sees, also of the setup and of the threads above.
    Lines,
    /// Each thing the model sees with who said it, when, its tokens, and the edit that shows it, if one does.
    Transcript,
}

/// A view.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "View")]
pub struct Viewed {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The moment.
    pub seq: Seq,
    /// Its tokens as Komado counts them.
    pub tokens: u64,
}

/// A part of a view.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ViewItem {
    /// A message.
    Message {
        /// The entry it is from.
        seq: Seq,
        /// The message as OpenAI's chat API has it.
        #[schemars(with = "Map<String, Value>")]
        message: Box<RawValue>,
    },
    /// An item.
    Item {
        /// The entry it is from.
        seq: Seq,
        /// Its tokens.
        tokens: u32,
        /// What it says, in the notation of the log.
        text: String,
    },
    /// An item of a transcript.
    Told(Box<TranscriptItem>),
    /// A line.
    Line {
        /// What it says, in the notation of the log.
        text: String,
    },
}

impl Streamed for ShowView {
    const ABOUT: OperationLabel = OperationLabel::read("show", "What the model sees");
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "show",
        Route::get("view", "/sessions/{session}/threads/{thread}/view").tagged(),
    );
    const FORM: StreamForm = StreamForm::Object;
    type Head = Viewed;
    type Item = ViewItem;

    fn for_model(self) -> Self {
        Self { format: self.format.or(Some(ViewFormat::Lines)), ..self }
    }

    fn run(self, context: &OperationContext, to: &mut dyn StreamSink<Self>) -> OpResult {
        let found = context.find(&self.at)?;
        let thread = context.engine.open(&found.session, &found.thread, OpenMode::Read)?;
        let view = match found.seq {
            Some(seq) => thread.view_at(seq)?,
            None => thread.view().clone(),
        };
        to.begin(Viewed {
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            seq: view.last(),
            tokens: view.tokens(),
        })?;
        match self.format.unwrap_or_default() {
            ViewFormat::Messages => messages(context, &thread, &view, to),
            ViewFormat::Items => items(&thread, &view, to),
            ViewFormat::Transcript => {
                thread.each_seen(&view, &mut |item| to.item(ViewItem::Told(Box::new(item))))
            }
            ViewFormat::Lines => lines(&thread, &view, columns(self.full, self.width), to),
        }
    }

    fn line(item: &ViewItem) -> Option<String> {
        match item {
            ViewItem::Line { text } => Some(text.clone()),
            ViewItem::Message { .. } | ViewItem::Item { .. } | ViewItem::Told(_) => None,
        }
    }

    fn moment(view: &Viewed) -> Option<String> {
        Some(format!("{}@{}", view.thread, view.seq))
    }
}

fn messages(
    context: &OperationContext,
    thread: &Thread<'_>,
    view: &View,
    to: &mut dyn StreamSink<ShowView>,
) -> OpResult {
    let mut blobs = Inline { store: context.engine.store(), session: thread.session() };
    view.pour(thread.source(), &mut |seq: Seq, message: &Message| -> OpResult {
        let mut bytes = Vec::new();
        openai::write(message, &mut blobs, &mut bytes)?;
        to.item(ViewItem::Message { seq, message: serde_json::from_slice(&bytes)? })
    })
}

fn items(thread: &Thread<'_>, view: &View, to: &mut dyn StreamSink<ShowView>) -> OpResult {
    let mut done: OpResult = Ok(());
    view.each_item(thread.source(), |item| {
        if done.is_ok() {
            let text = notation::item(&item, thread.source(), usize::MAX);
            done = text
                .map_err(Into::into)
                .and_then(|text| to.item(ViewItem::Item { seq: item.seq, tokens: item.tokens, text }));
        }
    })?;
    done
}

fn lines(thread: &Thread<'_>, view: &View, width: usize, to: &mut dyn StreamSink<ShowView>) -> OpResult {
    let mut done: OpResult = Ok(());
    notation::each_item(view, thread.source(), width, |text| {
        if done.is_ok() {
            done = to.item(ViewItem::Line { text });
        }
    })?;
    done
}

/// Pictures from the session's blobs.
struct Inline<'a> {
    store: &'a dyn Store,
    session: &'a SessionId,
}

impl BlobReader for Inline<'_> {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut blob = self.store.blob(self.session, id).map_err(io::Error::other)?;
        komado_store::write_base64(&mut blob, out)
    }
}
