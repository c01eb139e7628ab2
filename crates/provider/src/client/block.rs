//! To wait for a future on this thread, whatever thread it is.
//!
//! The runtime's own way to do so panics in asynchronous code. Here the thread sleeps until it is woken: in asynchronous
//! code that holds up a thread, which is bad, but not the end of the program.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use tokio::runtime::Handle;

struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for `future`, whose clocks and sockets are those of `handle`.
pub(super) fn on<F: Future>(handle: &Handle, future: F) -> F::Output {
    let _inside = handle.enter();
    let waker = Waker::from(Arc::new(Sleeper(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
