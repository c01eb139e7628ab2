//! Limits: requests per second, and at the same time.
//!
//! A key has limits of its own or those of the server; without keys an address stands for all clients that come from it. A caller
//! over its rate is told when to retry, and nothing is queued: a queue would only hide it.

use super::ApiCaller;
use super::api::ApiProblem;
use super::gateway::too_often;
use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt;
use komado_config::ServerConfig;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many keys and addresses are remembered.
const MOST: usize = 10_000;

/// Calls of the API and of MCP that are handled at once; each may hold a thread. The gateway has its own.
pub(crate) const SEATS: usize = 48;

/// Readers of live events; they hold no thread while they wait.
const LISTENERS: usize = 256;

/// How long a call waits for a seat.
const QUEUE: Duration = Duration::from_secs(5);

/// How many may come.
pub(crate) struct RequestLimits {
    all: Arc<Semaphore>,
    seats: Arc<Semaphore>,
    listeners: Arc<Semaphore>,
    rate: u32,
    lanes: Mutex<HashMap<String, Arc<ClientLimits>>>,
}

/// One key or address.
struct ClientLimits {
    rate: u32,
    concurrency: u32,
    pace: Option<DefaultDirectRateLimiter>,
    slots: Option<Arc<Semaphore>>,
}

impl ClientLimits {
    fn new(rate: u32, concurrency: u32) -> Self {
        Self {
            rate,
            concurrency,
            pace: NonZeroU32::new(rate).map(|rate| RateLimiter::direct(Quota::per_second(rate))),
            slots: (concurrency > 0).then(|| Arc::new(Semaphore::new(concurrency as usize))),
        }
    }
}

/// A place among those that are handled at once.
pub(crate) struct RequestPermit {
    _all: OwnedSemaphorePermit,
    _own: Option<OwnedSemaphorePermit>,
}

impl RequestLimits {
    /// The limits of the settings.
    pub(crate) fn new(server: &ServerConfig) -> Self {
        let all = Arc::new(Semaphore::new(server.concurrency.max(1) as usize));
        let (seats, listeners) = (Arc::new(Semaphore::new(SEATS)), Arc::new(Semaphore::new(LISTENERS)));
        Self { all, seats, listeners, rate: server.rate, lanes: Mutex::default() }
    }

    /// A place, unless all are taken.
    pub(super) fn enter(&self, guest: &ApiCaller) -> Option<RequestPermit> {
        let own = match (&guest.key, guest.concurrency) {
            (Some(key), Some(_)) => match &self.lane(&format!("key {key}"), guest).slots {
                Some(slots) => Some(Arc::clone(slots).try_acquire_owned().ok()?),
                None => None,
            },
            _ => None,
        };
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(RequestPermit { _all: all, _own: own })
    }

    /// Takes every seat.
    #[cfg(test)]
    pub(crate) async fn fill(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.seats).acquire_many_owned(SEATS as u32).await.unwrap()
    }

    /// True when one more may come now.
    fn may_come(&self, guest: &ApiCaller, peer: Option<SocketAddr>) -> bool {
        let name = match (&guest.key, peer) {
            (Some(key), _) => format!("key {key}"),
            (None, Some(peer)) => peer.ip().to_string(),
            (None, None) => String::new(),
        };
        if guest.rate.is_none() && self.rate == 0 {
            return true;
        }
        self.lane(&name, guest).pace.as_ref().is_none_or(|pace| pace.check().is_ok())
    }

    fn lane(&self, name: &str, guest: &ApiCaller) -> Arc<ClientLimits> {
        let (rate, concurrency) = (guest.rate.unwrap_or(self.rate), guest.concurrency.unwrap_or_default());
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() >= MOST {
            lanes.clear();
        }
        let known = lanes.get(name).filter(|lane| (lane.rate, lane.concurrency) == (rate, concurrency));
        if let Some(lane) = known {
            return Arc::clone(lane);
        }
        let lane = Arc::new(ClientLimits::new(rate, concurrency));
        lanes.insert(name.to_owned(), Arc::clone(&lane));
        lane
    }
}

