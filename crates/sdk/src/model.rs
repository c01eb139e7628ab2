//! The model that is asked, and its answer.

use crate::error::Result;
use crate::session::Session;
use komado_core::Seq;
use komado_core::journal::Usage;
use komado_core::message::Call;
use komado_engine::exchange::RecallTools;
use komado_engine::exchange::{ExchangeEvent, ModelTarget};
use komado_engine::model::{ModelError, ModelSettings, ProviderSettings, key_variables};
use komado_engine::{ModelChoice, ModelResolver, ResolvedModel};
use komado_provider::{Cancel, Dialect, ModelEvent, row};
use std::sync::Arc;

/// The name of a provider that is only an address.
pub(crate) const CUSTOM: &str = "custom";

/// A model that can be asked. Clones are the same model.
#[derive(Clone)]
pub struct Model {
    settings: ModelSettings,
    choice: ModelChoice,
    /// Tells models apart: a session finds out about each once.
    identity: Arc<()>,
    #[cfg(feature = "scripted")]
    script: Option<crate::scripted::ModelScript>,
}

/// What a session found out about a model.
pub(crate) struct Resolved {
    identity: Arc<()>,
    settings: ModelSettings,
    model: ResolvedModel,
}

/// An answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reply {
    /// Its entry in the journal.
    pub seq: Seq,
    /// What was said.
    pub text: String,
    /// Calls of tools that the program has to answer, with [`Session::tool_result`].
    pub calls: Vec<Call>,
    /// What it took, where the provider says so.
    pub usage: Option<Usage>,
    /// Why it stopped: `stop`, `length`, `tool_calls`, …
    pub finish: String,
    /// True when no model said it: the request was too large to the end, and the session answered itself.
    pub is_ours: bool,
}

impl Model {
    /// A model of a known provider, as `PROVIDER/MODEL`, such as `openai/gpt-4o` or `ollama/qwen3`. Its key is the one in
    /// the variable that the provider's own tools read.
    pub fn from_env(name: &str) -> Result<Self> {
        let mut model = Self::new(name)?;
        let environment = key_variables().filter_map(|name| {
            let key = std::env::var(name).ok().filter(|key| !key.trim().is_empty())?;
            Some((name.to_owned(), key))
        });
        model.settings.environment = environment.collect();
        model.check_key()?;
        Ok(model)
    }

    /// A model of a known provider, as `PROVIDER/MODEL`; its key is given with [`Model::key`].
    pub fn new(name: &str) -> Result<Self> {
        let Some((provider, model)) = name.split_once('/').filter(|(_, model)| !model.is_empty()) else {
            let why = "write PROVIDER/MODEL, such as openai/gpt-4o".to_owned();
            return Err(engine(ModelError::BadValue { place: format!("the model {name:?}"), why }));
        };
        let settings = ModelSettings::default();
        if row(provider).is_none() {
            let near = settings.nearest_provider(provider).map(str::to_owned);
            return Err(engine(ModelError::UnknownProvider { name: provider.to_owned(), near }));
        }
        Ok(Self::of(settings, provider, model))
    }

    /// A model at any address. It is taken to speak OpenAI's chat API; [`Model::dialect`] says otherwise.
    pub fn at(url: &str, model: &str) -> Self {
        let mut settings = ModelSettings::default();
        let of = ProviderSettings { base_url: Some(url.to_owned()), ..ProviderSettings::default() };
        settings.providers.insert(CUSTOM.to_owned(), of);
        Self::of(settings, CUSTOM, model)
    }

    fn of(settings: ModelSettings, provider: &str, model: &str) -> Self {
        let choice = ModelChoice {
            provider: Some(provider.to_owned()),
            model: Some(model.to_owned()),
            ..ModelChoice::default()
        };
        Self {
            settings,
            choice,
            identity: Arc::default(),
            #[cfg(feature = "scripted")]
            script: None,
        }
    }

