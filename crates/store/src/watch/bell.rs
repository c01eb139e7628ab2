//! News within one process.

use super::{Heard, News, Watcher};
use crate::{Result, locked};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// How many news wait for a listener; one that is slower has missed something.
const ROOM: usize = 1024;

/// Rings for everyone who listens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bell(Arc<Mutex<Vec<Line>>>);

/// The way to one who listens, for as long as they do.
type Line = (Weak<()>, SyncSender<Heard>);

impl Bell {
    /// Tells everyone who listens.
    pub(crate) fn ring(&self, news: &News) {
        let mut lines = locked(&self.0);
        // A listener without room is dropped: it hears everything that waits, then that it missed something.
        lines.retain(|(_, line)| line.try_send(Heard::News(news.clone())).is_ok());
    }

    /// Tells everyone who listens that something may have been missed.
    pub(crate) fn miss(&self) {
        locked(&self.0).clear();
    }

    /// Begins to listen.
    pub(crate) fn listen(&self) -> Ear {
        let (line, news) = sync_channel(ROOM);
        let listens = Arc::new(());
        let mut lines = locked(&self.0);
        // Where nothing ever rings, those who went are noticed here.
        lines.retain(|(listens, _)| listens.strong_count() > 0);
        lines.push((Arc::downgrade(&listens), line));
        Ear { bell: self.clone(), news, _listens: listens }
    }
}

/// One who listens.
pub(crate) struct Ear {
    bell: Bell,
    news: Receiver<Heard>,
    _listens: Arc<()>,
}

impl Watcher for Ear {
    fn next(&mut self, patience: Duration) -> Result<Heard> {
        match self.news.recv_timeout(patience) {
            Ok(heard) => Ok(heard),
            Err(RecvTimeoutError::Timeout) => Ok(Heard::Quiet),
            Err(RecvTimeoutError::Disconnected) => {
                *self = self.bell.listen();
                Ok(Heard::Gap)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::{Seq, SessionId, ThreadId};

    fn news(last: Seq) -> News {
        News { session: SessionId::new("s").unwrap(), thread: ThreadId::root(), last }
    }

    #[test]
    fn who_is_too_slow_hears_what_waits_then_that_something_was_missed_then_goes_on() {
        let bell = Bell::default();
        let mut slow = bell.listen();
        let many = ROOM as Seq + 5;
        (1..=many).for_each(|last| bell.ring(&news(last)));
        for last in 1..=ROOM as Seq {
            assert_eq!(slow.next(Duration::ZERO).unwrap(), Heard::News(news(last)));
        }
        assert_eq!(slow.next(Duration::ZERO).unwrap(), Heard::Gap);
        assert_eq!(slow.next(Duration::ZERO).unwrap(), Heard::Quiet);
        bell.ring(&news(many + 1));
        assert_eq!(slow.next(Duration::ZERO).unwrap(), Heard::News(news(many + 1)));
    }

    #[test]
    fn those_who_went_are_forgotten_also_where_nothing_rings() {
        let bell = Bell::default();
        (0..100).for_each(|_| drop(bell.listen()));
        assert!(bell.0.lock().unwrap().len() <= 1);
    }
}
