//! The way from hidden spans to shown texts, step by step.
//!
//! Refusals that cost nothing come first. Then the span is read once, message by message: to the summariser in parts,
//! and to a digest that knows what was in it. What comes back is headed, cut to its limit, checked for lost facts, and
//! refused if it is no smaller than what it stands for.

use super::chunk::{Chunks, Piece, Written};
use super::frame::Frame;
use super::leaving::{Census, Item, Leaving};
use super::prompt::Prompt;
use super::retain::Retained;
use super::{
    Composed, Declined, Failure, Language, Reads, Request, Settings, Summariser, Transcript, marker, render,
};
use komado_core::digest::Digest;
use komado_core::head::Source;
use komado_core::journal::{Setup, ShowKind, Usage};
use komado_core::message::Message;
use komado_core::view::{Item as ViewItem, What};
use komado_core::{Meter, Seq, Span, View};
use komado_store::Error;

/// What the texts are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// To stand in a view in place of what they tell of: headed, and smaller than that.
    StandIn,
    /// To be read where the conversation is not seen: without a heading, however little it is, and as long as the limit
    /// allows.
    Tell,
}

/// Writes the texts that will stand for `hide` in `view`: at most `limit` tokens together, counted by `meter`.
///
/// Nothing is appended; what to do with the texts, or with a refusal, is the caller's. The error is that of reading.
pub fn compose<S: Source<Error = Error> + ?Sized>(
    source: &S,
    view: &View,
    hide: &[Span],
    settings: &Settings,
    by: &mut dyn Summariser,
    meter: Meter,
    limit: u64,
) -> Result<Result<Composed, Declined>, Error> {
    write((source, view), hide, settings, by, (meter, limit), Goal::StandIn)
}

/// Writes the texts for a goal. The error is that of reading.
pub(crate) fn write<S: Source<Error = Error> + ?Sized>(
    (source, view): (&S, &View),
    hide: &[Span],
    settings: &Settings,
    by: &mut dyn Summariser,
    (meter, limit): (Meter, u64),
    goal: Goal,
) -> Result<Result<Composed, Declined>, Error> {
    let leaving = Leaving::of(source, view, hide)?;
    let mut census = leaving.census(source)?;
    if let Some(declined) = worthless(&census, settings, goal) {
        return Ok(Err(declined));
    }
    if goal == Goal::Tell {
        census.tokens = u64::MAX;
    }
    let language = match settings.language {
        Some(language) => language,
        None => Language::spoken(source, &leaving)?,
    };
    let mut retained = Retained::new(meter, limit / 3);
    let overflow = retained.carry(source, &leaving)?;
    let head = |kind| match goal {
        Goal::StandIn => marker::line(kind, hide, language, settings.reach),
        Goal::Tell => String::new(),
    };
    let frame = Frame {
        meter,
        limit,
        hidden: census.tokens,
        language,
        heads: [head(ShowKind::Retain), head(ShowKind::Summary)],
    };
    let ledger = if by.reads() == Reads::Facts { 0 } else { limit / 4 };
    let room = match frame.room(&retained, settings, ledger) {
        Ok(room) => room,
        Err(declined) => return Ok(Err(declined)),
    };
    let mut digest = Digest::new(meter);
    let written = match by.reads() {
        Reads::Facts => {
            read_facts(source, &leaving, &overflow, &mut digest)?;
            tell_facts(&digest, by, room.aim)
        }
        Reads::Request => {
            let prompt = Prompt::new(settings, language, room.aim);
            let talk = Conversation::upto(source, view, hide.last().map_or(0, |span| span.to))?;
            let mut spent = None;
            if let Some(written) = go_on(&talk, &prompt, room.most, by, (&mut retained, &mut spent)) {
                read_facts(source, &leaving, &overflow, &mut digest)?;
                written
            } else {
                match Chunks::new(by, prompt, room.most, &mut retained, meter) {
                    Ok(chunks) => ask(source, &leaving, &overflow, &mut digest, chunks.after(spent))?,
                    Err(declined) => Err(declined),
                }
            }
        }
    };
    Ok(written.and_then(|written| frame.show(written, retained, &digest, ledger)))
}

/// Refusals that need no reading.
fn worthless(census: &Census, settings: &Settings, goal: Goal) -> Option<Declined> {
    if goal == Goal::Tell {
        let nothing = census.said == 0 && census.edit.is_none();
        return nothing.then_some(Declined::TooFew { found: 0, needed: 1 });
    }
    if let (0, Some(edit)) = (census.said, census.edit) {
        return Some(Declined::JustCondensed { edit });
    }
    let fewest = if settings.auto { settings.min_messages_to_summarize.max(1) } else { 1 };
    let (found, needed) = (census.said, u64::from(fewest));
    (found < needed).then_some(Declined::TooFew { found, needed })
}

/// Gives a digest everything that leaves, as it was said.
fn read_facts<S: Source + ?Sized>(
    source: &S,
    leaving: &Leaving,
    overflow: &str,
    digest: &mut Digest,
) -> Result<(), S::Error> {
    if !overflow.is_empty() {
        digest.earlier(overflow);
    }
    let mut items = leaving.items();
    while let Some(item) = items.next(source)? {
        note(digest, &item);
    }
    Ok(())
}

