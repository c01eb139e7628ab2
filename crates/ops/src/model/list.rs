//! List what is known about models: windows and prices.

use crate::{Context, Effect, Exit, Fault, Interfaces, Operation, Outcome, Page, Route};
use komado_provider::registry::{self, Price, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List what is known about models: windows and prices.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct ListModels {
    /// Only the model that this name means
    #[schemars(length(min = 1), example = &"gpt-4o")]
    pub name: Option<String>,
}

/// A model of one provider.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Model {
    /// The name the provider knows it by.
    pub id: String,
    /// The provider.
    pub provider: String,
    /// The window: what is sent and what is answered together, in tokens.
    pub context: u64,
    /// The most that may be sent, where the provider gives it apart.
    pub input: Option<u64>,
    /// The most that may be sent.
    pub input_limit: u64,
    /// The longest answer.
    pub output: Option<u64>,
    /// What it costs, where that is known.
    pub price: Option<Price>,
    /// Where this comes from: `built in` or `file`.
    pub source: &'static str,
}

impl Operation for ListModels {
    const NAME: &'static str = "models";
    const TITLE: &'static str = "What is known about models";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::everywhere("models", Route::get("models", "/models"))
        .not_mcp("a model at work does not choose models");
    type Output = Page<Model>;

    fn run(self, context: &Context) -> Outcome<Page<Model>> {
        let registry = context.config.models.registry()?;
        let models = match &self.name {
            Some(name) => vec![Model::from(registry.find(name).ok_or_else(|| unknown(&registry, name))?)],
            None => registry.models().iter().map(Model::from).collect(),
        };
        Ok(Page::whole(models))
    }
}

impl From<&registry::Model> for Model {
    fn from(model: &registry::Model) -> Self {
        Self {
            id: model.id.clone(),
            provider: model.provider.clone(),
            context: model.context,
            input: model.input,
            input_limit: model.input_limit(),
            output: model.output,
            price: model.price,
            source: model.source.name(),
        }
    }
}

/// That a name is not known, and which are like it.
fn unknown(registry: &Registry, name: &str) -> Fault {
    let wanted = name.to_lowercase();
    let close = registry.models().iter().filter(|model| model.id.to_lowercase().contains(&wanted));
    let close: Vec<&str> = close.map(|model| model.id.as_str()).take(5).collect();
    let hint = if close.is_empty() {
        "a local model's window is the one its server was started with: give it with --window; \
         `komado models` lists what is known"
            .to_owned()
    } else {
        format!("known are {}", close.join(", "))
    };
    Fault::new(Exit::NotFound, format!("no model is known by the name {name:?}; {hint}"))
}