    /// The key.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.provider().api_key = Some(key.to_owned());
        self
    }

    /// The API that its provider speaks.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.provider().dialect = Some(dialect);
        self
    }

    /// The window in tokens, in place of the session's own and of the one in the table of models.
    #[must_use]
    pub fn window(mut self, tokens: u32) -> Self {
        self.choice.window = Some(tokens);
        self
    }

    /// The longest answer, in tokens.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.choice.max_tokens = Some(tokens);
        self
    }

    /// Everything else that can be set: how long it is waited for, how often it is tried, what writes summaries.
    pub fn settings(&mut self) -> &mut ModelSettings {
        &mut self.settings
    }

    fn provider(&mut self) -> &mut ProviderSettings {
        let name = self.choice.provider.clone().unwrap_or_default();
        self.settings.providers.entry(name).or_default()
    }

    /// A key that is missing is an error before anything is said.
    fn check_key(&self) -> Result<()> {
        let name = self.choice.provider.clone().unwrap_or_default();
        let Some(row) = row(&name).filter(|row| !row.is_local && !row.key_env.is_empty()) else {
            return Ok(());
        };
        if row.key_env.iter().any(|variable| self.settings.environment.contains_key(*variable)) {
            return Ok(());
        }
        Err(engine(ModelError::NoKey { provider: name, variables: row.key_env.join(" or ") }))
    }

    fn resolve(&self, session: &Session<'_>) -> Result<Resolved> {
        let mut own = session.komado.engine.session(session.id())?.meta.config;
        own.context_length = session.window.or(own.context_length);
        let settings = ModelSettings { policy: session.komado.policy.clone(), ..self.settings.clone() };
        #[cfg(feature = "scripted")]
        let window = self.choice.window.or(own.context_length);
        #[cfg(feature = "scripted")]
        let settings = match &self.script {
            Some(script) => script.serve(settings, window)?,
            None => settings,
        };
        let (engine, own_id) = (&session.komado.engine, Some(session.id()));
        let models = ModelResolver { engine, settings: &settings, note: &|_| {}, session: own_id };
        #[cfg_attr(not(feature = "scripted"), expect(unused_mut))]
        let mut model = models.resolve(&own, &self.choice)?;
        #[cfg(feature = "scripted")]
        if self.script.is_some() {
            // Each window is a server of its own: what one of them taught must not be believed of another.
            let name = komado_engine::model::SCRIPTED;
            let window = window.filter(|window| *window != komado_engine::model::SCRIPTED_WINDOW);
            model.asking.known_as =
                Some(window.map_or_else(|| format!("{name}:"), |window| format!("{name}/{window}:")));
        }
        Ok(Resolved { identity: Arc::clone(&self.identity), settings, model })
    }
}

#[cfg(feature = "scripted")]
impl Model {
    /// A model that follows a script, in this process: for tests, and to try the library without a key. Without steps it
    /// speaks for itself. Its window is 4,096 tokens unless the session or [`Model::window`] has another.
    pub fn scripted() -> Self {
        let name = komado_engine::model::SCRIPTED;
        let mut model = Self::of(ModelSettings::default(), CUSTOM, name);
        model.script = Some(crate::scripted::ModelScript::default());
        model
    }

    /// The scripted model's next answer.
    #[must_use]
    pub fn says(self, text: &str) -> Self {
        self.step(komado_provider::scripted::ScriptStep::say(text))
    }

    /// The scripted model's next answer is a call of a tool; `arguments` is a JSON object.
    #[must_use]
    pub fn calls(self, tool: &str, arguments: &str) -> Self {
        self.step(komado_provider::scripted::ScriptStep::call(tool, arguments))
    }

    /// Any step of a script.
    #[must_use]
    pub fn step(self, step: komado_provider::scripted::ScriptStep) -> Self {
        self.add_step(step);
        self
    }

    /// The same, for a model that is in use already.
    pub fn add_step(&self, step: komado_provider::scripted::ScriptStep) {
        if let Some(script) = &self.script {
            script.add(step);
        }
    }
}

impl Session<'_> {
    /// Asks `model`, hands on its words as they come, and journals the answer. Before that the view is made to fit the
    /// window; a request that the provider finds too large goes out again, smaller.
    pub fn ask(&mut self, model: &Model, on_text: impl FnMut(&str)) -> Result<Reply> {
        self.ask_until(model, &Cancel::default(), on_text)
    }

    /// The same, until `cancel` stops it from another thread. What was said before it is kept.
    pub fn ask_until(
        &mut self,
        model: &Model,
        cancel: &Cancel,
        mut on_text: impl FnMut(&str),
    ) -> Result<Reply> {
        self.thread.check_question()?;
        if !self.resolved.as_ref().is_some_and(|known| Arc::ptr_eq(&known.identity, &model.identity)) {
            self.resolved = Some(model.resolve(self)?);
        }
        let Some(Resolved { settings, model: resolved, .. }) = &self.resolved else {
            return Err(engine(ModelError::NothingConfigured));
        };
        let (session, meter) = (self.thread.session().clone(), self.thread.meter());
        let engine = &self.komado.engine;
        let models = ModelResolver { engine, settings, note: &|_| {}, session: Some(&session) };
        let budget = models.budget(&self.thread, resolved)?;
        let asking = ModelTarget { cancel: cancel.clone(), ..resolved.asking.clone() };
        let mut writer = models.summariser(&session, meter, &model.choice, Some(resolved), cancel)?;
        let mut ladder = settings.summaries.ladder(budget, writer.by());
        let conversed = self.thread.converse(&asking, &mut ladder, &mut RecallTools, &mut |news| {
            if let ExchangeEvent::Said(ModelEvent::Text(text)) = news {
                on_text(text);
            }
        })?;
        let turned = conversed.turned;
        Ok(Reply {
            seq: turned.seq,
            text: turned.message.words(),
            calls: conversed.open,
            usage: turned.reply.usage,
            finish: turned.reply.finish,
            is_ours: turned.is_ours,
        })
    }
}

fn engine(error: ModelError) -> crate::Error {
    komado_engine::Error::from(error).into()
}
