//! What can be set about models, as plain values: which providers there are, how long they are waited for, how a window is
//! kept, what writes summaries.

use super::{ModelResolver, ResolvedModel, SCRIPTED};
use crate::condense::{ByDigest, ByModel, CondenseSettings, Summariser, SummaryCommand};
use crate::error::{ErrorKind, Result};
use crate::exchange::ModelTarget;
use crate::fit::Ladder;
use komado_core::budget::{Budget, Policy, Preset};
use komado_core::clip::ClipLimits;
use komado_core::session::MetaConfig;
use komado_core::session::is_address;
use komado_core::{Meter, SessionId, suggest};
use komado_provider::{Cancel, ClientTimeouts, Dialect, ROWS, ResponseForm};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

/// How long a program may take over a summary.
const COMMAND_TIME: Duration = Duration::from_secs(600);

/// Everything that can be set about models.
#[derive(Clone)]
pub struct ModelSettings {
    /// The provider that is asked where nothing else decides.
    pub provider: String,
    /// Whether that provider was set, or is only the usual one.
    pub is_provider_set: bool,
    /// What is set for each provider.
    pub providers: BTreeMap<String, ProviderSettings>,
    /// Keys that were found in the environment, by variable; [`key_variables`] lists those that count.
    pub environment: BTreeMap<String, String>,
    /// A file with rows that stand over the built-in table of models; one that is not there is none.
    pub models_file: Option<PathBuf>,
    /// How long a provider is waited for, and how often it is asked.
    pub patience: ClientTimeouts,
    /// To which share a view shrinks after a request that was too large.
    pub shrink: f64,
    /// How often such a request goes out again.
    pub overflow_tries: u32,
    /// How many turns a session keeps in view; `None` for as many as fit.
    pub max_history: Option<u32>,
    /// How a window is kept.
    pub policy: Policy,
    /// Limits of an output on arrival; `None` when outputs are shown whole.
    pub output_limits: Option<ClipLimits>,
    /// What writes summaries, and how.
    pub summaries: SummarySettings,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            provider: String::new(),
            is_provider_set: false,
            providers: BTreeMap::new(),
            environment: BTreeMap::new(),
            models_file: None,
            patience: ClientTimeouts::default(),
            shrink: 0.8,
            overflow_tries: 3,
            max_history: None,
            policy: Preset::default().policy(),
            output_limits: Some(ClipLimits::default()),
            summaries: SummarySettings::default(),
        }
    }
}

/// What is set for one provider. Nothing here has a default: an unknown window must not become a guessed one.
#[derive(Clone, Default, PartialEq)]
pub struct ProviderSettings {
    /// The model's name, as its provider spells it.
    pub model: Option<String>,
    /// Models that lead to it at the gateway: names, or beginnings that end in `*`.
    pub models: Vec<String>,
    /// The model's window, in tokens.
    pub context_length: Option<u32>,
    /// The key; shown nowhere.
    pub api_key: Option<String>,
    /// The file that holds the key.
    pub api_key_file: Option<PathBuf>,
    /// Where the provider listens.
    pub base_url: Option<String>,
    /// The percentage of the window at which something is done.
    pub threshold: Option<f64>,
    /// The API that it speaks.
    pub dialect: Option<Dialect>,
    /// The longest answer, in tokens.
    pub max_tokens: Option<u32>,
    /// Seconds to wait for a word.
    pub timeout_seconds: Option<u32>,
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSettings")
            .field("model", &self.model)
            .field("models", &self.models)
            .field("context_length", &self.context_length)
            .field("api_key", &self.api_key.as_ref().map(|_| "(set)"))
            .field("api_key_file", &self.api_key_file)
            .field("base_url", &self.base_url.as_deref().map(komado_provider::provider::shown))
            .field("threshold", &self.threshold)
            .field("dialect", &self.dialect)
            .field("max_tokens", &self.max_tokens)
            .field("timeout_seconds", &self.timeout_seconds)
            .finish()
    }
}

