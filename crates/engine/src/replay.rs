//! A past conversation, gone through again call by call under a budget: what would have been sent, and at what price.
//!
//! Before each message of the model there was a request. Here each of them is made again: the view is fitted, checked as
//! a provider would, compared with the one before, and priced beside a run without any management. At the end every
//! byte that was hidden is fetched back and compared, and all edits are undone. Nothing is estimated; the same fold,
//! ladder and store run as live.

use crate::condense::{CondenseSettings, Summariser};
use crate::error::{Error, Result};
use crate::fit::{FitResult, Ladder};
use crate::output::OutputReference;
use crate::report::table::add_fields;
use crate::thread::Thread;
use crate::{Clock, Engine, output};
use komado_core::budget::Budget;
use komado_core::grammar::MessageShape;
use komado_core::head::EntrySource;
use komado_core::journal::Entry;
use komado_core::message::{ImageSource, Message, MessagePart, Role};
use komado_core::session::{Meta, MetaConfig};
use komado_core::view::{ItemSource, ShownItem};
use komado_core::{Meter, Seq, SessionId, ThreadId, View, grammar, openai};
use komado_store::{MemoryStore, OpenMode};
use serde::Serialize;
use std::collections::HashMap;
use std::io;
use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;

/// What a cached token costs, beside one that is read for the first time without a cache.
const CACHED: f64 = 0.1;

/// What a token costs that is read and put into the cache.
const WRITTEN: f64 = 1.25;

/// What came of a conversation, or of many.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayReport {
    /// Requests made.
    pub calls: u64,
    /// Tokens of all requests.
    pub tokens_sent: u64,
    /// Tokens they would have had without management.
    pub tokens_raw: u64,
    /// Tokens of the largest request.
    pub peak_tokens: u64,
    /// Requests larger than the window.
    pub over_window: u64,
    /// Requests that OpenAI or Anthropic would refuse.
    pub invalid: u64,
    /// Edits made.
    pub edits: u64,
    /// Requests that do not begin with all of the one before.
    pub prefix_breaks: u64,
    /// Those of them without an edit in between; none, if all is well.
    pub breaks_without_edit: u64,
    /// Price of the input beside that without management.
    pub cost_ratio: f64,
    /// Bytes that the last request does not show.
    pub hidden_bytes: u64,
    /// Bytes of those that neither a ref nor an entry's number brings back.
    pub unrecoverable_bytes: u64,
    /// Conversations whose full view did not come back byte for byte when all edits were undone.
    pub not_restored: u64,
    /// Requests below the floor: what must stay is more than the window holds. They are sent as they are.
    pub below_floor: u64,
    /// Messages that could not be taken in.
    pub refused: u64,
    /// Why the first of them could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_why: Option<String>,
    /// Price of the input, and of that without management.
    #[serde(skip)]
    cost: (f64, f64),
}

impl ReplayReport {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        add_fields!(self, other; calls, tokens_sent, tokens_raw, over_window, invalid, edits, prefix_breaks);
        add_fields!(self, other; breaks_without_edit, hidden_bytes, unrecoverable_bytes, not_restored);
        add_fields!(self, other; below_floor, refused);
        self.peak_tokens = self.peak_tokens.max(other.peak_tokens);
        self.refused_why = self.refused_why.take().or_else(|| other.refused_why.clone());
        self.cost.0 += other.cost.0;
        self.cost.1 += other.cost.1;
        self.price();
    }

    fn price(&mut self) {
        self.cost_ratio = if self.cost.1 > 0.0 { self.cost.0 / self.cost.1 } else { 1.0 };
    }

    /// True when every promise held.
    pub fn is_clean(&self) -> bool {
        self.over_window == 0
            && self.invalid == 0
            && self.breaks_without_edit == 0
            && self.unrecoverable_bytes == 0
            && self.not_restored == 0
            && self.refused == 0
    }
}

struct Still;

impl Clock for Still {
    fn now(&self) -> String {
        "2000-01-01T00:00:00.000000Z".into()
    }
}

/// How to replay.
pub struct ReplayRun<'a> {
    /// The budget of every request.
    pub budget: Budget,
    /// How tokens are counted.
    pub meter: Meter,
    /// Limits of an output on arrival.
    pub clip: Option<komado_core::clip::ClipLimits>,
    /// How a span is condensed.
    pub settings: CondenseSettings,
    /// Who writes summaries.
    pub by: &'a mut dyn Summariser,
}

