//! The gateway: an agent's base URL points here.
//!
//! Requests come in any of four APIs and go to a provider, mostly in the same one. What is under budget leaves as it came,
//! byte for byte; what is over it leaves with the edits of the ladder. `docs/serve.md` tells how to run it. Refused: a
//! request that would have worked without us and does not with us.

mod body;
mod exchange;
mod forward;
mod headers;
mod permissions;
#[cfg(test)]
mod tests;
mod upstream;

use super::limits::{RequestLimits, RequestPermit};
use super::metrics::{Metrics, STATUS_BY_US};
use super::{ApiCaller, ServerState};
use crate::app::is_kept;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use body::BodyLimits;
use exchange::InFlight;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use komado_config::OnFault;
use komado_engine::relay::Relay;
use komado_ops::OperationContext;
use komado_provider::{Dialect, SendError, SendStep};
use percent_encoding::percent_decode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use upstream::ModelWindows;
pub(crate) use upstream::{GatewayUpstream, GatewayUpstreams};

/// What all requests share.
pub(crate) struct Gateway {
    house: Arc<ServerState>,
    /// Who can be asked.
    pub(crate) upstreams: GatewayUpstreams,
    /// Who is at work in which thread.
    pub(crate) relay: Relay,
    /// Exchanges under way.
    pub(crate) flights: InFlight,
    /// How many may come.
    pub(crate) limits: RequestLimits,
    /// What is counted.
    pub(crate) meters: Arc<Metrics>,
    /// What happens when something of ours fails.
    pub(crate) on_fault: OnFault,
    windows: ModelWindows,
    rules: BodyLimits,
}

impl Gateway {
    /// A gateway to `upstreams`.
    pub(crate) fn new(house: &Arc<ServerState>, upstreams: GatewayUpstreams, on_fault: OnFault) -> Self {
        let config = &house.context.config;
        let server = &config.server;
        let mut relay = Relay::new(house.context.engine.clone());
        relay.waiting = waiting(&house.context);
        Self {
            relay,
            upstreams,
            flights: InFlight::default(),
            limits: RequestLimits::new(server),
            meters: Arc::clone(&house.meters),
            on_fault,
            windows: ModelWindows::default(),
            rules: BodyLimits {
                folder: config.base_dir.clone(),
                most: u64::from(server.body_limit_mb) << 20,
                patience: Duration::from_secs(u64::from(server.timeout_seconds)),
            },
            house: Arc::clone(house),
        }
    }
}

/// How long a request waits while another process holds its session: where processes on other machines may hold one, until
/// a process that died has lost it; a file's lock ends with its process, so its holder is at work.
fn waiting(context: &OperationContext) -> Duration {
    let is_elsewhere = context.files.is_none() && is_kept(&context.config);
    if is_elsewhere { context.config.store.lease + LEEWAY } else { LEEWAY / 2 }
}

/// How much longer than a lease.
const LEEWAY: Duration = Duration::from_secs(2);

/// A request that has arrived.
struct GatewayRequest {
    gateway: Arc<Gateway>,
    guest: ApiCaller,
    aim: RequestTarget,
    method: Method,
    /// The path as the client asked for it.
    path: String,
    query: Option<String>,
    headers: HeaderMap,
    started: Instant,
    /// It is one of so many until this is dropped.
    _permit: RequestPermit,
}

/// Its routes: everything that no other router serves.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> Router<Arc<ServerState>> {
    Router::new().fallback(answer).with_state(Arc::clone(gateway))
}

