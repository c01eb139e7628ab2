//! The server: every interface but the command line, on one address, until it is told to stop.
//!
//! The gateway, the HTTP API, MCP and what operators look at are routers of their own over one [`ServerState`]; here they are put
//! together, and everything that holds for all of them (who may come in, how large a body may be, how it ends) is laid around.

pub(crate) mod access;
pub(crate) mod api;
pub(crate) mod circuit;
pub(crate) mod gateway;
pub(crate) mod health;
pub(crate) mod limits;
pub(crate) mod listen;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod metered;
pub(crate) mod metrics;
pub(crate) mod store_news;
#[cfg_attr(not(feature = "otel"), path = "server/no_traces.rs")]
pub(crate) mod traces;

use crate::signals::{self, Signals};
pub(crate) use access::ApiCaller;
use access::ClientAccess;
use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use circuit::StoreCircuit;
use gateway::{Gateway, GatewayUpstreams};
use health::CachedAnswer;
use http::HeaderValue;
use http::header::HOST;
use komado_ops::{FaultKind, OpFault, OpResult, OperationContext};
use komado_store::StoreHealthFigures;
use listen::{PeerAddress, TimedListener};
use metered::MeteredStore;
use metrics::Metrics;
use percent_encoding::{CONTROLS, percent_decode, utf8_percent_encode};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use store_news::StoreNews;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A name or an address as a header carries it: what is not ASCII is percent-encoded.
pub(crate) fn in_header(text: &str) -> String {
    utf8_percent_encode(text, CONTROLS).to_string()
}

/// A name that came in a header, percent-encoded or as UTF-8. No id has a percent sign, so none can be meant otherwise.
pub(crate) fn of_header(value: &HeaderValue) -> Option<String> {
    String::from_utf8(percent_decode(value.as_bytes()).collect()).ok()
}

/// Settings, store and engine, who may come in, and a way to say that it is over.
pub(crate) struct ServerState {
    /// Settings, store and engine; what the store does is counted, and what people should know goes to the log.
    pub(crate) context: OperationContext,
    /// Who may come in.
    pub(crate) access: ClientAccess,
    /// What is counted.
    pub(crate) meters: Arc<Metrics>,
    /// Whether the store is worth asking.
    pub(crate) circuit: Arc<StoreCircuit>,
    /// How the store is doing, as it last said.
    pub(crate) pulse: CachedAnswer<StoreHealthFigures>,
    /// Where readers hear what happens.
    pub(crate) news: StoreNews,
    /// Said when the server is to stop: what waits without end (events) ends then.
    pub(crate) stop: CancellationToken,
}

impl ServerState {
    /// A house over the store of `context`.
    pub(crate) fn new(context: &OperationContext, access: ClientAccess) -> Arc<Self> {
        let (meters, circuit) = (Arc::new(Metrics::new()), Arc::new(StoreCircuit::default()));
        let engine = context
            .engine
            .over(|store| Arc::new(MeteredStore::new(store, Arc::clone(&meters), Arc::clone(&circuit))));
        let context = context.over(engine).noting(|note| tracing::warn!("{note}")).served();
        Arc::new(Self {
            context,
            access,
            meters,
            circuit,
            pulse: CachedAnswer::default(),
            news: StoreNews::default(),
            stop: CancellationToken::new(),
        })
    }
}

/// How long exchanges that were ended may take to journal what came.
const LAST: Duration = Duration::from_secs(3);
/// How many seconds a thread rests before what is derived from it is brought up to date.
const REST: u32 = 2;

/// Who can reach the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ListenReach {
    /// Only this machine.
    Loopback,
    /// Others, too.
    Beyond,
}

/// All routes of a house.
pub(crate) fn router(house: Arc<ServerState>, gateway: &Arc<Gateway>, reach: ListenReach) -> Router {
    let watch = health::routes(&house, gateway);
    let alive = health::alive().layer(from_fn_with_state(Arc::clone(&house), access::alive));
    let seated = from_fn_with_state(Arc::clone(gateway), limits::seat);
    let desks = api::routes(&house).merge(mcp::routes(&house)).layer(seated);
    let mut guarded = gateway::routes(gateway).merge(desks);
    let mut open = alive;
    // Programs on this machine may look; others show a key.
    match reach {
        ListenReach::Loopback => {
            open = open.merge(watch.layer(from_fn_with_state(Arc::clone(&house), access::look)));
        }
        ListenReach::Beyond => guarded = guarded.merge(watch),
    }
    let guarded = guarded
        .layer(from_fn_with_state(Arc::clone(gateway), limits::pace))
        .layer(from_fn_with_state(Arc::clone(&house), access::gate));
    open.merge(guarded).layer(from_fn(introduce)).with_state(house)
}

