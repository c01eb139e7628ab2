//! Let a task rest.
//!
//! The worker that has it sees its row at the next heartbeat and comes to rest; its job is laid aside until it is resumed.
//! One that was never begun gets its session now, at rest: the worker that takes its job finds that and lays it aside.

use super::by_people;
use super::change::{TaskChanged, changed, found, refused};
use super::put::make;
use super::standing::TaskState;
use crate::{Context, Effect, Interfaces, Operation, Outcome, Route};
use komado_agent::handler::keep;
use komado_core::session::State;
use komado_store::Change;
use schemars::JsonSchema;
use serde::Deserialize;

/// Let a task rest: a step that is under way is ended first.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct PauseTask {
    /// Its session or a unique beginning of it, or its key, such as github:ann/tool/issue/27
    #[schemars(length(min = 1, max = 500), example = &"fix-login")]
    pub task: String,
}

impl Operation for PauseTask {
    const NAME: &'static str = "task_pause";
    const TITLE: &'static str = "Let a task rest";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = by_people("task pause", Route::post("tasks", "/tasks/{task}/pause"));
    type Output = TaskChanged;

    fn run(self, context: &Context) -> Outcome<TaskChanged> {
        let task = found(context, &self.task)?;
        let (id, state) = (&task.session, task.state());
        match (&task.row, state) {
            (_, TaskState::Paused) => return Err(refused(id, "rests already")),
            (None, TaskState::Dead) => {
                return Err(refused(
                    id,
                    format!("is laid aside already: `komado task retry {id}` tries it again"),
                ));
            }
            (None, _) => make(context, &task)?,
            (Some(row), _) if row.status.is_ended() => {
                return Err(refused(id, format!("has ended: {}", state.name())));
            }
            (Some(_), _) => {}
        }
        let undo = Some("resume");
        if task.is_held() || task.row.is_none() {
            let change = Change::State { to: State::Paused, at: context.engine.now(), why: None };
            context.engine.store().change(id, &change)?;
            return match task.is_held() {
                true => changed(id, TaskState::Pausing, "comes to rest when its step is done", undo),
                false => changed(id, TaskState::Paused, "rests", undo),
            };
        }
        if let Some(about) = task.task() {
            keep(&context.engine, id, &about)?;
        }
        context.engine.pause(id, Some("somebody paused it".to_owned()))?;
        changed(id, TaskState::Paused, "rests", undo)
    }
}
