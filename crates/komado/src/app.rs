//! What every verb needs: settings, the store that they name, engine, output.

use crate::cli_output::{self, CliOutput, ProgressShown, say};
use crate::render::Render;
use crate::server::api;
use crate::trust::{self as consents, ConsentAbout, Consents, FolderTrust};
use crate::verb::trust;
use komado_config::{BaseDirFrom, Config, ConfigError, InFolder, Sources, StoreConfig, mask};
use komado_core::SessionId;
use komado_core::notation::tamed;
use komado_engine::{Clock, Engine};
use komado_ops::session::hostname;
use komado_ops::{BaseFolder, OpFault, OpResult, OpenedStore, Operation, OperationContext};
use komado_store::{ConnectOptions, Error, FileStore, Holder, MemoryStore, Store, connect};
use std::fs::DirBuilder;
use std::ops::Deref;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The binary and its verb, for a process that finds the session held.
pub(crate) static PROGRAM: OnceLock<String> = OnceLock::new();

/// Options that every verb takes.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct GlobalOptions {
    /// Print JSON for programs instead of text for people
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Folder that holds the sessions
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(crate) base_dir: Option<PathBuf>,
    /// Settings file; left out: ./komado.yaml, once you trust it, or your own in ~/.config/komado
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
    /// A setting for this run, such as context_storage.cleanup_days=7
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", help_heading = "Global options")]
    pub(crate) set: Vec<String>,
}

/// What operations run in, and where their results are printed.
pub(crate) struct App {
    pub(crate) context: OperationContext,
    pub(crate) paper: CliOutput,
    pub(crate) progress: ProgressShown,
}

impl Deref for App {
    type Target = OperationContext;

    fn deref(&self) -> &OperationContext {
        &self.context
    }
}

impl App {
    pub(crate) fn new(options: &GlobalOptions) -> OpResult<Self> {
        let config = load_config(options, InFolder::Used)?;
        check_folder(&config)?;
        let (store, files) = configured(&config)?;
        let engine = Engine::new(store, Arc::new(KomadoClock));
        Ok(Self::over(engine, config, files, CliOutput::new(options.json)))
    }

    /// For a verb that looks into no store: one that is away does not matter to it.
    pub(crate) fn storeless(options: &GlobalOptions, in_folder: InFolder) -> OpResult<Self> {
        let config = load_config(options, in_folder)?;
        let engine = Engine::new(Arc::new(MemoryStore::default()), Arc::new(KomadoClock));
        Ok(Self::over(engine, config, None, CliOutput::new(options.json)))
    }

    /// What a verb that only looks runs in, without a word or a question: `None` where something had to be asked, made or reached
    /// over a network first.
    pub(crate) fn quiet(options: &GlobalOptions) -> Option<OperationContext> {
        let config = Self::quiet_config(options)?;
        let base = match config.store_url.as_deref().unwrap_or("file:").strip_prefix("file:") {
            Some(path) => match path.trim_start_matches("//") {
                "" => config.base_dir.clone(),
                path => PathBuf::from(path),
            },
            None => return None,
        };
        let is_used = config.base_dir_from != BaseDirFrom::Nowhere;
        // A store without its table would make it.
        if !config.enabled || !is_used || !base.join("tasks.db").is_file() {
            return None;
        }
        let files = Arc::new(FileStore::new(&base, holder()));
        let engine = Engine::new(Arc::clone(&files) as Arc<dyn Store>, Arc::new(KomadoClock));
        Some(OperationContext::new(engine, Arc::new(config), Some(files), |_| ()))
    }

    /// The settings, without a word or a question: those of a folder that needs consent are left out.
    pub(crate) fn quiet_config(options: &GlobalOptions) -> Option<Config> {
        let consents = Consents::of_user();
        read_config(options, InFolder::Told, &consents).ok()?.ok()
    }

