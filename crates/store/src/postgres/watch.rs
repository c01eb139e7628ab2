//! Listens to what is done, here and elsewhere, on a connection of its own.
//!
//! A connection that was lost is made again, and whoever listens is told that something may have been missed. Where the
//! server knows no LISTEN, they are told so every second, and look for themselves.

use super::link::Link;
use super::news::channel;
use super::{PostgresStore, fault::Sql, link::pause};
use crate::Result;
use crate::watch::{Bell, Ear, Heard, News, Watch, Watcher};
use std::future::poll_fn;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Connection, NoTls, Socket};

/// How often who cannot listen is told to look.
const LOOK: Duration = Duration::from_secs(1);

impl Watch for PostgresStore {
    fn watch(&self) -> Result<Box<dyn Watcher>> {
        let server = self.server();
        let (bell, channel) = (Bell::default(), channel(&server.schema));
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
            begun.await.unwrap_or_else(|_| Err(crate::Error::away(&place, "nobody listens".to_owned())))
        })?;
        Ok(Box::new(PostgresWatcher { ear, _stop: stop }))
    }
}

/// Someone who listens.
struct PostgresWatcher {
    ear: Ear,
    /// Ends the listening when dropped.
    _stop: oneshot::Sender<()>,
}

impl Watcher for PostgresWatcher {
    fn next(&mut self, patience: Duration) -> Result<Heard> {
        self.ear.next(patience)
    }
}

/// Hears for a watcher.
#[derive(Clone)]
struct Line {
    link: Link,
    channel: String,
    bell: Bell,
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
    async fn hear<T>(&self, tls: T, first: &mut Option<oneshot::Sender<Result<()>>>) -> Sql<()>
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
                && let Some(news) = News::read(note.payload())
            {
                self.bell.ring(&news);
            }
        }
    }
}