/// What an item tells a digest. What is carried over word for word is not among it: it stays.
fn note(digest: &mut Digest, item: &Item) {
    match item {
        Item::Said { seq, message, original, child } => {
            digest.take(*seq, original.as_ref().unwrap_or(message));
            child.iter().for_each(|child| digest.child(*seq, child));
        }
        Item::Earlier { show } => {
            let told = show.iter().filter(|show| show.kind != ShowKind::Retain);
            told.for_each(|show| digest.earlier(marker::strip(&show.text)));
        }
    }
}

fn tell_facts(digest: &Digest, by: &dyn Summariser, room: u64) -> Result<Written, Declined> {
    let (summary, model) = (digest.text(room), by.name().to_owned());
    if summary.trim().is_empty() {
        return Err(Declined::Empty { by: model, part: 1, usage: None });
    }
    Ok(Written { summary, model, usage: None, parts: 0 })
}

/// Asks behind the conversation itself, where that is cheaper. An answer without a summary is none: a model that sees
/// its tools may have wanted to call one.
fn go_on(
    talk: &dyn Transcript,
    prompt: &Prompt,
    answer: u64,
    by: &mut dyn Summariser,
    (retained, spent): (&mut Retained, &mut Option<Usage>),
) -> Option<Result<Written, Declined>> {
    let request = Request { system: None, text: prompt.behind(), max_tokens: answer, part: 1 };
    let name = by.name().to_owned();
    let answer = match by.go_on(talk, &request)? {
        Ok(answer) => answer,
        Err(Failure { why, usage }) => return Some(Err(Declined::Failed { by: name, part: 1, why, usage })),
    };
    let parsed = super::parse(&answer.text);
    let Some(summary) = parsed.summary else {
        *spent = answer.usage;
        return None;
    };
    if let Some(retain) = parsed.retain {
        retained.add(&retain);
    }
    Some(Ok(Written { summary, model: answer.model.unwrap_or(name), usage: answer.usage, parts: 1 }))
}

/// Hands everything that leaves to a summariser, and to the digest beside it.
fn ask<S: Source + ?Sized>(
    source: &S,
    leaving: &Leaving,
    overflow: &str,
    digest: &mut Digest,
    mut chunks: Chunks<'_>,
) -> Result<Result<Written, Declined>, S::Error> {
    if !overflow.is_empty() {
        digest.earlier(overflow);
        if let Err(declined) = earlier(&mut chunks, ShowKind::Retain, overflow) {
            return Ok(Err(declined));
        }
    }
    let mut items = leaving.items();
    let mut ahead = items.next(source)?;
    while let Some(item) = ahead.take() {
        ahead = items.next(source)?;
        note(digest, &item);
        if let Err(declined) = hand_over(item, ahead.as_ref(), &mut chunks) {
            return Ok(Err(declined));
        }
    }
    Ok(chunks.finish())
}

fn hand_over(item: Item, next: Option<&Item>, chunks: &mut Chunks<'_>) -> Result<(), Declined> {
    match item {
        Item::Said { seq, message, .. } => {
            let Some(message) = answered(message, next) else { return Ok(()) };
            let body = render::body(&message);
            if body.is_empty() {
                return Ok(());
            }
            let (head, again) = (render::head(seq, &message), render::head_again(seq, &message));
            chunks.push(&Piece { head: &head, again: &again, body: &body })
        }
        Item::Earlier { show } => show
            .iter()
            .filter(|show| show.kind != ShowKind::Retain)
            .try_for_each(|show| earlier(chunks, show.kind, marker::strip(&show.text))),
    }
}

fn earlier(chunks: &mut Chunks<'_>, kind: ShowKind, body: &str) -> Result<(), Declined> {
    if body.trim().is_empty() {
        return Ok(());
    }
    let head = render::head_earlier(kind);
    chunks.push(&Piece { head, again: head, body })
}

/// The message, without its calls when the next thing that leaves answers none of them.
fn answered(message: Message, next: Option<&Item>) -> Option<Message> {
    let answer = match next {
        Some(Item::Said { message, .. }) => message.outcome(),
        _ => None,
    };
    let asks = message.calls().next().is_some();
    if !asks || answer.is_some_and(|answer| message.calls().any(|call| call.id == answer.call_id)) {
        return Some(message);
    }
    render::without_calls(message)
}

/// The conversation up to the end of what leaves, as it was last sent: for a summariser that goes on from it.
struct Conversation<'a, S: ?Sized> {
    source: &'a S,
    view: &'a View,
    /// The items, a few bytes each.
    items: Vec<ViewItem>,
}

impl<'a, S: Source<Error = Error> + ?Sized> Conversation<'a, S> {
    fn upto(source: &'a S, view: &'a View, last: Seq) -> Result<Self, Error> {
        let mut items = view.items(source)?;
        let is_after = |item: &ViewItem| item.what != What::Shown && item.seq > last;
        items.truncate(items.iter().position(is_after).unwrap_or(items.len()));
        Ok(Self { source, view, items })
    }
}

impl<S: Source<Error = Error> + ?Sized> Transcript for Conversation<'_, S> {
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
