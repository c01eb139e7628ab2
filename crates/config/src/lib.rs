//! What did the person ask for, and where did they say it?
//!
//! Settings come from four places: flag, environment, file, default, in that order. Every place speaks text;
//! the one table in [`table`] says what each text means, so a value is checked by the same rule wherever it
//! was written, and an error can always name the place. This module never reads the process environment: the
//! binary hands it over in [`Sources`], which keeps every rule here testable as a plain function.
//!
//! Every value that is given is checked, even one that a stronger place overrides: a broken file is never
//! silently carried along. Secrets are not shown: not in rows, not in errors, not in `Debug`.

mod agent;
mod check;
mod consent;
mod env;
mod error;
mod expand;
mod file;
mod flags;
mod ladder;
pub mod mask;
mod mcp;
pub mod origin;
mod reference;
pub mod regular;
mod server;
mod store;
mod suggest;
pub mod table;
#[cfg(test)]
mod tests;
mod threads;
mod tracker;
mod yaml;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use check::{Given, Value};
use komado_engine::model::{ModelSettings, ProviderSettings};
use komado_provider::Dialect;
use origin::{Place, Row};
use table::{Named, PERSONA, PROVIDER, SERVER, SETTINGS, Setting};

pub use agent::AgentWishes;
pub use consent::{InFolder, Unconsented, Written};
pub use error::ConfigError;
pub use reference::reference;
pub use server::{OnFault, ServerWishes};
pub use store::{StoreWishes, TraceWishes};

/// Everything the configuration may look at; the binary fills it from the process.
pub struct Sources<'a> {
    /// `key=value` from `--set`, and mapped flags by their own name (`--base-dir`); the last one of a key
    /// wins.
    pub flags: &'a [(String, String)],
    /// Looks up one environment variable.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The names of all environment variables, so that a misspelt `KOMADO_*` is noticed.
    pub env_names: &'a [String],
    /// The file named by `--config`.
    pub file: Option<PathBuf>,
    /// The folder that relative paths start from.
    pub cwd: &'a Path,
    /// The home folder, for `~/.config` and for paths that begin with `~/`.
    pub home: Option<&'a Path>,
    /// `XDG_CONFIG_HOME`; ignored unless absolute, as its specification asks.
    pub xdg: Option<&'a Path>,
    /// What becomes of a file that is found in the working folder.
    pub in_folder: InFolder,
    /// Whether the user consented to a file of the working folder, by its path and its digest.
    pub has_consent: &'a dyn Fn(&Path, &str) -> bool,
}

/// The settings in force, typed, each with its origin.
#[derive(Clone, Default)]
pub struct Config {
    /// Whether contexts are kept on disk.
    pub enabled: bool,
    /// The folder that holds the contexts; absolute when the working folder is.
    pub base_dir: PathBuf,
    /// The share of the window at which compression starts.
    pub compression_threshold: f64,
    /// How many of the latest messages a compression leaves as they are.
    pub keep_recent_messages: u32,
    /// The fewest messages worth a summary.
    pub min_messages_to_summarize: u32,
    /// After how many days completed tasks may be cleaned up.
    pub cleanup_days: u32,
    /// The prompt of a summary, with `{messages}` where they go.
    pub summary_prompt: String,
    /// Where the history lives; `None` means files under [`Config::base_dir`].
    pub store_url: Option<String>,
    /// How a store on a server is spoken to.
    pub store: StoreWishes,
    /// Where traces go.
    pub traces: TraceWishes,
    /// What child threads get, unless a session or a persona says otherwise.
    threads: threads::ThreadWishes,
    /// In whose name messages are written.
    pub user: Option<String>,
    /// The name of the tokeniser that counts.
    pub meter: String,
    /// How the server serves.
    pub server: ServerWishes,
    /// How a window is kept.
    ladder: ladder::LadderWishes,
    /// Tasks.
    pub agent: AgentWishes,
    /// Providers and models, windows and summaries, as the engine takes them.
    pub models: ModelSettings,
    /// What a person should know although nothing is wrong, such as a key that is not set.
    pub notes: Vec<String>,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    /// The file that was found and left out, since it needs consent.
    pub unconsented: Option<Box<Unconsented>>,
    rows: Vec<Row>,
}

