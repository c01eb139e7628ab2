//! From settings to the model that is asked: its provider and key, its window, the budget of a conversation with it, and
//! what writes summaries.
//!
//! A choice (of a command line, of a request) is trusted over the session, the session over the settings, the settings
//! over keys that were found in the environment. An unknown window is an error before anything is sent; it is never
//! guessed. With nothing configured at all that is an error, too: the scripted model answers only where it is named.
//!
//! It reads no environment, no command line and no settings file: the caller hands over plain structs. It prints nothing:
//! what a person should know although nothing is wrong goes to [`ModelResolver::note`].

use crate::engine::Engine;
use crate::error::Result;
use crate::exchange::ModelTarget;
use crate::lesson;
use crate::lesson::{AppliedLesson, LearnedWindow, ModelWindow, WindowSource};
use crate::thread::Thread;
use komado_core::SessionId;
use komado_core::budget::{Budget, Policy, RESERVE};
use komado_core::clip::ClipLimits;
use komado_core::notation::grouped;
use komado_core::session::{MetaConfig, is_address};
use komado_provider::probe::Probe;
use komado_provider::provider::shown;
use komado_provider::registry::{PriceTable, Registry, RegistryModel};
use komado_provider::{
    ApiKey, Cancel, Client, ClientTimeouts, Dialect, Method, Provider, ProviderRow, ROWS, ResponseForm,
    overflow, row,
};
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod settings;

#[cfg(feature = "server")]
use komado_provider::scripted::{ScriptedOptions, ScriptedServer};
pub use settings::{
    ModelChoice, ModelError, ModelSettings, ProviderSettings, SummarySettings, SummaryWriter, key_variables,
    known_providers,
};

/// The name of the built-in model, which follows a script.
pub const SCRIPTED: &str = "scripted";
/// The window of the scripted model, unless another is chosen.
pub const SCRIPTED_WINDOW: u32 = 4_096;
/// The same where it works with tools: their definitions and a child thread's share must have room in it.
pub const SCRIPTED_TOOL_WINDOW: u32 = 32_768;

// Finding the model that is asked, and how large its window is.

/// Resolves models for the sessions of an engine, as settings say.
#[derive(Clone, Copy)]
pub struct ModelResolver<'a> {
    /// The engine; what was learned about models is in its store.
    pub engine: &'a Engine,
    /// What is set.
    pub settings: &'a ModelSettings,
    /// Is told what a person should know although nothing is wrong.
    pub note: &'a dyn Fn(&str),
    /// The session that is asked for: what it learned itself counts, too.
    pub session: Option<&'a SessionId>,
}

/// A model that can be asked.
pub struct ResolvedModel {
    /// Everything a turn needs.
    pub asking: ModelTarget,
    /// The window, in the provider's tokens, and its source.
    pub window: ModelWindow,
    /// The scripted model, while it is the one that answers.
    server: Option<ScriptedServer>,
}

impl ResolvedModel {
    /// A model that the caller has found.
    pub fn new(asking: ModelTarget, window: ModelWindow) -> Self {
        Self { asking, window, server: None }
    }

    /// True when the scripted model answers.
    pub fn is_scripted(&self) -> bool {
        self.server.is_some()
    }

    /// Provider, model and window as a session keeps them.
    pub fn config(&self) -> MetaConfig {
        MetaConfig {
            llm_provider: Some(self.asking.provider.name.clone()),
            model: Some(self.asking.model.clone()),
            context_length: u32::try_from(self.window.tokens).ok(),
            window_from: Some(self.window.told.name().to_owned()),
            ..MetaConfig::default()
        }
    }
}

impl fmt::Display for ResolvedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ModelTarget { provider, model, .. } = &self.asking;
        let ModelWindow { tokens, told } = self.window;
        write!(f, "{model} at {}, window {} tokens ({told})", provider.name, grouped(tokens))
    }
}

/// What is known of a model, but for what was learned.
pub struct KnownModel {
    /// What is asked; its window is as yet 0.
    pub asking: ModelTarget,
    given: Option<u64>,
    /// The window by the table of models.
    listed: Option<u64>,
    /// Why its server did not tell its window.
    silent: Option<String>,
}

impl KnownModel {
    /// The window, with what was learned.
    pub fn window(&self, lesson: &AppliedLesson) -> Option<ModelWindow> {
        ModelWindow::known(self.given, lesson, self.asking.probed, self.listed)
    }

    /// True when its server was asked and did not answer.
    pub fn is_silent(&self) -> bool {
        self.silent.is_some()
    }
}

