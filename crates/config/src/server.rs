//! How does the server serve?
//!
//! Each field is a row of the table; the defaults stand there and nowhere else.

use super::check::Value;
use komado_engine::relay::Offer;

/// What happens to a request when something of ours fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnFault {
    /// It goes through untouched.
    #[default]
    Pass,
    /// It is refused.
    Stop,
}

impl OnFault {
    /// The one called `name`.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Pass, Self::Stop].into_iter().find(|on_fault| on_fault.name() == name)
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Stop => "stop",
        }
    }
}

/// What was wished for.
#[derive(Clone, Default)]
pub struct ServerWishes {
    /// Where it listens.
    pub listen: String,
    /// The provider that is asked where nothing names one.
    pub upstream: Option<String>,
    /// What happens to a request when something of ours fails.
    pub on_fault: OnFault,
    /// Whether the tools that lead back are offered.
    pub recall: Offer,
    /// Whether other paths go to the provider as they come.
    pub forward_other: bool,
    /// The largest request, in megabytes.
    pub body_limit_mb: u32,
    /// Requests under way at once.
    pub concurrency: u32,
    /// Requests a second of one key or address; 0 for as many as come.
    pub rate: u32,
    /// Seconds to wait for more of a request.
    pub timeout_seconds: u32,
    /// Seconds that answers may still take at the end.
    pub grace_seconds: u32,
}

impl ServerWishes {
    pub(super) fn apply(&mut self, key: &str, value: Value) {
        match (key, value) {
            ("server.listen", Value::Text(v)) => self.listen = v,
            ("server.upstream", Value::Text(v)) => self.upstream = Some(v),
            ("server.on_fault", Value::Text(v)) => self.on_fault = OnFault::named(&v).unwrap_or_default(),
            ("server.recall", Value::Text(v)) => {
                self.recall = if v == "never" { Offer::Never } else { Offer::WhenNeeded }
            }
            ("server.forward_other", Value::Bool(v)) => self.forward_other = v,
            ("server.body_limit_mb", Value::Count(v)) => self.body_limit_mb = v,
            ("server.concurrency", Value::Count(v)) => self.concurrency = v,
            ("server.rate", Value::Count(v)) => self.rate = v,
            ("server.timeout_seconds", Value::Count(v)) => self.timeout_seconds = v,
            ("server.grace_seconds", Value::Count(v)) => self.grace_seconds = v,
            _ => {}
        }
    }
}
