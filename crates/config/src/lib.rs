//! What did the person ask for, and where did they say it?
//!
//! Settings come from four places: flag, environment, file, default, in that order. Every place speaks text;
//! the one table in [`table`] says what each text means, so a value is checked by the same rule wherever it
//! was written, and an error can always name the place. This module never reads the process environment: the
//! binary hands it over in [`Sources`], which keeps every rule here testable as a plain function.
//!
//! Every value that is given is checked, even one that a stronger place overrides: a broken file is never
//! silently carried along. Secrets are not shown: not in rows, not in errors, not in `Debug`.

mod check;
mod consent;
mod env;
mod file;
pub mod mask;
mod mcp;
pub mod origin;
mod policy;
pub mod regular;
mod sections;
pub mod table;
#[cfg(test)]
mod tests;
mod threads;
mod yaml;

use std::fmt;
use std::path::{Path, PathBuf};

use check::{GivenValue, GivenValues, SettingValue, SettingsSection};
use komado_agent::mcp::McpServer;
use komado_engine::model::{ModelSettings, ProviderSettings};
use komado_provider::Dialect;
use komado_provider::client::ClientTimeouts;
use origin::{SettingPlace, SettingRow};
use table::{PROVIDER, SETTINGS, Setting, SpokenNames};
use threads::ThreadConfig;

pub use consent::{InFolder, Unconsented, WrittenSetting};
pub use origin::ConfigError;
pub use sections::{AgentConfig, OnFault, ServerConfig, StoreConfig, TraceConfig};
pub use table::reference;

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
    /// `XDG_DATA_HOME`; likewise.
    pub data: Option<&'a Path>,
    /// Whether a folder `contexts` in the working folder is there and may be used, by its path.
    pub has_contexts: &'a dyn Fn(&Path) -> bool,
    /// What becomes of a file that is found in the working folder.
    pub in_folder: InFolder,
    /// Whether the user consented to a file of the working folder, by its path and its digest.
    pub has_consent: &'a dyn Fn(&Path, &str) -> bool,
}

/// Why the contexts are in the folder they are in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BaseDirFrom {
    /// A flag, a variable or a file names it.
    Setting,
    /// It is `contexts` in the working folder, which is there and may be used.
    WorkingFolder,
    /// It is in the user's data folder.
    DataFolder,
    /// Nothing names it, and no data folder is known: no session can be kept.
    Nowhere,
}

/// The settings in force, typed, each with its origin.
#[derive(Clone)]
pub struct Config {
    /// Whether contexts are kept on disk.
    pub enabled: bool,
    /// The folder that holds the contexts; absolute when the working folder is.
    pub base_dir: PathBuf,
    /// Why it is that one.
    pub base_dir_from: BaseDirFrom,
    /// The share of the window at which compression starts.
    pub compression_threshold: f64,
    /// How many of the latest messages a compression leaves as they are.
    pub keep_recent_messages: u32,
    /// The fewest messages worth a summary.
    pub min_messages_to_summarize: u32,
    /// Days after which `komado admin cleanup` removes completed tasks.
    pub cleanup_days: u32,
    /// The prompt of a summary, with `{messages}` where they go.
    pub summary_prompt: String,
    /// Where the history lives; `None` means files under [`Config::base_dir`].
    pub store_url: Option<String>,
    /// How a store on a server is spoken to.
    pub store: StoreConfig,
    /// Where traces go.
    pub traces: TraceConfig,
    /// What child threads get, unless a session or a persona says otherwise.
    threads: ThreadConfig,
    /// The user that messages are written for.
    pub user: Option<String>,
    /// The name of the tokeniser that counts.
    pub meter: String,
    /// How the server serves.
    pub server: ServerConfig,
    /// Tasks.
    pub agent: AgentConfig,
    /// Providers and models, windows and summaries, as the engine takes them.
    pub models: ModelSettings,
    /// What a person should know although nothing is wrong, such as a key that is not set.
    pub notes: Vec<String>,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    /// The file that was found and left out, since it needs consent.
    pub unconsented: Option<Box<Unconsented>>,
    given: GivenValues,
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
        let flags = env::flags(sources)?;
        let named = table::named(given.keys().chain(flags.keys()));
        let (variables, passed_over) = env::layer(sources, &named)?;
        given.extend(variables);
        given.extend(flags);
        let servers = mcp::servers(&given, &layer.servers)?;
        let mut config = Self::build(given, servers, found.map(|found| found.path));
        config.notes.extend(env::unknown(sources, &named));
        config.notes.extend(passed_over);
        config.unconsented = unconsented;
        config.complete_models(sources);
        Ok(config)
    }

    fn build(given: GivenValues, servers: Vec<McpServer>, file: Option<PathBuf>) -> Self {
        let storage = SettingsSection::of(&given, "context_storage");
        let session = SettingsSection::of(&given, "session");
        let url: Option<String> = SettingsSection::of(&given, "store").get("url");
        let mut config = Self {
            enabled: storage.get("enabled"),
            base_dir: storage.get("base_dir"),
            base_dir_from: storage.given("base_dir").map_or(BaseDirFrom::Nowhere, GivenValue::base_dir_from),
            compression_threshold: storage.get("compression_threshold"),
            keep_recent_messages: storage.get("keep_recent_messages"),
            min_messages_to_summarize: storage.get("min_messages_to_summarize"),
            cleanup_days: storage.get("cleanup_days"),
            summary_prompt: storage.get("summary_prompt"),
            // A bare `file:` is the default store, whose place base_dir already names.
            store_url: url.filter(|url| url != "file:"),
            store: StoreConfig::of(&given),
            traces: TraceConfig::of(&given),
            threads: ThreadConfig::of(&given),
            user: session.get("user"),
            meter: session.get("meter"),
            server: ServerConfig::of(&given),
            agent: AgentConfig::of(&given, servers),
            models: models(&given),
            notes: given.values().filter_map(|given| given.note.clone()).collect(),
            file,
            unconsented: None,
            given,
        };
        config.notes.extend(config.unknown_provider());
        config
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

    /// Every setting with its value and origin, in the table's order, secrets hidden.
    pub fn rows(&self) -> Vec<SettingRow> {
        let mut named: SpokenNames = table::named(self.given.keys());
        named.insert((PROVIDER, self.models.provider.clone()));
        let row = |(setting, key): (&Setting, String)| SettingRow::new(setting, self.given.get(&key), key);
        let named = named.iter().map(|(stand_in, name)| (*stand_in, name.as_str()));
        table::keys(named).map(row).collect()
    }
}