/// What is asked of which provider, before it is known how large the window is.
struct Target {
    provider: Provider,
    model: String,
    /// The scripted model, with its window.
    server: Option<(ScriptedServer, u32)>,
}

impl<'a> ModelResolver<'a> {
    /// The same, for `session`.
    #[must_use]
    pub const fn of<'s>(&self, session: &'s SessionId) -> ModelResolver<'s>
    where
        'a: 's,
    {
        ModelResolver {
            engine: self.engine,
            settings: self.settings,
            note: self.note,
            session: Some(session),
        }
    }
}

impl ModelResolver<'_> {
    /// The model that is asked in a session made with `own`, where `choice` does not choose another.
    pub fn resolve(&self, own: &MetaConfig, choice: &ModelChoice) -> Result<ResolvedModel> {
        let Target { provider, model, server } = self.target(own, choice)?;
        let client = Client::new(self.settings.patience(&provider.name))
            .map_err(|error| ModelError::NotStarted(error.to_string()))?
            .final_if(|status, body| overflow::classify(status, body).overflow);
        let mut asking = ModelTarget::new(client, provider, model, 0);
        asking.known_as = server.as_ref().map(|_| format!("{SCRIPTED}:"));
        asking.form = choice.form.unwrap_or(ResponseForm::Stream);
        let scripted = server.as_ref().map(|(_, window)| *window);
        let registry = self.settings.registry()?;
        let known = self.known(asking, own, choice, scripted, &registry);
        let lesson = self.lesson(&known.asking)?;
        let window = known.window(&lesson);
        let KnownModel { mut asking, silent, .. } = known;
        let (model, provider) = (asking.model.clone(), asking.provider.name.clone());
        let Some(window) = window else {
            let is_own = is_of_own_machine(&asking.provider);
            let near = if is_own { Vec::new() } else { registry.nearest(&provider, &model) };
            return Err(ModelError::UnknownWindow { model, provider, silent, near }.into());
        };
        (asking.window, asking.is_given) = (window.tokens, window.told == WindowSource::Given);
        let refused = lesson.window().filter(|learned| asking.is_given && *learned < window.tokens);
        if let Some(learned) = refused {
            let (given, learned) = (grouped(window.tokens), grouped(learned));
            (self.note)(&format!(
                "the window is given as {given}, but {model} at {provider} once refused what was over {learned}"
            ));
        }
        Ok(ResolvedModel { asking, window, server: server.map(|(server, _)| server) })
    }

    /// Everything that is known of a model but what was learned: from the settings, from the table of models, from its
    /// server. `scripted` is the window of the scripted model, where it is the one.
    pub fn known(
        &self,
        mut asking: ModelTarget,
        own: &MetaConfig,
        choice: &ModelChoice,
        scripted: Option<u32>,
        registry: &Registry,
    ) -> KnownModel {
        let settings = self.settings;
        let name = asking.provider.name.clone();
        let longest = choice.max_tokens.or_else(|| settings.of(&name).and_then(|of| of.max_tokens));
        asking.max_tokens = longest.map(u64::from);
        asking.shrink = settings.shrink;
        asking.tries = settings.overflow_tries;
        asking.history = settings.max_history;
        // A model on one's own machine has the window that its server was started with, whatever it is called.
        let listed = registry.get(&name, &asking.model).or_else(|| registry.find(&asking.model)).cloned();
        let listed = listed.filter(|_| !is_of_own_machine(&asking.provider));
        asking.output = listed.as_ref().and_then(|model| model.output);
        asking.max_tokens = longest_answer(&asking, listed.as_ref());
        let given = self.given(own, choice, &asking).map(u64::from);
        let mut silent = None;
        asking.probed = match (given, scripted) {
            (Some(_), _) => None,
            (None, Some(window)) => Some(u64::from(window)),
            (None, None) => probe(&asking, &mut silent),
        };
        let listed = listed.as_ref().map(window_of);
        asking.declared = given.or(asking.probed).or(listed);
        KnownModel { asking, given, listed, silent }
    }

    /// Provider and model; the scripted one is started where it is to answer.
    fn target(&self, own: &MetaConfig, choice: &ModelChoice) -> Result<Target> {
        let name = self.provider_name(own, choice)?;
        if name == SCRIPTED {
            return scripted(own, choice);
        }
        let provider = self.provider(&name, choice)?;
        // A session's model is one of its own provider.
        let is_same = own.llm_provider.as_deref().is_none_or(|own| own == name);
        let model = choice
            .model
            .clone()
            .or_else(|| own.model.clone().filter(|_| is_same))
            .or_else(|| self.settings.of(&name).and_then(|of| of.model.clone()));
        let model = model.ok_or(ModelError::NoModel(name))?;
        Ok(Target { provider, model, server: None })
    }

    /// The window that the user gave: in the choice, for this session, or in the settings.
    fn given(&self, own: &MetaConfig, choice: &ModelChoice, asking: &ModelTarget) -> Option<u32> {
        // The scripted model is one, whatever it is called.
        let is_scripted = asking.provider.name == SCRIPTED;
        let is_same = own.model.as_ref().is_none_or(|model| is_scripted || *model == asking.model)
            && own.llm_provider.as_ref().is_none_or(|provider| *provider == asking.provider.name);
        let was_given = own.window_from.as_deref().is_none_or(|from| from == WindowSource::Given.name());
        let of_session = own.context_length.filter(|_| is_same && was_given);
        let of_settings = self
            .settings
            .of(&asking.provider.name)
            .filter(|of| of.model.as_ref().is_none_or(|model| *model == asking.model))
            .and_then(|of| of.context_length);
        choice.window.or(of_session).or(of_settings)
    }

    /// The window of a model by the table of models. A server on this machine has the window it was started with, whatever
    /// the table says of models with that name.
    pub fn listed_window(&self, model: &str, provider: &str) -> Result<u32> {
        let is_local = row(provider).is_some_and(|row| row.is_local);
        let registry = self.settings.registry()?;
        let listed = registry.find(model).filter(|_| !is_local).map(window_of);
        let tokens = listed.filter(|tokens| *tokens > 0).and_then(|tokens| u32::try_from(tokens).ok());
        let near = || if is_local { Vec::new() } else { registry.nearest(provider, model) };
        let unknown = || {
            let (model, provider) = (model.to_owned(), provider.to_owned());
            ModelError::UnknownWindow { model, provider, silent: None, near: near() }
        };
        Ok(tokens.ok_or_else(unknown)?)
    }
}

