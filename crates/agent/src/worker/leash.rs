//! How a worker reaches whoever works on a job: to ask them to rest, or to end them.

use std::sync::{Mutex, PoisonError};

type Act = Box<dyn FnMut() + Send>;

/// A leash. It may be pulled before anybody is on it: then they feel it as soon as they are.
#[derive(Default)]
pub struct Leash(Mutex<State>);

#[derive(Default)]
struct State {
    rest: Option<Act>,
    end: Option<Act>,
    pulled: bool,
    killed: bool,
}

impl Leash {
    /// Puts somebody on it: `rest` asks them to come to rest, `end` ends them.
    pub fn tie(&self, rest: impl FnMut() + Send + 'static, end: impl FnMut() + Send + 'static) {
        self.with(|state| {
            state.rest = Some(Box::new(rest));
            state.end = Some(Box::new(end));
            act(state.pulled, &mut state.rest);
            act(state.killed, &mut state.end);
        });
    }

    /// Nobody is on it any more.
    pub fn untie(&self) {
        self.with(|state| (state.rest, state.end) = (None, None));
    }

    /// Asks them to come to rest.
    pub fn pull(&self) {
        self.with(|state| {
            state.pulled = true;
            act(true, &mut state.rest);
        });
    }

    /// Ends them.
    pub fn kill(&self) {
        self.with(|state| {
            state.killed = true;
            act(true, &mut state.end);
        });
    }

    /// True once it was pulled: whoever dies then was asked to end.
    pub fn is_pulled(&self) -> bool {
        let mut pulled = false;
        self.with(|state| pulled = state.pulled || state.killed);
        pulled
    }

    fn with(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn act(wanted: bool, act: &mut Option<Act>) {
    if let Some(act) = act.as_mut().filter(|_| wanted) {
        act();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn whoever_is_put_on_a_leash_that_was_pulled_feels_it() {
        let felt = Arc::new(AtomicU32::new(0));
        let leash = Leash::default();
        leash.pull();
        let (rest, end) = (Arc::clone(&felt), Arc::clone(&felt));
        leash.tie(
            move || {
                rest.fetch_add(1, Ordering::SeqCst);
            },
            move || {
                end.fetch_add(10, Ordering::SeqCst);
            },
        );
        assert_eq!(felt.load(Ordering::SeqCst), 1);
        leash.kill();
        leash.untie();
        leash.kill();
        assert_eq!(felt.load(Ordering::SeqCst), 11);
    }
}