/// What is said of models and their providers.
fn models(given: &GivenValues) -> ModelSettings {
    let (overflow, retry) = (SettingsSection::of(given, "overflow"), SettingsSection::of(given, "retry"));
    let named = table::named(given.keys()).into_iter().filter(|(stand_in, _)| *stand_in == PROVIDER);
    ModelSettings {
        provider: SettingsSection::of(given, "llm").get("provider"),
        providers: named.map(|(_, name)| (name.clone(), provider(given, &name))).collect(),
        patience: ClientTimeouts {
            tries: retry.get("tries"),
            delay: retry.get("delay_seconds"),
            ..ClientTimeouts::default()
        },
        shrink: overflow.get("retry_shrink"),
        overflow_tries: overflow.get("tries"),
        max_history: SettingsSection::of(given, "session").get("max_history"),
        ..ModelSettings::default()
    }
}

fn provider(given: &GivenValues, name: &str) -> ProviderSettings {
    let said = SettingsSection::of(given, format!("llm.{name}"));
    ProviderSettings {
        model: said.get("model"),
        models: said.get("models"),
        context_length: said.get("context_length"),
        api_key: said.get("api_key"),
        api_key_file: said.get("api_key_file"),
        base_url: said.get("base_url"),
        threshold: said.get("threshold"),
        dialect: Dialect::named(&said.get::<String>("dialect")),
        max_tokens: said.get("max_tokens"),
        timeout_seconds: said.get("timeout_seconds"),
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.rows().into_iter().map(|row| (row.key, row.value))).finish()
    }
}

/// The setting whose default depends on what is there.
const BASE_DIR: &str = "context_storage.base_dir";

/// Where contexts are kept when nothing names a folder: in the working folder where there is one for them, otherwise in the
/// user's data folder.
fn base_dir(setting: &Setting, sources: &Sources<'_>) -> Result<GivenValue, ConfigError> {
    let name = setting.default.unwrap_or_default().concat();
    let data = sources.data.filter(|data| data.is_absolute()).map(PathBuf::from);
    // From a home that is not absolute the way would lead into the working folder.
    let home = || sources.home.filter(|home| home.is_absolute()).map(|home| home.join(".local/share"));
    let found = sources.cwd.join(&name);
    let (path, from) = match data.or_else(home) {
        _ if (sources.has_contexts)(&found) => (found, BaseDirFrom::WorkingFolder),
        Some(data) => (data.join("komado").join(&name), BaseDirFrom::DataFolder),
        None => (found, BaseDirFrom::Nowhere),
    };
    let place = SettingPlace::BaseDir(from);
    // A path that is no text is kept as it is; only what is shown of it is not.
    let given = check::check(setting, setting.path, &path.to_string_lossy(), place, sources)?;
    Ok(GivenValue { value: Some(SettingValue::Path(path)), ..given })
}

fn defaults(sources: &Sources<'_>) -> Result<GivenValues, ConfigError> {
    let single = SETTINGS.iter().filter(|setting| !setting.is_family());
    single
        .map(|setting| {
            let given = match setting.path {
                BASE_DIR => base_dir(setting, sources)?,
                _ => {
                    let text = setting.default.unwrap_or_default().join("\n");
                    check::check(setting, setting.path, &text, SettingPlace::Default, sources)?
                }
            };
            Ok((setting.path.to_owned(), given))
        })
        .collect()
}
