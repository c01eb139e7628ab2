//! The one way out: a request is streamed from disk to a provider, and what comes back is handed on as it arrives.
//!
//! A call blocks, and can be stopped from any other thread; inside, everything is asynchronous. Memory stays flat
//! whatever the size of a request, and its length is known before it is sent. This is the only place that tries again,
//! and only while nothing of an answer has been handed on: what a status means beyond that is for others to say. A
//! redirect is never followed, because a conversation goes where its owner sent it or nowhere.

mod error;
mod feed;
mod incoming;
mod route;

pub use error::{ClientError, SendError, SendStep};
pub use incoming::ProviderResponse;
pub use reqwest::Method;
/// A way to say stop, from any thread, to whatever waits, sends or reads. Clones are one and the same; once said it stays said.
pub use tokio_util::sync::CancellationToken as Cancel;

use crate::provider::{Provider, check, check_whole, shown};
use crate::splice::Splice;
use backon::{BackoffBuilder, ExponentialBuilder};
use bytes::Bytes;
use error::SendFault;
use feed::{RequestFeed, SendPace};
use futures_util::future::{Either, select};
use reqwest::RequestBuilder;
use reqwest::header::CONTENT_LENGTH;
use route::HttpRoutes;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::runtime::{Handle, Runtime};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// How much of an answer is looked at before it is decided whether to try again.
const GLANCE: usize = 64 << 10;
/// How long a probe may take, all in all.
const PROBE: Duration = Duration::from_secs(3);
/// The longest answer to a probe.
const PROBED: usize = 4 << 20;

/// How long to wait, and how often to try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientTimeouts {
    /// Until there is a connection.
    pub connect: Duration,
    /// From the last byte sent to the first of the answer: a local model reads long before it speaks.
    pub first: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// How often a request is sent, the first time included.
    pub tries: u32,
    /// Before the second try; it doubles from there.
    pub delay: Duration,
    /// The longest delay, also when a provider asks for a longer one.
    pub longest_delay: Duration,
}

impl Default for ClientTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            tries: 3,
            delay: Duration::from_secs(2),
            longest_delay: Duration::from_secs(60),
        }
    }
}

/// What is sent.
#[derive(Clone, Debug)]
pub enum ClientBody<'a> {
    /// What stands in a file, read anew for each try.
    File {
        /// The file.
        path: &'a Path,
        /// Its size; one that changed is an error.
        len: u64,
    },
    /// These bytes.
    Bytes(Bytes),
    /// These pieces.
    Spliced(Splice),
}

/// A request of someone else, to be sent on once, as it is.
#[derive(Clone, Debug)]
pub struct ForwardRequest<'a> {
    /// How.
    pub method: Method,
    /// Where to, path and query included.
    pub url: &'a str,
    /// Its headers, all of them but those of the connection itself.
    pub headers: &'a [(String, String)],
    /// Its body.
    pub body: ClientBody<'a>,
}

/// A try failed, and there will be another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetryWait {
    /// How often it was tried so far.
    pub tries: u32,
    /// How often it will be tried at most.
    pub most: u32,
    /// The status, when there was an answer.
    pub status: Option<u16>,
    /// What went wrong.
    pub why: String,
    /// How long until the next try.
    pub delay: Duration,
}

/// Says of a status and the beginning of its body that to try again would not help.
pub type IsFinal = fn(u16, &str) -> bool;

/// The client. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    core: Arc<Core>,
    patience: ClientTimeouts,
    is_final: IsFinal,
}

/// What clones and answers share.
struct Core {
    handle: Handle,
    runtime: Option<Runtime>,
    routes: HttpRoutes,
}

impl Drop for Core {
    fn drop(&mut self) {
        // A plain drop would wait, and must not where the last clone goes in asynchronous code.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Client {
    /// A client with a thread of its own.
    pub fn new(patience: ClientTimeouts) -> Result<Self, ClientError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("komado-wire")
            .enable_all()
            .build()
            .map_err(ClientError::Thread)?;
        Ok(Self::with(runtime.handle().clone(), Some(runtime), patience))
    }

    /// A client on the threads of a runtime that has more than the caller's, with time and network enabled, and that
    /// outlives the client. Its calls still block: from asynchronous code make them where one may wait.
    pub fn on(handle: Handle, patience: ClientTimeouts) -> Self {
        Self::with(handle, None, patience)
    }