/// Says under the usual names which address is at the other end and which host is asked for: a request may also say so in its first line.
async fn introduce(mut request: Request, next: Next) -> Response {
    let host = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if let Some(host) = host {
        request.headers_mut().append(HOST, host);
    }
    if let Some(ConnectInfo(PeerAddress(peer))) =
        request.extensions().get::<ConnectInfo<PeerAddress>>().copied()
    {
        request.extensions_mut().insert(ConnectInfo::<SocketAddr>(peer));
    }
    next.run(request).await
}

/// Opens the address. Beyond this machine only with keys.
pub(crate) async fn bind(house: &ServerState, listen: &str) -> OpResult<(TcpListener, ListenReach)> {
    let cannot = |error: std::io::Error| {
        OpFault::new(
            FaultKind::Failed,
            format!("cannot listen at {listen}: {error}; choose another with --listen HOST:PORT"),
        )
    };
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host(listen).await.map_err(cannot)?.collect();
    let is_near =
        !addresses.is_empty() && addresses.iter().all(|address| address.ip().to_canonical().is_loopback());
    let reach = if is_near { ListenReach::Loopback } else { ListenReach::Beyond };
    if reach == ListenReach::Beyond && !house.access.has_keys() {
        return Err(OpFault::new(
            FaultKind::Refused,
            format!(
                "{listen} can be reached from other machines, and there are no keys: `komado admin key add NAME` makes one, or listen at 127.0.0.1"
            ),
        ));
    }
    let listener = TcpListener::bind(&addresses[..]).await.map_err(cannot)?;
    Ok((listener, reach))
}

/// Serves until a signal comes, then lets what is under way end.
pub(crate) async fn serve(
    house: Arc<ServerState>,
    gateway: Arc<Gateway>,
    listener: TcpListener,
    reach: ListenReach,
) -> OpResult {
    let server = house.context.config.server.clone();
    let router = router(Arc::clone(&house), &gateway, reach);
    let mut signals = Signals::listen(signals::FOR_SERVERS)?;
    let tending = tokio::spawn(tend(Arc::clone(&gateway)));
    let stop = house.stop.clone();
    let listener = TimedListener::new(listener, Duration::from_secs(u64::from(server.timeout_seconds)));
    let service = router.into_make_service_with_connect_info::<PeerAddress>();
    let serving = axum::serve(listener, service).with_graceful_shutdown(stop.clone().cancelled_owned());
    let mut serving = tokio::spawn(serving.into_future());
    signals.next().await;
    tracing::info!(under_way = gateway.flights.count(), "stopping; a second signal ends at once");
    stop.cancel();
    tokio::spawn(async move {
        signals.next().await;
        std::process::exit(signals::ENDED);
    });
    let grace = Duration::from_secs(u64::from(server.grace_seconds));
    if tokio::time::timeout(grace, &mut serving).await.is_err() {
        tracing::warn!(
            under_way = gateway.flights.count(),
            "the time to end is over; what is under way is cut"
        );
        gateway.flights.end();
        let _ = tokio::time::timeout(LAST, landed(&gateway)).await;
        serving.abort();
    }
    let _ = tokio::time::timeout(LAST, landed(&gateway)).await;
    tending.abort();
    let _ = tokio::task::spawn_blocking(move || gateway.relay.settle_idle(0)).await;
    Ok(())
}

/// Ends when no exchange is under way.
async fn landed(gateway: &Gateway) {
    while gateway.flights.count() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What is to be done once a second, while no request waits for it.
async fn tend(gateway: Arc<Gateway>) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let gateway = Arc::clone(&gateway);
        let tended = tokio::task::spawn_blocking(move || {
            gateway.meters.tidy();
            gateway.relay.settle_idle(REST)
        });
        if let Err(error) = tended.await {
            tracing::warn!(%error, "derived files could not be brought up to date");
        }
    }
}

/// The providers that can be asked, found on the threads of the runtime.
pub(crate) async fn upstreams(
    house: &Arc<ServerState>,
    wished: Option<String>,
) -> OpResult<GatewayUpstreams> {
    let (house, handle) = (Arc::clone(house), tokio::runtime::Handle::current());
    let opened = tokio::task::spawn_blocking(move || {
        GatewayUpstreams::open(&house.context, wished.as_deref(), &handle)
    })
    .await;
    opened.unwrap_or_else(|error| Err(OpFault::new(FaultKind::Failed, error.to_string())))
}
