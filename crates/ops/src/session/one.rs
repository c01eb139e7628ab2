//! One session.

use super::SessionRow;
use crate::address::AtSession;
use crate::{Context, Effect, Interfaces, Offer, Operation, Outcome, Route};
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
    const INTERFACES: Interfaces = Interfaces {
        cli: Offer::Not("`sessions` lists it, and `context` tells what is in it"),
        http: Offer::As(Route::get("sessions", "/sessions/{session}").tagged()),
        mcp: Offer::Not("`sessions` has the same row, and `context` tells what is in it"),
    };
    type Output = SessionRow;

    fn run(self, context: &Context) -> Outcome<SessionRow> {
        let found = context.find(&self.at)?;
        Ok(context.session(&found.session)?.into())
    }

    fn moment(_session: &SessionRow) -> Option<String> {
        Some("session".to_owned())
    }
}