/// Turns away who comes too often.
pub(crate) async fn pace(
    State(gateway): State<Arc<super::gateway::Gateway>>,
    request: Request,
    next: Next,
) -> Response {
    let guest = request.extensions().get::<ApiCaller>().cloned().unwrap_or_default();
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
    if gateway.limits.may_come(&guest, peer) {
        return next.run(request).await;
    }
    gateway.meters.turned_away("rate");
    too_often(request.uri().path())
}

/// Gives a call of the API or of MCP a seat until its answer is over, so that no number of them takes the threads that
/// requests to models need.
pub(crate) async fn seat(
    State(gateway): State<Arc<super::gateway::Gateway>>,
    request: Request,
    next: Next,
) -> Response {
    let limits = &gateway.limits;
    let busy = |what: &str| {
        gateway.meters.turned_away("concurrency");
        let problem = ApiProblem::new(StatusCode::SERVICE_UNAVAILABLE, format!("too many {what} at once"));
        let mut response = problem.into_response();
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        response
    };
    let seat = tokio::time::timeout(QUEUE, Arc::clone(&limits.seats).acquire_owned()).await;
    let Ok(Ok(seat)) = seat else { return busy("calls of the API") };
    // A call whose client has gone still holds its thread, so it still holds its seat.
    let call = tokio::spawn(async move { (next.run(request).await, seat) });
    let Ok((response, seat)) = call.await else {
        return ApiProblem::new(StatusCode::INTERNAL_SERVER_ERROR, "the call broke off").into_response();
    };
    let kind = response.headers().get(CONTENT_TYPE);
    if kind.is_none_or(|kind| !kind.as_bytes().starts_with(b"text/event-stream")) {
        return held(response, seat);
    }
    match Arc::clone(&limits.listeners).try_acquire_owned() {
        Ok(place) => held(response, place),
        Err(_) => busy("readers of events"),
    }
}

/// An answer that keeps a place until it is over.
fn held(response: Response, place: OwnedSemaphorePermit) -> Response {
    // One that is there as a whole needs no place any more.
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _ = &place;
            frame
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(concurrency: u32, rate: u32) -> RequestLimits {
        RequestLimits::new(&ServerConfig { concurrency, rate, ..ServerConfig::default() })
    }

    fn key(name: &str, rate: Option<u32>, concurrency: Option<u32>) -> ApiCaller {
        ApiCaller { key: Some(name.to_owned()), rate, concurrency, ..ApiCaller::default() }
    }

    #[test]
    fn a_place_is_free_again_when_it_is_left_and_a_key_has_no_more_than_its_own() {
        let limits = limits(2, 0);
        let own = key("a", None, Some(1));
        let first = limits.enter(&own);
        assert!(first.is_some() && limits.enter(&own).is_none());
        let other = limits.enter(&ApiCaller::default());
        assert!(other.is_some() && limits.enter(&ApiCaller::default()).is_none());
        drop(first);
        assert!(limits.enter(&own).is_some());
    }

    #[tokio::test]
    async fn a_place_is_kept_until_the_answer_is_over() {
        let places = Arc::new(Semaphore::new(1));
        let place = Arc::clone(&places).try_acquire_owned().unwrap();
        let pieces = futures_util::stream::iter([std::io::Result::Ok("窓")]);
        let response = held(Response::new(Body::from_stream(pieces)), place);
        assert_eq!(places.available_permits(), 0);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "窓".as_bytes());
        let place = Arc::clone(&places).try_acquire_owned().unwrap();
        let _whole = held(Response::new(Body::from("窓")), place);
        assert_eq!(places.available_permits(), 1);
    }

    #[test]
    fn a_caller_over_its_rate_is_refused_and_others_are_not() {
        let limits = limits(9, 2);
        let peer = |n: u8| Some(SocketAddr::from(([10, 0, 0, n], 1)));
        let guest = ApiCaller::default();
        assert!(limits.may_come(&guest, peer(1)) && limits.may_come(&guest, peer(1)));
        assert!(!limits.may_come(&guest, peer(1)) && limits.may_come(&guest, peer(2)));
        let slow = key("slow", Some(1), None);
        assert!(limits.may_come(&slow, peer(3)) && !limits.may_come(&slow, peer(4)));
    }
}
