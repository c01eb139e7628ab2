//! The server: every door that is not the command line, on one address.
//!
//! The gateway, the HTTP API, MCP and what operators look at are routers of their own over one [`House`]; here they are put
//! together, and everything that holds for all of them (who may come in, how large a body may be, how it ends) is laid around.

pub(crate) mod access;
pub(crate) mod api;
pub(crate) mod circuit;
pub(crate) mod gateway;
pub(crate) mod health;
pub(crate) mod house;
pub(crate) mod limits;
pub(crate) mod listen;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod metered;
pub(crate) mod metrics;
pub(crate) mod news;
pub(crate) mod pulse;
pub(crate) mod run;
#[cfg_attr(not(feature = "otel"), path = "server/no_traces.rs")]
pub(crate) mod traces;

pub(crate) use access::Caller;
pub(crate) use house::House;
