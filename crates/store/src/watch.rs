//! What happens in a store, told to watchers, also when another process did it.
//!
//! News only say where to look: the journal is the truth, and a watcher reads there. So news may come twice or
//! be summed up, and who could not listen for a while is told so and looks at everything once.

use crate::{Result, locked};
use komado_core::{Seq, SessionId, ThreadId};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// A thread grew, or its session changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadNews {
    /// The session.
    pub session: SessionId,
    /// The thread; the root's for a change of the session.
    pub thread: ThreadId,
    /// The thread's last entry as far as the teller knew; 0 for a change of the session.
    pub last: Seq,
}

impl ThreadNews {
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
pub enum WatchEvent {
    /// Something happened.
    News(ThreadNews),
    /// Nothing, for as long as was waited.
    Quiet,
    /// Something may have been missed: look at everything.
    Gap,
}

/// A store that tells what happens.
pub trait WatchStore: Send + Sync {
    /// Begins to listen; whatever is done after this returns is heard.
    fn watch(&self) -> Result<Box<dyn Watcher>>;
}

/// A listener.
pub trait Watcher: Send {
    /// Waits for news, about `patience` at the longest.
    fn next(&mut self, patience: Duration) -> Result<WatchEvent>;
}

// News within one process.

/// How many news wait for a listener; one that is slower has missed something.
const ROOM: usize = 1024;

/// Rings for everyone who listens.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewsSender(Arc<Mutex<Vec<Line>>>);

/// The way to one who listens, for as long as they do.
type Line = (Weak<()>, SyncSender<WatchEvent>);

impl NewsSender {
    /// Tells everyone who listens.
    pub(crate) fn ring(&self, news: &ThreadNews) {
        let mut lines = locked(&self.0);
        // A listener without room is dropped: it hears everything that waits, then that it missed something.
        lines.retain(|(_, line)| line.try_send(WatchEvent::News(news.clone())).is_ok());
    }

    /// Tells everyone who listens that something may have been missed.
    pub(crate) fn miss(&self) {
        locked(&self.0).clear();
    }

    /// Begins to listen.
    pub(crate) fn listen(&self) -> NewsReceiver {
        let (line, news) = sync_channel(ROOM);
        let listens = Arc::new(());
        let mut lines = locked(&self.0);
        // Where nothing ever rings, those who went are noticed here.
        lines.retain(|(listens, _)| listens.strong_count() > 0);
        lines.push((Arc::downgrade(&listens), line));
        NewsReceiver { bell: self.clone(), news, _listens: listens }
    }
}

/// One who listens.
pub(crate) struct NewsReceiver {
    bell: NewsSender,
    news: Receiver<WatchEvent>,
    _listens: Arc<()>,
}

impl Watcher for NewsReceiver {
    fn next(&mut self, patience: Duration) -> Result<WatchEvent> {
        match self.news.recv_timeout(patience) {
            Ok(heard) => Ok(heard),
            Err(RecvTimeoutError::Timeout) => Ok(WatchEvent::Quiet),
            Err(RecvTimeoutError::Disconnected) => {
                *self = self.bell.listen();
                Ok(WatchEvent::Gap)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::{Seq, SessionId, ThreadId};

    fn news(last: Seq) -> ThreadNews {
        ThreadNews { session: SessionId::new("s").unwrap(), thread: ThreadId::root(), last }
    }

    #[test]
    fn who_is_too_slow_hears_what_waits_then_that_something_was_missed_then_goes_on() {
        let bell = NewsSender::default();
        let mut slow = bell.listen();
        let many = ROOM as Seq + 5;
        (1..=many).for_each(|last| bell.ring(&news(last)));
        for last in 1..=ROOM as Seq {
            assert_eq!(slow.next(Duration::ZERO).unwrap(), WatchEvent::News(news(last)));
        }
        assert_eq!(slow.next(Duration::ZERO).unwrap(), WatchEvent::Gap);
        assert_eq!(slow.next(Duration::ZERO).unwrap(), WatchEvent::Quiet);
        bell.ring(&news(many + 1));
        assert_eq!(slow.next(Duration::ZERO).unwrap(), WatchEvent::News(news(many + 1)));
    }

    #[test]
    fn those_who_went_are_forgotten_also_where_nothing_rings() {
        let bell = NewsSender::default();
        (0..100).for_each(|_| drop(bell.listen()));
        assert!(bell.0.lock().unwrap().len() <= 1);
    }
}
