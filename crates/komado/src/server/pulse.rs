//! How the store is doing, asked once in a while: counting what a store holds is work for it.

use komado_store::{Store, Vitals};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer counts.
const LIFE: Duration = Duration::from_secs(10);
/// How long it counts that there was none.
const SILENCE: Duration = Duration::from_secs(2);

/// What the store last said of itself, or why it said nothing.
#[derive(Default)]
pub(crate) struct LastPulse(Mutex<Option<(Instant, Said)>>);

type Said = Result<Vitals, String>;

fn life(said: &Said) -> Duration {
    if said.is_ok() { LIFE } else { SILENCE }
}

impl LastPulse {
    /// What the store says; asked anew when it was long ago.
    pub(crate) fn of(&self, store: &dyn Store) -> Said {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, said)) = last.as_ref().filter(|(at, said)| at.elapsed() < life(said)) {
            return said.clone();
        }
        let said = store.vitals().map_err(|error| error.to_string());
        *last = Some((Instant::now(), said.clone()));
        said
    }
}
