//! `komado serve`: the gateway, the HTTP API and MCP, until it is told to stop. `komado mcp`: the MCP server on standard input and
//! output, for a client that starts it. A user who can start it may read the sessions anyway, so it asks for no key. Standard
//! output belongs to the protocol; talk goes to standard error. It ends when its input does.

use crate::app::{App, is_kept};
use crate::process;
use crate::render::sessions::at_home;
use crate::server::access::ClientAccess;
use crate::server::gateway::{self, Gateway, GatewayUpstream};
use crate::server::limits::SEATS;
use crate::server::log::{self, LogFormat};
use crate::server::mcp::McpHandler;
use crate::server::traces::Traces;
use crate::server::{self, ServerState};
use komado_config::OnFault;
use komado_core::Meter;
use komado_core::session::is_address;
use komado_engine::model::KeySource;
use komado_ops::{FaultKind, OpFault, OpResult};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// How long a client waits because another process holds the table of sessions.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

#[derive(clap::Args, Debug)]
pub(crate) struct ServeArgs {
    /// The address to listen on [default: server.listen, 127.0.0.1:4141]; port 0 picks a free one; other machines are served only with keys
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// The provider to ask when neither the path nor the model names one: a known name, one from the settings, or the URL of a
    /// server that speaks OpenAI's API
    #[arg(long, value_name = "NAME|URL")]
    upstream: Option<String>,
    /// When Komado itself fails: `pass` the request on unchanged, or `stop` it [default: server.on_fault, pass]
    #[arg(long, value_name = "WHAT", value_parser = on_fault)]
    on_fault: Option<OnFault>,
    /// How much to log: error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
    /// Log JSON lines
    #[arg(long)]
    log_json: bool,
}

fn on_fault(name: &str) -> Result<OnFault, String> {
    OnFault::named(name).ok_or_else(|| "known are pass and stop".to_owned())
}

pub(crate) fn serve(app: &mut App, args: ServeArgs) -> OpResult {
    process::few_arenas();
    // To the end: what is left of the spans goes out with it.
    let traces = Traces::begin(&app.context.config.traces)?;
    let lines = if args.log_json { LogFormat::Json } else { LogFormat::Text };
    log::begin(args.log.as_deref(), lines, traces.as_ref())?;
    if let Some(files) = &app.context.files {
        files.set_table_patience(PATIENCE);
    }
    warn_of_store(app);
    let server = app.context.config.server.clone();
    if is_kept(&app.context.config) {
        app.claim()?;
    }
    let access = ClientAccess::open(&app.context.config.base_dir)?;
    let house = ServerState::new(&app.context, access);
    process::unpack(Meter::O200k);
    // A thread for each request and each call that is handled at once, and some for everything else.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(server.concurrency as usize + SEATS + 64)
        .enable_all()
        .build()?;
    let listen = args.listen.unwrap_or(server.listen);
    let served = runtime.block_on(async {
        let (listener, reach) = server::bind(&house, &listen).await?;
        let upstreams = server::upstreams(&house, args.upstream).await?;
        let gateway = Gateway::new(&house, upstreams, args.on_fault.unwrap_or(server.on_fault));
        let gateway = Arc::new(gateway);
        greet(app, &gateway, listener.local_addr()?)?;
        server::serve(Arc::clone(&house), gateway, listener, reach).await
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    served
}

/// Says what is to be put right in the settings of a store on a server; a folder has none.
fn warn_of_store(app: &App) {
    if app.context.files.is_none() {
        let warnings = app.context.engine.store().vitals().map(|vitals| vitals.warnings).unwrap_or_default();
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    }
}

fn greet(app: &mut App, gateway: &Gateway, address: SocketAddr) -> OpResult {
    let url = format!("http://{address}");
    let env = super::models::client_settings(&url);
    let upstreams = gateway.upstreams.all();
    if app.paper.json {
        let row = |upstream: &Arc<GatewayUpstream>| {
            let provider = &upstream.provider;
            json!({ "name": provider.name, "url": provider.place(), "dialects": gateway::spoken(upstream), "key": held(upstream.held) })
        };
        app.paper.json(&json!({
            "kind": "ready",
            "url": url,
            "env": BTreeMap::from(env),
            "upstreams": upstreams.iter().map(row).collect::<Vec<_>>(),
            "found": gateway.upstreams.found,
            "on_fault": gateway.on_fault.name(),
            "sessions": app.kept_in(),
        }))?;
        return app.paper.flush();
    }
    app.paper.line(format!("listening at {url}"))?;
    for upstream in upstreams {
        let spoken = gateway::spoken(upstream).join(", ");
        let (name, place) = (upstream.name(), upstream.provider.place());
        let key = match upstream.held {
            KeySource::Settings => "with the key from the settings",
            KeySource::Environment => "with the key from the environment, or the client's own",
            KeySource::Nowhere => "with the client's own key",
        };
        let line = match upstream.is_scripted() {
            true => {
                format!("in front of {name}: the built-in scripted model, which only repeats what it hears")
            }
            false if is_address(name) => format!("in front of {place} ({spoken}), {key}"),
            false => format!("in front of {name}: {place} ({spoken}), {key}"),
        };
        app.paper.line(line)?;
    }
    if let Some(place) = app.kept_in() {
        app.paper.line(format!("sessions in {}", at_home(&place)))?;
    }
    app.paper.line("")?;
    for (name, value) in env {
        app.paper.line(format!("export {name}={value}"))?;
    }
    app.paper.line("")?;
    for (what, path) in [("API", "api/v1"), ("MCP", "mcp"), ("health", "readyz"), ("metrics", "metrics")] {
        app.paper.line(format!("{what:<8} {url}/{path}"))?;
    }
    app.paper.line("Ctrl-C stops it.")?;
    app.paper.flush()
}

fn held(held: KeySource) -> &'static str {
    match held {
        KeySource::Settings => "settings",
        KeySource::Environment => "environment",
        KeySource::Nowhere => "client",
    }
}

/// The variable that names the session when the command line does not.
const SESSION: &str = "KOMADO_SESSION";

#[derive(clap::Args, Debug)]
pub(crate) struct McpArgs {
    /// The session or SESSION/THREAD used by calls that name none; default: KOMADO_SESSION
    #[arg(long, value_name = "ADDRESS")]
    session: Option<String>,
}

pub(crate) fn mcp(app: &mut App, args: McpArgs) -> OpResult {
    let named = args.session.or_else(|| std::env::var(SESSION).ok()).filter(|text| !text.is_empty());
    if let Some(text) = &named {
        app.find(&text.parse::<komado_core::Address>()?)?;
    }
    let door = McpHandler::owned(app.context.clone(), named);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        match door.serve(stdio()).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
            // A client that leaves before it has said a word leaves nothing undone.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    });
    // A read of standard input cannot be taken back, and must not hold up the end.
    runtime.shutdown_background();
    served
        .map_err(|why| OpFault::new(FaultKind::Failed, format!("the MCP client could not be served: {why}")))
}