/// What a command line or a request chooses; what it leaves open is the session's, then the settings'.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelChoice {
    /// The provider: a known name, one from the settings, an address, or [`SCRIPTED`].
    pub provider: Option<String>,
    /// The model, as its provider spells it.
    pub model: Option<String>,
    /// The model's window, in tokens.
    pub window: Option<u32>,
    /// Where the provider listens.
    pub base_url: Option<String>,
    /// The longest answer, in tokens.
    pub max_tokens: Option<u32>,
    /// Whether the answer comes in pieces; `None` for in pieces.
    pub form: Option<ResponseForm>,
    /// The window of the scripted model where neither choice nor session has one.
    pub scripted_window: Option<u32>,
}

/// What writes summaries, and how.
#[derive(Clone, Debug, Default)]
pub struct SummarySettings {
    /// The provider of the model that writes them; the conversation's own when there is none.
    pub provider: Option<String>,
    /// The model that writes them: a name, or `same` for the conversation's own.
    pub model: Option<String>,
    /// A program that writes them, with its arguments; it stands over a model.
    pub command: Option<String>,
    /// How a span is condensed.
    pub settings: CondenseSettings,
}

impl SummarySettings {
    /// Provider and model that write summaries; `None` when no model was chosen, or a program does it.
    pub fn chosen_model(&self) -> Option<(Option<&str>, Option<&str>)> {
        let is_chosen = self.provider.is_some() || self.model.is_some();
        (is_chosen && self.command.is_none()).then_some((self.provider.as_deref(), self.model.as_deref()))
    }

    /// True when anything but the digest writes summaries.
    pub fn has_writer(&self) -> bool {
        self.chosen_model().is_some() || self.command.is_some()
    }

    /// What writes summaries where no model does: the program that was set, else the digest, which needs no model.
    pub fn without_model(&self, meter: Meter) -> Result<Box<dyn Summariser>> {
        let Some(command) = &self.command else { return Ok(Box::new(ByDigest::new(meter))) };
        let mut words = command.split_whitespace().map(str::to_owned);
        let program = words.next().ok_or(ModelError::EmptyCommand)?;
        Ok(Box::new(SummaryCommand { program, arguments: words.collect(), limit: Some(COMMAND_TIME) }))
    }

    /// The ladder under a budget, whose summaries `by` writes.
    pub fn ladder<'a>(&self, budget: Budget, by: &'a mut dyn Summariser) -> Ladder<'a> {
        Ladder { budget, settings: self.settings.clone(), by }
    }
}

impl ModelSettings {
    /// What is set for a provider; `None` when nothing is.
    pub fn of(&self, provider: &str) -> Option<&ProviderSettings> {
        self.providers.get(provider)
    }

    /// Whether anything is known of a provider: by its name, because something is set for it, or because it is an address.
    pub fn is_known(&self, provider: &str) -> bool {
        is_address(provider)
            || self.providers.contains_key(provider)
            || known_providers().any(|known| known == provider)
    }

    /// The known provider whose name is nearest.
    pub fn nearest_provider(&self, name: &str) -> Option<&str> {
        suggest::nearest_name(name, known_providers().chain(self.providers.keys().map(String::as_str)))
    }

    /// The one provider that has a model or an address in the settings, when it is only one. The scripted model does not
    /// count: to set something for it is not to choose it.
    pub(super) fn only_provider(&self) -> Option<&str> {
        let is_set = |(name, of): &(&String, &ProviderSettings)| {
            name.as_str() != SCRIPTED && (of.model.is_some() || of.base_url.is_some())
        };
        let mut set = self.providers.iter().filter(is_set);
        match (set.next(), set.next()) {
            (Some((name, _)), None) => Some(name),
            _ => None,
        }
    }
}

/// The setting of a provider that would help, too; one that is called by its address has none.
fn or_set(provider: &str, key: &str) -> String {
    if is_address(provider) { String::new() } else { format!(", or set llm.{provider}.{key}") }
}

/// The providers that are known by name, the scripted model among them.
pub fn known_providers<'a>() -> impl Iterator<Item = &'a str> {
    ROWS.iter().map(|row| row.name).chain([SCRIPTED])
}

