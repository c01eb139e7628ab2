//! Live events as server-sent events.
//!
//! A reader looks when the store tells that something happened, and once in a while by itself, since files tell only what
//! this process does. Nothing is kept for a reader who is slow, and one that has gone is dropped with its connection.

use super::request::ApiCall;
use super::response::ApiResult;
use crate::server::store_news::NewsReader;
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Response, Sse};
use futures_util::stream;
use komado_core::SessionId;
use komado_ops::watch::{self, ChangedSessions, EventWatch};
use komado_ops::{NamedArguments, OperationRow};
use serde_json::json;
use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// How often a session is looked at where other processes change it unheard: files tell only what this one does.
const LOOK: Duration = Duration::from_millis(250);
/// How often all sessions are, and how often at the most.
const LOOK_ALL: Duration = Duration::from_secs(1);
/// How often anything is where everything is heard of, in case something was not.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How often a connection is kept alive for what stands between.
const ALIVE: Duration = Duration::from_secs(15);

/// Answers the events of an operation.
pub(super) async fn answer(
    row: &'static OperationRow,
    call: ApiCall,
    given: NamedArguments,
) -> ApiResult<Response> {
    // It listens before it looks, so that nothing happens in between unheard.
    let listener = call.house.news.listen(&call.context.engine, &call.house.stop);
    let watching = call.clone().run(move |call| Ok(row.watch(&given, &call.context)?)).await?;
    let session = watching.session().cloned();
    let (watching, waiting) = (Some(watching), VecDeque::new());
    let reader =
        EventReader { call, listener, session, watching, news: None, whole: Instant::now(), waiting };
    Ok(Sse::new(stream::unfold(reader, EventReader::next))
        .keep_alive(KeepAlive::new().interval(ALIVE))
        .into_response())
}

/// What is known of a reader.
struct EventReader {
    call: ApiCall,
    listener: NewsReader,
    /// The session that the events are about; `None` for all.
    session: Option<SessionId>,
    /// How far the reader has come; `None` when no more is to come.
    watching: Option<Box<dyn EventWatch>>,
    /// The sessions to look at; `None` for all.
    news: ChangedSessions,
    /// When all were looked at last.
    whole: Instant,
    waiting: VecDeque<Event>,
}

impl EventReader {
    /// The next event, when there is one.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some((Ok(event), self));
            }
            let (mut watching, news) = (self.watching.take()?, self.news());
            let look = move |call: &ApiCall| {
                let events = watching.look(&call.context, news)?;
                Ok((watching, events))
            };
            match self.call.clone().run(look).await {
                Ok((_, None)) => return None,
                Ok((watching, Some(events))) => {
                    self.watching = Some(watching);
                    self.waiting = events.into_iter().map(told).collect();
                    if self.waiting.is_empty() {
                        self.news = self.wait().await?;
                    }
                }
                Err(problem) => {
                    let data = json!({ "detail": problem.detail }).to_string();
                    self.waiting.push_back(Event::default().event("problem").data(data));
                }
            }
        }
    }

    /// Where to look now; everywhere when that was long ago, however much is heard.
    fn news(&mut self) -> ChangedSessions {
        let news = self.news.replace(HashSet::new()).filter(|_| self.whole.elapsed() < LOOK_AGAIN);
        if news.is_none() {
            self.whole = Instant::now();
        }
        news
    }

    /// Waits for news, and gives where to look; `None` when the server is to stop.
    async fn wait(&mut self) -> Option<ChangedSessions> {
        let has_files = self.call.context.files.is_some();
        let (least, most) = match (&self.session, has_files) {
            (Some(_), true) => (Duration::ZERO, LOOK),
            (Some(_), false) => (Duration::ZERO, LOOK_AGAIN),
            (None, true) => (LOOK_ALL, LOOK_ALL),
            (None, false) => (LOOK_ALL, LOOK_AGAIN),
        };
        let heard = async {
            tokio::time::sleep(least).await;
            self.listener.wake(self.session.as_ref()).await
        };
        let news = tokio::select! {
            () = self.call.house.stop.cancelled() => return None,
            news = heard => news,
            () = tokio::time::sleep(most) => None,
        };
        Some(news.filter(|_| !has_files))
    }
}

fn told(watch::StreamedEvent { name, id, data }: watch::StreamedEvent) -> Event {
    let event = Event::default().event(name).data(data);
    match id {
        Some(id) => event.id(id),
        None => event,
    }
}