/// True for a provider whose models have the window that their server was started with, whatever the table says.
fn is_of_own_machine(provider: &Provider) -> bool {
    provider.is_local || provider.dialect == Dialect::Ollama
}

/// The window of a model in the table of models: the one in which a request of the largest size leaves room for a usual
/// answer. Input is not context: some models take less than their window.
fn window_of(model: &RegistryModel) -> u64 {
    model.input.map_or(model.context, |input| model.context.min(input.saturating_add(RESERVE)))
}

impl ModelSettings {
    /// How long a provider is waited for.
    pub fn patience(&self, provider: &str) -> ClientTimeouts {
        let mut patience = self.patience;
        if let Some(seconds) = self.of(provider).and_then(|of| of.timeout_seconds) {
            let time = Duration::from_secs(u64::from(seconds));
            (patience.first, patience.idle) = (time, time);
            patience.connect = patience.connect.min(time);
        }
        patience
    }

    /// The prices in the table of models. Those of the user's file are of the day on which that was written.
    pub fn prices(&self) -> Result<PriceTable> {
        let written = |path: &PathBuf| std::fs::metadata(path).and_then(|found| found.modified()).ok();
        let written = self.models_file.as_ref().and_then(written);
        let day = |time| jiff::Timestamp::try_from(time).ok().map(|at| at.strftime("%Y-%m-%d").to_string());
        Ok(PriceTable { registry: self.registry()?, own_of: written.and_then(day) })
    }

    /// The table of models: the rows of the file, if there is one, over the built-in ones.
    pub fn registry(&self) -> Result<Registry> {
        let Some(path) = &self.models_file else { return Ok(Registry::builtin()) };
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let own = Registry::read(&text)
                    .map_err(|why| ModelError::BadRegistry { path: path.clone(), why: why.to_string() })?;
                Ok(Registry::builtin().under(own))
            }
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(Registry::builtin()),
            Err(why) => Err(ModelError::RegistryUnread { path: path.clone(), why }.into()),
        }
    }
}

/// No build without the server has one.
#[cfg(not(feature = "server"))]
type ScriptedServer = std::convert::Infallible;

#[cfg(not(feature = "server"))]
fn scripted(_own: &MetaConfig, _choice: &ModelChoice) -> Result<Target> {
    Err(ModelError::NoScriptedModel.into())
}