async fn answer(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let is_upstream = |name: &str| gateway.upstreams.get(name).is_some();
    let aim = aim(&parts.method, parts.uri.path(), &is_upstream);
    let dialect = aim.dialect;
    let guest = parts.extensions.get::<ApiCaller>().cloned().unwrap_or_default();
    let Some(permit) = gateway.limits.enter(&guest) else {
        gateway.meters.turned_away("concurrency");
        let busy = "too many requests are under way; server.concurrency sets how many may be";
        return GatewayRefusal::new(503, busy).later(1).response(dialect);
    };
    let visit = GatewayRequest {
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
async fn led(visit: GatewayRequest, body: Body) -> Result<Response, GatewayRefusal> {
    visit.check_path()?;
    let others = visit.gateway.house.context.config.server.forward_other;
    match visit.aim.way.clone() {
        TargetKind::Ask | TargetKind::Compact => exchange::exchange(visit, body).await,
        TargetKind::Count => forward::count(visit, body).await,
        TargetKind::Models => forward::list(visit).await,
        TargetKind::Model(id) => forward::one(visit, &id).await,
        TargetKind::About => {
            let (version, names) = (env!("CARGO_PKG_VERSION"), visit.gateway.upstreams.listed_names());
            Ok(format!("komado {version} is running, in front of {names}\n").into_response())
        }
        TargetKind::Root(leaf) if others || HELPERS.contains(&leaf.as_str()) => {
            forward::root(visit, body, &leaf).await
        }
        TargetKind::Version(leaf) if others => forward::version(visit, body, &leaf).await,
        TargetKind::Root(_) | TargetKind::Version(_) => Err(GatewayRefusal::new(
            404,
            format!("{} is not served here, and server.forward_other is off, so it goes nowhere", visit.path),
        )),
        TargetKind::Nowhere => Err(nowhere(&visit)),
    }
}

impl GatewayRequest {
    /// A path must mean the same to every server.
    fn check_path(&self) -> Result<(), GatewayRefusal> {
        if self.guest.sees_all || !is_ambiguous(&self.path) {
            return Ok(());
        }
        let text = "a key that sees only its own sessions may not ask for a path with `;`, a control character, or a part that begins \
                    with a dot, since servers read such paths in different ways";
        Err(GatewayRefusal::new(403, format!("{}: {text}", self.path)))
    }
}

/// What Ollama's clients ask before they ask a model.
const HELPERS: [&str; 4] = ["/api/tags", "/api/version", "/api/ps", "/api/show"];

fn nowhere(visit: &GatewayRequest) -> GatewayRefusal {
    let names = visit.gateway.upstreams.listed_names();
    GatewayRefusal::new(
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
    GatewayRefusal::new(429, "too many requests in a second; the key or server.rate sets how many may come")
        .later(1)
        .response(dialect_at(path))
}

/// How a client that asks at `path` speaks, also where it begins with a provider's name.
pub(crate) fn dialect_at(path: &str) -> Dialect {
    let plain = aim(&Method::POST, path, &|_| false);
    let is_known = plain.way != TargetKind::Nowhere;
    if is_known { plain.dialect } else { aim(&Method::POST, path, &|_| true).dialect }
}

/// The dialects that a provider is asked in.
pub(crate) fn spoken(upstream: &GatewayUpstream) -> Vec<&'static str> {
    Dialect::ALL.into_iter().filter(|dialect| upstream.speaks(*dialect)).map(Dialect::name).collect()
}

/// Where a request wants to go.
///
/// `/v1/messages` and `/messages` are one; so is `/NAME/v1/messages`, which also names the provider. A path that stands for
/// nothing here goes to the provider as it comes when it is under `/v1` or under a provider's name, and nowhere else.
#[derive(Clone, PartialEq, Eq, Debug)]
struct RequestTarget {
    /// The provider that the path names.
    upstream: Option<String>,
    /// What is wanted there.
    way: TargetKind,
    /// How the client speaks, as far as the path tells.
    dialect: Dialect,
}

/// What is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
enum TargetKind {
    /// A model is asked.
    Ask,
    /// A conversation is to be made shorter (`/responses/compact`).
    Compact,
    /// A request is only counted.
    Count,
    /// The list of models.
    Models,
    /// One model of it.
    Model(String),
    /// Whether the server is there.
    About,
    /// Something under `/v1` of the provider; the path after that.
    Version(String),
    /// Something at the root of the provider.
    Root(String),
    /// Nothing.
    Nowhere,
}

/// Reads a path.
fn aim(method: &Method, path: &str, is_upstream: &dyn Fn(&str) -> bool) -> RequestTarget {
    let path = path.trim_end_matches('/');
    let (upstream, rest) = named(path, is_upstream);
    let (is_versioned, leaf) = version(rest);
    let is_open = is_versioned || upstream.is_some();
    RequestTarget { way: way(method, leaf, is_versioned, is_open), dialect: dialect(leaf), upstream }
}

/// What is wanted at `leaf`; where it is open, paths that stand for nothing here go to the provider.
fn way(method: &Method, leaf: &str, is_versioned: bool, is_open: bool) -> TargetKind {
    let is_read = [Method::GET, Method::HEAD].contains(method);
    let is_post = *method == Method::POST;
    match leaf {
        _ if climbs(leaf) => TargetKind::Nowhere,
        "" if is_read => TargetKind::About,
        "/chat/completions" | "/responses" | "/messages" if is_post => TargetKind::Ask,
        "/api/chat" if is_post && !is_versioned => TargetKind::Ask,
        "/responses/compact" if is_post => TargetKind::Compact,
        "/messages/count_tokens" if is_post => TargetKind::Count,
        "/models" if is_read => TargetKind::Models,
        _ if is_read && leaf.starts_with("/models/") => TargetKind::Model(decoded(&leaf["/models/".len()..])),
        _ if !is_versioned && leaf.starts_with("/api/") && !leaf.starts_with("/api/v1") => {
            TargetKind::Root(leaf.to_owned())
        }
        _ if is_open && !leaf.is_empty() && !leaf.starts_with("/api/v1") => {
            TargetKind::Version(leaf.to_owned())
        }
        _ => TargetKind::Nowhere,
    }
}

/// How a client that uses a path speaks.
fn dialect(leaf: &str) -> Dialect {
    match leaf {
        _ if leaf.starts_with("/api/") => Dialect::Ollama,
        _ if leaf.starts_with("/messages") => Dialect::Messages,
        _ if leaf.starts_with("/responses") => Dialect::Responses,
        _ => Dialect::Chat,
    }
}

/// The provider that a path begins with, and the rest of it.
fn named<'a>(path: &'a str, is_upstream: &dyn Fn(&str) -> bool) -> (Option<String>, &'a str) {
    let bare = path.trim_start_matches('/');
    let bare = &path[path.len() - bare.len()..];
    let (first, rest) = bare.find('/').map_or((bare, ""), |at| bare.split_at(at));
    let name = decoded(first);
    if ["", "v1", "api"].contains(&name.as_str()) || !is_upstream(&name) {
        return (None, if bare.is_empty() { "" } else { &path[path.len() - bare.len() - 1..] });
    }
    (Some(name), rest)
}

/// A path without its version. Some clients put one after a base URL that has one already.
fn version(path: &str) -> (bool, &str) {
    let mut rest = path;
    while let Some(after) =
        rest.strip_prefix("/v1").filter(|after| after.is_empty() || after.starts_with('/'))
    {
        rest = after;
    }
    (rest.len() < path.len(), rest)
}

/// True for a path that leads out of where it begins, however it is written.
fn climbs(leaf: &str) -> bool {
    unescaped(leaf.as_bytes())
        .split(|byte| b"/\\".contains(byte))
        .any(|part| [&b"."[..], b".."].contains(&part))
}

/// True for a path that some servers take for another one: with a part that begins with a dot, a parameter of a part (`..;`), or a
/// control character, however often it is encoded.
fn is_ambiguous(path: &str) -> bool {
    let mut path = path.as_bytes().to_vec();
    loop {
        let is_odd = |byte: &u8| *byte == b';' || byte.is_ascii_control();
        if path.iter().any(is_odd)
            || path.split(|byte| b"/\\".contains(byte)).any(|part| part.starts_with(b"."))
        {
            return true;
        }
        let next = unescaped(&path);
        if next == path {
            return false;
        }
        path = next;
    }
}

/// 窓 is `%E7%AA%93`. What parts a path stays, since models have names of several parts.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~:@!$&'()*+,;=".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

/// `%E7%AA%93` is 窓; what is no such thing stays as it is.
fn decoded(text: &str) -> String {
    String::from_utf8(unescaped(text.as_bytes())).unwrap_or_else(|_| text.to_owned())
}

fn unescaped(bytes: &[u8]) -> Vec<u8> {
    percent_decode(bytes).collect()
}

/// An error of ours as an answer; its words are those of the API that the client speaks. Nothing here holds a key.
#[derive(Clone, PartialEq, Eq, Debug)]
struct GatewayRefusal {
    status: u16,
    message: String,
    /// Seconds after which to come again.
    retry_after: Option<u32>,
}

impl GatewayRefusal {
    fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None }
    }

    /// The same, with the wish to be asked again later.
    fn later(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// What is said when the provider could not be asked.
    fn of(error: &SendError) -> Self {
        let status = match error {
            SendError::TimedOut { step: SendStep::Answer | SendStep::Piece, .. } => 504,
            SendError::Cancelled => 499,
            _ => 502,
        };
        Self::new(status, error.to_string())
    }

    /// The error as the client reads it.
    fn body(&self, dialect: Dialect) -> Vec<u8> {
        dialect.refusal(&komado_provider::ApiRefusal::of(self.status, self.message.as_str())).1
    }

    /// The answer.
    fn response(&self, dialect: Dialect) -> Response {
        let mut response = Response::new(Body::from(self.body(dialect)));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // A reader of counts can tell our answers from the provider's.
        headers.insert(STATUS_BY_US, HeaderValue::from_static("komado"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
