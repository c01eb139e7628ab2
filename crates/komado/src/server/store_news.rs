//! What the store tells, for all who listen here: one watcher for the whole process, begun with the first reader and ended
//! with the last.
//!
//! News only wake a reader; what there is to read it finds in the journal. So who missed some, or heard them twice, is none
//! the worse, and readers also look by themselves once in a while.

use komado_core::SessionId;
use komado_engine::Engine;
use komado_store::{WatchEvent, Watcher};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;

/// How many news wait for a reader; one that is slower looks at everything.
const ROOM: usize = 256;
/// How long the watcher waits before it asks whether there is still a reader.
const PATIENCE: Duration = Duration::from_secs(1);

/// The session where something happened; `None` where it may have been any.
type Where = Option<SessionId>;

/// Where readers hear what happens.
#[derive(Clone)]
pub(crate) struct StoreNews {
    tell: Sender<Where>,
    /// True while a thread watches the store.
    watching: Arc<Mutex<bool>>,
}

impl Default for StoreNews {
    fn default() -> Self {
        Self { tell: channel(ROOM).0, watching: Arc::default() }
    }
}

impl StoreNews {
    /// Begins to listen to the store of `engine`; what happens from now on wakes the reader.
    pub(crate) fn listen(&self, engine: &Engine, stop: &CancellationToken) -> NewsReader {
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        let news = self.tell.subscribe();
        if !*watching {
            let (room, engine, stop) = (self.clone(), engine.clone(), stop.clone());
            let thread = std::thread::Builder::new().name("news".to_owned());
            *watching = thread.spawn(move || room.watch(&engine, &stop)).is_ok();
        }
        NewsReader { news }
    }

    /// Watches the store while there are readers.
    fn watch(&self, engine: &Engine, stop: &CancellationToken) {
        let mut watcher: Option<Box<dyn Watcher>> = None;
        while !self.is_over(stop) {
            let heard = match watcher.as_mut() {
                Some(watcher) => watcher.next(PATIENCE),
                // It may have missed whatever happened before it began.
                None => engine.store().watch().map(|begun| {
                    watcher = Some(begun);
                    WatchEvent::Gap
                }),
            };
            match heard {
                Ok(WatchEvent::Quiet) => {}
                Ok(WatchEvent::News(news)) => drop(self.tell.send(Some(news.session))),
                Ok(WatchEvent::Gap) => drop(self.tell.send(None)),
                Err(error) => {
                    tracing::debug!(%error, "the store cannot be watched now");
                    drop(self.tell.send(None));
                    watcher = None;
                    std::thread::sleep(PATIENCE);
                }
            }
        }
    }

    /// True when no reader listens any more. Told under the lock: a reader that comes now begins anew.
    fn is_over(&self, stop: &CancellationToken) -> bool {
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        *watching = self.tell.receiver_count() > 0 && !stop.is_cancelled();
        !*watching
    }
}

/// A reader.
pub(crate) struct NewsReader {
    news: Receiver<Where>,
}

impl NewsReader {
    /// Ends when something happened in `session`, or anywhere when none is named; all that waits is heard with it. Gives the
    /// sessions that were named; `None` where it may have been any.
    pub(crate) async fn wake(&mut self, session: Option<&SessionId>) -> Option<HashSet<SessionId>> {
        let mut heard = Some(HashSet::new());
        loop {
            match self.news.recv().await {
                Ok(at) => {
                    let concerns = session.is_none() || at.is_none() || at.as_ref() == session;
                    heard = with(heard, at);
                    if concerns {
                        break;
                    }
                }
                Err(RecvError::Lagged(_)) => {
                    heard = None;
                    break;
                }
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
        loop {
            heard = match self.news.try_recv() {
                Ok(at) => with(heard, at),
                Err(TryRecvError::Lagged(_)) => None,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return heard,
            };
        }
    }
}

fn with(heard: Option<HashSet<SessionId>>, at: Where) -> Option<HashSet<SessionId>> {
    heard.zip(at).map(|(mut heard, at)| {
        heard.insert(at);
        heard
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::KomadoClock;
    use komado_store::MemoryStore;

    #[tokio::test]
    async fn one_watcher_serves_all_readers_and_ends_with_the_last() {
        let engine = Engine::new(Arc::new(MemoryStore::default()), Arc::new(KomadoClock));
        let (room, stop) = (StoreNews::default(), CancellationToken::new());
        let (mut one, mut other) = (room.listen(&engine, &stop), room.listen(&engine, &stop));
        // That the watching has begun.
        one.wake(None).await;
        let id = SessionId::new("s").unwrap();
        room.tell.send(Some(id.clone())).unwrap();
        let both = async { tokio::join!(one.wake(Some(&id)), other.wake(None)) };
        let heard = tokio::time::timeout(Duration::from_secs(10), both).await.unwrap();
        assert_eq!(heard.0, Some(HashSet::from([id])));
        drop((one, other));
        let ended = async {
            while *room.watching.lock().unwrap() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), ended).await.unwrap();
        room.listen(&engine, &stop).wake(None).await;
    }

    #[tokio::test]
    async fn who_wakes_hears_which_sessions_and_of_all_when_some_news_name_none() {
        let tell = channel(2).0;
        let mut listener = NewsReader { news: tell.subscribe() };
        let ids = ["a", "b", "c"].map(|id| SessionId::new(id).unwrap());
        let say = |news: &[&SessionId]| news.iter().for_each(|id| drop(tell.send(Some((*id).clone()))));
        say(&[&ids[0], &ids[1]]);
        assert_eq!(listener.wake(None).await, Some(HashSet::from([ids[0].clone(), ids[1].clone()])));
        say(&[&ids[0]]);
        tell.send(None).unwrap();
        assert_eq!(listener.wake(None).await, None, "a gap");
        say(&[&ids[0], &ids[1], &ids[2]]);
        assert_eq!(listener.wake(None).await, None, "more than there was room for");
    }
}
