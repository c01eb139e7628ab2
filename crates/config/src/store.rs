//! How is a store on a server spoken to, and where do traces go?
//!
//! Each field is a row of the table; the defaults stand there and nowhere else.

use super::check::Value;
use std::time::Duration;

/// How a store on a server is spoken to.
#[derive(Clone, Default)]
pub struct StoreWishes {
    /// How long one call may take.
    pub patience: Duration,
    /// How many connections are opened at the most.
    pub connections: u32,
    /// How long a session is ours without a sign of life.
    pub lease: Duration,
    /// How long a session is kept after it was last used; `None` for ever.
    pub ttl: Option<Duration>,
}

impl StoreWishes {
    pub(super) fn apply(&mut self, key: &str, value: Value) {
        let seconds = |n: u32| Duration::from_secs(u64::from(n));
        match (key, value) {
            ("store.patience_seconds", Value::Count(v)) => self.patience = seconds(v),
            ("store.connections", Value::Count(v)) => self.connections = v,
            ("store.lease_seconds", Value::Count(v)) => self.lease = seconds(v),
            ("store.ttl_days", Value::Count(v)) => self.ttl = (v > 0).then(|| seconds(v) * 24 * 3600),
            _ => {}
        }
    }
}

/// Where traces go.
#[derive(Clone, Default)]
pub struct TraceWishes {
    /// The collector; `None` for nowhere.
    pub endpoint: Option<String>,
    /// The name under which they are found there.
    pub service: String,
    /// Headers for the collector, as `NAME=VALUE,NAME=VALUE`; may hold a key, so it is shown nowhere.
    pub headers: Option<String>,
}

impl TraceWishes {
    pub(super) fn apply(&mut self, key: &str, value: Value) {
        match (key, value) {
            ("telemetry.otlp_endpoint", Value::Text(v)) => self.endpoint = Some(v),
            ("telemetry.service_name", Value::Text(v)) => self.service = v,
            ("telemetry.headers", Value::Text(v)) => self.headers = Some(v),
            _ => {}
        }
    }
}
