//! Operations on whole sessions: make, list, end, remove, count.

mod list;
mod new;
mod state;
mod stats;
mod transcript;
mod transfer;

pub use list::{
    GetSession, ListSessions, SessionAbout, SessionCost, SessionList, SessionOrder, SessionRow, cost, newest,
};
pub(crate) use new::{AGENT, create, of_caller};
pub use new::{ChildSettings, New, NewSession, hostname, make, meta, meter};
pub use state::{Complete, FailSession, Pause, ResumeSession, StateChange, StopSession};
pub use stats::{FailedSession, RunningSession, Stats, StatsOf, UserCount};
pub use transfer::{Export, ExportFormat, Exported, Import, Imported};

use crate::address::AtSession;
use crate::choice::time;
use crate::clock::days_ago;
use crate::{Interfaces, OpResult, Operation, OperationContext, OperationLabel, Route};
use komado_core::amount::TimeUnit;
use komado_core::session::{Session, State};
use komado_engine::cleanup::CleanupMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An operation that ends a session or lets it go on: a verb, and a route of the same name.
const fn by_people(verb: &'static str, path: &'static str) -> Interfaces {
    Interfaces::everywhere(verb, Route::post("sessions", path))
        .not_mcp("whether a session ends is for its user to say, not for the model in it")
}

/// Remove a session with everything in it; this cannot be undone.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RemoveSession {
    /// The session.
    #[serde(flatten)]
    pub at: AtSession,
}

/// A session that is gone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Removed {
    /// Its id.
    pub session: String,
}

impl Operation for RemoveSession {
    const ABOUT: OperationLabel = OperationLabel::remove("remove_session", "Remove a session");
    const INTERFACES: Interfaces = Interfaces::only_http(
        Route::remove("sessions", "/sessions/{session}"),
        "the command line removes with `admin cleanup`, which takes only what has ended",
    )
    .not_mcp("what cannot be undone is for people to do");
    type Output = Removed;

    fn run(self, context: &OperationContext) -> OpResult<Removed> {
        let found = context.find(&self.at)?;
        context.engine.store().remove(&found.session)?;
        Ok(Removed { session: found.session.to_string() })
    }
}

/// Remove sessions that ended long ago, and outputs that no entry names; this cannot be undone.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct Cleanup {
    /// Remove sessions that ended longer ago than this, such as 30d; context_storage.cleanup_days when left out
    #[arg(long, value_name = "DAYS", value_parser = time::<u32>(TimeUnit::Day, 0))]
    pub days: Option<u32>,
    /// Only say what would be removed
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
}

/// What was removed, or would be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct CleanedSessions {
    /// The sessions.
    pub items: Vec<CleanedSession>,
    /// Outputs that no entry named.
    pub outputs: u64,
    /// How many days ago they had to have ended.
    pub days: u32,
    /// True when nothing was removed, only looked for.
    pub dry_run: bool,
}

impl CleanedSessions {
    /// Sessions that could not be removed.
    pub fn failures(&self) -> u64 {
        self.items.iter().filter(|one| one.error.is_some()).count() as u64
    }
}

/// A session that ended long ago.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct CleanedSession {
    /// Its id.
    pub session: String,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<State>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// True when it is gone.
    pub removed: bool,
    /// Why it could not be removed or read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Operation for Cleanup {
    const ABOUT: OperationLabel = OperationLabel::remove("cleanup", "Remove sessions that ended long ago");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("admin cleanup", Route::post("sessions", "/cleanup"))
            .not_mcp("what cannot be undone is for people to do");
    type Output = CleanedSessions;

    fn run(self, context: &OperationContext) -> OpResult<CleanedSessions> {
        context.check_sees_all()?;
        let days = self.days.unwrap_or(context.config.cleanup_days);
        let run = if self.dry_run { CleanupMode::Dry } else { CleanupMode::Real };
        let cleaned = context.engine.cleanup(&days_ago(days), run, |_| {})?;
        let gone = |session: Session| CleanedSession {
            session: session.meta.uuid,
            status: Some(session.status),
            completed_at: session.completed_at,
            removed: !self.dry_run,
            error: None,
        };
        let stays = |(session, why)| CleanedSession {
            session,
            status: None,
            completed_at: None,
            removed: false,
            error: Some(why),
        };
        let items = cleaned.sessions.into_iter().map(gone).chain(cleaned.failed.into_iter().map(stays));
        Ok(CleanedSessions {
            items: items.collect(),
            outputs: cleaned.swept.blobs,
            days,
            dry_run: self.dry_run,
        })
    }
}