    /// Over an engine.
    pub(crate) fn over(
        engine: Engine,
        config: Config,
        files: Option<Arc<FileStore>>,
        paper: CliOutput,
    ) -> Self {
        let note = |text: &str| say(format!("komado: {text}"));
        let progress = ProgressShown::default();
        let shown = progress.clone();
        let folder = SessionsFolder { path: config.base_dir.clone(), from: config.base_dir_from };
        let config = Arc::new(config);
        let mut context = OperationContext::new(engine, Arc::clone(&config), files, note);
        if let Ok(folder) = std::env::current_dir() {
            context = context.within(folder);
        }
        let context = context.beside(Arc::new(folder)).opening(move |url, by| at(url, by, &config)).showing(
            move |at| {
                shown.show(at);
                Ok(())
            },
        );
        Self { context, paper, progress }
    }

    /// The folder of sessions that was named and is not there, and what named it.
    fn missing_folder(&self) -> Option<(&Path, String)> {
        let path = self.files.as_ref()?.base_dir();
        let key = if path == self.config.base_dir { "context_storage.base_dir" } else { "store.url" };
        let is_named = key == "store.url" || self.config.base_dir_from == BaseDirFrom::Setting;
        let is_missing = is_named && matches!(path.try_exists(), Ok(false));
        let row = self.config.rows().into_iter().find(|row| row.key == key);
        is_missing.then(|| (path, row.map_or_else(|| key.to_owned(), |row| row.origin.to_string())))
    }

    /// Refuses to look for sessions in a folder that was named and is not there.
    pub(crate) fn want_folder(&self) -> OpResult {
        let Some((path, by)) = self.missing_folder() else { return Ok(()) };
        let begin = trust::command("komado new --base-dir", path);
        Err(OpFault::not_found(format!(
            "there is no folder {}, which {by} names for the sessions: correct the path, or begin there with `{begin}`",
            consents::shown(path)
        )))
    }

    /// Says that such a folder is made.
    pub(crate) fn tell_of_new_folder(&self) {
        if let Some((path, by)) = self.missing_folder() {
            let path = consents::shown(path);
            say(format!(
                "komado: there is no folder {path} yet, which {by} names: it is made for what is kept now"
            ));
        }
    }

    /// Runs an operation, and shows how far it has come.
    pub(crate) fn run<O: Operation>(&self, operation: O) -> OpResult<O::Output> {
        let output = self.context.run(operation);
        self.progress.clear();
        output
    }

    /// Runs an operation and prints its result.
    pub(crate) fn show<O: Operation<Output: Render>>(&mut self, operation: O) -> OpResult {
        let output = self.run(operation)?;
        self.print(&output)?;
        output.fault()
    }

    /// Prints a result.
    pub(crate) fn print(&mut self, output: &impl Render) -> OpResult {
        if self.paper.json {
            return output.json(&mut self.paper);
        }
        // The change is durable by now: what only shortens the advice must not fail it.
        self.paper.short = self.context.short_of_changed().unwrap_or_default();
        output.text(&mut self.paper)
    }

    /// Tells what the store had to put right on the way.
    pub(crate) fn tell_findings(&self) {
        for finding in self.files.iter().flat_map(|files| files.take_findings()) {
            say(format!("komado: {finding}"));
        }
    }
}

/// The base folder, beside what a store keeps in it.
struct SessionsFolder {
    path: PathBuf,
    from: BaseDirFrom,
}

impl BaseFolder for SessionsFolder {
    /// Makes a folder that nothing names: one in the working folder is marked as the user's, one in the data folder is theirs.
    /// So is one that was named.
    fn claim(&self) -> OpResult {
        match self.from {
            BaseDirFrom::WorkingFolder => consents::claim(&self.path, &Consents::of_user()),
            BaseDirFrom::DataFolder => make_private(&self.path),
            BaseDirFrom::Setting | BaseDirFrom::Nowhere => Ok(()),
        }
    }

