//! How many may come: in a second, and at once.
//!
//! A key has limits of its own or those of the server; without keys an address stands for whoever comes from it. Who comes
//! too often is told when to come again, and nothing is queued: a queue would only hide it.

use super::Guest;
use super::gateway::too_often;
use crate::config::ServerWishes;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many keys and addresses are remembered.
const MOST: usize = 10_000;

/// How many may come.
pub(crate) struct Limits {
    all: Arc<Semaphore>,
    rate: u32,
    lanes: Mutex<HashMap<String, Arc<Lane>>>,
}

/// One key or address.
struct Lane {
    rate: u32,
    concurrency: u32,
    pace: Option<DefaultDirectRateLimiter>,
    slots: Option<Arc<Semaphore>>,
}

impl Lane {
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
pub(crate) struct Permit {
    _all: OwnedSemaphorePermit,
    _own: Option<OwnedSemaphorePermit>,
}

impl Limits {
    /// The limits of the settings.
    pub(crate) fn new(server: &ServerWishes) -> Self {
        let all = Arc::new(Semaphore::new(server.concurrency.max(1) as usize));
        Self { all, rate: server.rate, lanes: Mutex::default() }
    }

    /// A place, unless all are taken.
    pub(super) fn enter(&self, guest: &Guest) -> Option<Permit> {
        let own = match (&guest.key, guest.concurrency) {
            (Some(key), Some(_)) => match &self.lane(&format!("key {key}"), guest).slots {
                Some(slots) => Some(Arc::clone(slots).try_acquire_owned().ok()?),
                None => None,
            },
            _ => None,
        };
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Permit { _all: all, _own: own })
    }

    /// True when one more may come now.
    fn may_come(&self, guest: &Guest, peer: Option<SocketAddr>) -> bool {
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

    fn lane(&self, name: &str, guest: &Guest) -> Arc<Lane> {
        let (rate, concurrency) = (guest.rate.unwrap_or(self.rate), guest.concurrency.unwrap_or_default());
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() >= MOST {
            lanes.clear();
        }
        let known = lanes.get(name).filter(|lane| (lane.rate, lane.concurrency) == (rate, concurrency));
        if let Some(lane) = known {
            return Arc::clone(lane);
        }
        let lane = Arc::new(Lane::new(rate, concurrency));
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
    let guest = request.extensions().get::<Guest>().cloned().unwrap_or_default();
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
    if gateway.limits.may_come(&guest, peer) {
        return next.run(request).await;
    }
    gateway.meters.turned_away("rate");
    too_often(request.uri().path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(concurrency: u32, rate: u32) -> Limits {
        Limits::new(&ServerWishes { concurrency, rate, ..ServerWishes::default() })
    }

    fn key(name: &str, rate: Option<u32>, concurrency: Option<u32>) -> Guest {
        Guest { key: Some(name.to_owned()), rate, concurrency, ..Guest::default() }
    }

    #[test]
    fn a_place_is_free_again_when_it_is_left_and_a_key_has_no_more_than_its_own() {
        let limits = limits(2, 0);
        let own = key("a", None, Some(1));
        let first = limits.enter(&own);
        assert!(first.is_some() && limits.enter(&own).is_none());
        let other = limits.enter(&Guest::default());
        assert!(other.is_some() && limits.enter(&Guest::default()).is_none());
        drop(first);
        assert!(limits.enter(&own).is_some());
    }

    #[test]
    fn who_comes_too_often_is_turned_away_and_nobody_else_is() {
        let limits = limits(9, 2);
        let peer = |n: u8| Some(SocketAddr::from(([10, 0, 0, n], 1)));
        let guest = Guest::default();
        assert!(limits.may_come(&guest, peer(1)) && limits.may_come(&guest, peer(1)));
        assert!(!limits.may_come(&guest, peer(1)) && limits.may_come(&guest, peer(2)));
        let slow = key("slow", Some(1), None);
        assert!(limits.may_come(&slow, peer(3)) && !limits.may_come(&slow, peer(4)));
    }
}
