//! Fail: end a session with a reason.

use super::by_people;
use super::ending::{Entered, enter};
use crate::address::AtSession;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// End a session that failed, with the reason.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Fail {
    /// The session
    #[arg(value_name = "SESSION")]
    #[serde(flatten)]
    pub at: AtSession,
    /// Why
    #[schemars(example = &"the build never passed")]
    pub reason: String,
}

impl Operation for Fail {
    const NAME: &'static str = "fail";
    const TITLE: &'static str = "End a session with a reason";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = by_people("fail", "/sessions/{session}/fail");
    type Output = Entered;

    fn run(self, context: &Context) -> Outcome<Entered> {
        enter(context, &self.at, "resume", |engine, id| engine.fail(id, &self.reason))
    }
}
