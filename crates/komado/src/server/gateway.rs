//! The gateway: an agent's base URL points here.
//!
//! Requests come in any of four APIs and go to a provider, mostly in the same one. What is under budget leaves as it came,
//! byte for byte; what is over it leaves with the edits of the ladder. `docs/serve.md` tells how to run it. Refused: a
//! request that would have worked without us and does not with us.

mod allow;
mod choose;
mod count;
mod exchange;
mod flights;
mod form;
mod headers;
mod models;
mod outlet;
mod path;
mod plain;
mod refusal;
mod scribe;
mod spool;
#[cfg(test)]
mod tests;
mod upstream;
mod windows;

pub(crate) use choose::{Found, Upstreams};
pub(crate) use flights::Flights;
pub(crate) use upstream::Upstream;

use super::limits::{Limits, Permit};
use super::metrics::Meters;
use super::{Caller, House};
use crate::stores;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use exchange::Deed;
use http::{HeaderMap, Method};
use komado_config::OnFault;
use komado_engine::relay::Relay;
use komado_ops::Context;
use komado_provider::Dialect;
use path::{Aim, Way};
use refusal::Refusal;
use spool::Rules;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windows::Windows;

/// What all requests share.
pub(crate) struct Gateway {
    house: Arc<House>,
    /// Who can be asked.
    pub(crate) upstreams: Upstreams,
    /// Who is at work in which thread.
    pub(crate) relay: Relay,
    /// Exchanges under way.
    pub(crate) flights: Flights,
    /// How many may come.
    pub(crate) limits: Limits,
    /// What is counted.
    pub(crate) meters: Arc<Meters>,
    /// What happens when something of ours fails.
    pub(crate) on_fault: OnFault,
    windows: Windows,
    rules: Rules,
}

impl Gateway {
    /// A gateway to `upstreams`.
    pub(crate) fn new(house: &Arc<House>, upstreams: Upstreams, on_fault: OnFault) -> Self {
        let config = &house.context.config;
        let server = &config.server;
        let mut relay = Relay::new(house.context.engine.clone());
        relay.waiting = waiting(&house.context);
        Self {
            relay,
            upstreams,
            flights: Flights::default(),
            limits: Limits::new(server),
            meters: Arc::clone(&house.meters),
            on_fault,
            windows: Windows::default(),
            rules: Rules {
                folder: config.base_dir.clone(),
                most: u64::from(server.body_limit_mb) << 20,
                patience: Duration::from_secs(u64::from(server.timeout_seconds)),
            },
            house: Arc::clone(house),
        }
    }
}

/// How long a request waits while another process holds its session: where processes on other machines may hold one, until
/// a process that died has lost it; a file's lock ends with its process, so whoever holds it is at work.
fn waiting(context: &Context) -> Duration {
    let is_elsewhere = context.files.is_none() && stores::is_kept(&context.config);
    if is_elsewhere { context.config.store.lease + LEEWAY } else { LEEWAY / 2 }
}

/// How much longer than a lease.
const LEEWAY: Duration = Duration::from_secs(2);

/// A request at the door.
struct Visit {
    gateway: Arc<Gateway>,
    guest: Caller,
    aim: Aim,
    method: Method,
    /// The path as the client asked for it.
    path: String,
    query: Option<String>,
    headers: HeaderMap,
    started: Instant,
    /// It is one of so many until this is dropped.
    _permit: Permit,
}

/// Its routes: everything that is nobody else's.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> Router<Arc<House>> {
    Router::new().fallback(answer).with_state(Arc::clone(gateway))
}

async fn answer(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let is_upstream = |name: &str| gateway.upstreams.get(name).is_some();
    let aim = path::aim(&parts.method, parts.uri.path(), &is_upstream);
    let dialect = aim.dialect;
    let guest = parts.extensions.get::<Caller>().cloned().unwrap_or_default();
    let Some(permit) = gateway.limits.enter(&guest) else {
        gateway.meters.turned_away("concurrency");
        let busy = "too many requests are under way; server.concurrency sets how many may be";
        return Refusal::new(503, busy).later(1).response(dialect);
    };
    let visit = Visit {
        guest,
        aim,
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().map(str::to_owned),
        headers: parts.headers,
        started: Instant::now(),
        _permit: permit,
        gateway,
    };
    led(visit, body).await.unwrap_or_else(|refusal| refusal.response(dialect))
}

/// Leads a request to where it wants to go.
async fn led(visit: Visit, body: Body) -> Result<Response, Refusal> {
    visit.check_path()?;
    let others = visit.gateway.house.context.config.server.forward_other;
    match visit.aim.way.clone() {
        Way::Ask => exchange::exchange(visit, body, Deed::Relay).await,
        Way::Compact => exchange::exchange(visit, body, Deed::Compact).await,
        Way::Count => count::count(visit, body).await,
        Way::Models => models::list(visit).await,
        Way::Model(id) => models::one(visit, &id).await,
        Way::About => Ok(about(&visit.gateway).into_response()),
        Way::Root(leaf) if others || HELPERS.contains(&leaf.as_str()) => {
            plain::root(visit, body, &leaf).await
        }
        Way::Version(leaf) if others => plain::version(visit, body, &leaf).await,
        Way::Root(_) | Way::Version(_) => Err(Refusal::new(
            404,
            format!("{} is not served here, and server.forward_other is off, so it goes nowhere", visit.path),
        )),
        Way::Nowhere => Err(nowhere(&visit)),
    }
}

/// What Ollama's clients ask before they ask a model.
const HELPERS: [&str; 4] = ["/api/tags", "/api/version", "/api/ps", "/api/show"];

/// What there is, for whoever looks with a browser.
fn about(gateway: &Gateway) -> String {
    format!(
        "komado {} is running, in front of {}\n",
        env!("CARGO_PKG_VERSION"),
        gateway.upstreams.listed_names()
    )
}

fn nowhere(visit: &Visit) -> Refusal {
    let names = visit.gateway.upstreams.listed_names();
    Refusal::new(
        404,
        format!(
            "{} {} is not served here; there are POST /v1/chat/completions, /v1/responses, /v1/responses/compact, \
             /v1/messages, /v1/messages/count_tokens and /api/chat, GET /v1/models, the same after /NAME of a provider \
             ({names}), the API under /api/v1, and /mcp",
            visit.method, visit.path
        ),
    )
}

/// The error for a client that comes too often, as its path reads errors.
pub(crate) fn too_often(path: &str) -> Response {
    Refusal::new(429, "too many requests in a second; the key or server.rate sets how many may come")
        .later(1)
        .response(dialect_at(path))
}

/// How whoever asks at `path` speaks, also where it begins with a provider's name.
pub(crate) fn dialect_at(path: &str) -> Dialect {
    let aim = path::aim(&Method::POST, path, &|_| false);
    let is_known = aim.way != Way::Nowhere;
    if is_known { aim.dialect } else { path::aim(&Method::POST, path, &|_| true).dialect }
}

/// The dialects that a provider is asked in, for whoever starts the server.
pub(crate) fn spoken(upstream: &Upstream) -> Vec<&'static str> {
    Dialect::ALL.into_iter().filter(|dialect| upstream.speaks(*dialect)).map(Dialect::name).collect()
}
