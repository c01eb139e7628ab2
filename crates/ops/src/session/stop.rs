//! Stop: a user ends a session.

use super::by_people;
use super::ending::{Entered, enter};
use crate::address::AtSession;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// Stop a session: its user ends it.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Stop {
    /// The session
    #[arg(value_name = "SESSION")]
    #[serde(flatten)]
    pub at: AtSession,
    /// Why
    pub reason: Option<String>,
}

impl Operation for Stop {
    const NAME: &'static str = "stop";
    const TITLE: &'static str = "Stop a session";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = by_people("stop", "/sessions/{session}/stop");
    type Output = Entered;

    fn run(self, context: &Context) -> Outcome<Entered> {
        enter(context, &self.at, "resume", |engine, id| engine.stop(id, self.reason))
    }
}