    fn with(handle: Handle, runtime: Option<Runtime>, patience: ClientTimeouts) -> Self {
        let core = Core { handle, runtime, routes: HttpRoutes::new(patience.connect) };
        let patience = ClientTimeouts { first: patience.first.min(DAY), ..patience };
        Self { core: Arc::new(core), patience, is_final: |_, _| false }
    }

    /// The same client, which hands an answer back at once when `is_final` says so, instead of trying again.
    pub fn final_if(self, is_final: IsFinal) -> Self {
        Self { is_final, ..self }
    }

    /// Sends a request. Whatever the status, an answer is an answer: after the last try it is handed back like any
    /// other. `tell` hears of each wait before it begins.
    pub fn post(
        &self,
        to: &Provider,
        body: ClientBody<'_>,
        cancel: &Cancel,
        tell: &mut dyn FnMut(RetryWait),
    ) -> Result<ProviderResponse, SendError> {
        incoming::on(&self.core.handle, unless(cancel, self.tries(to, &body, cancel, tell)))
    }

    /// Sends a request on, once, with its own headers and no others: only the address, the length, and an `accept` of
    /// anything where the request has none, which says the same. Whatever the status, an answer is an answer; a redirect
    /// is one, too.
    pub fn forward(
        &self,
        request: ForwardRequest<'_>,
        cancel: &Cancel,
    ) -> Result<ProviderResponse, SendError> {
        let body = request.body;
        let sending = async {
            check_whole(request.url)?;
            let mut headers = route::forwarded(request.headers)?;
            let has_body = [Method::POST, Method::PUT, Method::PATCH].contains(&request.method);
            if has_body || body.len() > 0 {
                headers.insert(CONTENT_LENGTH, body.len().into());
            }
            let sent = self.core.routes.request(request.method, request.url)?.headers(headers);
            let answer = self.sent(sent, request.url, &body, SendPace::Even, cancel).await;
            answer.map_err(|(SendFault::Passing { error, .. } | SendFault::Lasting(error))| error)
        };
        incoming::on(&self.core.handle, unless(cancel, sending))
    }

    /// Waits after try number `tries` of a request whose answer began, and then said that the provider is busy: only who
    /// reads the answer can tell. False when there was the last try; an error when it was cancelled.
    pub fn wait(
        &self,
        tries: u32,
        why: &str,
        cancel: &Cancel,
        tell: &mut dyn FnMut(RetryWait),
    ) -> Result<bool, SendError> {
        let most = self.patience.tries;
        if tries >= most {
            return Ok(false);
        }
        let delay =
            self.patience.delay.saturating_mul(1 << (tries - 1).min(16)).min(self.patience.longest_delay);
        tell(RetryWait { tries, most, status: None, why: why.to_owned(), delay });
        let waiting = async {
            sleep(delay).await;
            Ok(true)
        };
        incoming::on(&self.core.handle, unless(cancel, waiting))
    }

    /// Asks something small, once, with little patience: status and body. `path` comes after [`Provider::root`].
    pub fn fetch(
        &self,
        to: &Provider,
        method: Method,
        path: &str,
        body: Option<String>,
        cancel: &Cancel,
    ) -> Result<(u16, String), SendError> {
        let asking = async {
            check(&to.base_url)?;
            let url = format!("{}/{}", to.root(), path.trim_start_matches('/'));
            let request = self.core.routes.request(method, &url)?.headers(route::of(to)?);
            let request = body.into_iter().fold(request, RequestBuilder::body);
            let late = |_| SendError::TimedOut { url: shown(&url), step: SendStep::Probe, after: PROBE };
            timeout(PROBE, self.probe(request, &url, cancel)).await.map_err(late)?
        };
        incoming::on(&self.core.handle, unless(cancel, asking))
    }

    async fn probe(
        &self,
        request: RequestBuilder,
        url: &str,
        cancel: &Cancel,
    ) -> Result<(u16, String), SendError> {
        let answer =
            request.send().await.map_err(|error| error::sending(url, error, self.patience.connect))?;
        let mut incoming = ProviderResponse::new(self, answer, url, None, cancel);
        let bytes = incoming.gather(PROBED + 1).await?;
        if bytes.len() > PROBED {
            return Err(SendError::TooLong { url: shown(url), most: PROBED });
        }
        Ok((incoming.status, String::from_utf8_lossy(&bytes).into_owned()))
    }

