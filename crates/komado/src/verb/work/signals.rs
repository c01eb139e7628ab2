//! Ctrl-C and polite requests to end, each time they come.

use crate::fault::Outcome;
use std::future::poll_fn;
use std::task::Poll;
use tokio::signal::unix::{SignalKind, signal};

/// Calls `act` for every signal that asks this process to end, from now on.
pub(super) fn each(mut act: impl FnMut() + Send + 'static) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = runtime.block_on(async {
        Ok::<_, std::io::Error>([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ])
    })?;
    let thread = std::thread::Builder::new().name("komado-signals".into());
    thread.spawn(move || {
        runtime.block_on(async {
            loop {
                poll_fn(|context| {
                    let come = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
                    if come { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
                act();
            }
        });
    })?;
    Ok(())
}
