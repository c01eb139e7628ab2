//! The model that works on a task.

use crate::app::App;
use komado_agent::mind::{ModelMind, SpawnSettings};
use komado_engine::model::{ModelChoice, ResolvedModel};
pub(crate) use komado_ops::choice::ModelArgs;

impl App {
    /// A resolved model as whatever works on a task asks it.
    pub(crate) fn mind<'a>(
        &'a self,
        model: &'a ResolvedModel,
        choice: ModelChoice,
        spawn: SpawnSettings<'a>,
    ) -> ModelMind<'a> {
        ModelMind::new(self.models(), model, choice, spawn)
    }
}
