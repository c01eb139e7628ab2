//! How is a store on a server spoken to, and where do traces go?
//!
//! Each field is a row of the table; the defaults stand there and nowhere else.

use super::check::{Section, Values};
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
    pub(super) fn of(given: &Values) -> Self {
        let store = Section::of(given, "store");
        let days: u32 = store.get("ttl_days");
        Self {
            patience: store.get("patience_seconds"),
            connections: store.get("connections"),
            lease: store.get("lease_seconds"),
            ttl: (days > 0).then(|| Duration::from_secs(24 * 3600) * days),
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
    pub(super) fn of(given: &Values) -> Self {
        let traces = Section::of(given, "telemetry");
        Self {
            endpoint: traces.get("otlp_endpoint"),
            service: traces.get("service_name"),
            headers: traces.get("headers"),
        }
    }
}
