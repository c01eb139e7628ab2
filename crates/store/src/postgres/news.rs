//! Tells others what happened here, with NOTIFY, after it was committed.
//!
//! Not in the append's own transaction: commits with a NOTIFY wait in line for one lock, and not every server has it. News
//! are summed up for a moment and sent together. Where there is no NOTIFY nothing is sent, and watchers look by themselves.

use super::PostgresStore;
use super::server::{PostgresLink, PostgresResult, pause, values};
use crate::watch::{NewsReceiver, NewsSender, ThreadNews, WatchEvent, WatchStore, Watcher};
use crate::{Result, locked};
use komado_core::{Seq, SessionId, ThreadId};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Weak};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, oneshot};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Connection, NoTls, Socket};

/// How long news are gathered.
const MOMENT: Duration = Duration::from_millis(5);
/// The most that is sent in one go.
const MOST: usize = 512;

/// What news are about: a thread, and whether its session changed rather than the thread grew.
type Topic = (SessionId, ThreadId, bool);

/// News that were not sent yet, the latest of each thread.
pub(super) struct PostgresNotifier {
    channel: String,
    waiting: Mutex<BTreeMap<Topic, Seq>>,
    begun: std::sync::Arc<Notify>,
    is_mute: AtomicBool,
}

impl PostgresNotifier {
    pub(super) fn new(schema: &str) -> Self {
        let (waiting, begun, is_mute) = (Mutex::default(), Default::default(), AtomicBool::new(false));
        Self { channel: channel(schema), waiting, begun, is_mute }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Topic, Seq>> {
        locked(&self.waiting)
    }

    /// Says that a thread has grown to `last`, or, with 0, that its session changed.
    pub(super) fn ring(&self, session: &SessionId, thread: &ThreadId, last: Seq) {
        if self.is_mute.load(Ordering::Relaxed) {
            return;
        }
        self.waiting().insert((session.clone(), thread.clone(), last == 0), last);
        self.begun.notify_one();
    }

    pub(super) fn has_news(&self) -> bool {
        !self.waiting().is_empty()
    }

    /// Sends what waits.
    pub(super) async fn flush(&self, link: &PostgresLink) {
        while let Some(lines) = self.some() {
            let mut sent = self.send(link, &lines).await;
            if sent.is_err() {
                // A connection that was lost while it lay idle shows here.
                sent = self.send(link, &lines).await;
            }
            if let Err(fault) = sent
                && fault.code().is_some_and(|code| matches!(code.code(), "42883" | "0A000"))
            {
                self.is_mute.store(true, Ordering::Relaxed);
            }
        }
    }

    async fn send(&self, link: &PostgresLink, lines: &[String]) -> PostgresResult<()> {
        let sql = "SELECT pg_notify($1, line) FROM unnest($2::TEXT[]) AS line";
        let mut db = link.db().await?;
        db.begin().await?;
        // News may be lost; they need no disk.
        db.run("SET LOCAL synchronous_commit TO OFF").await?;
        db.ask(sql, &values![self.channel.clone(), lines.to_vec()]).await?;
        db.end("COMMIT").await
    }

    fn some(&self) -> Option<Vec<String>> {
        let mut waiting = self.waiting();
        let mut lines = Vec::new();
        while lines.len() < MOST
            && let Some(((session, thread, _), last)) = waiting.pop_first()
        {
            lines.push(format!("{session} {thread} {last}"));
        }
        Some(lines).filter(|lines| !lines.is_empty())
    }
}

/// Sends news as they come, for as long as the store is open.
pub(super) async fn tell(teller: Weak<PostgresNotifier>, link: PostgresLink) {
    loop {
        let Some(begun) = teller.upgrade().map(|teller| std::sync::Arc::clone(&teller.begun)) else { return };
        begun.notified().await;
        tokio::time::sleep(MOMENT).await;
        let Some(teller) = teller.upgrade() else { return };
        teller.flush(&link).await;
    }
}

/// Where the news of a schema are told.
pub(super) fn channel(schema: &str) -> String {
    format!("news_{schema}").chars().take(63).collect()
}

// Listens to what is done, here and elsewhere, on a connection of its own.
//
// A connection that was lost is made again, and watchers are told that something may have been missed. Where the
// server knows no LISTEN, they are told so every second, and look for themselves.

/// How often who cannot listen is told to look.
const LOOK: Duration = Duration::from_secs(1);

impl WatchStore for PostgresStore {
    fn watch(&self) -> Result<Box<dyn Watcher>> {
        let server = self.server();
        let (bell, channel) = (NewsSender::default(), channel(&server.schema));
        let ear = bell.listen();
        let (stop, stopped) = oneshot::channel();
        let (first, begun) = oneshot::channel();
        let line = Line { link: server.link.clone(), channel, bell };
        server.wire.spawn(async move {
            let listening = tokio::spawn(line.listen(first));
            let _ = stopped.await;
            listening.abort();
        });
        let place = server.wire.place().to_owned();
        server.wire.call(async move {
            begun.await.unwrap_or_else(|_| Err(crate::Error::away(&place, "its listener ended".to_owned())))
        })?;
        Ok(Box::new(PostgresWatcher { ear, _stop: stop }))
    }
}

/// Someone who listens.
struct PostgresWatcher {
    ear: NewsReceiver,
    /// Ends the listening when dropped.
    _stop: oneshot::Sender<()>,
}

impl Watcher for PostgresWatcher {
    fn next(&mut self, patience: Duration) -> Result<WatchEvent> {
        self.ear.next(patience)
    }
}

/// Hears for a watcher.
#[derive(Clone)]
struct Line {
    link: PostgresLink,
    channel: String,
    bell: NewsSender,
}

impl Line {
    /// Listens until it is stopped; `first` is told once the first connection does.
    async fn listen(self, first: oneshot::Sender<Result<()>>) {
        let mut first = Some(first);
        for tries in 0.. {
            let begun = match &self.link.tls {
                Some(tls) => self.hear(tls.clone(), &mut first).await,
                None => self.hear(NoTls, &mut first).await,
            };
            let refused = begun.as_ref().err().is_some_and(|fault| {
                fault.code().is_some_and(|code| matches!(code.code(), "0A000" | "42601"))
            });
            match (first.take(), begun) {
                (Some(first), Ok(())) => drop(first.send(Ok(()))),
                (Some(first), Err(_)) if refused => drop(first.send(Ok(()))),
                (Some(first), Err(fault)) => {
                    drop(first.send(Err(self.link.told(fault))));
                    return;
                }
                (None, _) => {}
            }
            self.bell.miss();
            tokio::time::sleep(if refused { LOOK } else { pause(tries) }).await;
        }
    }

