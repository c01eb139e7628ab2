//! Signals that ask this process to end: Ctrl-C, a polite request, a terminal that was closed.

use crate::cli_output::say;
use komado_ops::OpResult;
use komado_provider::Cancel;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a program that Ctrl-C ended.
pub(crate) const ENDED: i32 = 130;

/// Those that ask a server to end. One that was started with `nohup` outlives its terminal.
pub(crate) const FOR_SERVERS: &[SignalKind] = &[SignalKind::interrupt(), SignalKind::terminate()];
/// Those that ask any other program to end.
pub(crate) const ALL: &[SignalKind] =
    &[SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];

/// Listens for signals, in a runtime.
pub(crate) struct Signals(Vec<Signal>);

impl Signals {
    /// Listens from now on.
    pub(crate) fn listen(kinds: &[SignalKind]) -> io::Result<Self> {
        kinds.iter().map(|kind| signal(*kind)).collect::<io::Result<_>>().map(Self)
    }

    /// Waits for the next.
    pub(crate) async fn next(&mut self) {
        poll_fn(|context| {
            let come = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if come { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// Calls `act` for each of these signals, from now on.
pub(crate) fn each(kinds: &[SignalKind], mut act: impl FnMut() + Send + 'static) -> OpResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = runtime.block_on(async { Signals::listen(kinds) })?;
    let thread = std::thread::Builder::new().name("komado-signals".into());
    thread.spawn(move || {
        runtime.block_on(async {
            loop {
                signals.next().await;
                act();
            }
        });
    })?;
    Ok(())
}

type Current = Arc<Mutex<Option<Cancel>>>;

/// Lets a signal stop the answer that is being given, and nothing else. Where none is, the program ends as it always did.
pub(crate) struct Interrupt {
    current: Current,
}

/// While it lives, a signal stops one answer.
pub(crate) struct InterruptGuard<'a> {
    interrupt: &'a Interrupt,
    cancel: Cancel,
}

impl Interrupt {
    /// Begins to listen. Where that is not possible Ctrl-C ends the program, and that is told.
    pub(crate) fn listen() -> Self {
        let current = Current::default();
        let heard = Arc::clone(&current);
        let listening = each(ALL, move || match &*lock(&heard) {
            Some(cancel) if !cancel.is_cancelled() => cancel.cancel(),
            // Nothing to stop, or it does not stop: a second Ctrl-C is meant.
            _ => std::process::exit(ENDED),
        });
        if let Err(why) = listening {
            say(format!("komado: Ctrl-C will end the program, not only an answer: {}", why.message()));
        }
        Self { current }
    }

    /// Lets a signal stop an answer from now on.
    pub(crate) fn watch(&self) -> InterruptGuard<'_> {
        let cancel = Cancel::default();
        *lock(&self.current) = Some(cancel.clone());
        InterruptGuard { interrupt: self, cancel }
    }
}

impl InterruptGuard<'_> {
    /// What a signal says stop to.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}

impl Drop for InterruptGuard<'_> {
    fn drop(&mut self) {
        *lock(&self.interrupt.current) = None;
    }
}

fn lock(current: &Mutex<Option<Cancel>>) -> MutexGuard<'_, Option<Cancel>> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}