    fn forget_session(&self, id: &SessionId) -> OpResult {
        api::forget_session(&self.path, id)
    }
}

/// Makes a folder in the data folder, which others on the machine cannot read.
fn make_private(path: &Path) -> OpResult {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|why| {
        OpFault::failed(format!(
            "sessions are kept in {} and it cannot be made: {why}; name another folder with --base-dir PATH or \
             KOMADO_BASE_DIR, or set XDG_DATA_HOME",
            consents::shown(path)
        ))
    })
}

/// Refuses to go on where sessions are kept in files and no folder is known for them. Says when a folder in the working folder
/// is passed over, because it came from elsewhere.
fn check_folder(config: &Config) -> OpResult {
    let keeps_files = config.enabled && config.store_url.is_none();
    match config.base_dir_from {
        BaseDirFrom::Setting | BaseDirFrom::WorkingFolder => return Ok(()),
        BaseDirFrom::Nowhere if keeps_files => {
            return Err(OpFault::usage(
                "no folder is known for the sessions: neither HOME nor XDG_DATA_HOME is an absolute path; set one of them, or \
                 name a folder with --base-dir PATH, KOMADO_BASE_DIR or context_storage.base_dir",
            ));
        }
        // Keys and prices would be read from it.
        BaseDirFrom::Nowhere => return consents::check(&config.base_dir, &Consents::of_user()),
        BaseDirFrom::DataFolder => {}
    }
    let found = working_folder()?.join(CONTEXTS);
    let why = match consents::look(&found, &Consents::of_user()) {
        FolderTrust::Strange => {
            "it was not made by you with komado: `komado admin trust` shows it and gives consent"
        }
        FolderTrust::Link => "it is a link or a file: name a folder with --base-dir PATH",
        FolderTrust::Absent | FolderTrust::Empty | FolderTrust::Own => return Ok(()),
    };
    say(format!(
        "komado: {} was found and is not used: {why}; sessions are in {}",
        consents::shown(&found),
        consents::shown(&config.base_dir)
    ));
    Ok(())
}

/// The folder of sessions that is looked for in the working folder.
pub(crate) const CONTEXTS: &str = "contexts";

/// Settings from flags, environment and file. A file that needs consent is asked about at a terminal.
fn load_config(options: &GlobalOptions, in_folder: InFolder) -> OpResult<Config> {
    let consents = Consents::of_user();
    let config = match read_config(options, in_folder, &consents)? {
        Err(ConfigError::NoConsent(file)) if trust::can_ask(options) && trust::ask_about(&file)? => {
            trust::keep_settings(&file, &consents)?;
            // What is there by now is used only if it is what was shown.
            read_config(options, in_folder, &consents)??
        }
        read => read?,
    };
    config.notes.iter().for_each(|note| say(format!("komado: {}", tamed(note))));
    Ok(config)
}

fn read_config(
    options: &GlobalOptions,
    in_folder: InFolder,
    consents: &Consents,
) -> OpResult<Result<Config, ConfigError>> {
    let mut flags = Vec::new();
    for pair in &options.set {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            OpFault::usage(format!(
                "--set takes KEY=VALUE, not {pair:?}; `komado admin config` lists the keys"
            ))
        })?;
        flags.push((key.to_owned(), value.to_owned()));
    }
    if let Some(dir) = &options.base_dir {
        let dir = dir
            .to_str()
            .ok_or_else(|| OpFault::usage(format!("--base-dir {} is not UTF-8", dir.display())))?;
        flags.push(("--base-dir".to_owned(), dir.to_owned()));
    }
    let names: Vec<String> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (home, xdg) = (path("HOME").filter(|home| home.is_absolute()), path("XDG_CONFIG_HOME"));
    let data = path("XDG_DATA_HOME");
    let cwd = working_folder()?;
    Ok(Config::load(&Sources {
        flags: &flags,
        env: &|name| std::env::var(name).ok(),
        env_names: &names,
        file: options.config.clone(),
        cwd: &cwd,
        home: home.as_deref(),
        xdg: xdg.as_deref(),
        data: data.as_deref(),
        has_contexts: &|path| matches!(consents::look(path, consents), FolderTrust::Own | FolderTrust::Empty),
        in_folder,
        has_consent: &|path, digest| consents.has(ConsentAbout::Settings, path, digest),
    }))
}