    /// Passes on what is heard on one connection, until that ends.
    async fn hear<T>(&self, tls: T, first: &mut Option<oneshot::Sender<Result<()>>>) -> PostgresResult<()>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
    {
        let (client, messages) = self.link.config.connect(tls).await?;
        let passing = tokio::spawn(self.clone().pass_on(messages));
        client.batch_execute(&format!("LISTEN {}", self.channel)).await?;
        match first.take() {
            Some(first) => drop(first.send(Ok(()))),
            None => self.bell.miss(),
        }
        let _ = passing.await;
        Ok(())
    }

    async fn pass_on<S: AsyncRead + AsyncWrite + Unpin>(self, mut messages: Connection<Socket, S>) {
        while let Some(Ok(message)) = poll_fn(|cx| messages.poll_message(cx)).await {
            if let AsyncMessage::Notification(note) = message
                && let Some(news) = ThreadNews::read(note.payload())
            {
                self.bell.ring(&news);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_session_does_not_hide_that_its_thread_grew() {
        let (teller, id) = (PostgresNotifier::new("own"), SessionId::new("s").unwrap());
        teller.ring(&id, &ThreadId::root(), 3);
        teller.ring(&id, &ThreadId::root(), 4);
        teller.ring(&id, &ThreadId::root(), 0);
        assert_eq!(teller.some().unwrap(), ["s root 4", "s root 0"]);
        assert!(!teller.has_news());
    }
}
