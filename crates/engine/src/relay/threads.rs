//! The threads that requests work in: found, claimed, opened, and tidied up when they rest.
//!
//! Two requests at once in one thread would write over each other. A claim is held for as long as a request is under way,
//! and ends with it, however that ends. It knows this process alone; between processes the store's lease decides.
//!
//! The journal is durable before anything is sent, and the table of sessions hears its counters when a request ends. Files
//! for people follow when a thread rests, and counters that the table would not take. Nothing is lost when they do not:
//! they are made again from the journal.

use super::{ClientRequest, Relay, RelayConfig, RelayFault, RelayUpstream};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::exchange::request::uncertain;
use crate::place::{PlacedTranscript, Placement, place};
use crate::thread::Thread;
use komado_core::admit::EntryRefusal;
use komado_core::harness::agent_named;
use komado_core::message::Message;
use komado_core::session::{Counters, MetaConfig};
use komado_core::{Seq, SessionId, ThreadId};
use komado_provider::SendError;
use komado_store::{Error as StoreError, OpenMode, TranscriptPlace};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a place is looked for while others are at work.
const LOOKS: u64 = 64;

type Found<'r> = (PlacedTranscript, ThreadClaim<'r>, Thread<'r>);

/// Looks until a place is found that no other request has taken meanwhile.
pub(super) fn find<'r>(
    relay: &'r Relay,
    arrival: &ClientRequest,
    upstream: &RelayUpstream,
    manner: &RelayConfig<'_>,
) -> std::result::Result<Found<'r>, RelayFault> {
    let _span = tracing::debug_span!("place").entered();
    let mut last = None;
    // A fork that was made for this request, and could not be taken then: the next look takes it, and makes no other.
    let mut forked: Option<PlacedTranscript> = None;
    let (begun, mut look) = (Instant::now(), 0);
    // Another process is waited for by the clock: a conversation goes on there, or here once that process lost it.
    while look < LOOKS || last.as_ref().is_some_and(is_held) && begun.elapsed() < relay.waiting {
        std::thread::sleep(pause(look));
        look += 1;
        if upstream.asking.cancel.is_cancelled() {
            return Err(RelayFault::Theirs(SendError::Cancelled));
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
        claim.hold = Hold::Works;
        let made = if is_made { Ok(()) } else { make(relay, arrival, upstream, manner, &placed) };
        let is_made = made.is_ok();
        match made.and_then(|()| take(&relay.engine, &placed)) {
            Ok(thread) => return Ok((placed, claim, thread)),
            Err(error) if may_pass(&error) => {
                // A fork in which another request has gone on is that request's.
                forked = Some(placed).filter(|_| is_made && is_held(&error));
                last = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let why = "too many requests of one conversation at once: its place changed again and again";
    Err(last.unwrap_or_else(|| std::io::Error::other(why).into()).into())
}

/// How long to wait before a look: a request at work is done in a moment, or stays.
fn pause(look: u64) -> Duration {
    Duration::from_millis(if look < LOOKS { look.min(15) } else { 100 })
}

/// True when another process was faster, or holds the session for a moment.
fn may_pass(error: &Error) -> bool {
    let Error::Store(error) = error else { return false };
    matches!(
        error,
        StoreError::ThreadExists(..)
            | StoreError::SessionExists(_)
            | StoreError::Moved { .. }
            | StoreError::Busy { .. }
            | StoreError::TakenOver(_)
    )
}

/// True when another process holds the session.
fn is_held(error: &Error) -> bool {
    matches!(error, Error::Store(StoreError::Busy { .. }))
}

/// Opens the thread of a place, as it was at the moment from which the client goes on.
///
/// The place was found while others could write: what they added since may be these very words. Then it is looked for again.
fn take<'e>(engine: &'e Engine, placed: &PlacedTranscript) -> Result<Thread<'e>> {
    let mut thread = engine.open_as_left(&placed.session, placed.name(), OpenMode::Write)?;
    let (expected, found) = (placed.stands_at(), thread.last());
    if found != expected {
        return Err(StoreError::Moved { expected, found }.into());
    }
    engine.look_after(&mut thread)?;
    let mut thread = thread.clipping(None);
    match placed.how {
        Placement::Again | Placement::Rewinds if placed.at < thread.last() => {
            match thread.rewind(placed.at) {
                // It stands there already.
                Ok(_) | Err(Error::Refused(EntryRefusal::NoEffect { .. })) => {}
                Err(other) => return Err(other),
            }
        }
        Placement::Extends | Placement::Again => thread.give_up_earlier()?,
        _ => {}
    }
    Ok(thread)
}

/// Makes what a place needs and there is not yet: a session, a fork.
fn make(
    relay: &Relay,
    arrival: &ClientRequest,
    upstream: &RelayUpstream,
    manner: &RelayConfig<'_>,
    placed: &PlacedTranscript,
) -> Result<()> {
    let asking = &upstream.asking;
    if placed.how == Placement::New {
        let config = MetaConfig {
            llm_provider: Some(asking.provider.name.clone()),
            model: Some(asking.model.clone()),
            context_length: u32::try_from(asking.window).ok().filter(|window| *window > 0),
            meter: (manner.meter)(&asking.model).name().to_owned(),
            alias: placed.alias.clone(),
            agent: arrival.caller.agent.as_deref().and_then(agent_named),
            project: arrival.project(),
            ..MetaConfig::default()
        };
        relay.engine.create(&(manner.meta)(&placed.session, &arrival.caller, config))?;
        if let Some(alias) = &placed.alias {
            let (session, thread) = (placed.session.clone(), ThreadId::root());
            relay.engine.store().note(&[TranscriptPlace { name: alias.clone(), session, thread, seq: 0 }])?;
        }
    }
    // A new session may begin with a request beside the conversation.
    if let Some(fork) = &placed.fork {
        let parent = relay.engine.open(&placed.session, &placed.thread, OpenMode::Read)?;
        parent.fork(placed.at, fork.clone(), None)?;
    }
    Ok(())
}

type Name = (SessionId, ThreadId);

/// Rows in which ends are counted: enough that sessions rarely share one.
const ROWS: usize = 64;

/// The threads in which a request is under way.
#[derive(Debug, Default)]
pub(super) struct ThreadClaims {
    held: Mutex<Held>,
    /// Said when a thread was tidied up.
    tidied: Condvar,
}

#[derive(Debug)]
struct Held {
    names: HashSet<Name>,
    /// Threads that are being tidied up: a request waits for that, it does not go elsewhere.
    tidying: HashSet<Name>,
    /// How many claims ended, by session.
    ended: Ended,
}

/// How many claims had ended at a moment, by session.
type Ended = [u64; ROWS];

impl Default for Held {
    fn default() -> Self {
        Self { names: HashSet::new(), tidying: HashSet::new(), ended: [0; ROWS] }
    }
}

fn row(session: &SessionId) -> usize {
    let mut hasher = DefaultHasher::new();
    session.as_str().hash(&mut hasher);
    (hasher.finish() % ROWS as u64) as usize
}

impl ThreadClaims {
    fn held(&self) -> MutexGuard<'_, Held> {
        // A panic elsewhere leaves the set as it was: claims end when they are dropped.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_busy(&self, session: &SessionId, thread: &ThreadId) -> bool {
        self.held().names.contains(&(session.clone(), thread.clone()))
    }

    /// What has ended so far.
    fn ended(&self) -> Ended {
        self.held().ended
    }

    /// True when a request in the session ended since `before` was taken: what was found out then may be old.
    fn moved_on(&self, session: &SessionId, before: &Ended) -> bool {
        let row = row(session);
        self.held().ended[row] != before[row]
    }

    /// Claims a thread; `None` when another request was faster.
    fn claim(&self, session: &SessionId, thread: &ThreadId) -> Option<ThreadClaim<'_>> {
        let name = (session.clone(), thread.clone());
        let mut held = self.held();
        while held.tidying.contains(&name) {
            held = self.tidied.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        // A claim that is none must not be made at all: dropping it would end the other one.
        held.names.insert(name.clone()).then(|| ThreadClaim { claims: self, name, hold: Hold::Looks })
    }

    /// Claims a thread to tidy it up; `None` while a request is at work there.
    fn tidy(&self, session: &SessionId, thread: &ThreadId) -> Option<ThreadClaim<'_>> {
        let name = (session.clone(), thread.clone());
        let mut held = self.held();
        let is_free = !held.names.contains(&name) && held.tidying.insert(name.clone());
        is_free.then(|| ThreadClaim { claims: self, name, hold: Hold::Tidies })
    }
}

