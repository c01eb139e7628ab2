//! One exchange with a model: fit, render, announce, send, receive, journal, learn; smaller and again when it was too large.
//!
//! [`exchange`] serves `ask`, tasks, summaries, chronicles and the gateway. What differs between them is a [`Wire`]: how a
//! request is made (a rendered file, or a splice of a client's bytes) and where its response goes. The journal has the
//! request before it leaves and the reply before the caller goes on.

use crate::error::{Error, Result};
use crate::lesson;
use crate::lesson::{Lesson, Read, Size};
use crate::request_entries::{Purpose, lost, reply, sent};
use crate::thread::Thread;
use crate::turn::{Asking, News};
use komado_core::journal::{Entry, Reply, Usage};
use komado_core::message::Message;
use komado_core::{Role, Seq};
use komado_provider::Heard;
use komado_store::Store;
use request::{OutgoingRequest, Room};
use response::{Lost, Outcome, TooLarge, Why, words};
use tracing::debug_span;

pub(crate) mod request;
pub(crate) mod response;

/// How one kind of request is made, and where its response goes.
pub(crate) trait Wire<'t> {
    /// Which model is asked, and the thread that keeps the exchange.
    fn context(&mut self) -> Context<'_, 't>;

    /// Makes what is shown fit into `room`. False when it cannot be made to, and the request may leave all the same.
    fn fit(&mut self, room: &mut Room) -> Result<bool>;

    /// Writes the request.
    fn render(&mut self, room: &Room) -> Result<OutgoingRequest>;

    /// Sends it, and hands on the response.
    fn send(&mut self, request: &OutgoingRequest) -> Outcome;

    /// Hears what happens. An error ends the exchange.
    fn tell(&mut self, news: News<'_>) -> Result<()>;

    /// The name under which a reply is found again by the provider's own id.
    fn reply_id(&self, _id: &str) -> Option<String> {
        None
    }

    /// Tokens that a provider may count in its own way, where rendering did not count them.
    fn uncertain(&self) -> Result<u64> {
        Ok(0)
    }
}

/// Which model is asked, and the thread that keeps the exchange.
pub(crate) struct Context<'w, 't> {
    pub(crate) asking: &'w Asking,
    /// What is known about the model, followed from answer to answer.
    pub(crate) lesson: &'w mut Lesson,
    pub(crate) store: &'w dyn Store,
    /// `None` for a question that its caller journals.
    pub(crate) thread: Option<&'w mut Thread<'t>>,
}

/// How an exchange ended. `journaled` is the entry that says so.
pub(crate) enum Exchanged {
    /// With an answer.
    Answer { response: Box<Heard>, reply: Reply, journaled: Result<Seq> },
    /// Without one, or with half of one.
    Lost { lost: Lost, journaled: Result<Seq> },
    /// The request was too large to the end.
    TooLarge(Option<TooLarge>),
}

/// Asks a model until it answers, or cannot.
pub(crate) fn exchange<'t>(wire: &mut dyn Wire<'t>, mut room: Room) -> Result<Exchanged> {
    let mut refused = None;
    for attempt in 1..=wire.context().asking.tries + 1 {
        let has_bound = room.budget.is_some();
        let fits = debug_span!("fit").in_scope(|| if has_bound { wire.fit(&mut room) } else { Ok(true) })?;
        if !fits && refused.is_some() {
            break;
        }
        let request = wire.render(&room)?;
        let sent = announce(wire, &request)?;
        match debug_span!("upstream").in_scope(|| wire.send(&request)) {
            Outcome::Answer(response) => return receive(wire, sent, request, response),
            Outcome::Lost(lost) => return Ok(lose(wire, sent, lost)),
            Outcome::TooLarge(mut why) => {
                learn_refusal(wire, sent, &request, &mut why)?;
                wire.tell(News::TooLarge { attempt, why: &why.why, limit: why.refusal.limit })?;
                let Context { asking, lesson, .. } = wire.context();
                room.shrink(&why, &request, asking, lesson);
                refused = Some(why);
            }
        }
    }
    Ok(Exchanged::TooLarge(refused))
}

/// Journals that a request is about to leave; gives its entry.
fn announce(wire: &mut dyn Wire<'_>, request: &OutgoingRequest) -> Result<Seq> {
    if let Some(seq) = request.announced {
        return Ok(seq);
    }
    let Context { asking, thread: Some(thread), .. } = wire.context() else { return Ok(0) };
    let entry = sent(&asking.model, request.tokens, Purpose::Answer(&request.digest, request.mark.clone()));
    let seq = thread.append(entry)?;
    wire.tell(News::Sent { seq, tokens: request.tokens, bytes: request.body.len() })?;
    Ok(seq)
}

