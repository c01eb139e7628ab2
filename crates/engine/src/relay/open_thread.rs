//! Finds the thread that a request belongs to, or makes it, and opens it for this request alone.

use super::claim::Claim;
use super::{Arrival, Fault, Manner, Relay, Upstream};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::place::{How, Placed, place};
use crate::thread::Thread;
use komado_core::ThreadId;
use komado_core::admit::Refusal;
use komado_core::session::MetaConfig;
use komado_provider::SendError;
use komado_store::{Mode, Spot};
use std::time::{Duration, Instant};

/// How often a place is looked for while others are at work.
const LOOKS: u64 = 64;

type Found<'r> = (Placed, Claim<'r>, Thread<'r>);

/// Looks until a place is found that nobody else has taken meanwhile.
pub(super) fn find<'r>(
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
