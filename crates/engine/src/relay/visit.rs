//! One request in its thread, from the moment it is placed until it is answered.
//!
//! A visit holds its thread alone. What it journals it journals through one handle; what it leaves to be tidied up is
//! noted when it ends, however it ends.

use super::claim::Claim;
use super::request::Request;
use super::{Arrival, Fault, Manner, Notes, Relay, Upstream};
use crate::error::{Error, Result};
use crate::lesson::Lesson;
use crate::place::{How, Placed, place};
use crate::thread::Thread;
use crate::turn::Asking;
use komado_core::admit::Refusal;
use komado_core::budget::Budget;
use komado_core::journal::Mark;
use komado_core::session::MetaConfig;
use komado_core::{Seq, ThreadId};
use komado_store::{Mode, Spot};

/// How often a place is looked for while others are at work.
const LOOKS: u64 = 64;

/// A request at work in its thread.
pub(super) struct Visit<'r> {
    pub(super) relay: &'r Relay,
    pub(super) arrival: &'r Arrival,
    pub(super) upstream: &'r Upstream,
    pub(super) manner: &'r Manner<'r>,
    /// What it asks for beside its transcript.
    pub(super) request: Request,
    pub(super) thread: Thread<'r>,
    /// Behind the thread, so that it is given back when nobody has that open any more.
    _claim: Claim<'r>,
    /// The mark of the next request that is sent.
    pub(super) mark: Mark,
    /// Entries up to here are not in the client's transcript: it leans on what the server remembers.
    pub(super) floor: Seq,
    /// The entry that announces the client's own bytes, when they were announced together with what is new in them.
    pub(super) announced: Option<Seq>,
    /// Tokens of our own tools, for which room is kept; 0 when they are never offered here.
    pub(super) own_tokens: u64,
    /// What is known about the model: read once, and followed from there.
    pub(super) lesson: Lesson,
    pub(super) notes: Notes,
}

/// What a request came for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Errand {
    /// An answer of the model.
    Answer,
    /// Its own transcript, made shorter: nothing of it leaves.
    Compact,
}

impl<'r> Visit<'r> {
    /// Places a request, makes or opens its thread, and takes in what is new.
    pub(super) fn enter(
        relay: &'r Relay,
        arrival: &'r Arrival,
        upstream: &'r Upstream,
        manner: &'r Manner<'r>,
        errand: Errand,
    ) -> std::result::Result<Self, Fault> {
        let request = Request::read(arrival)?;
        let (placed, claim, thread) = find(relay, arrival, upstream, manner)?;
        let notes = Notes {
            session: Some(thread.session().clone()),
            thread: Some(thread.id().clone()),
            placed: placed.how.name(),
            ..Notes::default()
        };
        let lesson = thread.lesson(&upstream.asking)?;
        let floor = if arrival.skim.previous.is_some() { thread.last() } else { 0 };
        let mut visit = Self {
            relay,
            arrival,
            upstream,
            manner,
            request,
            thread,
            _claim: claim,
            mark: Mark::default(),
            floor,
            announced: None,
            own_tokens: 0,
            lesson,
            notes,
        };
        visit.own_tokens = visit.tokens_of_tools(visit.window());
        visit.take_in(&placed, errand)?;
        Ok(visit)
    }

    /// Leaves the thread to others; gives what there is to tell.
    pub(super) fn leave(self) -> Notes {
        self.notes.clone()
    }

    /// True when the request goes out in another dialect than it came in.
    pub(super) fn translates(&self) -> bool {
        self.upstream.asking.provider.dialect != self.arrival.dialect()
    }

    /// True when the view is not just what was said.
    pub(super) fn has_edits(&self) -> bool {
        self.thread.view().edits().next().is_some()
    }

    /// True when what the client sends is not just what the view shows.
    pub(super) fn differs(&self) -> bool {
        self.mark.apart || self.has_edits()
    }

    /// The window by all that is known; 0 when nobody knows.
    pub(super) fn window(&self) -> u64 {
        let Asking { window, is_given, .. } = self.upstream.asking;
        match (window, self.lesson.window.filter(|_| !is_given)) {
            (0, learned) => learned.unwrap_or(0),
            (window, learned) => learned.map_or(window, |learned| window.min(learned)),
        }
    }

    /// The budget in a window of so many tokens of the provider's.
    pub(super) fn budget(&self, window: u64) -> Budget {
        let window = self.lesson.ours(window).saturating_sub(self.own_tokens);
        Budget::new(self.manner.policy.clone(), window, &[self.upstream.asking.model.as_str()])
    }

