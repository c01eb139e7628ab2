//! The folder measured in, and the sessions in it.

use super::machine::free_bytes;
use crate::clock::BenchClock;
use crate::error::{Error, Result};
use crate::output::number;
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{Meter, SessionId};
use komado_engine::{Clock, Engine};
use komado_store::{FileStore, Holder, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Tokens of the window that sessions are measured with.
pub(super) const WINDOW: u32 = 128_000;

/// A folder that goes when this does.
pub(super) struct BenchFolder {
    folder: TempDir,
    pub(super) store: Arc<FileStore>,
    pub(super) engine: Engine,
}

impl BenchFolder {
    /// In `dir`, or in the working folder: there the disk is the one that sessions will be on, which is seldom true
    /// of the system's own place for such folders. Refused where `need` bytes are not free.
    pub(super) fn new(dir: Option<&Path>, need: u64) -> Result<Self> {
        let dir = match dir {
            Some(dir) => dir.to_owned(),
            None => std::env::current_dir().map_err(|why| {
                Error::usage(format!(
                    "the working folder cannot be used: {why}; change to another one with `cd`"
                ))
            })?,
        };
        let wrong = |e: std::io::Error| {
            Error::failed(format!("cannot measure in {}: {e}; --dir names another folder", dir.display()))
        };
        let folder = tempfile::Builder::new().prefix(".komado-bench-").tempdir_in(&dir).map_err(wrong)?;
        let free = free_bytes(folder.path())?;
        if free < need {
            let (free, need) = (number(free / 1_000_000), number(need / 1_000_000));
            let why = format!(
                "this needs about {need} MB, and {} has {free} MB free; --dir names another folder",
                dir.display()
            );
            return Err(Error::failed(why));
        }
        let (store, engine) = opened(&folder.path().join("contexts"));
        Ok(Self { folder, store, engine })
    }

    /// A file or folder in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The base folder of the sessions.
    pub(super) fn base(&self) -> &Path {
        self.store.base_dir()
    }

    /// Makes a session.
    pub(super) fn session(&self, name: &str, meter: Meter) -> Result<SessionId> {
        self.session_in(&self.engine, name, meter)
    }

    /// The same in any store.
    pub(super) fn session_in(&self, engine: &Engine, name: &str, meter: Meter) -> Result<SessionId> {
        let id = SessionId::new(name)?;
        engine.create(&Meta {
            uuid: id.to_string(),
            task_key: TaskKey::local(&id),
            created_at: engine.now(),
            process_id: std::process::id(),
            hostname: hostname(),
            config: MetaConfig {
                context_length: Some(WINDOW),
                meter: meter.name().to_owned(),
                ..MetaConfig::default()
            },
            user: None,
            queued: false,
        })?;
        Ok(id)
    }
}

/// The sessions in the base folder `base`.
pub(super) fn opened(base: &Path) -> (Arc<FileStore>, Engine) {
    let store = Arc::new(FileStore::new(base, holder()));
    let engine = Engine::new(Arc::clone(&store) as Arc<dyn Store>, Arc::new(BenchClock));
    (store, engine)
}

/// This machine's name.
fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// What others are told while a bench writes.
pub(super) fn holder() -> Holder {
    Holder {
        pid: std::process::id(),
        host: hostname(),
        program: "komado-bench".into(),
        since: BenchClock.now(),
    }
}

/// The meter called `name`.
pub(super) fn meter(name: &str) -> Result<Meter, String> {
    Meter::named(name)
        .ok_or_else(|| format!("unknown meter; known are {}", Meter::ALL.map(Meter::name).join(", ")))
}