/// A thread that is ours until this is dropped.
#[derive(Debug)]
pub(super) struct ThreadClaim<'c> {
    claims: &'c ThreadClaims,
    name: Name,
    hold: Hold,
}

/// What a claim is held for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hold {
    /// A request that has changed nothing yet: when it is given up, others need not look again.
    Looks,
    /// A request that may have changed the thread.
    Works,
    /// Tidying up.
    Tidies,
}

impl Drop for ThreadClaim<'_> {
    fn drop(&mut self) {
        let mut held = self.claims.held();
        if self.hold == Hold::Tidies {
            held.tidying.remove(&self.name);
            self.claims.tidied.notify_all();
            return;
        }
        held.names.remove(&self.name);
        held.ended[row(&self.name.0)] += u64::from(self.hold == Hold::Works);
    }
}

/// Threads that changed since they were settled.
#[derive(Debug, Default)]
pub(super) struct IdleThreads(Mutex<Touched>);

#[derive(Debug, Default)]
struct Touched {
    round: u32,
    threads: HashMap<Name, Debt>,
}

/// What a thread's handle had not told the table of sessions yet.
#[derive(Clone, Debug, Default)]
struct Debt {
    counters: Counters,
    at: Option<String>,
    round: u32,
}

impl IdleThreads {
    fn touched(&self) -> MutexGuard<'_, Touched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread changed.
    pub(super) fn touch(
        &self,
        session: &SessionId,
        thread: &ThreadId,
        counters: Counters,
        at: Option<String>,
    ) {
        let mut touched = self.touched();
        let round = touched.round;
        let debt = touched.threads.entry((session.clone(), thread.clone())).or_default();
        debt.counters += counters;
        debt.at = at.or(debt.at.take());
        debt.round = round;
    }

