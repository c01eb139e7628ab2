//! Live events: what is journaled, as it is journaled, also by other processes.

mod all;
mod session;

pub use all::{AllEvents, AllWatch, SessionEvent};
pub use session::{EntryEvent, SessionEvents, SessionWatch, Start};

use crate::Offer;
use crate::operation::{Interfaces, Route};

/// Events are heard over HTTP.
const fn over_http(route: Route) -> Interfaces {
    Interfaces {
        cli: Offer::Not("a program hears events over HTTP; `log --json` prints what has been journaled"),
        http: Offer::As(route),
        mcp: Offer::Not("a call of a tool ends, and events do not"),
    }
}