impl Config {
    /// Reads all four places, weakest first, and types the result.
    pub fn load(sources: &Sources<'_>) -> Result<Self, ConfigError> {
        let mut found = file::find(sources)?;
        let unconsented = match &found {
            Some(found) if found.is_of_folder => consent::check(found, sources)?,
            _ => None,
        };
        if unconsented.is_some() {
            found = None;
        }
        let mut given = defaults(sources)?;
        let layer = found.as_ref().map(|found| file::layer(found, sources)).transpose()?.unwrap_or_default();
        given.extend(layer.given);
        let flags = flags::layer(sources)?;
        let named = table::named(given.keys().chain(flags.keys()));
        given.extend(env::layer(sources, &named)?);
        given.extend(flags);
        let mut config = Self::build(&given, found.map(|found| found.path));
        config.agent.servers = mcp::servers(&given, &layer.servers)?;
        config.notes.extend(env::unknown(sources, &named));
        config.notes.extend(env::passed_over(sources));
        config.unconsented = unconsented;
        config.complete_models(sources);
        Ok(config)
    }

    /// Every setting with its value and origin, in the table's order, secrets hidden.
    pub fn rows(&self) -> Vec<Row> {
        self.rows.clone()
    }

    fn build(given: &BTreeMap<String, Given>, file: Option<PathBuf>) -> Self {
        let mut config = Self { file, ..Self::default() };
        for (key, given) in given {
            config.apply(key, given);
            config.notes.extend(given.note.clone());
        }
        config.notes.extend(config.unknown_provider());
        config.agent.trackers = tracker::trackers(given);
        config.rows = config.list(given);
        config
    }

    fn apply(&mut self, key: &str, given: &Given) {
        if let Some(name) = table::name_in(given.setting, key) {
            return match given.setting.stand_in() {
                // What is said of one server is put together when everything is known.
                Some(SERVER) => {}
                Some(PERSONA) => self.threads.apply_persona(name, given.setting.leaf(), given.value.clone()),
                _ => {
                    let of = self.models.providers.entry(name.to_owned()).or_default();
                    apply_provider(of, given.setting.leaf(), given.value.clone());
                }
            };
        }
        if given.place != Place::Default {
            self.ladder.note_given(key);
        }
        match (key, given.value.clone()) {
            ("context_storage.enabled", Some(Value::Bool(v))) => self.enabled = v,
            ("context_storage.base_dir", Some(Value::Path(v))) => self.base_dir = v,
            ("context_storage.compression_threshold", Some(Value::Ratio(v))) => {
                self.compression_threshold = v
            }
            ("context_storage.keep_recent_messages", Some(Value::Count(v))) => self.keep_recent_messages = v,
            ("context_storage.min_messages_to_summarize", Some(Value::Count(v))) => {
                self.min_messages_to_summarize = v
            }
            ("context_storage.cleanup_days", Some(Value::Count(v))) => self.cleanup_days = v,
            ("context_storage.summary_prompt", Some(Value::Text(v))) => self.summary_prompt = v,
            // A bare `file:` is the default store, whose place base_dir already names.
            ("store.url", Some(Value::Text(v))) => self.store_url = Some(v).filter(|v| v != "file:"),
            (key, Some(value)) if key.starts_with("store.") => self.store.apply(key, value),
            (key, Some(value)) if key.starts_with("telemetry.") => self.traces.apply(key, value),
            (key, Some(value)) if key.starts_with("threads.") => self.threads.apply(key, value),
            (key, Some(value)) if key.starts_with("server.") => self.server.apply(key, value),
            (key, Some(value)) if is_of_tasks(key) => self.agent.apply(key, value),
            ("session.max_history", Some(Value::Count(v))) => self.models.max_history = Some(v),
            ("session.user", Some(Value::Text(v))) => self.user = Some(v),
            ("session.meter", Some(Value::Text(v))) => self.meter = v,
            ("llm.provider", Some(Value::Text(v))) => self.models.provider = v,
            ("overflow.retry_shrink", Some(Value::Ratio(v))) => self.models.shrink = v,
            ("overflow.tries", Some(Value::Count(v))) => self.models.overflow_tries = v,
            ("retry.tries", Some(Value::Count(v))) => self.models.patience.tries = v,
            ("retry.delay_seconds", Some(Value::Count(v))) => {
                self.models.patience.delay = Duration::from_secs(v.into())
            }
            (key, Some(value)) => self.ladder.apply(key, value),
            // Unset. That no setting of the table falls through to here is a test.
            _ => {}
        }
    }

