//! What is derived is brought up to date when a thread rests, not while a client waits.
//!
//! The journal is durable before anything is sent, and the table of sessions hears its counters when a request ends; files
//! for people follow here, and counters that the table would not take. Nothing is lost when they do not: they are made
//! again from the journal.

use super::Relay;
use crate::error::Error;
use komado_core::session::Counters;
use komado_core::{SessionId, ThreadId};
use komado_store::Mode;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Threads that changed since they were settled.
#[derive(Debug, Default)]
pub(super) struct Idle(Mutex<Touched>);

#[derive(Debug, Default)]
struct Touched {
    round: u32,
    threads: HashMap<(SessionId, ThreadId), Debt>,
}

/// What a thread's handle had not told the table of sessions yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Debt {
    pub(super) counters: Counters,
    pub(super) at: Option<String>,
    round: u32,
}

impl Idle {
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
        let due: Vec<(SessionId, ThreadId)> = {
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
        let settled = relay.engine.open_as_left(session, thread, Mode::Write).and_then(|mut opened| {
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
    use komado_store::Error as Store;
    matches!(error, Error::Store(Store::NoSession(_) | Store::NoThread(..) | Store::Ended(..)))
}
