//! What is known about models, what was learned by talking to them, and what their errors mean.

use crate::address::AtSession;
use crate::{
    Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, ResultPage, Route, private,
};
use komado_core::suggest::did_you_mean;
use komado_engine::lesson::LearnedModel;
use komado_provider::overflow::{OverflowVerdict, classify};
use komado_provider::registry::{self, Price, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List what is known about models: windows and prices.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct ListModels {
    /// Only the model that this name means
    #[schemars(length(min = 1), example = &"gpt-4o")]
    pub name: Option<String>,
    /// Only models whose provider and name hold all of these words, in any case
    #[schemars(length(min = 1), example = &"claude sonnet")]
    pub words: Option<String>,
}

/// A model of one provider.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ListedModel {
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
    const ABOUT: OperationLabel = OperationLabel::read("models", "What is known about models");
    const INTERFACES: Interfaces = Interfaces::everywhere("models", Route::get("models", "/models"))
        .not_mcp("a model at work does not choose models");
    type Output = ResultPage<ListedModel>;

    fn run(self, context: &OperationContext) -> OpResult<ResultPage<ListedModel>> {
        let registry = context.config.models.registry()?;
        let models = match &self.name {
            Some(name) => {
                vec![ListedModel::from(registry.find(name).ok_or_else(|| unknown(&registry, name))?)]
            }
            None => registry.models().iter().map(ListedModel::from).collect(),
        };
        let words = self.words.unwrap_or_default().to_lowercase();
        let holds = |model: &ListedModel| {
            let name = format!("{}/{}", model.provider, model.id).to_lowercase();
            words.split_whitespace().all(|word| name.contains(word))
        };
        let models = models.into_iter().filter(holds).collect();
        Ok(ResultPage::whole(models))
    }
}

impl From<&registry::RegistryModel> for ListedModel {
    fn from(model: &registry::RegistryModel) -> Self {
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
fn unknown(registry: &Registry, name: &str) -> OpFault {
    let wanted = name.to_lowercase();
    let close = registry.models().iter().filter(|model| model.id.to_lowercase().contains(&wanted));
    let close: Vec<&str> = close.map(|model| model.id.as_str()).take(5).collect();
    let hint = if close.is_empty() {
        let near = did_you_mean(&registry.nearest("", name));
        format!(
            "{near}a local model's window is the one its server was started with: give it with --window; `komado models` \
             lists what is known, `komado models WORD` what holds a word"
        )
    } else {
        format!("known are {}", close.join(", "))
    };
    OpFault::not_found(format!("no model is known by the name {name:?}; {hint}"))
}

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
    pub differences: Vec<ModelDifference>,
}

/// A figure that changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum ModelDifference {
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
    const ABOUT: OperationLabel =
        OperationLabel::edit("models_update", "Put a newer collection of models in place");
    const INTERFACES: Interfaces = Interfaces::only_cli(
        "models update",
        "windows and prices for all users are set by the owner of the machine",
    )
    .not_mcp("a model at work does not choose models");
    type Output = Updated;

    fn run(self, context: &OperationContext) -> OpResult<Updated> {
        let new = Registry::read_any(&self.text)
            .map_err(|error| OpFault::input(format!("{error}; nothing was changed")))?;
        // A broken file of before must not keep a good one out.
        let before = context.config.models.registry().unwrap_or_else(|_| Registry::builtin());
        let path = context.config.base_dir.join("models.jsonl");
        context.claim()?;
        private::folder(&context.config.base_dir)
            .and_then(|()| private::replace(&path, |out| out.write_all(new.write().as_bytes())))
            .map_err(|e| OpFault::failed(format!("{}: {e}; nothing was changed", path.display())))?;
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
    fn count(&mut self, before: &Registry, model: &registry::RegistryModel) {
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

fn differences(old: &registry::RegistryModel, new: &registry::RegistryModel) -> Vec<ModelDifference> {
    let sizes = [
        ("window", Some(old.context), Some(new.context)),
        ("input", old.input, new.input),
        ("output", old.output, new.output),
    ];
    let changed = sizes.into_iter().filter(|(_, old, new)| old != new);
    let mut all: Vec<ModelDifference> =
        changed.map(|(name, before, after)| ModelDifference::Tokens { name, before, after }).collect();
    all.extend((old.price != new.price).then_some(ModelDifference::Price));
    all
}

/// List what was learned from the answers and refusals of models.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
pub struct ListLessons {}

/// What was learned about a model at an address.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Learned {
    /// The address and the name of the model.
    pub about: String,
    /// What was learned.
    #[serde(flatten)]
    pub lesson: LearnedModel,
}

impl Operation for ListLessons {
    const ABOUT: OperationLabel = OperationLabel::read("models_learned", "What was learned about models");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("models learned", Route::get("models", "/models/learned"))
            .not_mcp("a model at work does not choose models");
    type Output = ResultPage<Learned>;

    fn run(self, context: &OperationContext) -> OpResult<ResultPage<Learned>> {
        context.check_sees_all()?;
        all(context).map(ResultPage::whole)
    }
}

/// Every lesson. One that cannot be read teaches nothing, and can be forgotten all the same.
fn all(context: &OperationContext) -> OpResult<Vec<Learned>> {
    let lessons = context.engine.store().lessons()?.into_iter();
    let read = |(about, text): (String, String)| Learned {
        about,
        lesson: serde_json::from_str(&text).unwrap_or_default(),
    };
    Ok(lessons.map(read).collect())
}

/// Forget what was learned about a model.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ForgetLesson {
    /// The model's name, or the address and the name as `komado models learned` lists them
    #[schemars(length(min = 1))]
    pub about: String,
}

/// A lesson that is forgotten.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ForgottenLesson {
    /// What it was about.
    pub forgotten: String,
}