/// The working folder.
pub(crate) fn working_folder() -> OpResult<PathBuf> {
    std::env::current_dir().map_err(|why| match why.kind() {
        std::io::ErrorKind::NotFound => OpFault::usage(
            "the working folder is gone: it was removed or moved; change to one that is there, with `cd`",
        ),
        _ => OpFault::usage(format!(
            "the working folder cannot be found: {why}; change to another one, with `cd`"
        )),
    })
}

/// The gateway shares it between threads.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<App>();
};

/// The store of the settings.
fn configured(config: &Config) -> OpResult<OpenedStore> {
    if !config.enabled {
        say("komado: context_storage.enabled is false: nothing is kept after this command");
        return at("memory:", "store.url", config);
    }
    if !is_kept(config) {
        say("komado: the store is memory: what is kept is gone when this process ends");
    }
    let row = config.rows().into_iter().find(|row| row.key == "store.url");
    let by = row.map_or_else(String::new, |row| format!("{}: ", row.origin)) + "store.url";
    at(config.store_url.as_deref().unwrap_or("file:"), &by, config)
}

/// The store at `url`, as `by` has it; `file:` alone is the folder of the settings.
fn at(url: &str, by: &str, config: &Config) -> OpResult<OpenedStore> {
    if url == "memory:" {
        return Ok((Arc::new(MemoryStore::default()), None));
    }
    match url.strip_prefix("file:").map(|path| path.trim_start_matches("//")) {
        Some("") => Ok(open_files(config.base_dir.clone())),
        Some(path) => Ok(open_files(PathBuf::from(path))),
        None => match connect(url, &connecting(config)) {
            Ok(store) => Ok((store, None)),
            Err(Error::BadAddress { why }) => {
                Err(OpFault::usage(format!("{by} cannot be {}: {why}", mask::url(url))))
            }
            Err(other) => Err(other.into()),
        },
    }
}

/// True when the store of the settings outlives this process and can be shared with others.
pub(crate) fn is_kept(config: &Config) -> bool {
    config.enabled && config.store_url.as_deref() != Some("memory:")
}

/// How a server is spoken to, as the settings say.
fn connecting(config: &Config) -> ConnectOptions {
    let StoreConfig { patience, connections, lease, ttl } = config.store;
    ConnectOptions {
        patience,
        connections: connections as usize,
        lease,
        ttl,
        ..ConnectOptions::new(holder())
    }
}

/// This process, for those who find something held by it.
pub(crate) fn holder() -> Holder {
    Holder {
        pid: std::process::id(),
        host: hostname(),
        program: PROGRAM.get().cloned().unwrap_or_default(),
        since: KomadoClock.now(),
    }
}

fn open_files(base: PathBuf) -> OpenedStore {
    let bar: OnceLock<indicatif::ProgressBar> = OnceLock::new();
    let progress = move |done: u64, total: u64| {
        let bar = bar.get_or_init(|| cli_output::bar("reading the journal", total));
        bar.set_position(done);
        if done >= total {
            bar.finish_and_clear();
        }
    };
    let files = Arc::new(FileStore::new(&base, holder()).with_progress(Arc::new(progress)));
    (Arc::clone(&files) as Arc<dyn Store>, Some(files))
}

/// The one clock of the program: the system's, in UTC with microseconds.
pub(crate) struct KomadoClock;

impl Clock for KomadoClock {
    fn now(&self) -> String {
        komado_ops::clock::stamp(jiff::Timestamp::now())
    }
}
