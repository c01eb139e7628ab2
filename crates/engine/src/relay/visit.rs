//! One request in its thread, from the moment it is placed until it is answered.
//!
//! A visit holds its thread alone. What it journals it journals through one handle; what it leaves to be tidied up is
//! noted when it ends, however it ends.

use super::claim::Claim;
use super::request::Request;
use super::{Arrival, Fault, Manner, Notes, Relay, Upstream};
use crate::engine::Engine;
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
use komado_provider::SendError;
use komado_store::{Mode, Spot};
use std::time::{Duration, Instant};

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
        tracing::debug_span!("admit").in_scope(|| visit.take_in(&placed, errand))?;
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
    let _span = tracing::debug_span!("place").entered();
    let mut last = None;
    // A fork that was made for this request, and could not be taken then: the next look takes it, and makes no other.
    let mut forked: Option<Placed> = None;
    let (begun, mut look) = (Instant::now(), 0);
    // Another process is waited for by the clock: a conversation goes on there, or here once that process lost it.
    while look < LOOKS || last.as_ref().is_some_and(is_held) && begun.elapsed() < relay.waiting {
        std::thread::sleep(pause(look));
        look += 1;
        if upstream.asking.cancel.is_cancelled() {
            return Err(Fault::Theirs(SendError::Cancelled));
        }
        let before = relay.claims.ended();
        let is_busy = |session: &_, thread: &_| relay.claims.is_busy(session, thread);
        let mut placed = place(&relay.engine, &arrival.skim, &arrival.body, &arrival.caller, &is_busy)?;
        let made = forked.take().filter(|forked| forked.forks_like(&placed));
        let is_made = made.is_some();
        placed.fork = made.and_then(|made| made.fork).or(placed.fork);
        let Some(mut claim) = relay.claims.claim(&placed.session, placed.name()) else { continue };
        if relay.claims.moved_on(&placed.session, &before) {
            forked = Some(placed).filter(|_| is_made);
            continue;
        }
        claim.work();
        let made = if is_made { Ok(()) } else { make(relay, arrival, upstream, manner, &placed) };
        let is_made = made.is_ok();
        match made.and_then(|()| take(&relay.engine, &placed)) {
            Ok(thread) => return Ok((placed, claim, thread)),
            Err(error) if may_pass(&error) => {
                // Where somebody else has gone on in it, it is theirs.
                forked = Some(placed).filter(|_| is_made && is_held(&error));
                last = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let why = "too many requests of one conversation at once: its place changed again and again";
    Err(last.unwrap_or_else(|| std::io::Error::other(why).into()).into())
}

/// How long to wait before a look: whoever is at work is done in a moment, or stays.
fn pause(look: u64) -> Duration {
    Duration::from_millis(if look < LOOKS { look.min(15) } else { 100 })
}

/// True when another process was faster, or holds the session for a moment.
fn may_pass(error: &Error) -> bool {
    use komado_store::Error as Store;
    let Error::Store(error) = error else { return false };
    matches!(
        error,
        Store::ThreadExists(..)
            | Store::SessionExists(_)
            | Store::Moved { .. }
            | Store::Busy { .. }
            | Store::TakenOver(_)
    )
}

/// True when another process holds the session.
fn is_held(error: &Error) -> bool {
    matches!(error, Error::Store(komado_store::Error::Busy { .. }))
}

/// Makes what a place needs and there is not yet: a session, a fork.
fn make(
    relay: &Relay,
    arrival: &Arrival,
    upstream: &Upstream,
    manner: &Manner<'_>,
    placed: &Placed,
) -> Result<()> {
    if placed.how == How::New {
        create(relay, arrival, upstream, manner, placed)?;
    }
    if let Some(fork) = &placed.fork {
        let parent = relay.engine.open(&placed.session, &placed.thread, Mode::Read)?;
        parent.fork(placed.at, fork.clone(), None)?;
    }
    Ok(())
}

/// Opens the thread of a place, as it was at the moment from which the client goes on.
///
/// The place was found while others could write: what they added since may be these very words. Then it is looked for again.
fn take<'e>(engine: &'e Engine, placed: &Placed) -> Result<Thread<'e>> {
    let mut thread = engine.open_as_left(&placed.session, placed.name(), Mode::Write)?;
    let (expected, found) = (placed.stands_at(), thread.last());
    if found != expected {
        return Err(komado_store::Error::Moved { expected, found }.into());
    }
    engine.look_after(&mut thread)?;
    let mut thread = thread.clipping(None);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Clock;
    use komado_core::SessionId;
    use komado_core::message::{Message, Role};
    use komado_core::session::{Meta, TaskKey};
    use komado_store::{Error as Store, MemoryStore};
    use std::sync::Arc;

    struct Noon;

    impl Clock for Noon {
        fn now(&self) -> String {
            "2026-01-15T12:00:00.000000Z".to_owned()
        }
    }

    /// An engine with a session in which one thing was said, and the place of what comes next.
    fn spoken() -> (Engine, Placed) {
        let engine = Engine::new(Arc::new(MemoryStore::default()), Arc::new(Noon));
        let session = SessionId::new("s").unwrap();
        let meta = Meta {
            uuid: "s".to_owned(),
            task_key: TaskKey::local(&session),
            created_at: engine.now(),
            process_id: 1,
            hostname: "窓".to_owned(),
            config: MetaConfig::default(),
            user: None,
            queued: false,
        };
        engine.create(&meta).unwrap();
        say(&engine, &session, &ThreadId::root());
        let (thread, alias, fork) = (ThreadId::root(), None, None);
        (engine, Placed { how: How::Extends, session, thread, at: 1, last: 1, known: 1, alias, fork })
    }

    fn say(engine: &Engine, session: &SessionId, thread: &ThreadId) {
        let mut thread = engine.open(session, thread, Mode::Write).unwrap();
        thread.say(Message::text(Role::User, "窓を開けて")).unwrap();
    }

    #[track_caller]
    fn has_moved(engine: &Engine, placed: &Placed) {
        let error = take(engine, placed).err().expect("it is not as it was found");
        assert!(matches!(error, Error::Store(Store::Moved { expected: 1, found: 2 })), "{error}");
        assert!(may_pass(&error), "it is looked for again");
    }

    #[test]
    fn a_thread_that_another_wrote_to_since_it_was_found_is_looked_for_again() {
        for how in [How::Extends, How::Again, How::Rewinds] {
            let (engine, placed) = spoken();
            let placed = Placed { how, ..placed };
            assert_eq!(take(&engine, &placed).unwrap().last(), 1, "{how:?}");
            say(&engine, &placed.session, &placed.thread);
            has_moved(&engine, &placed);
        }
    }

    #[test]
    fn a_fork_begins_where_it_leaves_the_thread_however_far_that_has_gone() {
        let (engine, placed) = spoken();
        let placed = Placed { how: How::Forks, fork: Some(ThreadId::new("fork_1").unwrap()), ..placed };
        let parent = engine.open(&placed.session, &placed.thread, Mode::Read).unwrap();
        parent.fork(1, placed.name().clone(), None).unwrap();
        say(&engine, &placed.session, &placed.thread);
        assert_eq!(take(&engine, &placed).unwrap().last(), 1);
        say(&engine, &placed.session, placed.name());
        has_moved(&engine, &placed);
    }
}
