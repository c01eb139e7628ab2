//! Pause: let a session wait.

use super::by_people;
use super::ending::{Entered, enter};
use crate::address::AtSession;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// Let a session wait.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Pause {
    /// The session
    #[arg(value_name = "SESSION")]
    #[serde(flatten)]
    pub at: AtSession,
    /// Why
    pub reason: Option<String>,
}

impl Operation for Pause {
    const NAME: &'static str = "pause";
    const TITLE: &'static str = "Let a session wait";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = by_people("pause", "/sessions/{session}/pause");
    type Output = Entered;

    fn run(self, context: &Context) -> Outcome<Entered> {
        enter(context, &self.at, "resume", |engine, id| engine.pause(id, self.reason))
    }
}
