//! What every verb needs: settings, store, engine, paper.

use crate::clock::SystemClock;
use crate::config::{Config, ConfigError, InFolder, Sources};
use crate::fault::{Fault, Outcome};
use crate::paper::{Paper, say};
use crate::stores;
use crate::trust::{About, Consents, sessions};
use crate::verb::trust;
use komado_core::budget::{Budget, Preset};
use komado_core::clip::Limits;
use komado_core::notation::tamed;
use komado_core::session::{MetaConfig, Session};
use komado_core::{Address, SessionId};
use komado_engine::engine::Found;
use komado_engine::{Engine, Thread};
use komado_store::{FileStore, MemoryStore, Mode};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

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

/// Settings, store, engine, paper.
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) engine: Engine,
    pub(crate) paper: Paper,
    /// The file store, when that is the one in use.
    pub(crate) files: Option<Arc<FileStore>>,
    /// The thread that was last opened to be changed, for whoever has to say how it is opened again.
    changing: Mutex<Option<Found>>,
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
        let paper = Paper::new(options.json);
        Ok(Self { config, engine, paper, files, changing: Mutex::default() })
    }

    /// For a verb that looks into no store: one that is away does not matter to it.
    pub(crate) fn storeless(options: &Options, in_folder: InFolder) -> Outcome<Self> {
        let config = load_config(options, in_folder)?;
        config.notes.iter().for_each(|note| say(format!("komado: {}", tamed(note))));
        let engine = Engine::new(Arc::new(MemoryStore::default()), Arc::new(SystemClock));
        Ok(Self { config, engine, paper: Paper::new(options.json), files: None, changing: Mutex::default() })
    }

    /// Over an engine of a test's own.
    #[cfg(test)]
    pub(crate) fn over(engine: Engine, config: Config) -> Self {
        Self { config, engine, paper: Paper::new(false), files: None, changing: Mutex::default() }
    }

    /// The same, with other paper.
    pub(crate) fn onto(&self, paper: Paper) -> Self {
        Self {
            config: self.config.clone(),
            engine: self.engine.clone(),
            paper,
            files: self.files.clone(),
            changing: Mutex::default(),
        }
    }

    /// The same for threads of its own, which serve many at once.
    pub(crate) fn shared(&self) -> Arc<Self> {
        Arc::new(self.onto(Paper::new(self.paper.json)))
    }

    /// The same over another engine on the same store.
    pub(crate) fn with_engine(&self, engine: Engine) -> Self {
        Self { engine, ..self.onto(Paper::new(self.paper.json)) }
    }

    /// The same for one call through another door: what its verbs print is kept.
    pub(crate) fn desk(&self) -> Self {
        self.onto(Paper::kept())
    }

    /// Makes the usual folder of sessions the user's own before something is put into it. One that was named is theirs.
    pub(crate) fn claim(&self) -> Outcome {
        match self.config.finds_base_dir() {
            true => sessions::claim(&self.config.base_dir, &Consents::of_user()),
            false => Ok(()),
        }
    }

    /// What an address leads to.
    pub(crate) fn find(&self, address: &Address) -> Outcome<Found> {
        Ok(self.engine.find(address)?)
    }

    /// Opens the thread an address leads to, and tells what had to be put right.
    pub(crate) fn open(&self, found: &Found, mode: Mode) -> Outcome<Thread<'_>> {
        if mode == Mode::Write {
            self.tell_recovered(&found.session);
        }
        let mut thread = self.engine.open(&found.session, &found.thread, mode)?;
        if mode != Mode::Read {
            *self.changing.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.clone());
            let limits = self.limits(&thread)?;
            thread = thread.clipping(limits);
        }
        for note in thread.notes() {
            say(format!("komado: {}/{}: {note}", found.session, found.thread));
        }
        Ok(thread)
    }

    /// Puts right the child threads that a process left when it ended, and tells. What cannot be put right now is told by
    /// whoever opens the session.
    fn tell_recovered(&self, id: &SessionId) {
        for recovered in self.engine.recover(id).unwrap_or_default() {
            let name = format!("{id}/{}", recovered.thread);
            let why = match recovered.held_by {
                Some(_) => format!("the process that worked in {name} ended"),
                None => format!("the thread above {name} ended"),
            };
            say(format!("komado: {why}; the thread is aborted, with what can be told of it"));
        }
    }

    /// Limits of an output on arrival: as the settings say, and less in a small window.
    pub(crate) fn limits(&self, thread: &Thread<'_>) -> Outcome<Option<Limits>> {
        let config = self.session(thread.session())?.meta.config;
        let clip = self.config.clip();
        let Some(window) = self.own_window(&config, None) else { return Ok(clip) };
        Ok(match self.share_budget(thread, None, window, &config) {
            Ok(budget) => clip.map(|limits| budget.limits(&limits)),
            // A share without room is told where something is to be said in it; nothing is clipped by it.
            Err(_) => clip,
        })
    }

    /// The budget of a thread of a session made with `own`: of its share, where it was spawned.
    pub(crate) fn share_budget(
        &self,
        thread: &Thread<'_>,
        preset: Option<Preset>,
        window: u32,
        own: &MetaConfig,
    ) -> Outcome<Budget> {
        let names: Vec<&str> =
            own.model.as_deref().into_iter().chain([self.config.provider.as_str()]).collect();
        Ok(thread.budget(self.config.policy(preset), u64::from(window), &names)?)
    }

    /// What went wrong; where it is that a thread was closed, with the command that opens it again.
    pub(crate) fn explained(&self, fault: Fault) -> Fault {
        match &*self.changing.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(found) if fault.is_closed() => {
                let verb = if found.thread.is_root() { "resume" } else { "thread resume" };
                fault.and(format!("`komado {verb} {}` opens it again", crate::verb::name(found)))
            }
            _ => fault,
        }
    }

    /// What an address leads to, for a verb that changes what is now: a moment in the past cannot be meant.
    pub(crate) fn find_now(&self, address: &Address) -> Outcome<Found> {
        let found = self.find(address)?;
        if let Some(seq) = found.seq {
            return Err(Fault::usage(format!(
                "this changes what is now: leave out @{seq}, or `komado rewind` there first"
            )));
        }
        Ok(found)
    }

    /// A session's row.
    pub(crate) fn session(&self, id: &SessionId) -> Outcome<Session> {
        Ok(self.engine.session(id)?)
    }

    /// Tells what the store had to put right on the way.
    pub(crate) fn tell_findings(&self) {
        for finding in self.files.iter().flat_map(|files| files.take_findings()) {
            say(format!("komado: {finding}"));
        }
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

/// This machine's name.
pub(crate) fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The gateway shares it between threads.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<App>();
};
