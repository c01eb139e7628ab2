//! News from Redis: one connection per store listens, and tells everyone in this process.
//!
//! When it breaks, everyone is told that something may have been missed, once it listens again.

use super::link::RedisLink;
use super::{Inner, RedisStore};
use crate::watch::{NewsSender, ThreadNews, WatchStore, Watcher};
use crate::{Error, Result};
use redis::{PushInfo, PushKind, RedisResult};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long is waited before another connection is tried.
const PAUSE: Duration = Duration::from_millis(100);

/// Where news come in.
pub(super) struct RedisListener {
    channel: String,
    bell: NewsSender,
    is_open: AtomicBool,
    is_listening: watch::Sender<bool>,
}

impl RedisListener {
    pub(super) fn new(channel: String) -> Self {
        Self {
            channel,
            bell: NewsSender::default(),
            is_open: AtomicBool::new(false),
            is_listening: watch::Sender::new(false),
        }
    }

    /// True when it has a connection.
    pub(super) fn is_listening(&self) -> bool {
        *self.is_listening.borrow()
    }
}

impl WatchStore for RedisStore {
    fn watch(&self) -> Result<Box<dyn Watcher>> {
        let (store, news) = (&self.0, &self.0.news);
        if !news.is_open.swap(true, Ordering::SeqCst) {
            store.link.wire.spawn(listen(Arc::downgrade(store), news.channel.clone()));
        }
        let (mut listening, place) = (news.is_listening.subscribe(), store.link.wire.place().to_owned());
        store.link.wire.call(async move {
            let heard = listening.wait_for(|is_listening| *is_listening).await.map(drop);
            heard.map_err(|_| Error::away(&place, "the store was closed".to_owned()))
        })?;
        Ok(Box::new(news.bell.listen()))
    }
}

async fn listen(store: Weak<Inner>, channel: String) {
    loop {
        let Some(link) = store.upgrade().map(|store| Arc::clone(&store.link)) else { return };
        if let Ok((_ear, news)) = subscribed(&link, &channel).await {
            drop(link);
            if !told(&store, true) {
                return;
            }
            pass_on(&store, news).await;
            if !told(&store, false) {
                return;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Says whether news come in from now on; false when the store is closed.
fn told(store: &Weak<Inner>, is_listening: bool) -> bool {
    let Some(store) = store.upgrade() else { return false };
    if is_listening {
        // A watcher from before may have missed something.
        store.news.bell.miss();
    }
    store.news.is_listening.send_replace(is_listening);
    true
}

async fn subscribed(
    link: &RedisLink,
    channel: &str,
) -> RedisResult<(redis::aio::MultiplexedConnection, mpsc::UnboundedReceiver<PushInfo>)> {
    let (sender, news) = mpsc::unbounded_channel();
    let mut ear = link.ear(sender).await?;
    ear.subscribe(channel).await?;
    Ok((ear, news))
}

/// Tells what comes in, until the connection breaks.
async fn pass_on(store: &Weak<Inner>, mut news: mpsc::UnboundedReceiver<PushInfo>) {
    while let Some(push) = news.recv().await {
        let Some(store) = store.upgrade() else { return };
        match push.kind {
            PushKind::Disconnection => return,
            PushKind::Message => {
                if let Some(news) = read(push) {
                    store.news.bell.ring(&news);
                }
            }
            _ => {}
        }
    }
}

/// `session thread last`, on our channel.
fn read(push: PushInfo) -> Option<ThreadNews> {
    let text: String = redis::from_redis_value(push.data.into_iter().nth(1)?).ok()?;
    ThreadNews::read(&text)
}