    async fn tries(
        &self,
        to: &Provider,
        body: &ClientBody<'_>,
        cancel: &Cancel,
        tell: &mut dyn FnMut(RetryWait),
    ) -> Result<ProviderResponse, SendError> {
        check(&to.base_url)?;
        let (url, mut headers) = (to.endpoint(), route::of(to)?);
        headers.insert(CONTENT_LENGTH, body.len().into());
        let most = self.patience.tries.max(1);
        let mut delays = delays(&self.patience);
        let mut pace = SendPace::Even;
        let mut tries = 0;
        loop {
            tries += 1;
            let request = self.core.routes.request(Method::POST, &url)?.headers(headers.clone());
            let outcome = self.once(request, &url, body, pace, cancel).await;
            let (status, why, asked) = match outcome {
                Ok(incoming) if tries >= most || !is_passing(incoming.status) => return Ok(incoming),
                Ok(mut incoming) => {
                    let seen = incoming.glance(GLANCE).await;
                    if is_refused(&incoming.headers) || (self.is_final)(incoming.status, &seen) {
                        return Ok(incoming);
                    }
                    let asked = asked(&incoming.headers, SystemTime::now());
                    // To come back earlier than that would be in vain.
                    if asked.is_some_and(|asked| asked > self.patience.longest_delay) {
                        return Ok(incoming);
                    }
                    (Some(incoming.status), format!("the answer was {}", incoming.status), asked)
                }
                Err(SendFault::Passing { error, cut }) if tries < most => {
                    pace = if cut { SendPace::Listening } else { pace };
                    (None, error.to_string(), None)
                }
                Err(SendFault::Passing { error, .. } | SendFault::Lasting(error)) => return Err(error),
            };
            let own = delays.next().unwrap_or(self.patience.longest_delay);
            let delay = asked.unwrap_or(own).min(self.patience.longest_delay);
            tell(RetryWait { tries, most, status, why, delay });
            sleep(delay).await;
        }
    }

    /// Sends a request. To be sent elsewhere is a failure.
    async fn once(
        &self,
        request: RequestBuilder,
        url: &str,
        body: &ClientBody<'_>,
        pace: SendPace,
        cancel: &Cancel,
    ) -> Result<ProviderResponse, SendFault> {
        let incoming = self.sent(request, url, body, pace, cancel).await?;
        match route::redirect(&incoming) {
            Some(to) => {
                let status = incoming.status;
                Err(SendFault::Lasting(SendError::Redirected { url: shown(url), status, to: shown(&to) }))
            }
            None => Ok(incoming),
        }
    }

    async fn sent(
        &self,
        request: RequestBuilder,
        url: &str,
        body: &ClientBody<'_>,
        pace: SendPace,
        cancel: &Cancel,
    ) -> Result<ProviderResponse, SendFault> {
        let (body, feed) = body.open(pace).map_err(SendFault::Lasting)?;
        let answer = match self.answer(request.body(body), url, &feed).await? {
            Ok(answer) => answer,
            Err(error) => {
                if let Some(error) = feed.fault() {
                    return Err(SendFault::Lasting(error));
                }
                return Err(SendFault::of(error::sending(url, error, self.patience.connect), feed.is_amid()));
            }
        };
        if !answer.status().is_success() {
            feed.hold();
        }
        Ok(ProviderResponse::new(self, answer, url, Some(feed), cancel))
    }

    /// Waits for the head of an answer, from the last piece that was sent: a long request may take its time.
    async fn answer(
        &self,
        request: RequestBuilder,
        url: &str,
        feed: &RequestFeed,
    ) -> Result<reqwest::Result<reqwest::Response>, SendFault> {
        let mut sending = pin!(request.send());
        loop {
            let until = feed.moved() + self.patience.first;
            match timeout_at(until, &mut sending).await {
                Ok(answer) => return Ok(answer),
                Err(_) if feed.moved() + self.patience.first > Instant::now() => {}
                Err(_) => {
                    let (url, after) = (shown(url), self.patience.first);
                    return Err(SendFault::Lasting(SendError::TimedOut {
                        url,
                        step: SendStep::Answer,
                        after,
                    }));
                }
            }
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("patience", &self.patience).finish_non_exhaustive()
    }
}

/// Does `work`, unless `cancel` is said first.
async fn unless<T>(
    cancel: &Cancel,
    work: impl Future<Output = Result<T, SendError>>,
) -> Result<T, SendError> {
    match select(pin!(cancel.cancelled()), pin!(work)).await {
        Either::Left(((), _)) => Err(SendError::Cancelled),
        Either::Right((result, _)) => result,
    }
}

// Whether a failure may pass, and how long to wait for that.
//
// What a provider asks for counts before what would be our own choice. Pure but for the jitter: the time is told, not
// read.

/// Longer than anyone waits, and short enough to be reckoned with.
const DAY: Duration = Duration::from_secs(86_400);

/// True for an answer that says: not now.
fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500 | 502 | 503 | 504 | 529)
}

