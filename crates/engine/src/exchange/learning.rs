//! What an exchange learns from a refusal and from an answer's usage.
//!
//! The provider's word is heard once, with the request that it is about: the lesson names that. What a view holds that a
//! provider may count in its own way is read only where the counts disagree.

use super::request::OutgoingRequest;
use super::response::TooLarge;
use super::{ExchangeContext, ExchangeEvent, ExchangeWire};
use crate::edits::lost;
use crate::error::Result;
use crate::lesson;
use crate::lesson::{AppliedLesson, LearnedModel, LessonRequest, RequestSize, UsageVerdict};
use crate::thread::Thread;
use komado_core::journal::{Entry, Sent, Usage};
use komado_core::{Kind, Seq};

impl ExchangeContext<'_, '_> {
    /// The request that `sent` announces, as a lesson names it.
    fn lesson_request(&self, sent: Seq) -> LessonRequest {
        let entry = self.thread.as_ref().map(|thread| (thread.id(), sent));
        let at = match self.thread.as_ref() {
            Some(thread) => LessonRequest::place(thread.session(), entry),
            None => self.lesson.session.clone(),
        };
        let (session, probed) = (self.lesson.session.clone(), self.asking.probed);
        LessonRequest { session, at, probed, declared: self.asking.declared }
    }

    /// Changes what is known; gives what `change` gave. What cannot be kept is known here all the same.
    fn learn<T>(self, mut change: impl FnMut(&mut LearnedModel) -> T) -> Result<T> {
        let Self { asking, lesson: AppliedLesson { learned, session }, store, .. } = self;
        match lesson::learn(store, &asking.about(), session, &mut change) {
            Ok((value, now)) => {
                *learned = now;
                Ok(value)
            }
            Err(error) => {
                change(learned);
                Err(error)
            }
        }
    }
}

/// Journals a refusal because of size, and learns from it.
pub(super) fn learn_refusal(
    wire: &mut dyn ExchangeWire<'_>,
    sent: Seq,
    request: &OutgoingRequest,
    why: &mut TooLarge,
) -> Result<()> {
    // Without numbers it may be the room for the answer that was too much: that says nothing of the window.
    why.refusal.is_vague |= why.refusal.limit.is_none() && request.asks_for_much();
    let uncertain = request.uncertain.map_or_else(|| wire.uncertain(), Ok)?;
    let mut context = wire.context();
    if let Some(thread) = &mut context.thread {
        thread.append(lost(sent, &context.asking.model, "overflow", why.why.clone(), None))?;
    }
    let size = RequestSize { tokens: request.tokens + request.added, uncertain, fresh: None };
    let (from, refusal) = (context.lesson_request(sent), why.refusal);
    let kept = context.learn(|learned| learned.refused(&from, size, refusal));
    // A lesson that cannot be kept is no reason not to try again.
    kept.or_else(|error| wire.tell(ExchangeEvent::Trouble(&error)))
}

/// Learns how the provider counts, and whether it left something out.
pub(super) fn learn_usage(
    wire: &mut dyn ExchangeWire<'_>,
    sent: Seq,
    request: &OutgoingRequest,
    usage: &Usage,
) -> Result<()> {
    let tokens = request.tokens + request.added;
    let reported = usage.input_tokens + usage.cache_creation_tokens + usage.cache_read_tokens;
    // Where the counts agree it does not matter what they are of, and the messages need not be read.
    let is_near = |expected: u64| reported.abs_diff(expected) * 20 <= expected;
    let uncertain = match request.uncertain {
        Some(uncertain) => uncertain,
        None if is_near(tokens) || is_near(wire.context().lesson.theirs(tokens)) => 0,
        None => wire.uncertain()?,
    };
    let context = wire.context();
    let is_short = reported * 5 < tokens * 4;
    let fresh = match &context.thread {
        Some(thread) if is_short => fresh(thread, sent, request.tokens)?,
        _ => None,
    };
    let (size, from) = (RequestSize { tokens, uncertain, fresh }, context.lesson_request(sent));
    let mut learned = context.lesson.learned.clone();
    let read = learned.hear(&from, size, usage);
    let read = match learned.is_news_to(&context.lesson.learned, &context.lesson.session) {
        true => context.learn(|learned| learned.hear(&from, size, usage))?,
        false => {
            context.lesson.learned = learned;
            read
        }
    };
    match read {
        UsageVerdict::Truncated { reported, expected } => {
            wire.tell(ExchangeEvent::Truncated { reported, expected })
        }
        UsageVerdict::Whole => Ok(()),
    }
}

/// Tokens of a request that are new since the one before it was answered. `None` where that is not known: nothing was
/// answered before, or the view was changed since.
fn fresh(thread: &Thread<'_>, sent: Seq, tokens: u64) -> Result<Option<u64>> {
    let mut is_answered = false;
    for entry in thread.back() {
        let (seq, head) = entry?;
        match head.kind {
            _ if seq >= sent => {}
            Kind::Assistant => is_answered = true,
            Kind::Sent if is_answered => {
                let Entry::Sent(Sent { context_tokens, purpose: None, .. }) = thread.record(seq)?.entry
                else {
                    continue;
                };
                return Ok(tokens.checked_sub(context_tokens));
            }
            Kind::System | Kind::User | Kind::Tool | Kind::Note | Kind::Sent | Kind::Lost => {}
            Kind::Pin | Kind::Unpin | Kind::Anchor | Kind::AnchorUpdate | Kind::Tell | Kind::Heard => {}
            _ => return Ok(None),
        }
    }
    Ok(None)
}
