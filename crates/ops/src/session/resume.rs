//! Resume: let a paused session go on, or open an ended one again.

use super::by_people;
use super::ending::{Entered, enter};
use crate::address::AtSession;
use crate::{Context, Effect, Exit, Fault, Interfaces, Operation, Outcome};
use komado_agent::handler::{Mark, kept};
use komado_core::session::State;
use komado_core::{SessionId, ThreadId};
use komado_store::Mode;
use schemars::JsonSchema;
use serde::Deserialize;

/// Let a session go on, also one that has ended.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Resume {
    /// The session
    #[arg(value_name = "SESSION")]
    #[serde(flatten)]
    pub at: AtSession,
}

impl Operation for Resume {
    const NAME: &'static str = "resume";
    const TITLE: &'static str = "Let a session go on";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = by_people("resume", "/sessions/{session}/resume");
    type Output = Entered;

    fn run(self, context: &Context) -> Outcome<Entered> {
        check_by_hand(context, &context.find(&self.at)?.session)?;
        enter(context, &self.at, "pause", |engine, id| engine.resume(id))
    }
}

/// Refuses to open the session of a task by hand: no worker would work on it, and the next one would end it. One that is
/// completed belongs to no worker any more. The queue is read for sessions of tasks only: a damaged one keeps no other from
/// going on.
fn check_by_hand(context: &Context, id: &SessionId) -> Outcome {
    let row = context.engine.session(id)?;
    if !row.meta.task_key.is_task() || row.status == State::Completed {
        return Ok(());
    }
    let verb = if row.status.is_ended() { "retry" } else { "resume" };
    match context.engine.is_queued(id)? || is_noted(context, id)? {
        true => Err(Fault::new(
            Exit::Refused,
            format!("task {id} goes on in the queue: `komado task {verb} {id}`"),
        )),
        false => Ok(()),
    }
}

/// True when a worker has noted in the journal that it works on it.
fn is_noted(context: &Context, id: &SessionId) -> Outcome<bool> {
    let root = context.engine.open(id, &ThreadId::root(), Mode::Read)?;
    Ok(Mark::of(&root)?.is_some() || kept(&root)?.is_some())
}
