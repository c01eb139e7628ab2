//! What happens in a store, told to whoever wants to hear it, also when another process did it.
//!
//! News only say where to look: the journal is the truth, and whoever hears of it reads there. So news may come twice or
//! be summed up, and who could not listen for a while is told so and looks at everything once.

mod bell;

pub(crate) use bell::{Bell, Ear};

use crate::Result;
use komado_core::{Seq, SessionId, ThreadId};
use std::time::Duration;

/// A thread grew, or its session changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct News {
    /// The session.
    pub session: SessionId,
    /// The thread; the root's for a change of the session.
    pub thread: ThreadId,
    /// The thread's last entry as far as the teller knew; 0 for a change of the session.
    pub last: Seq,
}

impl News {
    /// What a line tells that another process wrote: `session thread last`.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let session = SessionId::new(words.next()?).ok()?;
        let thread = ThreadId::new(words.next()?).ok()?;
        let last = words.next()?.parse().ok()?;
        words.next().is_none().then_some(Self { session, thread, last })
    }
}

/// What came of listening.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// Something happened.
    News(News),
    /// Nothing, for as long as was waited.
    Quiet,
    /// Something may have been missed: look at everything.
    Gap,
}

/// A store that tells what happens.
pub trait Watch: Send + Sync {
    /// Begins to listen; whatever is done after this returns is heard.
    fn watch(&self) -> Result<Box<dyn Watcher>>;
}

/// A listener.
pub trait Watcher: Send {
    /// Waits for news, about `patience` at the longest.
    fn next(&mut self, patience: Duration) -> Result<Heard>;
}
