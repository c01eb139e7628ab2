//! The way from hidden spans to shown texts, step by step.
//!
//! Refusals that cost nothing come first. Then the span is read once, message by message: to the summariser in parts,
//! and to a digest that knows what was in it. What comes back is headed, cut to its limit, checked for lost facts, and
//! refused if it is no smaller than what it stands for.

use super::leaving::{Census, Leaving, LeavingItem, Retained};
use super::prompt::SummaryPrompt;
use super::render::{
    SO_FAR, cut_prefix, cut_split, head_again, head_earlier, marker_line, message_body, message_head,
    strip_marker, without_calls,
};
use super::{
    ComposedSummary, CondenseSettings, Declined, PromptLanguage, Summariser, SummaryAnswer, SummaryFailure,
    SummaryInput, SummaryRequest, Transcript, answer, prompt,
};
use komado_core::digest::{Digest, quoted};
use komado_core::harness::user_text;
use komado_core::head::EntrySource;
use komado_core::journal::{Entry, Setup, Show, ShowKind, Usage};
use komado_core::ladder::WorkingSet;
use komado_core::message::Message;
use komado_core::meter::Counter;
use komado_core::view::{ItemSource, ShownItem as ViewItem};
use komado_core::{Meter, Seq, Span, View};
use komado_store::Error;

/// What the texts are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SummaryGoal {
    /// To stand in a view in place of what they tell of: headed, and smaller than that.
    StandIn,
    /// To be read where the conversation is not seen: without a heading, however little it is, and as long as the limit
    /// allows.
    Tell,
}

/// Writes the texts that will stand for `hide` in `view`: at most `limit` tokens together, counted by `meter`.
///
/// Nothing is appended; what to do with the texts, or with a refusal, is the caller's. The error is that of reading.
pub fn compose<S: EntrySource<Error = Error> + ?Sized>(
    source: &S,
    view: &View,
    hide: &[Span],
    settings: &CondenseSettings,
    by: &mut dyn Summariser,
    meter: Meter,
    limit: u64,
) -> Result<Result<ComposedSummary, Declined>, Error> {
    write((source, view), hide, settings, by, (meter, limit), SummaryGoal::StandIn)
}

/// Writes the texts for a goal. The error is that of reading.
pub(crate) fn write<S: EntrySource<Error = Error> + ?Sized>(
    (source, view): (&S, &View),
    hide: &[Span],
    settings: &CondenseSettings,
    by: &mut dyn Summariser,
    (meter, limit): (Meter, u64),
    goal: SummaryGoal,
) -> Result<Result<ComposedSummary, Declined>, Error> {
    let leaving = Leaving::of(source, view, hide)?;
    let mut census = leaving.census()?;
    if let Some(declined) = worthless(&census, settings, goal) {
        return Ok(Err(declined));
    }
    if goal == SummaryGoal::Tell {
        census.tokens = u64::MAX;
    }
    let language = match settings.language {
        Some(language) => language,
        None => PromptLanguage::spoken(&leaving)?,
    };
    let (mut retained, overflow) = leaving.retained(meter, limit / 3)?;
    let head = |kind| match goal {
        SummaryGoal::StandIn => marker_line(kind, hide, language, settings.reach.unwrap_or_default()),
        SummaryGoal::Tell => String::new(),
    };
    let frame = SummaryFrame {
        meter,
        limit,
        hidden: census.tokens,
        language,
        heads: [head(ShowKind::Retain), head(ShowKind::Summary)],
    };
    let ledger = if by.reads() == SummaryInput::Facts { 0 } else { limit / 4 };
    let room = match frame.room(&retained, settings, ledger) {
        Ok(room) => room,
        Err(declined) => return Ok(Err(declined)),
    };
    let mut digest = Digest::new(meter);
    for request in requests(source, view)? {
        digest.about(&request);
    }
    let written = match by.reads() {
        SummaryInput::Facts => {
            leaving.tell(&overflow, &mut digest)?;
            tell_facts(&digest, by, room.aim)
        }
        SummaryInput::Request => {
            let prompt = SummaryPrompt::new(settings, language, room.aim);
            let talk = Conversation::upto(source, view, hide.last().map_or(0, |span| span.to))?;
            let mut spent = None;
            if let Some(written) = go_on(&talk, &prompt, room.most, by, (&mut retained, &mut spent)) {
                leaving.tell(&overflow, &mut digest)?;
                written
            } else {
                match SummaryChunks::new(by, prompt, room.most, &mut retained, meter, spent) {
                    Ok(chunks) => ask(&leaving, &overflow, &mut digest, chunks)?,
                    Err(declined) => Err(declined),
                }
            }
        }
    };
    Ok(written.and_then(|written| frame.show(written, retained, &digest, ledger)))
}