    /// Settles the threads that rested for `rounds` calls.
    pub(super) fn settle(&self, relay: &Relay, rounds: u32) -> usize {
        let due: Vec<Name> = {
            let mut touched = self.touched();
            touched.round = touched.round.wrapping_add(1);
            let round = touched.round;
            let rested = |debt: &Debt| round.wrapping_sub(debt.round) > rounds;
            touched.threads.iter().filter(|(_, debt)| rested(debt)).map(|(name, _)| name.clone()).collect()
        };
        due.iter().filter(|(session, thread)| self.settle_one(relay, session, thread).is_some()).count()
    }

    fn settle_one(&self, relay: &Relay, session: &SessionId, thread: &ThreadId) -> Option<()> {
        let _tidying = relay.claims.tidy(session, thread)?;
        let debt = self.touched().threads.remove(&(session.clone(), thread.clone()))?;
        let settled = relay.engine.open_as_left(session, thread, OpenMode::Write).and_then(|mut opened| {
            opened.owe(debt.counters, debt.at.clone());
            opened.settle()
        });
        if let Err(error) = settled {
            // A session that was removed or ended meanwhile owes nothing; anything else may pass.
            if !is_gone(&error) {
                self.touch(session, thread, debt.counters, debt.at);
            }
            return None;
        }
        Some(())
    }
}

fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Store(StoreError::NoSession(_) | StoreError::NoThread(..) | StoreError::Ended(..)))
}

/// Most threads that are remembered; with one more all are forgotten.
const REMEMBERED: usize = 4_096;

/// How much of each view a provider may count otherwise, added up while a thread grows: each message is read once, not
/// with every answer. After an edit, a rewind or a restart it is counted anew.
#[derive(Debug, Default)]
pub(super) struct UncertainTokens(Mutex<HashMap<Name, Sum>>);

/// Uncertain tokens of a view up to an entry, with the edits that were in force.
#[derive(Clone, Debug, Default)]
struct Sum {
    upto: Seq,
    edits: Vec<Seq>,
    tokens: u64,
}

impl UncertainTokens {
    /// Those of a thread's view.
    pub(super) fn of(&self, thread: &Thread<'_>) -> Result<u64> {
        let (view, source, meter) = (thread.view(), thread.source(), thread.meter());
        let name = (thread.session().clone(), thread.id().clone());
        let edits: Vec<Seq> = view.edits().collect();
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&name).cloned();
        let is_same = |sum: &Sum| sum.edits == edits && view.on_path(sum.upto);
        let Sum { upto, mut tokens, .. } = known.filter(is_same).unwrap_or_default();
        for item in view.items(source)?.into_iter().filter(|item| item.seq > upto) {
            view.pour_item(source, item, &mut |_, message: &Message| {
                tokens = tokens.saturating_add(uncertain(&message.parts, meter));
                Ok::<(), Error>(())
            })?;
        }
        let mut sums = lock();
        if sums.len() >= REMEMBERED && !sums.contains_key(&name) {
            sums.clear();
        }
        sums.insert(name, Sum { upto: thread.last(), edits, tokens });
        Ok(tokens)
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::engine::Clock;
    use komado_core::message::Role;
    use komado_core::session::{Meta, TaskKey};
    use komado_store::MemoryStore;
    use std::sync::Arc;

