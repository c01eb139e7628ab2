//! Ctrl-C: stops the answer that is being given, and nothing else. Where none is, the program ends as it always did.

use crate::paper::say;
use komado_provider::Cancel;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};

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
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::Builder::new().name("komado-ctrl-c".into());
        let begun = thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let listening = runtime.and_then(|runtime| {
                let signals = runtime.block_on(async {
                    Ok::<_, std::io::Error>([
                        signal(SignalKind::interrupt())?,
                        signal(SignalKind::terminate())?,
                        signal(SignalKind::hangup())?,
                    ])
                })?;
                Ok((runtime, signals))
            });
            let _ = ready.send(listening.as_ref().map(|_| ()).map_err(ToString::to_string));
            if let Ok((runtime, signals)) = listening {
                runtime.block_on(wait(signals, heard));
            }
        });
        let begun = begun.map_err(|error| error.to_string()).map(|_| ());
        let ready = is_ready.recv().unwrap_or_else(|error| Err(error.to_string()));
        if let Err(why) = begun.and(ready) {
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

/// A closed terminal and a polite request to end stop an answer as Ctrl-C does: what came of it is journaled.
async fn wait(mut signals: [Signal; 3], current: Current) {
    while any(&mut signals).await.is_some() {
        match &*lock(&current) {
            Some(cancel) if !cancel.is_cancelled() => cancel.cancel(),
            // Nothing to stop, or it does not stop: whoever presses it a second time means it.
            _ => std::process::exit(ENDED),
        }
    }
}

/// The next of several signals.
async fn any(signals: &mut [Signal; 3]) -> Option<()> {
    poll_fn(|context| {
        let next = signals.iter_mut().map(|signal| signal.poll_recv(context)).find(Poll::is_ready);
        next.unwrap_or(Poll::Pending)
    })
    .await
}

fn lock(current: &Mutex<Option<Cancel>>) -> MutexGuard<'_, Option<Cancel>> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}
