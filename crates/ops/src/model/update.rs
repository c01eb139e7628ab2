//! Put a newer collection of models over the one that is built in. It is checked whole before anything changes.

use crate::{Context, Effect, Exit, Fault, Interfaces, Operation, Outcome, private};
use komado_provider::registry::{Model, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Put a newer collection of models over the one that is built in.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct UpdateModels {
    /// Lines in our own form, models.dev's api.json, or LiteLLM's model_prices_and_context_window.json
    pub text: String,
}

/// What a new collection did to what was known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Updated {
    /// Where it is kept.
    pub path: String,
    /// Models in it.
    pub rows: u64,
    /// Models that were not known.
    pub added: u64,
    /// Models of which something else is known now.
    pub changed: u64,
    /// Models that are as before.
    pub same: u64,
    /// What changed.
    pub changes: Vec<ModelChange>,
}

/// What changed about a model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ModelChange {
    /// The model, as provider/id.
    pub model: String,
    /// What changed.
    pub differences: Vec<Difference>,
}

/// A figure that changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Difference {
    /// A number of tokens.
    Tokens {
        /// Which: window, input or output.
        name: &'static str,
        /// Before.
        before: Option<u64>,
        /// Now.
        after: Option<u64>,
    },
    /// The price.
    Price,
}

impl Operation for UpdateModels {
    const NAME: &'static str = "models_update";
    const TITLE: &'static str = "Put a newer collection of models in place";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = Interfaces::only_cli(
        "models update",
        "windows and prices for all users are set by the owner of the machine",
    )
    .not_mcp("a model at work does not choose models");
    type Output = Updated;

    fn run(self, context: &Context) -> Outcome<Updated> {
        let new = Registry::read_any(&self.text)
            .map_err(|error| Fault::input(format!("{error}; nothing was changed")))?;
        // A broken file of before must not keep a good one out.
        let before = context.config.models.registry().unwrap_or_else(|_| Registry::builtin());
        let path = context.config.base_dir.join("models.jsonl");
        context.claim()?;
        private::folder(&context.config.base_dir)
            .and_then(|()| private::replace(&path, |out| out.write_all(new.write().as_bytes())))
            .map_err(|e| Fault::new(Exit::Failed, format!("{}: {e}; nothing was changed", path.display())))?;
        let mut updated = Updated {
            path: path.display().to_string(),
            rows: new.models().len() as u64,
            added: 0,
            changed: 0,
            same: 0,
            changes: Vec::new(),
        };
        new.models().iter().for_each(|model| updated.count(&before, model));
        updated.changed = updated.changes.len() as u64;
        Ok(updated)
    }
}

impl Updated {
    fn count(&mut self, before: &Registry, model: &Model) {
        let Some(old) = before.get(&model.provider, &model.id) else {
            self.added += 1;
            return;
        };
        match differences(old, model) {
            same if same.is_empty() => self.same += 1,
            differences => {
                let model = format!("{}/{}", model.provider, model.id);
                self.changes.push(ModelChange { model, differences });
            }
        }
    }
}

fn differences(old: &Model, new: &Model) -> Vec<Difference> {
    let sizes = [
        ("window", Some(old.context), Some(new.context)),
        ("input", old.input, new.input),
        ("output", old.output, new.output),
    ];
    let changed = sizes.into_iter().filter(|(_, old, new)| old != new);
    let mut all: Vec<Difference> =
        changed.map(|(name, before, after)| Difference::Tokens { name, before, after }).collect();
    all.extend((old.price != new.price).then_some(Difference::Price));
    all
}