/// The task and the latest instruction, in the user's own words.
fn requests<S: EntrySource<Error = Error> + ?Sized>(source: &S, view: &View) -> Result<Vec<String>, Error> {
    let set = WorkingSet::of(view, source)?;
    let mut items: Vec<usize> = set.task.into_iter().chain(set.instruction).collect();
    items.dedup();
    let mut found = Vec::new();
    for item in items {
        if let Entry::Message(message, _) = source.record(set.items[item].seq)?.entry {
            found.push(user_text(&message.words()).collect::<Vec<_>>().join("\n"));
        }
    }
    Ok(found)
}

/// Refusals that need no reading.
fn worthless(census: &Census, settings: &CondenseSettings, goal: SummaryGoal) -> Option<Declined> {
    if goal == SummaryGoal::Tell {
        let nothing = census.said == 0 && census.edit.is_none();
        return nothing.then_some(Declined::TooFew { found: 0, needed: 1 });
    }
    if let (0, Some(edit)) = (census.said, census.edit) {
        return Some(Declined::JustCondensed(edit));
    }
    let fewest = if settings.auto { settings.min_messages_to_summarize.max(1) } else { 1 };
    let (found, needed) = (census.said, u64::from(fewest));
    (found < needed).then_some(Declined::TooFew { found, needed })
}

impl<S: EntrySource + ?Sized> Leaving<'_, S> {
    /// Gives a digest everything that leaves, as it was said.
    fn tell(&self, overflow: &str, digest: &mut Digest) -> Result<(), S::Error> {
        if !overflow.is_empty() {
            digest.earlier(overflow);
        }
        let mut items = self.items();
        while let Some(item) = items.next()? {
            note(digest, &item);
        }
        Ok(())
    }
}

/// What an item tells a digest. What is carried over word for word is not among it: it stays.
fn note(digest: &mut Digest, item: &LeavingItem) {
    match item {
        LeavingItem::Said { seq, message, original, child } => {
            digest.take(*seq, original.as_ref().unwrap_or(message));
            child.iter().for_each(|child| digest.child(*seq, child));
        }
        LeavingItem::Earlier { show } => {
            let told = show.iter().filter(|show| show.kind != ShowKind::Retain);
            told.for_each(|show| digest.earlier(strip_marker(&show.text)));
        }
    }
}

fn tell_facts(digest: &Digest, by: &dyn Summariser, room: u64) -> Result<WrittenSummary, Declined> {
    let (summary, model) = (digest.text(room), by.name().to_owned());
    if summary.trim().is_empty() {
        return Err(Declined::Empty { by: model, part: 1, usage: None });
    }
    Ok(WrittenSummary { summary, model, usage: None, parts: 0 })
}

/// Asks behind the conversation itself, where that is cheaper. An answer without a summary is none: a model that sees
/// its tools may have wanted to call one.
fn go_on(
    talk: &dyn Transcript,
    prompt: &SummaryPrompt,
    answer: u64,
    by: &mut dyn Summariser,
    (retained, spent): (&mut Retained, &mut Option<Usage>),
) -> Option<Result<WrittenSummary, Declined>> {
    let request = SummaryRequest { system: None, text: prompt.behind(), max_tokens: answer, part: 1 };
    let name = by.name().to_owned();
    let answer = match by.go_on(talk, &request)? {
        Ok(answer) => answer,
        Err(SummaryFailure { why, usage }) => {
            return Some(Err(Declined::Failed { by: name, part: 1, why, usage }));
        }
    };
    let parsed = super::parse(&answer.text);
    let Some(summary) = parsed.summary else {
        *spent = answer.usage;
        return None;
    };
    if let Some(retain) = parsed.retain {
        retained.add(&retain);
    }
    Some(Ok(WrittenSummary { summary, model: answer.model.unwrap_or(name), usage: answer.usage, parts: 1 }))
}

