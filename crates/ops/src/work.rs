//! What a task is worked on with, as the settings say: folder, tools, rules, model, tracker.
//!
//! A worker has it for each task it takes ([`Runner`]); a playbook that is run by hand has the same.

pub mod folder;
mod run;
mod tools;

pub use run::{Runner, Tell};
pub use tools::{brief, launcher, tools};

use crate::thread::spawn_settings;
use crate::{Context, Exit, Fault, Outcome};
use komado_agent::mind::{ModelMind, of};
use komado_agent::source::{self, Nobody, Source, Tracker};
use komado_agent::task::Task;
use komado_core::session::MetaConfig;
use komado_engine::model::{ModelChoice, ResolvedModel};
use komado_provider::{Cancel, Client};

/// A resolved model as work on a task asks it.
pub fn mind<'a>(context: &'a Context, model: &'a ResolvedModel, choice: ModelChoice) -> ModelMind<'a> {
    let spawn = |own: &MetaConfig, window| {
        spawn_settings(context, own, window).map_err(of("the settings of child threads"))
    };
    ModelMind::new(context.models(), model, choice, Box::new(spawn))
}

/// A tracker of the settings; `cancel` breaks off what is asked of it.
pub fn open_tracker(context: &Context, tracker: &Tracker, cancel: &Cancel) -> Outcome<Box<dyn Source>> {
    let client = Client::new(context.config.models.patience(tracker.kind.name()))
        .map_err(|why| Fault::new(Exit::Failed, why.to_string()))?;
    Ok(source::open(tracker.clone(), client, cancel.clone()).map_err(komado_agent::Error::from)?)
}

/// The tracker that a task came from, which is told how it ends.
pub fn source_of(context: &Context, task: &Task, cancel: &Cancel) -> Outcome<Box<dyn Source>> {
    let mut trackers = context.config.agent.trackers.iter();
    match trackers.find(|tracker| tracker.kind.name() == task.key.task_source) {
        Some(tracker) => open_tracker(context, tracker, cancel),
        None => Ok(Box::new(Nobody)),
    }
}
