//! Writers that never stop: what fails is looked at and tried again, as whoever uses a store would.

use crate::killed::conversation::{Conversation, sid};
use crate::killed::ledger::Ledger;
use komado_core::{Seq, ThreadId};
use komado_store::{Error, OpenMode, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

/// Appends until told to stop. Where the journal ends is asked anew after each failure: an append that failed may have
/// come to be.
pub(crate) fn write(
    store: &dyn Store,
    session: &str,
    stop: &AtomicBool,
    told: &mut dyn FnMut(Seq),
) -> Result<(), Error> {
    let mut conversation = Conversation::new(session);
    while !stop.load(SeqCst) {
        match write_on(store, session, &mut conversation, stop, told) {
            Err(error) if !is_to_be_expected(&error) => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
            Ok(()) => {}
        }
    }
    Ok(())
}

fn write_on(
    store: &dyn Store,
    session: &str,
    conversation: &mut Conversation,
    stop: &AtomicBool,
    told: &mut dyn FnMut(Seq),
) -> Result<(), Error> {
    let mut journal = store.open(&sid(session), &ThreadId::root(), OpenMode::Write)?;
    while !stop.load(SeqCst) {
        let last = journal.last();
        journal.append(last, &[conversation.row(last + 1)])?;
        told(last + 1);
    }
    Ok(())
}

/// What a store may say while it is away, and just after.
fn is_to_be_expected(error: &Error) -> bool {
    error.is_away() || matches!(error, Error::Busy { .. } | Error::TakenOver(_) | Error::Poisoned)
}

/// Writers in threads, each with a session of its own.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    writers: Vec<JoinHandle<Result<(), Error>>>,
}

impl Load {
    pub(crate) fn start(store: &Arc<dyn Store>, sessions: &'static [&str], ledger: &Arc<Ledger>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let writer = |session: &'static str| {
            let (store, ledger, stop) = (Arc::clone(store), Arc::clone(ledger), Arc::clone(&stop));
            std::thread::spawn(move || write(&*store, session, &stop, &mut |n| ledger.note(session, n)))
        };
        let writers = sessions.iter().map(|session| writer(session)).collect();
        Self { stop, writers }
    }

    /// Ends the writers; each must have met nothing but what is to be expected.
    pub(crate) fn stop(self) {
        self.stop.store(true, SeqCst);
        for writer in self.writers {
            writer.join().unwrap().unwrap();
        }
    }
}
