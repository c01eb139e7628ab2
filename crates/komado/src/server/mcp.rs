//! The MCP server: over standard input and output, and over HTTP at `/mcp`.
//!
//! Every tool is an operation: its name, its description and the schema of its arguments are those of the type, so nothing
//! is decided here a second time. Over HTTP no protocol session is kept:
//! each request brings its own key, and a server that was started again goes on where it was. What a guest may not see is
//! not there.

mod door;
mod effect;
mod prompt;
mod resource;
mod tool;

pub(crate) use door::Door;

use super::House;
use axum::Router;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::Arc;

/// Where it is.
const PATH: &str = "/mcp";

/// The largest request: what a tool printed may be appended through it.
const MOST_BYTES: usize = 32 << 20;

/// Its routes.
pub(crate) fn routes(house: &Arc<House>) -> Router<Arc<House>> {
    // The gate has looked at who calls, and under which name, before a request comes here.
    let settings = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MOST_BYTES)
        .with_cancellation_token(house.stop.clone())
        .disable_allowed_hosts();
    let context = house.context.clone();
    let door = move || Ok(Door::guarded(context.clone()));
    let served = StreamableHttpService::new(door, Arc::new(NeverSessionManager::default()), settings);
    Router::new().route_service(PATH, served)
}
