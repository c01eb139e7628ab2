//! One thread that keeps the pipes of all servers moving, also while nobody calls: they are read, and their ends are seen.
//!
//! Whoever calls blocks until the work is done there. The work itself has an end: every step of it is bounded.

use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// How long is waited at the end for what should have ended already.
const LAST: Duration = Duration::from_secs(1);

/// The thread. It ends when this is dropped.
pub(super) struct Pump {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pump {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("mcp".to_owned()).spawn(move || {
            // Either it is told, or whoever could tell is gone: both mean the end.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_timeout(LAST);
        })?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Waits for a piece of work; `None` when it broke off.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        self.all([work]).pop().flatten()
    }

    /// Waits for several pieces of work, done at the same time; what each gave, in the order they came.
    pub(super) fn all<T, F>(&self, works: impl IntoIterator<Item = F>) -> Vec<Option<T>>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let begin = |work: F| {
            let (done, result) = mpsc::sync_channel(1);
            self.handle.spawn(async move {
                // Nobody listens any more when the caller is gone.
                let _ = done.send(work.await);
            });
            result
        };
        let begun: Vec<_> = works.into_iter().map(begin).collect();
        begun.into_iter().map(|result| result.recv().ok()).collect()
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It only fails when the thread panicked, and then there is nothing left to end.
            let _ = thread.join();
        }
    }
}