/// Hands everything that leaves to a summariser, and to the digest beside it.
fn ask<S: EntrySource + ?Sized>(
    leaving: &Leaving<'_, S>,
    overflow: &str,
    digest: &mut Digest,
    mut chunks: SummaryChunks<'_>,
) -> Result<Result<WrittenSummary, Declined>, S::Error> {
    if !overflow.is_empty() {
        digest.earlier(overflow);
        if let Err(declined) = earlier(&mut chunks, ShowKind::Retain, overflow) {
            return Ok(Err(declined));
        }
    }
    let mut items = leaving.items();
    let mut ahead = items.next()?;
    while let Some(item) = ahead.take() {
        ahead = items.next()?;
        note(digest, &item);
        if let Err(declined) = hand_over(item, ahead.as_ref(), &mut chunks) {
            return Ok(Err(declined));
        }
    }
    Ok(chunks.finish())
}

fn hand_over(
    item: LeavingItem,
    next: Option<&LeavingItem>,
    chunks: &mut SummaryChunks<'_>,
) -> Result<(), Declined> {
    match item {
        LeavingItem::Said { seq, message, .. } => {
            let Some(message) = answered(message, next) else { return Ok(()) };
            let body = message_body(&message);
            if body.is_empty() {
                return Ok(());
            }
            let (head, again) = (message_head(seq, &message), head_again(seq, &message));
            chunks.push(&ChunkPiece { head: &head, again: &again, body: &body })
        }
        LeavingItem::Earlier { show } => show
            .iter()
            .filter(|show| show.kind != ShowKind::Retain)
            .try_for_each(|show| earlier(chunks, show.kind, strip_marker(&show.text))),
    }
}

fn earlier(chunks: &mut SummaryChunks<'_>, kind: ShowKind, body: &str) -> Result<(), Declined> {
    if body.trim().is_empty() {
        return Ok(());
    }
    let head = head_earlier(kind);
    chunks.push(&ChunkPiece { head, again: head, body })
}

/// The message, without its calls when the next thing that leaves answers none of them.
fn answered(message: Message, next: Option<&LeavingItem>) -> Option<Message> {
    let answer = match next {
        Some(LeavingItem::Said { message, .. }) => message.outcome(),
        _ => None,
    };
    let asks = message.calls().next().is_some();
    if !asks || answer.is_some_and(|answer| message.calls().any(|call| call.id == answer.call_id)) {
        return Some(message);
    }
    without_calls(message)
}

/// The conversation up to the end of what leaves, as it was last sent: for a summariser that goes on from it.
struct Conversation<'a, S: ?Sized> {
    source: &'a S,
    view: &'a View,
    /// The items, a few bytes each.
    items: Vec<ViewItem>,
}

impl<'a, S: EntrySource<Error = Error> + ?Sized> Conversation<'a, S> {
    fn upto(source: &'a S, view: &'a View, last: Seq) -> Result<Self, Error> {
        let mut items = view.items(source)?;
        let is_after = |item: &ViewItem| item.what != ItemSource::Shown && item.seq > last;
        items.truncate(items.iter().position(is_after).unwrap_or(items.len()));
        Ok(Self { source, view, items })
    }
}

impl<S: EntrySource<Error = Error> + ?Sized> Transcript for Conversation<'_, S> {
    fn tokens(&self) -> u64 {
        let before = self.view.weight().setup + self.view.weight().above;
        self.items.iter().map(|item| u64::from(item.tokens)).sum::<u64>() + before
    }

    fn setup(&self) -> crate::Result<Setup> {
        Ok(self.view.setup_in(self.source)?)
    }

    fn pour(&self, each: &mut dyn FnMut(&Message) -> crate::Result<()>) -> crate::Result<()> {
        let mut put = |_: Seq, message: &Message| each(message);
        self.view.pour_above(self.source, &mut put)?;
        self.items.iter().try_for_each(|item| self.view.pour_item(self.source, *item, &mut put))
    }
}

// From the words of a summary to the texts that are shown: headed, cut to the limit, and with what they forgot.
//
// The limit holds for all texts together. A quarter of it is set aside for the ledger of lost facts before anybody is
// asked. A summary that is cut says so; one of which too little would be left is refused instead.

/// The fewest tokens of a summary that are of use.
const FEWEST: u64 = 16;

/// Tokens for the words of a summary.
pub(super) struct SummaryRoom {
    /// As many as there may be.
    pub(super) most: u64,
    /// As many as there should be: at most half of what they stand for, or little is won.
    pub(super) aim: u64,
}

