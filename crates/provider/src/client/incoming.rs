//! An answer on its way in: its status at once, its body as it arrives.

use super::Cancel;
use super::feed::RequestFeed;
use super::{Client, Core, SendError, SendStep, error, unless};
use crate::provider::shown;
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// An answer. Dropped before its end, the connection is given up, and the provider stops.
pub struct ProviderResponse {
    /// The HTTP status.
    pub status: u16,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    url: String,
    /// What was looked at already and is still to be handed on.
    held: VecDeque<Bytes>,
    rest: Option<reqwest::Response>,
    core: Arc<Core>,
    idle: Duration,
    cancel: Cancel,
    /// The request may still be under way when an answer comes.
    _feed: Option<RequestFeed>,
}

impl ProviderResponse {
    pub(super) fn new(
        client: &Client,
        answer: reqwest::Response,
        url: &str,
        feed: Option<RequestFeed>,
        cancel: &Cancel,
    ) -> Self {
        let pair = |(name, value): (&reqwest::header::HeaderName, &reqwest::header::HeaderValue)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            status: answer.status().as_u16(),
            headers: answer.headers().iter().map(pair).collect(),
            url: shown(url),
            held: VecDeque::new(),
            rest: Some(answer),
            core: Arc::clone(&client.core),
            idle: client.patience.idle,
            cancel: cancel.clone(),
            _feed: feed,
        }
    }

    /// True when it comes in pieces that each mean something: events, or lines of JSON.
    pub fn is_stream(&self) -> bool {
        let value = self.header("content-type").unwrap_or_default();
        let kind = value.split(';').next().unwrap_or_default().trim();
        ["text/event-stream", "application/x-ndjson"].iter().any(|stream| kind.eq_ignore_ascii_case(stream))
    }

    /// Where it came from.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The first header called `name`, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The next bytes, or `None` at the end. After an error there is no more.
    pub fn chunk(&mut self) -> Result<Option<Bytes>, SendError> {
        let (core, cancel) = (Arc::clone(&self.core), self.cancel.clone());
        let result = on(&core.handle, unless(&cancel, self.next()));
        if result.is_err() {
            (self.rest, self.held) = (None, VecDeque::new());
        }
        result
    }

    /// The body as text, its first `most` bytes at the most. Of an answer that is an error, whatever came before the
    /// connection broke: half a reason is better than none.
    pub fn text(mut self, most: usize) -> Result<String, SendError> {
        let (core, cancel) = (Arc::clone(&self.core), self.cancel.clone());
        let gathering = async {
            if (200..300).contains(&self.status) {
                return self.gather(most).await;
            }
            Ok(self.gather_what_comes(most).await)
        };
        let mut bytes = on(&core.handle, unless(&cancel, gathering))?;
        bytes.truncate(most);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Looks at the first `most` bytes, and keeps all it took to be handed on.
    pub(super) async fn glance(&mut self, most: usize) -> String {
        let bytes = Bytes::from(self.gather_what_comes(most).await);
        let seen = String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned();
        self.held.push_front(bytes);
        seen
    }

    /// Reads until there are `most` bytes, or more, or no more come.
    pub(super) async fn gather(&mut self, most: usize) -> Result<Vec<u8>, SendError> {
        let mut bytes = Vec::new();
        while bytes.len() < most {
            let Some(chunk) = self.next().await? else { break };
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    async fn gather_what_comes(&mut self, most: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < most {
            let Ok(Some(chunk)) = self.next().await else {
                self.rest = None;
                break;
            };
            bytes.extend_from_slice(&chunk);
        }
        bytes
    }

    async fn next(&mut self) -> Result<Option<Bytes>, SendError> {
        if let Some(bytes) = self.held.pop_front() {
            return Ok(Some(bytes));
        }
        let Some(answer) = &mut self.rest else { return Ok(None) };
        let chunk = timeout(self.idle, answer.chunk()).await.map_err(|_| SendError::TimedOut {
            url: self.url.clone(),
            step: SendStep::Piece,
            after: self.idle,
        })?;
        chunk.map_err(|error| error::reading(&self.url, &error))
    }
}

impl fmt::Debug for ProviderResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("status", &self.status)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

// To wait for a future on this thread, whatever thread it is.
//
// The runtime's own way to do so panics in asynchronous code. Here the thread sleeps until it is woken: in asynchronous
// code that holds up a thread, which is bad, but not the end of the program.

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
