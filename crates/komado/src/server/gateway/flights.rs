//! The exchanges under way, so that they can be counted, waited for and, at the very end, ended.

use komado_provider::Cancel;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Exchanges under way.
#[derive(Default)]
pub(crate) struct Flights(Mutex<Under>);

#[derive(Default)]
struct Under {
    next: u64,
    cancels: HashMap<u64, Cancel>,
}

impl Flights {
    fn under(&self) -> MutexGuard<'_, Under> {
        // A panic elsewhere leaves the table as it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more; it is over when what this gives is dropped.
    pub(super) fn enter(&self, cancel: &Cancel) -> Flight<'_> {
        let mut under = self.under();
        let number = under.next;
        under.next += 1;
        under.cancels.insert(number, cancel.clone());
        Flight { flights: self, number }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.under().cancels.len()
    }

    /// Ends all of them.
    pub(crate) fn end(&self) {
        self.under().cancels.values().for_each(Cancel::cancel);
    }
}

/// An exchange under way.
pub(super) struct Flight<'f> {
    flights: &'f Flights,
    number: u64,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.flights.under().cancels.remove(&self.number);
    }
}
