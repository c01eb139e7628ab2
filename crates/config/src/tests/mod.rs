//! Does the configuration keep its promises?
//!
//! Each test is a sentence, and runs in a world of its own: a temporary folder, and an environment that is a
//! map.

mod consent;
mod environment;
mod expansion;
mod file;
mod precedence;
mod secrets;
mod settings;
mod suggestions;
mod tasks;
mod threads;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::origin::SettingRow;
use super::{Config, ConfigError, InFolder, Sources, Unconsented};

/// A sealed world in which to load settings.
struct World {
    folder: TempDir,
    env: BTreeMap<String, String>,
    flags: Vec<(String, String)>,
    config: Option<PathBuf>,
    xdg: Option<PathBuf>,
    data: Option<PathBuf>,
    /// Whether `contexts` of the working folder may be used.
    contexts: bool,
    home: Option<PathBuf>,
    in_folder: InFolder,
    /// Whether the user consented to whatever is asked about.
    consents: bool,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Some(folder.path().join("home"));
        Self {
            folder,
            env: BTreeMap::new(),
            flags: Vec::new(),
            config: None,
            xdg: None,
            data: None,
            contexts: false,
            home,
            in_folder: InFolder::Used,
            consents: true,
        }
    }

    /// A world whose working folder holds a `komado.yaml`.
    fn with_file(yaml: &str) -> Self {
        Self::new().file("work/komado.yaml", yaml)
    }

    fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    fn flag(mut self, key: &str, value: &str) -> Self {
        self.flags.push((key.to_owned(), value.to_owned()));
        self
    }

    fn config(mut self, path: impl Into<PathBuf>) -> Self {
        self.config = Some(path.into());
        self
    }

    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(path)
    }

    fn try_load(&self) -> Result<Config, ConfigError> {
        let names: Vec<String> = self.env.keys().cloned().collect();
        Config::load(&Sources {
            flags: &self.flags,
            env: &|name| self.env.get(name).cloned(),
            env_names: &names,
            file: self.config.clone(),
            cwd: &self.path("work"),
            home: self.home.as_deref(),
            xdg: self.xdg.as_deref(),
            data: self.data.as_deref(),
            has_contexts: &|_| self.contexts,
            in_folder: self.in_folder,
            has_consent: &|_, _| self.consents,
        })
    }

    #[track_caller]
    fn load(&self) -> Config {
        self.try_load().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The message of the error that loading must give.
    #[track_caller]
    fn error(&self) -> String {
        self.try_load().expect_err("an error").to_string()
    }
}

#[track_caller]
fn row(config: &Config, key: &str) -> SettingRow {
    config.rows().into_iter().find(|row| row.key == key).unwrap_or_else(|| panic!("no row {key}"))
}

/// A row's value and origin as the listing shows them.
#[track_caller]
fn line(config: &Config, key: &str) -> String {
    let row = row(config, key);
    format!("{} ({})", row.value, row.origin)
}
