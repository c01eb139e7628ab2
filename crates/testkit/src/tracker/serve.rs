//! The door: who asks, whether they are to fail today, and which of the two answers.

use super::answer::{TrackerResponse, date};
use super::connection::{Knife, TrackerConnections};
use super::query::{TrackerQuery, decoded};
use super::state::{FakeTrackerRequest, Limit, TrackerFault, TrackerState};
use super::{Shared, github, gitlab, lock};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Response};
use komado_agent::source::TrackerKind;
use serde_json::Value;
use std::net::TcpListener;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// The longest request that is read.
const MOST_BODY: usize = 16 << 20;

/// About what the head of an answer takes, for one that ends in the middle of its body.
const HEAD: usize = 512;

/// What was asked, taken apart.
pub(super) struct TrackerExchange<'a> {
    pub(super) method: &'a str,
    /// The path as it was sent.
    pub(super) path: &'a str,
    /// Its pieces, decoded.
    pub(super) pieces: Vec<String>,
    pub(super) query: TrackerQuery,
    pub(super) headers: &'a HeaderMap,
    /// The JSON that came along, if it was any.
    pub(super) body: Option<Value>,
}

impl TrackerExchange<'_> {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// A text of the JSON that came along.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.body.as_ref()?.get(name)?.as_str()
    }
}

/// Serves until it is told to stop.
pub(super) fn run(runtime: Runtime, listener: TcpListener, desk: Shared, stopped: oneshot::Receiver<()>) {
    runtime.block_on(async move {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
        let router = Router::new().fallback(answer).with_state(desk);
        let serving =
            axum::serve(TrackerConnections(listener), router.into_make_service_with_connect_info::<Knife>());
        tokio::select! {
            _ = serving.into_future() => {}
            _ = stopped => {}
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
}

async fn answer(
    State(desk): State<Shared>,
    ConnectInfo(knife): ConnectInfo<Knife>,
    request: axum::extract::Request,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MOST_BODY).await.unwrap_or_default();
    let mut desk = lock(&desk);
    let fault = desk.next_fault();
    let answer = match &fault {
        Some(TrackerFault::Status(status)) => Some(refusal(&desk, *status, "on demand")),
        Some(TrackerFault::Page(status)) => Some(TrackerResponse::page(*status)),
        Some(TrackerFault::Limit(limit)) => Some(limited(&desk, *limit)),
        Some(TrackerFault::Cut) => None,
        Some(TrackerFault::CutAfter | TrackerFault::Half) | None => Some(asked(&mut desk, &parts, &body)),
    };
    let left = match (&fault, &answer) {
        (Some(TrackerFault::Cut | TrackerFault::CutAfter), _) => Some(0),
        (Some(TrackerFault::Half), Some(answer)) => Some(HEAD + answer.body.len() / 2),
        _ => None,
    };
    if let Some(left) = left {
        knife.cut_after(left);
    }
    let status = answer.as_ref().filter(|_| left != Some(0)).map_or(0, |answer| answer.status);
    desk.record(FakeTrackerRequest {
        method: parts.method.to_string(),
        path: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        status,
    });
    sent(answer.unwrap_or_else(|| TrackerResponse::page(500)).with("date", date(desk.now())))
}

fn asked(desk: &mut TrackerState, parts: &Parts, body: &Bytes) -> TrackerResponse {
    let path = parts.uri.path();
    let asked = TrackerExchange {
        method: parts.method.as_str(),
        path,
        pieces: path.split('/').skip(1).map(decoded).collect(),
        query: TrackerQuery::parse(parts.uri.query().unwrap_or_default()),
        headers: &parts.headers,
        body: serde_json::from_slice(body).ok(),
    };
    match desk.kind {
        TrackerKind::GitHub => github::answer(desk, &asked),
        TrackerKind::GitLab => gitlab::answer(desk, &asked),
    }
}

fn refusal(desk: &TrackerState, status: u16, words: &str) -> TrackerResponse {
    match desk.kind {
        TrackerKind::GitHub => github::refusal(status, words),
        TrackerKind::GitLab => gitlab::refusal(status, words),
    }
}

fn limited(desk: &TrackerState, limit: Limit) -> TrackerResponse {
    match desk.kind {
        TrackerKind::GitHub => github::limited(desk.now(), limit),
        TrackerKind::GitLab => gitlab::limited(desk.now(), limit),
    }
}

fn sent(answer: TrackerResponse) -> Response<Body> {
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(*name, value);
    }
    response.body(Body::from(answer.body)).unwrap_or_default()
}
