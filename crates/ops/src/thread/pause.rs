//! Pause: a child thread waits.

use super::{Ended, child};
use crate::address::AtThread;
use crate::operation::Route;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use komado_core::thread::Status;
use schemars::JsonSchema;
use serde::Deserialize;

/// Let a child thread wait.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct PauseThread {
    /// The thread, SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// Why, for people
    pub reason: Option<String>,
}

impl Operation for PauseThread {
    const NAME: &'static str = "thread_pause";
    const TITLE: &'static str = "Let a child thread wait";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "thread pause",
        Route::post("threads", "/sessions/{session}/threads/{thread}/pause"),
    )
    .not_mcp("a model that works elsewhere leaves a thread as it is");
    type Output = Ended;

    fn run(self, context: &Context) -> Outcome<Ended> {
        let found = child(context, &self.at)?;
        let paused = context.engine.pause_child(&found.session, &found.thread, self.reason)?;
        Ok(Ended::of(&found, Status::Paused, paused))
    }
}
