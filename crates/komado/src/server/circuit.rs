//! A store that does not answer is not asked by every request.
//!
//! A call that waited long in vain opens the circuit: for a second no request waits for the store, and then one request a
//! second tries, until a call succeeds that proves enough. A server that only reads (a replica, a full disk) answers every
//! question and keeps nothing: what a write opened, only a write closes. What fails at once costs no request anything; it is
//! remembered for a while if nothing could be written, and changes nothing else.

use komado_store::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a call must have waited to be too long for others.
const LONG: Duration = Duration::from_millis(500);
/// How long no request waits.
const REST: Duration = Duration::from_secs(1);
/// How long it counts that something could not be written. Not for ever: who is sent no requests never hears that it can.
const FRESH: Duration = Duration::from_secs(5);

/// What a call needs of the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum StoreNeed {
    /// Nothing: it is answered from memory, and proves nothing.
    Nothing,
    /// That it reads.
    Read,
    /// That it writes, unless there turns out to be nothing to write: it fails as a write, and proves no more than a read.
    Maybe,
    /// That it writes.
    Write,
}

/// Whether the store is worth asking.
#[derive(Default)]
pub(crate) struct StoreCircuit(Mutex<State>);

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// How often it was opened.
    openings: u64,
    /// When something could not be written last, and why; nothing was written since.
    unwritten: Option<(Instant, String)>,
}

struct Open {
    until: Instant,
    why: String,
    /// What was needed in vain.
    need: StoreNeed,
}

/// How things stood when a request was let in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CircuitEntry(u64);

impl State {
    fn proved(&mut self, need: StoreNeed) {
        let is_closed_by =
            |open: &Open| need == StoreNeed::Write || need >= StoreNeed::Read && open.need <= StoreNeed::Read;
        self.open = self.open.take().filter(|open| !is_closed_by(open));
        if need == StoreNeed::Write {
            self.unwritten = None;
        }
    }

    fn waited_in_vain(&mut self, need: StoreNeed, why: String) {
        let need = self.open.as_ref().map_or(need, |open| open.need.max(need));
        self.open = Some(Open { until: Instant::now() + REST, why, need });
        self.openings += 1;
    }
}

impl StoreCircuit {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call of the store is over.
    pub(crate) fn told(&self, need: StoreNeed, took: Duration, error: Option<&Error>) {
        let mut state = self.state();
        let Some(error) = error else {
            return state.proved(if need == StoreNeed::Maybe { StoreNeed::Read } else { need });
        };
        let is_away = error.is_away();
        if need >= StoreNeed::Maybe && (is_away || matches!(error, Error::Refused { .. })) {
            state.unwritten = Some((Instant::now(), error.to_string()));
        }
        match is_away {
            true if took >= LONG => state.waited_in_vain(need, error.to_string()),
            true => {}
            // It answers; whether it writes is not said.
            false => state.proved(need.min(StoreNeed::Read)),
        }
    }

    /// Whether to ask the store now; if not, why. Who comes when the rest is over tries for all.
    pub(crate) fn check(&self) -> Result<CircuitEntry, String> {
        let mut state = self.state();
        let entered = CircuitEntry(state.openings);
        let Some(open) = state.open.as_mut() else { return Ok(entered) };
        let now = Instant::now();
        if now < open.until {
            return Err(open.why.clone());
        }
        open.until = now + REST;
        Ok(entered)
    }

    /// Whether to go on asking, for a request that was let in: not when a request has waited in vain since, be it itself.
    pub(crate) fn check_again(&self, entered: CircuitEntry) -> Result<(), String> {
        let state = self.state();
        match &state.open {
            Some(open) if state.openings != entered.0 => Err(open.why.clone()),
            _ => Ok(()),
        }
    }

