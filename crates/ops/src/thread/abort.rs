//! Abort: a child thread is broken off.

use super::{Ended, child};
use crate::address::AtThread;
use crate::operation::Route;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use komado_core::thread::Status;
use komado_engine::stelis::Finish;
use schemars::JsonSchema;
use serde::Deserialize;

/// Break a child thread off, with as much of a chronicle as there is. `thread_resume` opens it again.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct AbortThread {
    /// The thread, SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// Why, for people
    pub reason: Option<String>,
}

impl Operation for AbortThread {
    const NAME: &'static str = "thread_abort";
    const TITLE: &'static str = "Break a child thread off";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "thread abort",
        Route::post("threads", "/sessions/{session}/threads/{thread}/abort"),
    );
    type Output = Ended;

    fn run(self, context: &Context) -> Outcome<Ended> {
        let found = child(context, &self.at)?;
        let finish = Finish::aborted(self.reason);
        let finished = context.engine.finish_child(&found.session, &found.thread, finish)?;
        Ok(Ended::of(&found, Status::Aborted, finished))
    }
}
