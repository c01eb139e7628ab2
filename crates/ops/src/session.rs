//! Operations on whole sessions: make, list, end, remove, count.

mod cleanup;
mod complete;
mod ending;
mod export;
mod fail;
mod import;
mod list;
mod new;
mod one;
mod pause;
mod remove;
mod resume;
mod row;
mod stats;
mod stelis;
mod stop;

pub use cleanup::{Cleaned, CleanedSession, Cleanup};
pub use complete::Complete;
pub use ending::Entered;
pub use export::{Export, Exported};
pub use fail::Fail;
pub use import::{Import, Imported};
pub use list::{ListSessions, newest};
pub(crate) use new::create;
pub use new::{Attributes, Made, New, hostname, make, meter};
pub use one::GetSession;
pub use pause::Pause;
pub use remove::{RemoveSession, Removed};
pub use resume::Resume;
pub use row::SessionRow;
pub use stats::{FailedSession, RunningSession, Stats, StatsOf, UserCount};
pub use stelis::ChildSettings;
pub use stop::Stop;

use crate::{Interfaces, Route};

/// An operation that ends a session or lets it go on: a verb, and a route of the same name.
const fn by_people(verb: &'static str, path: &'static str) -> Interfaces {
    Interfaces::everywhere(verb, Route::post("sessions", path))
        .not_mcp("whether a session ends is for its user to say, not for the model in it")
}