impl Operation for ForgetLesson {
    const ABOUT: OperationLabel =
        OperationLabel::remove("models_forget", "Forget what was learned about a model");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("models learned --forget", Route::delete("models", "/models/learned"))
            .not_mcp("a model at work does not choose models");
    type Output = ResultPage<ForgottenLesson>;

    fn run(self, context: &OperationContext) -> OpResult<ResultPage<ForgottenLesson>> {
        context.check_sees_all()?;
        let mut forgotten = Vec::new();
        for about in all(context)?.into_iter().map(|learned| learned.about) {
            // An address holds no space; a model's name may.
            let model = about.split_once(' ').map_or(about.as_str(), |(_, model)| model);
            if (about == self.about || model == self.about) && context.engine.store().forget(&about)? {
                forgotten.push(ForgottenLesson { forgotten: about });
            }
        }
        if forgotten.is_empty() {
            let hint = "`komado models learned` lists what was";
            let why = format!("nothing was learned about {:?}; {hint}", self.about);
            return Err(OpFault::not_found(why));
        }
        Ok(ResultPage::whole(forgotten))
    }
}

/// What was learned about a session's model by talking to it: its true window, how it counts tokens.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ModelOfSession {
    /// The session.
    #[serde(flatten)]
    pub at: AtSession,
}

/// What was learned about a model.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ModelLesson {
    /// The model.
    pub about: String,
    /// What was learned.
    pub lesson: SessionLesson,
}

/// What talking to a model taught.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SessionLesson {
    /// The most tokens it takes, as it said itself.
    pub window: Option<u64>,
    /// Its tokens for one of ours.
    pub factor: f64,
    /// The window in tokens of ours.
    pub our_window: Option<u32>,
}

impl Operation for ModelOfSession {
    const ABOUT: OperationLabel = OperationLabel::read("lesson", "What was learned about a session's model");
    const INTERFACES: Interfaces = Interfaces::only_http(
        Route::get("models", "/lessons"),
        "`context` shows the window, `models learned` what was learned",
    )
    .not_mcp("`context` tells a model how large its window is");
    type Output = ModelLesson;

    fn run(self, context: &OperationContext) -> OpResult<ModelLesson> {
        let id = context.find(&self.at)?.session;
        let own = context.session(&id)?.meta.config;
        let Some(about) = own.model.clone() else {
            return Err(OpFault::not_found(format!("session {id} names no model")));
        };
        let lesson = context.models().of(&id).own_lesson(&own);
        let our_window = context.models().of(&id).own_window(&own, None);
        Ok(ModelLesson {
            about,
            lesson: SessionLesson { window: lesson.window(), factor: lesson.factor(), our_window },
        })
    }
}

/// Say what a provider's error is taken for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ExplainError {
    /// The HTTP status the body came with; 200 for an error inside a stream
    #[schemars(range(min = 100, max = 599), example = 400)]
    pub status: u16,
    /// The body
    #[schemars(example = &"too long: 9000 tokens > 8000 maximum")]
    pub body: String,
}

impl Operation for ExplainError {
    const ABOUT: OperationLabel =
        OperationLabel::read("explain_error", "What a provider's error is taken for");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("explain-error", Route::post("models", "/explain-error"))
            .not_mcp("errors of providers are handled before a model sees anything");
    type Output = OverflowVerdict;

    fn run(self, _: &OperationContext) -> OpResult<OverflowVerdict> {
        Ok(classify(self.status, &self.body))
    }
}