/// What the texts have to fit into.
pub(super) struct SummaryFrame {
    pub(super) meter: Meter,
    /// Tokens allowed.
    pub(super) limit: u64,
    /// Tokens that leave.
    pub(super) hidden: u64,
    /// Of marks.
    pub(super) language: PromptLanguage,
    /// First lines: of what is kept word for word, of the summary.
    pub(super) heads: [String; 2],
}

impl SummaryFrame {
    /// What is left for the words of a summary when `ledger` tokens are set aside.
    pub(super) fn room(
        &self,
        retained: &Retained,
        settings: &CondenseSettings,
        ledger: u64,
    ) -> Result<SummaryRoom, Declined> {
        let kept = match (retained.is_empty(), prompt::keeps(settings)) {
            (true, false) => 0,
            _ => self.said(0, &retained.text()),
        };
        // One for the line break after the heading, whatever the meter makes of it.
        let fixed = self.said(1, "") + kept + 1;
        let needed = fixed + FEWEST + ledger;
        let (limit, hidden) = (self.limit, self.hidden);
        if fixed >= hidden {
            return Err(Declined::Larger { hidden, shown: fixed, limit, usage: None });
        }
        if needed > limit {
            // The ledger's share grows with the limit.
            return Err(Declined::NoRoom { limit, needed: (fixed + FEWEST) * 4 / 3 + 1 });
        }
        let most = (limit - fixed - ledger).min(hidden);
        Ok(SummaryRoom { most, aim: most.min((hidden - fixed) / 2).max(1) })
    }

    /// Tokens of a text under heading `head`.
    fn said(&self, head: usize, body: &str) -> u64 {
        u64::from(self.meter.said(&self.headed(head, body)))
    }

    fn headed(&self, head: usize, body: &str) -> String {
        format!("{}\n{}", self.heads[head], body)
    }

    /// Puts the texts together.
    pub(super) fn show(
        &self,
        written: WrittenSummary,
        mut retained: Retained,
        digest: &Digest,
        ledger: u64,
    ) -> Result<ComposedSummary, Declined> {
        let WrittenSummary { mut summary, model, usage, parts } = written;
        if parts > 0 {
            summary = quoted(&summary);
        }
        let overflow = retained.shed();
        if !overflow.is_empty() {
            summary = format!("{}\n{overflow}", summary.trim_end());
        }
        let kept = retained.text();
        let kept_tokens = if kept.is_empty() { 0 } else { self.said(0, &kept) };
        let budget = self.limit.saturating_sub(kept_tokens + ledger);
        let body = self.fit(summary.trim(), budget, kept_tokens, usage)?;
        let shown = kept_tokens + self.said(1, &body);
        // A ledger may not eat up what was won.
        let most = ledger.min(self.hidden.saturating_sub(shown) / 2);
        let audit = digest.audit(&format!("{kept}\n{body}"), most);
        let missing = audit.ledger.filter(|ledger| most > 0 && !ledger.trim().is_empty());
        let text = self.with_ledger(body, missing.as_deref(), self.limit.saturating_sub(kept_tokens));
        let mut show = Vec::new();
        if !kept.is_empty() {
            show.push(self.shown(ShowKind::Retain, self.headed(0, &kept)));
        }
        show.push(self.shown(ShowKind::Summary, text));
        let parts_note = if parts > 1 { format!("; read in {parts} parts") } else { String::new() };
        let (total, kept, lost) = (audit.total, audit.kept, audit.lost);
        let note = Some(format!("{kept} of {total} facts told, {} not{parts_note}", lost.len()));
        let hidden = self.hidden;
        let composed = ComposedSummary { show, model: Some(model), usage, note, chunks: parts, hidden, lost };
        if composed.tokens() >= self.hidden || composed.tokens() > self.limit {
            let shown = composed.tokens();
            return Err(Declined::Larger { hidden, shown, limit: self.limit, usage });
        }
        Ok(composed)
    }

    fn shown(&self, kind: ShowKind, text: String) -> Show {
        Show { kind, tokens: self.meter.said(&text), text }
    }

