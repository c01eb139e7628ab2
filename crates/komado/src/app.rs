//! What every verb needs: settings, store, engine, paper.

use crate::clock::SystemClock;
use crate::fault::{Fault, Outcome};
use crate::paper::{Paper, say};
use crate::progress::Shown;
use crate::render::Render;
use crate::server::api;
use crate::stores;
use crate::trust::{About, Consents, sessions};
use crate::verb::trust;
use komado_config::{Config, ConfigError, InFolder, Sources};
use komado_core::SessionId;
use komado_core::notation::tamed;
use komado_engine::Engine;
use komado_ops::{BaseFolder, Context, Operation};
use komado_store::{FileStore, MemoryStore};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

/// Options that every verb takes.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Print JSON for programs instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Folder that holds the sessions
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) base_dir: Option<PathBuf>,
    /// Settings file; left out: ./komado.yaml, once you trust it, or your own in ~/.config/komado
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A setting for this run, such as context_storage.cleanup_days=7
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// What operations run in, and where their results are printed.
pub(crate) struct App {
    pub(crate) context: Context,
    pub(crate) paper: Paper,
    pub(crate) progress: Shown,
}

impl Deref for App {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl App {
    pub(crate) fn new(options: &Options) -> Outcome<Self> {
        let config = load_config(options, InFolder::Used)?;
        config.notes.iter().for_each(|note| say(format!("komado: {}", tamed(note))));
        if config.finds_base_dir() {
            check_sessions(&config, options)?;
        }
        let (store, files) = stores::configured(&config)?;
        let engine = Engine::new(store, Arc::new(SystemClock));
        Ok(Self::over(engine, config, files, Paper::new(options.json)))
    }

    /// For a verb that looks into no store: one that is away does not matter to it.
    pub(crate) fn storeless(options: &Options, in_folder: InFolder) -> Outcome<Self> {
        let config = load_config(options, in_folder)?;
        config.notes.iter().for_each(|note| say(format!("komado: {}", tamed(note))));
        let engine = Engine::new(Arc::new(MemoryStore::default()), Arc::new(SystemClock));
        Ok(Self::over(engine, config, None, Paper::new(options.json)))
    }

    /// Over an engine.
    pub(crate) fn over(engine: Engine, config: Config, files: Option<Arc<FileStore>>, paper: Paper) -> Self {
        let note = |text: &str| say(format!("komado: {text}"));
        let progress = Shown::default();
        let shown = progress.clone();
        let folder = Folder { path: config.base_dir.clone(), is_found: config.finds_base_dir() };
        let config = Arc::new(config);
        let context = Context::new(engine, Arc::clone(&config), files, note)
            .beside(Arc::new(folder))
            .opening(move |url, by| stores::at(url, by, &config))
            .showing(move |at| {
                shown.show(at);
                Ok(())
            });
        Self { context, paper, progress }
    }

    /// Runs an operation, and shows how far it has come.
    pub(crate) fn run<O: Operation>(&self, operation: O) -> Outcome<O::Output> {
        let output = self.context.run(operation);
        self.progress.clear();
        output
    }

    /// Runs an operation and prints its result.
    pub(crate) fn show<O: Operation<Output: Render>>(&mut self, operation: O) -> Outcome {
        let output = self.run(operation)?;
        self.print(&output)?;
        output.fault()
    }

    /// Prints a result.
    pub(crate) fn print(&mut self, output: &impl Render) -> Outcome {
        match self.paper.json {
            true => output.json(&mut self.paper),
            false => output.text(&mut self.paper),
        }
    }

    /// Tells what the store had to put right on the way.
    pub(crate) fn tell_findings(&self) {
        for finding in self.files.iter().flat_map(|files| files.take_findings()) {
            say(format!("komado: {finding}"));
        }
    }
}

/// The base folder, beside what a store keeps in it.
struct Folder {
    path: PathBuf,
    /// True for the usual one, which nothing names.
    is_found: bool,
}

impl BaseFolder for Folder {
    /// Makes the usual folder the user's own. One that was named is theirs.
    fn claim(&self) -> Outcome {
        match self.is_found {
            true => sessions::claim(&self.path, &Consents::of_user()),
            false => Ok(()),
        }
    }

    fn forget_session(&self, id: &SessionId) -> Outcome {
        api::forget_session(&self.path, id)
    }
}

/// Refuses a folder of sessions that came with the working folder; at a terminal the user is asked.
fn check_sessions(config: &Config, options: &Options) -> Outcome {
    let consents = Consents::of_user();
    let is_strange = sessions::look(&config.base_dir, &consents) == sessions::Found::Strange;
    if is_strange && trust::can_ask(options) && trust::ask_about_sessions(&config.base_dir)? {
        return trust::keep_sessions(&config.base_dir, &consents);
    }
    sessions::check(&config.base_dir, &consents)
}

/// Settings from flags, environment and file. A file that needs consent is asked about at a terminal.
fn load_config(options: &Options, in_folder: InFolder) -> Outcome<Config> {
    let consents = Consents::of_user();
    match read_config(options, in_folder, &consents)? {
        Err(ConfigError::NoConsent(file)) if trust::can_ask(options) && trust::ask_about(&file)? => {
            trust::keep_settings(&file, &consents)?;
            // What is there by now is used only if it is what was shown.
            Ok(read_config(options, in_folder, &consents)??)
        }
        read => Ok(read?),
    }
}

fn read_config(
    options: &Options,
    in_folder: InFolder,
    consents: &Consents,
) -> Outcome<Result<Config, ConfigError>> {
    let mut flags = Vec::new();
    for pair in &options.set {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            Fault::usage(format!("--set takes KEY=VALUE, not {pair:?}; `komado config` lists the keys"))
        })?;
        flags.push((key.to_owned(), value.to_owned()));
    }
    if let Some(dir) = &options.base_dir {
        let dir =
            dir.to_str().ok_or_else(|| Fault::usage(format!("--base-dir {} is not UTF-8", dir.display())))?;
        flags.push(("--base-dir".to_owned(), dir.to_owned()));
    }
    let names: Vec<String> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (home, xdg) = (path("HOME").filter(|home| home.is_absolute()), path("XDG_CONFIG_HOME"));
    let cwd = working_folder()?;
    Ok(Config::load(&Sources {
        flags: &flags,
        env: &|name| std::env::var(name).ok(),
        env_names: &names,
        file: options.config.clone(),
        cwd: &cwd,
        home: home.as_deref(),
        xdg: xdg.as_deref(),
        in_folder,
        has_consent: &|path, digest| consents.has(About::Settings, path, digest),
    }))
}

/// The working folder.
pub(crate) fn working_folder() -> Outcome<PathBuf> {
    std::env::current_dir().map_err(|why| match why.kind() {
        std::io::ErrorKind::NotFound => Fault::usage(
            "the working folder is gone: it was removed or moved; change to one that is there, with `cd`",
        ),
        _ => Fault::usage(format!(
            "the working folder cannot be found: {why}; change to another one, with `cd`"
        )),
    })
}

pub(crate) use komado_ops::session::hostname;

/// The gateway shares it between threads.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<App>();
};