    /// Whether the folder of the sessions is the usual one in the working folder, which nothing names.
    pub fn finds_base_dir(&self) -> bool {
        let key = "context_storage.base_dir";
        self.rows.iter().any(|row| row.key == key && row.origin == origin::Origin::Default)
    }

    /// A chosen provider about which nothing is known is most often a misspelling, but may be complete by
    /// flags later.
    fn unknown_provider(&self) -> Option<String> {
        let name = self.models.provider.as_str();
        if self.models.is_known(name) {
            return None;
        }
        let near = self.models.nearest_provider(name);
        let hint =
            near.map_or_else(|| format!("add a section llm.{name}"), |near| format!("did you mean {near}?"));
        Some(format!("llm.provider names a provider without settings: {name}; {hint}"))
    }

    fn list(&self, given: &BTreeMap<String, Given>) -> Vec<Row> {
        let (family, single): (Vec<&Setting>, Vec<&Setting>) =
            SETTINGS.iter().partition(|setting| setting.is_family());
        let mut named: Named = table::named(given.keys());
        named.insert((PROVIDER, self.models.provider.clone()));
        let of_families = named.iter().flat_map(|(stand_in, name)| {
            let same = family.iter().filter(|setting| setting.stand_in() == Some(*stand_in));
            same.map(|setting| (*setting, setting.key_for(name)))
        });
        let of_single = single.iter().map(|setting| (*setting, setting.path.to_owned()));
        of_single.chain(of_families).map(|(setting, key)| Row::new(setting, given.get(&key), key)).collect()
    }
}

/// Takes in one setting of a provider.
fn apply_provider(of: &mut ProviderSettings, leaf: &str, value: Option<Value>) {
    match (leaf, value) {
        ("model", Some(Value::Text(v))) => of.model = Some(v),
        ("models", Some(Value::Lines(v))) => of.models = v,
        ("context_length", Some(Value::Count(v))) => of.context_length = Some(v),
        ("api_key", Some(Value::Text(v))) => of.api_key = Some(v),
        ("base_url", Some(Value::Text(v))) => of.base_url = Some(v),
        ("threshold", Some(Value::Ratio(v))) => of.threshold = Some(v),
        ("dialect", Some(Value::Text(v))) => of.dialect = Dialect::named(&v),
        ("api_key_file", Some(Value::Path(v))) => of.api_key_file = Some(v),
        ("max_tokens", Some(Value::Count(v))) => of.max_tokens = Some(v),
        ("timeout_seconds", Some(Value::Count(v))) => of.timeout_seconds = Some(v),
        _ => {}
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.rows.iter().map(|row| (&row.key, &row.value))).finish()
    }
}

/// Whether a setting is about how tasks are worked on.
fn is_of_tasks(key: &str) -> bool {
    ["work.", "agent.", "tools."].iter().any(|section| key.starts_with(section))
}

fn defaults(sources: &Sources<'_>) -> Result<BTreeMap<String, Given>, ConfigError> {
    let single = SETTINGS.iter().filter(|setting| !setting.is_family());
    single
        .map(|setting| {
            let text = setting.default.unwrap_or_default();
            let given = check::check(setting, setting.path, text, Place::Default, sources)?;
            Ok((setting.path.to_owned(), given))
        })
        .collect()
}