/// A request that was made again, for those who measure more than the report says.
pub struct ReplayedRequest<'a, 't> {
    /// The thread, with the view that is sent.
    pub thread: &'a Thread<'t>,
    /// How many messages of the conversation came before.
    pub before: usize,
    /// Tokens of the request without management.
    pub raw_tokens: u64,
    /// Edits made for it.
    pub edits: usize,
}

impl ReplayRun<'_> {
    /// Goes through one conversation.
    pub fn run(&mut self, talk: Vec<Message>) -> Result<ReplayReport> {
        self.run_watched(talk, &mut |_| Ok(()))
    }

    /// The same; `watch` is told of each request.
    pub fn run_watched(
        &mut self,
        talk: Vec<Message>,
        watch: &mut dyn FnMut(&ReplayedRequest<'_, '_>) -> Result<()>,
    ) -> Result<ReplayReport> {
        let engine = Engine::new(Arc::new(MemoryStore::default()), Arc::new(Still));
        let mut thread = self.begin(&engine)?;
        let mut run = Run::default();
        let mut said: Vec<(Seq, Message)> = Vec::with_capacity(talk.len());
        for (before, message) in talk.into_iter().enumerate() {
            if message.role == Role::Assistant {
                let edits = self.call(&mut thread, &mut run)?;
                watch(&ReplayedRequest { thread: &thread, before, raw_tokens: run.raw, edits })?;
            }
            if let Some(seq) = run.take(&mut thread, &message, self.meter)? {
                said.push((seq, message));
            }
        }
        prove(&mut thread, &said, &mut run.report)?;
        run.report.price();
        Ok(run.report)
    }

    /// Takes in one whole conversation and fits it once, as after an import. `None` below the floor.
    pub fn fit_once(&mut self, talk: Vec<Message>) -> Result<Option<FitResult>> {
        let engine = Engine::new(Arc::new(MemoryStore::default()), Arc::new(Still));
        let mut thread = self.begin(&engine)?;
        let mut run = Run::default();
        for message in talk {
            run.take(&mut thread, &message, self.meter)?;
        }
        self.fit(&mut thread)
    }

    fn begin<'e>(&self, engine: &'e Engine) -> Result<Thread<'e>> {
        let id = SessionId::new("replay")?;
        let config = MetaConfig { meter: self.meter.name().into(), ..MetaConfig::default() };
        engine.create(&Meta::new(&id, Still.now(), config))?;
        let thread = engine.open(&id, &ThreadId::root(), OpenMode::Write)?;
        Ok(thread.clipping(self.clip.as_ref().map(|limits| self.budget.limits(limits))))
    }

    /// The view made to fit; `None` below the floor.
    fn fit(&mut self, thread: &mut Thread<'_>) -> Result<Option<FitResult>> {
        thread.answer_open_calls()?;
        let mut ladder =
            Ladder { budget: self.budget.clone(), settings: self.settings.clone(), by: &mut *self.by };
        match thread.fit(&mut ladder) {
            Ok(fitted) => Ok(Some(fitted)),
            Err(Error::Floor(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One request: fitted, checked, priced. Gives the number of edits.
    fn call(&mut self, thread: &mut Thread<'_>, run: &mut Run) -> Result<usize> {
        let before = thread.last();
        let fitted = self.fit(thread)?;
        run.report.below_floor += u64::from(fitted.is_none());
        let edits = fitted.map_or(0, |fitted| fitted.done.len());
        run.report.edits += edits as u64;
        run.edited = thread.last() > before;
        run.send(thread, self.budget.window)?;
        Ok(edits)
    }
}

/// A conversation on its way.
#[derive(Default)]
struct Run {
    report: ReplayReport,
    before: Request,
    seen: Seen,
    /// Tokens of everything said so far.
    raw: u64,
    /// Those of them that a run without management has sent already.
    raw_sent: u64,
    edited: bool,
    /// Who spoke first, beside the system.
    begun_by: Option<Role>,
}

impl Run {
    /// Takes a message in; `None` where the thread refused it.
    fn take(&mut self, thread: &mut Thread<'_>, message: &Message, meter: Meter) -> Result<Option<Seq>> {
        match thread.say(message.clone()) {
            Ok(seq) => {
                self.hear(message, meter);
                Ok(Some(seq))
            }
            Err(error @ (Error::Refused(_) | Error::NoCallFits { .. })) => {
                self.report.refused += 1;
                self.report.refused_why.get_or_insert_with(|| error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn hear(&mut self, message: &Message, meter: Meter) {
        self.raw += u64::from(meter.message(message));
        if !matches!(message.role, Role::System | Role::Developer) {
            self.begun_by.get_or_insert(message.role);
        }
    }

    fn send(&mut self, thread: &Thread<'_>, window: u64) -> Result<()> {
        let request = Request::of(thread, &mut self.seen)?;
        let report = &mut self.report;
        let tokens = request.tokens();
        report.calls += 1;
        report.tokens_sent += tokens;
        report.tokens_raw += self.raw;
        report.peak_tokens = report.peak_tokens.max(tokens);
        report.over_window += u64::from(tokens > window);
        report.invalid += u64::from(!request.is_valid(self.begun_by));
        let (messages, shared) = request.shared_with(&self.before);
        if messages < self.before.items.len() {
            report.prefix_breaks += 1;
            report.breaks_without_edit += u64::from(!self.edited);
        }
        report.cost.0 += price(shared, tokens - shared);
        report.cost.1 += price(self.raw_sent, self.raw - self.raw_sent);
        self.raw_sent = self.raw;
        self.before = request;
        Ok(())
    }
}

#[allow(clippy::cast_precision_loss)]
fn price(cached: u64, written: u64) -> f64 {
    CACHED * cached as f64 + WRITTEN * written as f64
}

// A request as what can be compared: a digest, a weight and a shape for each message.
//
// A message looks the same as long as it is shown in the same way, so each is rendered once.

/// A message that was rendered.
struct Rendered {
    digest: blake3::Hash,
    shape: MessageShape,
}

/// Messages that were rendered, by entry and by the entry that says how it is shown.
#[derive(Default)]
struct Seen(HashMap<(Seq, Seq), Rc<[Rendered]>>);

/// A request.
#[derive(Default)]
struct Request {
    setup: (u64, Option<Seq>),
    items: Vec<(Rc<[Rendered]>, u64)>,
}

impl Request {
    /// The request that the thread's view makes.
    fn of(thread: &Thread<'_>, seen: &mut Seen) -> Result<Self> {
        let view = thread.view();
        let mut items = Vec::new();
        for item in view.items(thread.source())? {
            items.push((seen.render(view, thread.source(), item)?, u64::from(item.tokens)));
        }
        Ok(Self { setup: (view.weight().setup, view.setup()), items })
    }

    fn tokens(&self) -> u64 {
        self.setup.0 + self.items.iter().map(|(_, tokens)| tokens).sum::<u64>()
    }

    /// The messages and tokens that two requests share at their beginning.
    fn shared_with(&self, before: &Self) -> (usize, u64) {
        if self.setup != before.setup {
            return (0, 0);
        }
        let same = |a: &[Rendered], b: &[Rendered]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.digest == b.digest)
        };
        let messages = self.items.iter().zip(&before.items).take_while(|(a, b)| same(&a.0, &b.0)).count();
        let tokens = self.items[..messages].iter().map(|(_, tokens)| tokens).sum::<u64>();
        // Before the first request there is nothing that could be cached.
        let setup = if before.items.is_empty() { 0 } else { self.setup.0 };
        (messages, tokens + setup)
    }

    /// True when OpenAI would take it, and Anthropic too where a user began the conversation.
    fn is_valid(&self, begun_by: Option<Role>) -> bool {
        let shapes: Vec<&MessageShape> =
            self.items.iter().flat_map(|(r, _)| r.iter().map(|r| &r.shape)).collect();
        let shapes = shapes.iter().copied();
        match begun_by {
            Some(Role::User) => grammar::anthropic(shapes).is_ok(),
            _ => grammar::openai(shapes).is_ok(),
        }
    }
}

impl Seen {
    fn render<S: EntrySource<Error = komado_store::Error> + ?Sized>(
        &mut self,
        view: &View,
        source: &S,
        item: ShownItem,
    ) -> Result<Rc<[Rendered]>> {
        let by = match item.what {
            ItemSource::Replaced(by) => by,
            ItemSource::Said(_) | ItemSource::Shown => 0,
        };
        if let Some(known) = self.0.get(&(item.seq, by)) {
            return Ok(Rc::clone(known));
        }
        let mut rendered = Vec::new();
        view.pour_item(source, item, &mut |_: Seq, message: &Message| -> Result<()> {
            rendered.push(render(message)?);
            Ok(())
        })?;
        let rendered: Rc<[Rendered]> = rendered.into();
        self.0.insert((item.seq, by), Rc::clone(&rendered));
        Ok(rendered)
    }
}

fn render(message: &Message) -> Result<Rendered> {
    let mut hasher = blake3::Hasher::new();
    openai::write(message, &mut ById, &mut hasher)?;
    Ok(Rendered { digest: hasher.finalize(), shape: MessageShape::of(message) })
}

/// A picture is as good as its name here.
struct ById;

impl openai::BlobReader for ById {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(id.as_bytes())
    }
}

// Nothing is lost: every byte comes back, and so does the whole view.

/// Compares what was said with what can be fetched, then undoes every edit.
fn prove(thread: &mut Thread<'_>, said: &[(Seq, Message)], report: &mut ReplayReport) -> Result<()> {
    let shown: std::collections::HashSet<Seq> = {
        let mut shown = std::collections::HashSet::new();
        thread.view().each_item(thread.source(), |item| {
            match item.what {
                ItemSource::Said(_) => shown.insert(item.seq),
                // A result that came late is shown whole.
                ItemSource::Replaced(by) => shown.insert(by),
                ItemSource::Shown => false,
            };
        })?;
        shown
    };
    for (seq, original) in said {
        let Entry::Message(kept, _) = thread.record(*seq)?.entry else { continue };
        let (all, visible) = (bytes(original), if shown.contains(seq) { bytes(&kept) } else { 0 });
        report.hidden_bytes += all.saturating_sub(visible);
        if !comes_back(thread, *seq, &kept, original)? {
            report.unrecoverable_bytes += all;
        }
    }
    if !undone(thread)? {
        report.not_restored += 1;
    }
    Ok(())
}

/// Bytes of a message that a model reads: words, pictures' names, and the names and arguments of calls.
fn bytes(message: &Message) -> u64 {
    output::whole(message).len() as u64
}

/// True when the entry, read by its number as a model would read it, gives everything that was said. A picture is
/// named by its blob, which is read, too.
fn comes_back(thread: &Thread<'_>, seq: Seq, kept: &Message, original: &Message) -> Result<bool> {
    let mut read = Vec::new();
    let opened = output::open(thread, &OutputReference::Entry(seq));
    let Ok(mut opened) = opened else { return Ok(false) };
    opened.read_to_end(&mut read)?;
    for part in all_parts(kept) {
        if let MessagePart::Image { source: ImageSource::Blob { blob, .. }, .. } = part {
            thread.blob(blob)?;
        }
    }
    let is_whole = kept.outcome().is_some_and(|outcome| outcome.output_ref.is_some());
    let said = if is_whole { texts(original) } else { output::whole(&like(original, kept)) };
    Ok(read == said.as_bytes())
}

fn all_parts(message: &Message) -> impl Iterator<Item = &MessagePart> {
    let inside = message.outcome().map_or(&[][..], |outcome| &outcome.content);
    message.parts.iter().chain(inside)
}

/// The texts of a result, as they go to a blob.
fn texts(message: &Message) -> String {
    let words = message.outcome().map_or(&message.parts, |outcome| &outcome.content).iter();
    let words =
        words.filter_map(
            |part| if let MessagePart::Text { text, .. } = part { Some(text.as_str()) } else { None },
        );
    words.collect::<Vec<_>>().join("\n")
}

/// The original with the pictures of what is kept: their bytes were moved to blobs on arrival.
fn like(original: &Message, kept: &Message) -> Message {
    let mut message = original.clone();
    for (part, now) in message.parts.iter_mut().zip(&kept.parts) {
        match (part, now) {
            (part @ MessagePart::Image { .. }, MessagePart::Image { .. }) => *part = now.clone(),
            (MessagePart::Result(was), MessagePart::Result(is)) => {
                for (part, now) in was.content.iter_mut().zip(&is.content) {
                    if matches!((&*part, now), (MessagePart::Image { .. }, MessagePart::Image { .. })) {
                        *part = now.clone();
                    }
                }
            }
            _ => {}
        }
    }
    message
}

/// Undoes every edit, newest first; true when every message is then shown as it was said.
fn undone(thread: &mut Thread<'_>) -> Result<bool> {
    while let Some(edit) = thread.view().edits().last() {
        thread.revert(edit)?;
    }
    let mut said = Vec::new();
    for seq in 1..=thread.last() {
        if thread.source().head(seq)?.kind.is_item() {
            said.push((seq, thread.record(thread.view().result(seq))?));
        }
    }
    let mut said = said.into_iter();
    let mut same = true;
    thread.view().pour(thread.source(), &mut |seq: Seq, message: &Message| -> Result<()> {
        let expected = said.next();
        same &= expected.is_some_and(|(place, record)| {
            place == seq
                && matches!(record.entry, Entry::Message(was, _) if was.clone().in_place() == *message)
        });
        Ok(())
    })?;
    Ok(same && said.next().is_none())
}