    /// The longest answer to ask for, where that is another than the client wants.
    pub(super) fn limit(&self, most: Option<u64>) -> Option<u64> {
        // Thoughts count as part of the answer, and the API wants room beside them.
        let least = self.request.thoughts.map_or(0, |thoughts| thoughts + 1);
        match (most.map(|most| most.max(least)), self.request.wish) {
            (Some(most), Some(wish)) => Some(most.min(wish)),
            (most, wish) => most.or(wish),
        }
    }

    /// Notes where the transcript stands.
    pub(super) fn note(&self, name: String, seq: Seq) -> Result<()> {
        let (session, thread) = (self.thread.session().clone(), self.thread.id().clone());
        Ok(self.thread.store().note(&[Spot { name, session, thread, seq }])?)
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        // Told while the thread is still held: who counts the journal anew must not come between.
        let told = self.thread.tell_debt();
        let (counters, at) = if told.is_ok() { Default::default() } else { self.thread.debt() };
        self.relay.idle.touch(self.thread.session(), self.thread.id(), counters, at);
    }
}

type Found<'r> = (Placed, Claim<'r>, Thread<'r>);

/// Looks until a place is found that nobody else has taken meanwhile.
fn find<'r>(
    relay: &'r Relay,
    arrival: &Arrival,
    upstream: &Upstream,
    manner: &Manner<'_>,
) -> std::result::Result<Found<'r>, Fault> {
    let mut last = None;
    for look in 0..LOOKS {
        // Whoever is at work is done in a moment, or stays; a little longer each time.
        std::thread::sleep(std::time::Duration::from_millis(look.min(15)));
        let before = relay.claims.ended();
        let is_busy = |session: &_, thread: &_| relay.claims.is_busy(session, thread);
        let placed = place(&relay.engine, &arrival.skim, &arrival.body, &arrival.caller, &is_busy)?;
        let name = placed.fork.clone().unwrap_or_else(|| placed.thread.clone());
        let Some(mut claim) = relay.claims.claim(&placed.session, &name) else { continue };
        if relay.claims.moved_on(&placed.session, &before) {
            continue;
        }
        claim.work();
        match open(relay, arrival, upstream, manner, &placed, &name) {
            Ok(thread) => return Ok((placed, claim, thread)),
            Err(error) if may_pass(&error) => last = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    let why = "too many requests of one conversation at once: its place changed again and again";
    Err(last.unwrap_or_else(|| std::io::Error::other(why).into()).into())
}

/// True when another process was faster, or holds the session for a moment.
fn may_pass(error: &Error) -> bool {
    use komado_store::Error as Store;
    let Error::Store(error) = error else { return false };
    matches!(
        error,
        Store::ThreadExists(..) | Store::SessionExists(_) | Store::Moved { .. } | Store::Busy { .. }
    )
}

/// Opens the thread of a place, as it was at the moment from which the client goes on.
fn open<'r>(
    relay: &'r Relay,
    arrival: &Arrival,
    upstream: &Upstream,
    manner: &Manner<'_>,
    placed: &Placed,
    name: &ThreadId,
) -> Result<Thread<'r>> {
    let engine = &relay.engine;
    if placed.how == How::New {
        create(relay, arrival, upstream, manner, placed)?;
    }
    if let Some(fork) = &placed.fork {
        let parent = engine.open(&placed.session, &placed.thread, Mode::Read)?;
        parent.fork(placed.at, fork.clone(), None)?;
    }
    let mut thread = engine.open(&placed.session, name, Mode::Write)?.clipping(None);
    match placed.how {
        How::Again | How::Rewinds if placed.at < thread.last() => match thread.rewind(placed.at) {
            // It stands there already.
            Ok(_) | Err(Error::Refused(Refusal::NoEffect { .. })) => {}
            Err(other) => return Err(other),
        },
        How::Extends | How::Again => thread.give_up_earlier()?,
        _ => {}
    }
    Ok(thread)
}

/// Makes a session for a client that nobody knows.
fn create(
    relay: &Relay,
    arrival: &Arrival,
    upstream: &Upstream,
    manner: &Manner<'_>,
    placed: &Placed,
) -> Result<()> {
    let asking = &upstream.asking;
    let config = MetaConfig {
        llm_provider: Some(asking.provider.name.clone()),
        model: Some(asking.model.clone()),
        context_length: u32::try_from(asking.window).ok().filter(|window| *window > 0),
        meter: (manner.meter)(&asking.model).name().to_owned(),
        alias: placed.alias.clone(),
        ..MetaConfig::default()
    };
    let meta = (manner.meta)(&placed.session, &arrival.caller, config);
    relay.engine.create(&meta)?;
    if let Some(alias) = &placed.alias {
        let (session, thread) = (placed.session.clone(), ThreadId::root());
        relay.engine.store().note(&[Spot { name: alias.clone(), session, thread, seq: 0 }])?;
    }
    Ok(())
}