    /// Why nothing can be kept just now, by what calls have told: the store is not asked, and no try is used up.
    pub(crate) fn trouble(&self) -> Option<String> {
        let state = self.state();
        let open = state.open.as_ref().filter(|open| Instant::now() < open.until);
        let unwritten = state.unwritten.as_ref().filter(|(at, _)| at.elapsed() < FRESH);
        open.map(|open| &open.why).or(unwritten.map(|(_, why)| why)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> Error {
        Error::Away { place: "db:5432".to_owned(), why: "応答がない".to_owned() }
    }

    fn refused() -> Error {
        Error::Refused { place: "db:5432".to_owned(), why: "読み取り専用".to_owned() }
    }

    #[test]
    fn only_a_long_wait_in_vain_opens_it_and_an_answer_closes_it() {
        let circuit = StoreCircuit::default();
        circuit.told(StoreNeed::Read, Duration::ZERO, Some(&away()));
        assert!(circuit.check().is_ok(), "it cost nothing");
        circuit.told(StoreNeed::Read, LONG, Some(&Error::Poisoned));
        assert!(circuit.check().is_ok(), "the store answers");
        circuit.told(StoreNeed::Read, LONG, Some(&away()));
        assert!(circuit.check().unwrap_err().contains("db:5432"));
        circuit.told(StoreNeed::Read, Duration::ZERO, None);
        assert!(circuit.check().is_ok());
    }

    #[test]
    fn when_the_rest_is_over_one_tries_for_all() {
        let circuit = StoreCircuit::default();
        let past = Open { until: Instant::now(), why: String::new(), need: StoreNeed::Read };
        circuit.state().open = Some(past);
        let entered = circuit.check().unwrap();
        assert!(circuit.check().is_err(), "another has gone to see");
        assert!(circuit.check_again(entered).is_ok(), "that one is not stopped by itself");
        circuit.told(StoreNeed::Read, LONG, Some(&away()));
        assert!(circuit.check_again(entered).is_err(), "it has seen");
    }

    #[test]
    fn who_came_in_before_it_opened_waits_for_nothing_more() {
        let circuit = StoreCircuit::default();
        let entered = circuit.check().unwrap();
        circuit.told(StoreNeed::Read, LONG, Some(&away()));
        assert!(circuit.check_again(entered).is_err());
        circuit.told(StoreNeed::Read, Duration::ZERO, None);
        assert!(circuit.check_again(entered).is_ok(), "it answers again");
    }

    #[test]
    fn what_a_write_opened_only_a_write_closes() {
        for need in [StoreNeed::Maybe, StoreNeed::Write] {
            let circuit = StoreCircuit::default();
            circuit.told(need, LONG, Some(&away()));
            for weaker in [StoreNeed::Nothing, StoreNeed::Read, StoreNeed::Maybe] {
                circuit.told(weaker, Duration::ZERO, None);
                assert!(circuit.check().is_err(), "{weaker:?}");
            }
            circuit.told(StoreNeed::Write, Duration::ZERO, Some(&refused()));
            circuit.told(StoreNeed::Read, LONG, Some(&away()));
            circuit.told(StoreNeed::Read, Duration::ZERO, None);
            assert!(circuit.check().is_err(), "it reads, that is all");
            circuit.told(StoreNeed::Write, Duration::ZERO, None);
            assert!(circuit.check().is_ok());
        }
    }

    #[test]
    fn what_is_answered_from_memory_closes_nothing() {
        let circuit = StoreCircuit::default();
        circuit.told(StoreNeed::Read, LONG, Some(&away()));
        circuit.told(StoreNeed::Nothing, Duration::ZERO, None);
        assert!(circuit.check().is_err());
    }

    #[test]
    fn a_write_that_was_refused_is_trouble_until_something_is_written() {
        let circuit = StoreCircuit::default();
        circuit.told(StoreNeed::Write, Duration::ZERO, Some(&refused()));
        circuit.told(StoreNeed::Read, Duration::ZERO, None);
        assert!(circuit.trouble().unwrap().contains("読み取り専用"));
        assert!(circuit.check().is_ok(), "it costs no request anything");
        circuit.told(StoreNeed::Write, Duration::ZERO, None);
        assert_eq!(circuit.trouble(), None);
    }

    #[test]
    fn to_hear_of_trouble_uses_up_no_try() {
        let circuit = StoreCircuit::default();
        circuit.told(StoreNeed::Read, LONG, Some(&away()));
        assert!(circuit.trouble().is_some());
        if let Some(open) = circuit.state().open.as_mut() {
            open.until = Instant::now();
        }
        assert_eq!(circuit.trouble(), None, "it is time to look");
        assert!(circuit.check().is_ok(), "and the try is still there");
    }
}