    struct Noon;

    impl Clock for Noon {
        fn now(&self) -> String {
            "2026-01-15T12:00:00.000000Z".to_owned()
        }
    }

    /// An engine with a session in which one thing was said, and the place of what comes next.
    fn spoken() -> (Engine, PlacedTranscript) {
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
        (
            engine,
            PlacedTranscript {
                how: Placement::Extends,
                session,
                thread,
                at: 1,
                last: 1,
                known: 1,
                alias,
                fork,
            },
        )
    }

    fn say(engine: &Engine, session: &SessionId, thread: &ThreadId) {
        let mut thread = engine.open(session, thread, OpenMode::Write).unwrap();
        thread.say(Message::text(Role::User, "窓を開けて")).unwrap();
    }

    #[track_caller]
    fn has_moved(engine: &Engine, placed: &PlacedTranscript) {
        let error = take(engine, placed).err().expect("it is not as it was found");
        assert!(matches!(error, Error::Store(StoreError::Moved { expected: 1, found: 2 })), "{error}");
        assert!(may_pass(&error), "it is looked for again");
    }

    #[test]
    fn a_thread_that_another_wrote_to_since_it_was_found_is_looked_for_again() {
        for how in [Placement::Extends, Placement::Again, Placement::Rewinds] {
            let (engine, placed) = spoken();
            let placed = PlacedTranscript { how, ..placed };
            assert_eq!(take(&engine, &placed).unwrap().last(), 1, "{how:?}");
            say(&engine, &placed.session, &placed.thread);
            has_moved(&engine, &placed);
        }
    }

    #[test]
    fn a_fork_begins_where_it_leaves_the_thread_however_far_that_has_gone() {
        let (engine, placed) = spoken();
        let placed = PlacedTranscript {
            how: Placement::Forks,
            fork: Some(ThreadId::new("fork_1").unwrap()),
            ..placed
        };
        let parent = engine.open(&placed.session, &placed.thread, OpenMode::Read).unwrap();
        parent.fork(1, placed.name().clone(), None).unwrap();
        say(&engine, &placed.session, &placed.thread);
        assert_eq!(take(&engine, &placed).unwrap().last(), 1);
        say(&engine, &placed.session, placed.name());
        has_moved(&engine, &placed);
    }

    #[test]
    fn a_thread_is_claimed_once_and_free_again_when_the_claim_is_dropped() {
        let (claims, session) = (ThreadClaims::default(), SessionId::new("s").unwrap());
        let root = ThreadId::root();
        let claim = claims.claim(&session, &root);
        assert!(
            claim.is_some() && claims.claim(&session, &root).is_none() && claims.is_busy(&session, &root)
        );
        drop(claim);
        assert!(claims.claim(&session, &root).is_some());
    }

    #[test]
    fn only_a_claim_that_worked_makes_others_look_again() {
        let (claims, session) = (ThreadClaims::default(), SessionId::new("s").unwrap());
        let before = claims.ended();
        drop(claims.claim(&session, &ThreadId::root()));
        assert!(!claims.moved_on(&session, &before), "it was given up");
        let mut claim = claims.claim(&session, &ThreadId::root()).unwrap();
        claim.hold = Hold::Works;
        assert!(!claims.moved_on(&session, &before), "it has not ended");
        drop(claim);
        assert!(claims.moved_on(&session, &before));
    }

    #[test]
    fn a_thread_that_is_tidied_up_is_waited_for_and_is_not_busy() {
        let (claims, session) = (ThreadClaims::default(), SessionId::new("s").unwrap());
        let root = ThreadId::root();
        let tidying = claims.tidy(&session, &root);
        assert!(tidying.is_some() && !claims.is_busy(&session, &root));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| claims.claim(&session, &root).is_some());
            drop(tidying);
            assert!(waiting.join().unwrap());
        });
        let claim = claims.claim(&session, &root);
        assert!(claim.is_some() && claims.tidy(&session, &root).is_none());
    }
}