/// True when the provider says itself that to try again is of no use.
fn is_refused(headers: &[(String, String)]) -> bool {
    find(headers, "x-should-retry").is_some_and(|value| value.eq_ignore_ascii_case("false"))
}

/// Our own delays: each about twice the one before, never quite the same, so that many clients do not come back at once.
fn delays(patience: &ClientTimeouts) -> impl Iterator<Item = Duration> + use<> {
    let longest = patience.longest_delay.min(DAY);
    ExponentialBuilder::new()
        .with_min_delay(patience.delay.min(longest))
        .with_max_delay(longest)
        .without_max_times()
        .with_jitter()
        .build()
        .map(move |delay| delay.min(longest))
}

/// The delay that an answer asks for. A date is read against the answer's own, so that clocks need not agree; `now` is
/// for an answer that has none.
fn asked(headers: &[(String, String)], now: SystemTime) -> Option<Duration> {
    let milliseconds = find(headers, "retry-after-ms").and_then(number).map(|number| number / 1000.0);
    let value = find(headers, "retry-after");
    if let Some(seconds) = milliseconds.or_else(|| value.and_then(number)) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |text: &str| httpdate::parse_http_date(text).ok();
    let now = find(headers, "date").and_then(date).unwrap_or(now);
    date(value?)?.duration_since(now).ok()
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    fn headers(pairs: Pairs<'_>) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_a_provider_asks_for_is_read_in_every_form() {
        let at = UNIX_EPOCH + Duration::from_secs(784_111_770);
        let table: [(Pairs<'_>, Option<f64>); 11] = [
            (&[("retry-after", "7")], Some(7.0)),
            (&[("Retry-After", " 0.5 ")], Some(0.5)),
            (&[("retry-after-ms", "250"), ("retry-after", "7")], Some(0.25)),
            (&[("retry-after-ms", "soon"), ("retry-after", "7")], Some(7.0)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], Some(7.0)),
            (
                &[
                    ("date", "Tue, 29 Feb 2028 23:59:50 GMT"),
                    ("retry-after", "Wed, 01 Mar 2028 00:00:00 GMT"),
                ],
                Some(10.0),
            ),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT")], None),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "Sun, 06 Foo 1994 08:49:37 GMT")], None),
            (&[], None),
        ];
        for (pairs, seconds) in table {
            assert_eq!(asked(&headers(pairs), at), seconds.map(Duration::from_secs_f64), "{pairs:?}");
        }
    }

    #[test]
    fn our_own_delays_grow_and_stay_under_the_longest() {
        let patience = ClientTimeouts {
            delay: Duration::from_secs(2),
            longest_delay: Duration::from_secs(10),
            ..ClientTimeouts::default()
        };
        let all: Vec<Duration> = delays(&patience).take(20).collect();
        assert!((2..4).contains(&all[0].as_secs()) && (4..8).contains(&all[1].as_secs()), "{all:?}");
        assert!(all.iter().all(|delay| *delay <= patience.longest_delay), "{all:?}");
    }

    #[test]
    fn no_patience_is_too_long_to_be_reckoned_with() {
        let patience = ClientTimeouts {
            delay: Duration::MAX,
            longest_delay: Duration::MAX,
            ..ClientTimeouts::default()
        };
        assert_eq!(delays(&patience).take(9).max(), Some(DAY));
    }

    #[test]
    fn a_status_that_may_pass_is_told_from_one_that_stays() {
        assert!([408, 409, 429, 500, 502, 503, 504, 529].into_iter().all(is_passing));
        assert!(![200, 301, 400, 401, 403, 404, 413, 422, 501].into_iter().any(is_passing));
        assert!(is_refused(&headers(&[("X-Should-Retry", "false")])));
        assert!(!is_refused(&headers(&[("x-should-retry", "true")])));
    }
}