/// The scripted model, in this process.
#[cfg(feature = "server")]
fn scripted(own: &MetaConfig, choice: &ModelChoice) -> Result<Target> {
    let window = choice.window.or(own.context_length).or(choice.scripted_window).unwrap_or(SCRIPTED_WINDOW);
    let server = ScriptedServer::start(ScriptedOptions {
        window: Some(u64::from(window)),
        ..ScriptedOptions::default()
    })?;
    let provider = Provider::at(SCRIPTED, Dialect::Chat, server.url())
        .map_err(|error| ModelError::NotStarted(error.to_string()))?;
    let model = choice.model.clone().unwrap_or_else(|| SCRIPTED.to_owned());
    Ok(Target { provider, model, server: Some((server, window)) })
}

/// Asks a server how large its window is. Only one on this machine, or at an address the user gave, is asked at all; one
/// that does not answer is not asked a second thing.
fn probe(asking: &ModelTarget, silent: &mut Option<String>) -> Option<u64> {
    let ModelTarget { client, provider, model, .. } = asking;
    let is_usual = row(&provider.name).is_some_and(|row| row.base_url == provider.base_url);
    if is_usual && !provider.is_local {
        return None;
    }
    let probes: &[Probe] = match provider.dialect {
        Dialect::Ollama => &[Probe::Ollama],
        _ => &[Probe::LlamaCpp, Probe::Models],
    };
    for probe in probes {
        for step in probe.steps(model) {
            let method = if step.body.is_some() { Method::POST } else { Method::GET };
            let answer = client.fetch(provider, method, step.path, step.body.clone(), &Cancel::default());
            let (status, body) = answer.map_err(|error| *silent = Some(error.to_string())).ok()?;
            let tokens = probe.read(step.path, &body, model);
            if let Some(tokens) = tokens.filter(|_| (200..300).contains(&status)) {
                return Some(tokens);
            }
        }
    }
    None
}

/// The longest answer to ask for: as chosen, but never more than the model is known to give. Only a dialect that must name
/// one has to be told where none is chosen.
fn longest_answer(asking: &ModelTarget, listed: Option<&RegistryModel>) -> Option<u64> {
    let Some(most) = listed.and_then(|model| model.output) else { return asking.max_tokens };
    let must = asking.provider.dialect == Dialect::Messages && most < RESERVE;
    asking.max_tokens.map(|wanted| wanted.min(most)).or(must.then_some(most))
}

impl ModelResolver<'_> {
    /// What was learned about the model that is asked.
    pub fn lesson(&self, asking: &ModelTarget) -> Result<AppliedLesson> {
        self.applied(&asking.about())
    }

    fn applied(&self, about: &str) -> Result<AppliedLesson> {
        match self.session {
            Some(session) => AppliedLesson::known(self.engine.store(), about, session),
            None => Ok(AppliedLesson::for_all(lesson::known(self.engine.store(), about)?)),
        }
    }

    /// What was learned about a session's own model; nothing when it has none, or its provider is not known any more.
    pub fn own_lesson(&self, own: &MetaConfig) -> AppliedLesson {
        let about = || {
            let place = self.place(own.llm_provider.as_deref()?)?;
            Some(lesson::about(&place, own.model.as_deref()?))
        };
        about().and_then(|about| self.applied(&about).ok()).unwrap_or_default()
    }

    /// The learned window by which a session is kept; `None` where another is: one that was given, to it or just now.
    pub fn own_learned_window(&self, own: &MetaConfig, given: Option<u32>) -> Option<LearnedWindow> {
        let was_given = own.window_from.as_deref().is_none_or(|from| from == WindowSource::Given.name());
        let is_given = given.is_some() || (was_given && own.context_length.is_some());
        self.own_lesson(own).learned_window().filter(|_| !is_given)
    }

    /// The window of a session in tokens as we count them: `given`, else its own, as far as nothing better was learned.
    pub fn own_window(&self, own: &MetaConfig, given: Option<u32>) -> Option<u32> {
        let lesson = self.own_lesson(own);
        let was_given = own.window_from.as_deref().is_none_or(|from| from == WindowSource::Given.name());
        let learned = lesson.window().filter(|_| !was_given);
        let window = given.map(u64::from).or(learned).or(own.context_length.map(u64::from))?;
        u32::try_from(lesson.ours(window).max(1)).ok()
    }

    /// The window of a model in tokens as we count them.
    pub fn our_window(&self, model: &ResolvedModel) -> Result<u64> {
        let lesson = self.lesson(&model.asking)?;
        // What was learned since the model was resolved counts at once, but never over the user's word.
        let learned = lesson.window().filter(|_| !model.asking.is_given).unwrap_or(u64::MAX);
        Ok(lesson.ours(model.window.tokens.min(learned)).max(1))
    }

    /// The budget of a conversation with a model, in tokens as we count them: of the thread's share, where it was spawned.
    pub fn budget(&self, thread: &Thread<'_>, model: &ResolvedModel) -> Result<Budget> {
        let ModelTarget { model: name, provider, max_tokens, output, .. } = &model.asking;
        let window = self.of(thread.session()).our_window(model)?;
        let policy = Policy { longest: max_tokens.or(*output), ..self.settings.policy.clone() };
        thread.budget(policy, window, &[name, &provider.name])
    }

    /// The budget of a thread of a session made with `own`: of its share, where it was spawned.
    pub fn own_budget(
        &self,
        thread: &Thread<'_>,
        policy: Policy,
        window: u32,
        own: &MetaConfig,
    ) -> Result<Budget> {
        let names = own.model.as_deref().into_iter().chain([self.settings.provider.as_str()]);
        thread.budget(policy, u64::from(window), &names.collect::<Vec<_>>())
    }

    /// Limits of an output on arrival: as the settings say, and less in a small window.
    pub fn output_limits(&self, thread: &Thread<'_>) -> Option<ClipLimits> {
        let (own, limits) = (thread.config(), self.settings.output_limits);
        let Some(window) = self.of(thread.session()).own_window(own, None) else { return limits };
        match self.own_budget(thread, self.settings.policy.clone(), window, own) {
            Ok(budget) => limits.map(|limits| budget.limits(&limits)),
            // A share without room is an error where something is to be said in it; nothing is clipped by it.
            Err(_) => limits,
        }
    }
}

