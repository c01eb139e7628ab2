//! Let a task rest.
//!
//! The worker that has it sees its row at the next heartbeat and comes to rest; its job is laid aside until it is resumed.
//! One that was never begun gets its session now, at rest: the worker that takes its job finds that and lays it aside.

use super::change::{TaskChanged, change, changed, refused};
use super::put::make;
use super::standing::{Standing, TaskState};
use crate::{Context, Outcome};
use komado_agent::handler::keep;
use komado_core::session::State;
use komado_store::Change;

change! {
    /// Let a task rest: a step that is under way is ended first.
    PauseTask, "pause", "Let a task rest", pause
}

fn pause(context: &Context, task: Standing) -> Outcome<TaskChanged> {
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