    /// The summary, cut with a mark when it is longer than `budget`, as long as what is left of it is of use.
    fn fit(&self, summary: &str, budget: u64, kept: u64, usage: Option<Usage>) -> Result<String, Declined> {
        let whole = self.said(1, summary);
        if whole <= budget {
            return Ok(summary.to_owned());
        }
        let mark = match self.language {
            PromptLanguage::English => "\n[… cut here to fit; the originals are kept]",
            PromptLanguage::Japanese => "\n[…ここで切りました。原文は保存されています]",
        };
        let mut room = budget.saturating_sub(self.said(1, mark));
        loop {
            let head = cut_split(self.meter, summary, room).0.trim_end();
            let left = self.meter.text(head);
            if left < FEWEST || left * 4 < self.meter.text(summary) {
                let (hidden, shown) = (self.hidden, kept + whole);
                return Err(Declined::Larger { hidden, shown, limit: self.limit, usage });
            }
            let text = format!("{head}{mark}");
            if self.said(1, &text) <= budget {
                return Ok(text);
            }
            // Texts side by side took more than each alone.
            room = room.saturating_sub(1);
        }
    }

    /// The headed summary with as many lines of the ledger as fit into `budget`.
    fn with_ledger(&self, body: String, ledger: Option<&str>, budget: u64) -> String {
        let mut lines: Vec<&str> =
            ledger.map(|ledger| ledger.trim_end().lines().collect()).unwrap_or_default();
        while !lines.is_empty() {
            let text = format!("{body}\n\n{}", lines.join("\n"));
            if self.said(1, &text) <= budget {
                return self.headed(1, &text);
            }
            lines.pop();
        }
        self.headed(1, &body)
    }
}

// Hands a conversation to a summariser in parts that fit its own window.
//
// The first part gives a first summary; each later part begins with the summary so far and gives the next. One part
// is held at a time. A message goes to the next part rather than being split, unless it is too large for any part;
// then it is split between characters, and each piece says whose it is.
//
// Every request fits: instructions, messages and the answer asked for take at most the window, by the caller's meter.

/// Tokens in a part when the summariser has no bound.
const UNBOUNDED: u64 = 1_000_000;
/// Two texts side by side may take a few tokens more than each by itself.
const SEAM: u64 = 8;
/// The fewest tokens of messages that make a part worth a request.
const FEWEST_NEWS: u64 = 64;

/// A text with what stands before it, also when it goes on in a later part.
pub(super) struct ChunkPiece<'a> {
    pub(super) head: &'a str,
    pub(super) again: &'a str,
    pub(super) body: &'a str,
}

/// What all parts came to.
pub(super) struct WrittenSummary {
    pub(super) summary: String,
    pub(super) model: String,
    pub(super) usage: Option<Usage>,
    pub(super) parts: u32,
}

/// Asks part by part.
pub(super) struct SummaryChunks<'a> {
    by: &'a mut dyn Summariser,
    meter: Meter,
    prompt: SummaryPrompt,
    /// Tokens of messages in one part, the summary so far included.
    capacity: u64,
    /// Tokens of an answer, and so of the summary so far.
    allowance: u64,
    retained: &'a mut Retained,
    text: String,
    counter: Counter,
    /// True when the part holds more than the summary so far.
    has_news: bool,
    summary: Option<String>,
    model: Option<String>,
    usage: Option<Usage>,
    parts: u32,
}

impl<'a> SummaryChunks<'a> {
    /// Nothing is asked before the first part is full. `answer` is the longest answer of use; what was `spent` before counts, too.
    pub(super) fn new(
        by: &'a mut dyn Summariser,
        prompt: SummaryPrompt,
        answer: u64,
        retained: &'a mut Retained,
        meter: Meter,
        spent: Option<Usage>,
    ) -> Result<Self, Declined> {
        let instructions = said(meter, &prompt, "") + SEAM;
        let (capacity, allowance) = match by.window() {
            None => (UNBOUNDED + answer, answer),
            Some(window) => {
                // The answer, the summary so far and news share what the instructions leave.
                let left = window.saturating_sub(instructions);
                let allowance = answer.min(left / 3);
                if left / 3 < FEWEST_NEWS {
                    let needed = instructions + 3 * FEWEST_NEWS;
                    return Err(Declined::Window { by: by.name().to_owned(), window, instructions, needed });
                }
                (left - allowance, allowance)
            }
        };
        Ok(Self {
            by,
            meter,
            prompt,
            capacity,
            allowance,
            retained,
            text: String::new(),
            counter: meter.counter(),
            has_news: false,
            summary: None,
            model: None,
            usage: spent,
            parts: 0,
        })
    }

