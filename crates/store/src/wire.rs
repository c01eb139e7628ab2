//! How a store that is spoken to over a wire is waited for.
//!
//! The drivers are asynchronous, the store's calls are not: each call is run on a small runtime of the store's own, and
//! whoever made it waits for it there, at most as long as the store may take. So a call is bounded in time whatever the
//! server does, and works on any thread, also on one that drives other tasks.

use crate::{Error, Result};
use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A runtime for calls to one server.
pub(crate) struct Wire {
    runtime: Option<Runtime>,
    /// Where the server is, without secrets.
    place: String,
    /// How long one call may take.
    patience: Duration,
}

impl Wire {
    /// A runtime of its own for the server at `place`.
    pub(crate) fn new(place: String, patience: Duration) -> Result<Self> {
        let built =
            Builder::new_multi_thread().worker_threads(1).thread_name("komado-store").enable_all().build();
        let runtime = built.map_err(|e| Error::away(&place, format!("no thread to speak with it: {e}")))?;
        Ok(Self { runtime: Some(runtime), place, patience })
    }

    /// Where the server is, without secrets.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Runs a call to its end, or until the server took too long.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.call_for(self.patience, call)
    }

    /// The same with another patience.
    pub(crate) fn call_for<T: Send + 'static>(
        &self,
        patience: Duration,
        call: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (done, answer) = mpsc::sync_channel(1);
        self.spawn(async move {
            let answer = tokio::time::timeout(patience, call).await;
            let _ = done.send(answer);
        });
        match answer.recv() {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                Err(Error::away(&self.place, format!("no answer within {} s", patience.as_secs_f32())))
            }
            Err(_) => Err(Error::away(&self.place, "the call was broken off".to_owned())),
        }
    }

    /// Lets something run beside the calls.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(task);
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // A runtime must not be waited for where other tasks are driven.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_works_on_any_thread_and_ends_when_the_server_does_not() {
        let wire = Wire::new("nowhere".into(), Duration::from_millis(20)).unwrap();
        assert_eq!(wire.call(async { Ok(7) }).unwrap(), 7);
        let inside = Builder::new_current_thread().build().unwrap();
        assert_eq!(inside.block_on(async { wire.call(async { Ok(8) }) }).unwrap(), 8);
        let never = wire.call(std::future::pending::<Result<()>>()).unwrap_err();
        assert!(never.to_string().contains("nowhere") && never.to_string().contains("0.02 s"), "{never}");
    }
}
