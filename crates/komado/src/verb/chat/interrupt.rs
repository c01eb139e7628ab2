//! Ctrl-C: stops the answer that is being given, and nothing else. Where none is, the program ends as it always did.

use crate::paper::say;
use crate::verb::work::signals;
use komado_provider::Cancel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The exit code of a program that Ctrl-C ended.
const ENDED: i32 = 130;

type Current = Arc<Mutex<Option<Cancel>>>;

/// Listens for Ctrl-C.
pub(crate) struct Interrupt {
    current: Current,
}

/// While it lives, Ctrl-C stops one answer.
pub(crate) struct Watch<'a> {
    interrupt: &'a Interrupt,
    cancel: Cancel,
}

impl Interrupt {
    /// Begins to listen. Where that is not possible Ctrl-C ends the program, and that is told.
    pub(crate) fn listen() -> Self {
        let current = Current::default();
        let heard = Arc::clone(&current);
        // A closed terminal and a polite request to end stop an answer as Ctrl-C does: what came of it is journaled.
        let listening = signals::each(move || match &*lock(&heard) {
            Some(cancel) if !cancel.is_cancelled() => cancel.cancel(),
            // Nothing to stop, or it does not stop: a second time it is meant.
            _ => std::process::exit(ENDED),
        });
        if let Err(fault) = listening {
            let why = fault.message();
            say(format!("komado: Ctrl-C will end the program, not only an answer: {why}"));
        }
        Self { current }
    }

    /// Lets Ctrl-C stop an answer from now on.
    pub(crate) fn watch(&self) -> Watch<'_> {
        let cancel = Cancel::default();
        *lock(&self.current) = Some(cancel.clone());
        Watch { interrupt: self, cancel }
    }
}

impl Watch<'_> {
    /// What Ctrl-C says stop to.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        *lock(&self.interrupt.current) = None;
    }
}

fn lock(current: &Mutex<Option<Cancel>>) -> MutexGuard<'_, Option<Cancel>> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}