/// Journals a whole answer, and learns from it.
fn receive(
    wire: &mut dyn Wire<'_>,
    sent: Seq,
    request: OutgoingRequest,
    response: Box<Heard>,
) -> Result<Exchanged> {
    let _span = debug_span!("journal").entered();
    let id = response.id.as_deref().filter(|id| !id.is_empty()).and_then(|id| wire.reply_id(id));
    let Context { asking, thread, .. } = wire.context();
    let model = response.model.clone().unwrap_or_else(|| asking.model.clone());
    let finish = response.finish.as_deref().unwrap_or_default();
    let reply = Reply { id, ..reply(Some(sent), Some(model), finish, response.usage) };
    let message = response.message().unwrap_or_else(|| Message::text(Role::Assistant, ""));
    let journaled = match thread.map_or(Ok(sent), |thread| thread.reply(message, reply.clone())) {
        Err(Error::Refused(why)) => {
            let error = Why::Answer(format!("the answer cannot be taken in: {why}"));
            return Ok(lose(wire, sent, Lost { finish: "refused", error, response: Some(response) }));
        }
        journaled => journaled,
    };
    if journaled.is_ok() {
        // What is learned and tidied up beside an answer is no reason to lose it.
        let learned = response.usage.map_or(Ok(()), |usage| learn_usage(wire, &request, &usage));
        for error in [learned, request.body.remove()].into_iter().filter_map(Result::err) {
            wire.tell(News::Trouble(&error))?;
        }
    }
    Ok(Exchanged::Answer { response, reply, journaled })
}

/// Journals that a request brought no message, and what had come of one.
fn lose(wire: &mut dyn Wire<'_>, to: Seq, lost: Lost) -> Exchanged {
    let Context { asking, thread, .. } = wire.context();
    let heard = lost.response.as_deref();
    let (usage, said) = (heard.and_then(|heard| heard.usage), heard.and_then(Heard::message));
    let entry = Entry::Lost(Reply {
        error: Some(lost.error.to_string()),
        heard: said.map(|message| words(&message)),
        ..reply(Some(to), Some(asking.model.clone()), lost.finish, usage)
    });
    let journaled = thread.map_or(Ok(to), |thread| thread.append(entry));
    Exchanged::Lost { lost, journaled }
}

/// Journals a refusal because of size, and learns from it.
fn learn_refusal(
    wire: &mut dyn Wire<'_>,
    sent: Seq,
    request: &OutgoingRequest,
    why: &mut TooLarge,
) -> Result<()> {
    // Without numbers it may be the room for the answer that was too much: that says nothing of the window.
    why.refusal.is_vague |= why.refusal.limit.is_none() && request.max_tokens.is_some();
    let Context { asking, lesson, store, thread } = wire.context();
    if let Some(thread) = thread {
        thread.append(lost(sent, &asking.model, "overflow", why.why.clone(), None))?;
    }
    let size = Size { tokens: request.tokens, uncertain: request.uncertain.unwrap_or(0) };
    let mut refused = |lesson: &mut Lesson| {
        lesson.refused(size, why.refusal, asking.probed);
        *lesson
    };
    match lesson::learn(store, &asking.about(), &mut refused) {
        Ok(learned) => *lesson = learned.unwrap_or(*lesson),
        // A lesson that cannot be kept is no reason not to try again.
        Err(error) => {
            refused(lesson);
            wire.tell(News::Trouble(&error))?;
        }
    }
    Ok(())
}

/// Learns how the provider counts, and whether it left something out.
fn learn_usage(wire: &mut dyn Wire<'_>, request: &OutgoingRequest, usage: &Usage) -> Result<()> {
    let tokens = request.tokens + request.added;
    let reported = usage.input_tokens + usage.cache_creation_tokens + usage.cache_read_tokens;
    // Where the counts agree it does not matter what they are of, and the messages need not be read.
    let is_near = |expected: u64| reported.abs_diff(expected) * 20 <= expected;
    let uncertain = match request.uncertain {
        Some(uncertain) => uncertain,
        None if is_near(tokens) || is_near(wire.context().lesson.theirs(tokens)) => 0,
        None => wire.uncertain()?,
    };
    let size = Size { tokens, uncertain };
    let Context { asking, lesson, store, .. } = wire.context();
    let hear = |lesson: &mut Lesson| (lesson.hear(size, usage, asking.probed), *lesson);
    let (mut read, mut learned) = hear(&mut lesson.clone());
    if learned.is_news_to(lesson) {
        (read, learned) = lesson::learn(store, &asking.about(), hear)?.unwrap_or((read, learned));
    }
    *lesson = learned;
    match read {
        Read::Truncated { reported, expected } => wire.tell(News::Truncated { reported, expected }),
        Read::Whole => Ok(()),
    }
}