/// The variables in which providers' own tools look for a key.
pub fn key_variables() -> impl Iterator<Item = &'static str> {
    ROWS.iter().flat_map(|row| row.key_env.iter().copied())
}

// Why no model can be asked, and what to do about it.

/// Why no model can be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Nothing is configured. Words that follow a script must not be taken for an answer, so no model is asked.
    #[error(
        "no model is configured: set OPENAI_API_KEY or ANTHROPIC_API_KEY and give --model NAME, or give --provider ollama \
         --model NAME, or set llm.provider and llm.<provider>.model; --provider scripted (or llm.provider: scripted) asks \
         the built-in scripted model, which only follows a script"
    )]
    NothingConfigured,
    /// A provider, and none of its models.
    #[error("which model of {}? give --model NAME{}", .0, or_set(.0, "model"))]
    NoModel(String),
    /// The same for the model that writes summaries.
    #[error("which model of {} writes summaries? set compaction.model{}", .0, or_set(.0, "model"))]
    NoSummaryModel(String),
    /// An unknown window.
    #[error(
        "the window of model {model:?} is not known{}: {}give --window TOKENS{}",
        .silent.as_ref().map(|why| format!(", and its server did not answer ({why})")).unwrap_or_default(),
        suggest::did_you_mean(.near),
        or_set(.provider, "context_length")
    )]
    UnknownWindow {
        /// The model.
        model: String,
        /// Its provider.
        provider: String,
        /// Why its server did not say, where it was asked in vain.
        silent: Option<String>,
        /// The known names that are nearest. None for a model of one's own machine: the table does not say its window.
        near: Vec<String>,
    },
    /// An unknown provider without an address.
    #[error(
        "unknown provider {name:?}; {}known providers are {}; any other is given by its address, such as \
         http://127.0.0.1:8080, or needs llm.{name}.base_url",
        .near.as_ref().map(|near| format!("did you mean {near}? ")).unwrap_or_default(),
        known_providers().collect::<Vec<_>>().join(", ")
    )]
    UnknownProvider {
        /// The name.
        name: String,
        /// The known name that is nearest.
        near: Option<String>,
    },
    /// A provider that wants a key, and none is there.
    #[error(
        "{provider} asks for a key, and there is none: set {variables}, or name a file that holds it in \
         llm.{provider}.api_key_file"
    )]
    NoKey {
        /// The provider.
        provider: String,
        /// The variables that may hold it.
        variables: String,
    },
    /// A key or an address that cannot be one, or cannot be read; `place` says where it stands.
    #[error("{place}: {why}")]
    BadValue {
        /// The setting, the flag or the variable.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// A table of models that is none.
    #[error(
        "{}: {why}; mend the file, remove it, or replace it with `komado models update`", .path.display()
    )]
    BadRegistry {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A table of models that cannot be read.
    #[error("{}: {why}", .path.display())]
    RegistryUnread {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// A build that leaves the scripted model out.
    #[cfg(not(feature = "server"))]
    #[error(
        "this build has no scripted model; build it with the Cargo feature `server`, or ask another model"
    )]
    NoScriptedModel,
    /// A command for summaries without a program.
    #[error("compaction.command names no program")]
    EmptyCommand,
    /// The client or the scripted model could not be started.
    #[error("{0}")]
    NotStarted(String),
}

impl ModelError {
    /// What kind of failure it is.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::BadRegistry { .. } => ErrorKind::Input,
            Self::RegistryUnread { .. } | Self::NotStarted(_) => ErrorKind::Failed,
            _ => ErrorKind::Setting,
        }
    }
}

// What writes summaries: the program or the model that the settings name, else the digest, which needs neither.
//
// A model is asked only where one was chosen: a summary that was not ordered must not cost anything. The conversation's
// own model goes on from what its provider has cached.

/// Stands for the conversation's own model.
const SAME: &str = "same";

/// A summariser, and the model it may need to keep running.
pub struct SummaryWriter<'a> {
    by: Box<dyn Summariser + 'a>,
    /// The scripted model stops when this is dropped.
    _held: Option<ResolvedModel>,
}

