//! Cleanup: sessions that ended long ago go.

use crate::clock::days_ago;
use crate::{Context, Effect, Interfaces, Operation, Outcome, Route};
use komado_core::session::{Session, State};
use komado_engine::cleanup::Run;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Remove sessions that ended long ago, and outputs that no entry names; this cannot be undone.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct Cleanup {
    /// Sessions that ended before so many days; context_storage.cleanup_days when left out
    #[arg(long)]
    pub days: Option<u32>,
    /// Only say what would be removed
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
}

/// What was removed, or would be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Cleaned {
    /// The sessions.
    pub items: Vec<CleanedSession>,
    /// Outputs that no entry named.
    pub outputs: u64,
    /// How many days ago they had to have ended.
    pub days: u32,
    /// True when nothing was removed, only looked for.
    pub dry_run: bool,
}

impl Cleaned {
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
    const NAME: &'static str = "cleanup";
    const TITLE: &'static str = "Remove sessions that ended long ago";
    const EFFECT: Effect = Effect::Remove;
    const INTERFACES: Interfaces = Interfaces::everywhere("cleanup", Route::post("sessions", "/cleanup"))
        .not_mcp("what cannot be undone is for people to do");
    type Output = Cleaned;

    fn run(self, context: &Context) -> Outcome<Cleaned> {
        context.check_sees_all()?;
        let days = self.days.unwrap_or(context.config.cleanup_days);
        let run = if self.dry_run { Run::Dry } else { Run::Real };
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
        Ok(Cleaned { items: items.collect(), outputs: cleaned.swept.blobs, days, dry_run: self.dry_run })
    }
}