// Which provider is asked, where it is, and with which key.

/// Where the key of a provider comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeySource {
    /// The settings, or the file they name.
    Settings,
    /// The variable that the provider's own tools read.
    Environment,
    /// There is none.
    Nowhere,
}

impl ModelResolver<'_> {
    /// Which provider is asked. The scripted model is never chosen: it has to be named.
    fn provider_name(&self, own: &MetaConfig, choice: &ModelChoice) -> Result<String> {
        let settings = self.settings;
        let set = settings.is_provider_set.then(|| settings.provider.clone());
        if let Some(name) = &choice.provider {
            return Ok(name.clone());
        }
        if let Some(url) = &choice.base_url {
            return Ok(set.unwrap_or_else(|| shown(url).trim_end_matches('/').to_owned()));
        }
        if let Some(name) = own.llm_provider.as_ref().filter(|name| settings.is_known(name)) {
            return Ok(name.clone());
        }
        // A session that was made for one provider is not handed to another in silence.
        if let Some(name) = set.or_else(|| own.llm_provider.clone()) {
            return Ok(name);
        }
        let name = &settings.provider;
        if settings.of(name).is_some() || row(name).is_some_and(|row| self.variable(row).is_some()) {
            return Ok(name.clone());
        }
        if let Some(name) = settings.only_provider() {
            return Ok(name.to_owned());
        }
        let keyed = ROWS.iter().find(|row| self.variable(row).is_some());
        Ok(keyed.map(|row| row.name.to_owned()).ok_or(ModelError::NothingConfigured)?)
    }

    /// A provider with its key. One that asks for a key and has none is an error that names the variable.
    ///
    /// A key from the environment belongs to the provider that was named: it goes to a chosen address only when the
    /// provider was chosen, too.
    pub fn provider(&self, name: &str, choice: &ModelChoice) -> Result<Provider> {
        let provider = self.address(name, choice.base_url.as_deref())?;
        let is_usual = row(name).filter(|row| row.base_url == provider.base_url);
        let own = is_usual.is_some() || choice.base_url.is_none() || choice.provider.is_some();
        match (self.key(name, own)?, is_usual) {
            (Some(key), _) => Ok(provider.with_key(key)),
            (None, Some(row)) if !row.is_local && !row.key_env.is_empty() => {
                let variables = row.key_env.join(" or ");
                Err(ModelError::NoKey { provider: name.to_owned(), variables }.into())
            }
            (None, _) => Ok(provider),
        }
    }

    /// A provider as the gateway asks it: without a key it may still be asked, with the client's own.
    pub fn upstream(&self, name: &str) -> Result<(Provider, KeySource)> {
        let provider = self.address(name, None)?;
        let of = self.settings.of(name);
        let is_set = of.is_some_and(|of| of.api_key.is_some() || of.api_key_file.is_some());
        Ok(match self.key(name, true)? {
            Some(key) if is_set => (provider.with_key(key), KeySource::Settings),
            Some(key) => (provider.with_key(key), KeySource::Environment),
            None => (provider, KeySource::Nowhere),
        })
    }

    /// Providers whose key is in the environment; of two that share one, the first.
    pub fn keyed_providers(&self) -> Vec<&'static str> {
        let mut seen = Vec::new();
        let mut names = Vec::new();
        for row in ROWS {
            if let Some((variable, _)) = self.variable(row).filter(|(variable, _)| !seen.contains(variable)) {
                seen.push(variable);
                names.push(row.name);
            }
        }
        names
    }

    /// The place under which lessons about a provider are kept; `None` when it is not known any more.
    fn place(&self, name: &str) -> Option<String> {
        match name {
            SCRIPTED => Some(format!("{SCRIPTED}:")),
            name => Some(self.address(name, None).ok()?.place()),
        }
    }

    /// A provider as yet without its key.
    fn address(&self, name: &str, base_url: Option<&str>) -> Result<Provider> {
        let (of, row) = (self.settings.of(name), row(name));
        let own = is_address(name).then_some(name);
        let given = base_url.or_else(|| of.and_then(|of| of.base_url.as_deref())).or(own);
        let Some(url) = given.or(row.map(|row| row.base_url)) else {
            let near = self.settings.nearest_provider(name).filter(|near| *near != name);
            let near = near.map(str::to_owned);
            return Err(ModelError::UnknownProvider { name: name.to_owned(), near }.into());
        };
        let dialect = of.and_then(|of| of.dialect).or(row.map(|row| row.dialect)).unwrap_or(Dialect::Chat);
        if let (None, Some(row)) = (given, row) {
            return Ok(Provider { dialect, ..Provider::from_row(row) });
        }
        let at = Provider::at(name, dialect, url).map_err(|why| {
            let place = match (base_url, own) {
                (Some(_), _) => "--base-url".to_owned(),
                (None, Some(address)) => shown(address),
                (None, None) => format!("llm.{name}.base_url"),
            };
            ModelError::BadValue { place, why: why.to_string() }
        })?;
        Ok(match row.filter(|row| row.dialect == dialect) {
            Some(row) => Provider { auth: row.auth, caches: row.caches, is_strict: row.is_strict, ..at },
            None => at,
        })
    }

    /// The key: from the settings, from the file they name, or from the variable that the provider's own tools read.
    fn key(&self, name: &str, from_environment: bool) -> Result<Option<ApiKey>> {
        let of = self.settings.of(name);
        let (place, text) = if let Some(text) = of.and_then(|of| of.api_key.clone()) {
            (format!("llm.{name}.api_key"), text)
        } else if let Some(path) = of.and_then(|of| of.api_key_file.as_deref()) {
            (format!("llm.{name}.api_key_file: {}", path.display()), self.read_key(path, name)?)
        } else if let Some((variable, text)) =
            row(name).filter(|_| from_environment).and_then(|row| self.variable(row))
        {
            (variable.to_owned(), text.to_owned())
        } else {
            return Ok(None);
        };
        Ok(Some(ApiKey::new(&text).map_err(|why| ModelError::BadValue { place, why: why.to_string() })?))
    }

    /// The variable that holds the key of a provider, and the key.
    fn variable(&self, row: &ProviderRow) -> Option<(&'static str, &str)> {
        row.key_env.iter().find_map(|name| Some((*name, self.settings.environment.get(*name)?.as_str())))
    }

    fn read_key(&self, path: &Path, name: &str) -> Result<String> {
        let read = || Ok((std::fs::read_to_string(path)?, std::fs::metadata(path)?.permissions().mode()));
        let (text, mode) = read().map_err(|why: std::io::Error| {
            let (place, path) = (format!("llm.{name}.api_key_file"), path.display());
            ModelError::BadValue { place, why: format!("cannot read {path}: {why}") }
        })?;
        if mode & 0o077 != 0 {
            let path = path.display();
            (self.note)(&format!(
                "others can read the key in {path}; `chmod 600 {path}` keeps it to yourself"
            ));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_not_context() {
        let mut model = Registry::builtin().find("gpt-4o").cloned().unwrap();
        (model.context, model.input) = (400_000, Some(272_000));
        assert_eq!(window_of(&model), 272_000 + RESERVE);
    }
}
