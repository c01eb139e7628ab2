//! A way to a server that breaks: each connection is cut after a random number of bytes, wherever that is in a message.

use crate::killed::dice::Dice;
use crate::killed::servers::proxy::stand_before;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Bytes that a connection passes on, both ways together.
const LEAST: u32 = 500;
const MOST: u32 = 60_000;

/// Stands between a store and its server.
pub(crate) struct Proxy {
    /// Where the server is, through this.
    pub(crate) url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    cuts: AtomicU32,
    is_cutting: AtomicBool,
    cut: (Mutex<()>, Condvar),
}

impl Proxy {
    pub(crate) fn start(url: &str, seed: u64) -> Self {
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let mut dice = Dice::new(seed);
        let url = stand_before(url, move || {
            let left = AtomicI64::new(i64::from(LEAST + dice.below(MOST - LEAST)));
            let state = Arc::clone(&shared);
            Arc::new(move |_, bytes| state.passed(&left, bytes))
        });
        Self { url, state }
    }

    /// How many connections were cut.
    pub(crate) fn cuts(&self) -> u32 {
        self.state.cuts.load(SeqCst)
    }

    /// Cuts connections until so many were cut. None is cut before or after that: a store is opened whole.
    pub(crate) fn cut_until(&self, enough: u32) {
        self.state.is_cutting.store(true, SeqCst);
        let (lock, changed) = &self.state.cut;
        let guard = lock.lock().unwrap();
        let long = Duration::from_secs(180);
        let waited = changed.wait_timeout_while(guard, long, |()| self.cuts() < enough).unwrap().1;
        self.state.is_cutting.store(false, SeqCst);
        assert!(!waited.timed_out(), "only {} connections were cut", self.cuts());
    }
}

impl State {
    /// How many of `bytes` pass where `left` more may.
    fn passed(&self, left: &AtomicI64, bytes: usize) -> usize {
        let room = left.fetch_sub(bytes as i64, SeqCst);
        if !self.is_cutting.load(SeqCst) {
            return bytes;
        }
        let passed = bytes.min(usize::try_from(room).unwrap_or(0));
        // Only one of the two ways finds the end of what may pass.
        if passed < bytes && room > 0 {
            self.cuts.fetch_add(1, SeqCst);
            let _held = self.cut.0.lock().unwrap();
            self.cut.1.notify_all();
        }
        passed
    }
}