    /// Takes the next text of the conversation.
    pub(super) fn push(&mut self, piece: &ChunkPiece<'_>) -> Result<(), Declined> {
        let (mut head, mut rest) = (piece.head, piece.body);
        let around = self.meter.text(head).max(self.meter.text(piece.again)) + SEAM;
        let anywhere = self.capacity.saturating_sub(self.allowance + around);
        let whole = cut_prefix(self.meter, rest, anywhere).len() == rest.len();
        loop {
            let room = self.capacity.saturating_sub(self.counter.count() + around);
            let (now, later) = cut_split(self.meter, rest, room);
            let fits = later.is_empty();
            if !fits && self.has_news && (whole || room < self.capacity / 4) {
                self.ask()?;
                continue;
            }
            // At least one character, or the loop would never end.
            let (now, later) = if now.is_empty() { rest.split_at(first_char(rest)) } else { (now, later) };
            [head, now, "\n\n"].iter().for_each(|text| self.add(text));
            self.has_news = true;
            if later.is_empty() {
                return Ok(());
            }
            (head, rest) = (piece.again, later);
            self.ask()?;
        }
    }

    fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.counter.push(text);
    }

    /// Asks about the part that is held and begins the next with the answer.
    fn ask(&mut self) -> Result<(), Declined> {
        self.parts += 1;
        let request = self.request();
        let answer = self.by.summarise(&request).map_err(|failure| {
            let (by, part) = (self.by.name().to_owned(), self.parts);
            Declined::Failed { by, part, why: failure.why, usage: add(self.usage, failure.usage) }
        })?;
        drop(request);
        let summary = self.hear(answer)?;
        (self.text, self.counter, self.has_news) = (String::new(), self.meter.counter(), false);
        let so_far = cut_split(self.meter, &summary, self.allowance).0.trim_end().to_owned();
        [SO_FAR, &so_far, "\n\n"].iter().for_each(|text| self.add(text));
        self.summary = Some(summary);
        Ok(())
    }

    fn request(&self) -> SummaryRequest {
        let text = self.prompt.fill(&self.text);
        let used = said(self.meter, &self.prompt, &self.text);
        let left = self.by.window().map_or(self.allowance, |window| window.saturating_sub(used));
        // What seams took more than was set aside for them, the answer gives up.
        let max_tokens = self.allowance.min(left).max(1);
        SummaryRequest { system: self.prompt.system.clone(), text, max_tokens, part: self.parts }
    }

    /// Takes an answer apart.
    fn hear(&mut self, answer: SummaryAnswer) -> Result<String, Declined> {
        self.usage = add(self.usage, answer.usage);
        self.model = answer.model.or(self.model.take());
        let parsed = answer::parse(&answer.text);
        let Some(summary) = parsed.summary else {
            let (by, part) = (self.by.name().to_owned(), self.parts);
            return Err(Declined::Empty { by, part, usage: self.usage });
        };
        if let Some(retain) = parsed.retain {
            self.retained.add(&retain);
        }
        Ok(summary)
    }

    /// Asks about what is left and gives what all parts came to.
    pub(super) fn finish(mut self) -> Result<WrittenSummary, Declined> {
        if self.has_news {
            self.ask()?;
        }
        let name = self.by.name();
        let Some(summary) = self.summary else {
            return Err(Declined::Empty { by: name.to_owned(), part: self.parts, usage: self.usage });
        };
        let model = self.model.unwrap_or_else(|| name.to_owned());
        Ok(WrittenSummary { summary, model, usage: self.usage, parts: self.parts })
    }
}

/// Tokens of a request that holds `messages`.
fn said(meter: Meter, prompt: &SummaryPrompt, messages: &str) -> u64 {
    let system = prompt.system.as_deref().map_or(0, |system| meter.said(system));
    u64::from(system) + u64::from(meter.said(&prompt.fill(messages)))
}

/// What two answers took together; `None` only when neither reported anything.
fn add(sum: Option<Usage>, more: Option<Usage>) -> Option<Usage> {
    let (Some(a), Some(b)) = (sum, more) else { return sum.or(more) };
    Some(Usage {
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        cache_creation_tokens: a.cache_creation_tokens.saturating_add(b.cache_creation_tokens),
        cache_read_tokens: a.cache_read_tokens.saturating_add(b.cache_read_tokens),
    })
}

fn first_char(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}
