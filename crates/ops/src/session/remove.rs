//! Remove: a session goes, with everything in it.

use crate::address::AtSession;
use crate::{Context, Effect, Interfaces, Operation, Outcome, Route};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    const NAME: &'static str = "remove_session";
    const TITLE: &'static str = "Remove a session";
    const EFFECT: Effect = Effect::Remove;
    const INTERFACES: Interfaces = Interfaces::only_http(
        Route::remove("sessions", "/sessions/{session}"),
        "the command line removes with `cleanup`, which takes only what has ended",
    )
    .not_mcp("what cannot be undone is for people to do");
    type Output = Removed;

    fn run(self, context: &Context) -> Outcome<Removed> {
        let found = context.find(&self.at)?;
        context.engine.store().remove(&found.session)?;
        Ok(Removed { session: found.session.to_string() })
    }
}
