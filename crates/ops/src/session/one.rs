//! One session.

use super::SessionRow;
use crate::address::AtSession;
use crate::{Context, Effect, Interfaces, Operation, Outcome, Route};
use schemars::JsonSchema;
use serde::Deserialize;

/// Look at one session: state, model, counters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct GetSession {
    /// The session.
    #[serde(flatten)]
    pub at: AtSession,
}

impl Operation for GetSession {
    const NAME: &'static str = "session";
    const TITLE: &'static str = "Look at one session";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::only_http(
        Route::get("sessions", "/sessions/{session}").tagged(),
        "`sessions` lists it, and `context` tells what is in it",
    )
    .not_mcp("`sessions` has the same row, and `context` tells what is in it");
    type Output = SessionRow;

    fn run(self, context: &Context) -> Outcome<SessionRow> {
        let found = context.find(&self.at)?;
        Ok(context.session(&found.session)?.into())
    }

    fn moment(_session: &SessionRow) -> Option<String> {
        Some("session".to_owned())
    }
}
