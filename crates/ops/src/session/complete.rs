//! Complete: end a session well.

use super::by_people;
use super::ending::{Entered, enter};
use crate::address::AtSession;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// End a session well.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Complete {
    /// The session
    #[arg(value_name = "SESSION")]
    #[serde(flatten)]
    pub at: AtSession,
    /// Its result, for people
    pub result: Option<String>,
}

impl Operation for Complete {
    const NAME: &'static str = "complete";
    const TITLE: &'static str = "End a session well";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = by_people("complete", "/sessions/{session}/complete");
    type Output = Entered;

    fn run(self, context: &Context) -> Outcome<Entered> {
        enter(context, &self.at, "resume", |engine, id| engine.complete(id, self.result))
    }
}