impl<'a> SummaryWriter<'a> {
    /// The summariser.
    pub fn by(&mut self) -> &mut (dyn Summariser + 'a) {
        &mut *self.by
    }
}

impl<'a> ModelResolver<'a> {
    /// The summariser of a session, whose conversation is `with` a model where it is resolved already. `cancel` stops it.
    pub fn summariser(
        &self,
        id: &SessionId,
        meter: Meter,
        choice: &ModelChoice,
        with: Option<&ResolvedModel>,
        cancel: &Cancel,
    ) -> Result<SummaryWriter<'a>> {
        match self.settings.summaries.chosen_model() {
            Some(chosen) => self.by_model(chosen, id, meter, choice, with, cancel),
            None => Ok(SummaryWriter { by: self.settings.summaries.without_model(meter)?, _held: None }),
        }
    }

    /// The same, but a model in any case: where the settings name none, the conversation's own.
    pub fn model_summariser(
        &self,
        id: &SessionId,
        meter: Meter,
        choice: &ModelChoice,
        with: Option<&ResolvedModel>,
        cancel: &Cancel,
    ) -> Result<SummaryWriter<'a>> {
        let is_named = choice.model.is_some() || choice.provider.is_some();
        let chosen = self.settings.summaries.chosen_model().filter(|_| !is_named);
        self.by_model(chosen.unwrap_or((None, Some(SAME))), id, meter, choice, with, cancel)
    }

    fn by_model(
        &self,
        (provider, model): (Option<&str>, Option<&str>),
        id: &SessionId,
        meter: Meter,
        choice: &ModelChoice,
        with: Option<&ResolvedModel>,
        cancel: &Cancel,
    ) -> Result<SummaryWriter<'a>> {
        let mut held = None;
        // Only settings that leave something to the conversation need its model.
        let talk = match with {
            Some(with) => Some(with),
            None if provider.is_none() || model == Some(SAME) => {
                held = Some(self.of(id).resolve(&self.engine.session(id)?.meta.config, choice)?);
                held.as_ref()
            }
            None => None,
        };
        let wanted = self.summary_choice(provider, model, talk)?;
        let is_same = |talk: &&ResolvedModel| {
            let asking = &talk.asking;
            wanted.provider.as_ref() == Some(&asking.provider.name)
                && wanted.model.as_ref() == Some(&asking.model)
        };
        let store = self.engine.store();
        if let Some(talk) = talk.filter(is_same) {
            let asking = ModelTarget { cancel: cancel.clone(), ..talk.asking.clone() };
            let by = ByModel::new(asking, store, id.clone(), meter).sharing();
            return Ok(SummaryWriter { by: Box::new(by), _held: held });
        }
        let other = self.resolve(&MetaConfig::default(), &wanted)?;
        let asking = ModelTarget { cancel: cancel.clone(), ..other.asking.clone() };
        let by = ByModel::new(asking, store, id.clone(), meter);
        Ok(SummaryWriter { by: Box::new(by), _held: Some(other) })
    }

    /// Provider and model, with what the settings leave to the conversation filled in.
    fn summary_choice(
        &self,
        provider: Option<&str>,
        model: Option<&str>,
        talk: Option<&ResolvedModel>,
    ) -> Result<ModelChoice> {
        let own = talk.map(|talk| (talk.asking.provider.name.as_str(), talk.asking.model.as_str()));
        let provider = provider.or(own.map(|own| own.0));
        let model = match model {
            Some(SAME) => own.map(|own| own.1),
            Some(model) => Some(model),
            None => provider.and_then(|name| self.settings.of(name)?.model.as_deref()),
        };
        let Some(model) = model else {
            let provider = provider.unwrap_or_default().to_owned();
            return Err(ModelError::NoSummaryModel(provider).into());
        };
        Ok(ModelChoice {
            provider: provider.map(str::to_owned),
            model: Some(model.to_owned()),
            ..ModelChoice::default()
        })
    }
}
