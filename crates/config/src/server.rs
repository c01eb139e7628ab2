//! How does the server serve?
//!
//! Each field is a row of the table; the defaults stand there and nowhere else.

use super::check::{Section, Values};
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
    pub(super) fn of(given: &Values) -> Self {
        let server = Section::of(given, "server");
        Self {
            listen: server.get("listen"),
            upstream: server.get("upstream"),
            on_fault: OnFault::named(&server.get::<String>("on_fault")).unwrap_or_default(),
            recall: if server.get::<String>("recall") == "never" { Offer::Never } else { Offer::WhenNeeded },
            forward_other: server.get("forward_other"),
            body_limit_mb: server.get("body_limit_mb"),
            concurrency: server.get("concurrency"),
            rate: server.get("rate"),
            timeout_seconds: server.get("timeout_seconds"),
            grace_seconds: server.get("grace_seconds"),
        }
    }
}
