//! A store by its address: the one of the settings, or any other that a verb is given.

use crate::app::hostname;
use crate::clock::SystemClock;
use crate::fault::{Fault, Outcome};
use crate::paper::say;
use crate::progress;
use komado_config::{Config, StoreWishes, mask};
use komado_engine::Clock;
use komado_ops::OpenedStore;
use komado_store::{Connecting, Error, FileStore, Holder, MemoryStore, Store, connect};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The store of the settings.
pub(crate) fn configured(config: &Config) -> Outcome<OpenedStore> {
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
pub(crate) fn at(url: &str, by: &str, config: &Config) -> Outcome<OpenedStore> {
    if url == "memory:" {
        return Ok((Arc::new(MemoryStore::default()), None));
    }
    match url.strip_prefix("file:").map(|path| path.trim_start_matches("//")) {
        Some("") => Ok(open_files(config.base_dir.clone())),
        Some(path) => Ok(open_files(PathBuf::from(path))),
        None => match connect(url, &connecting(config)) {
            Ok(store) => Ok((store, None)),
            Err(Error::BadAddress { why }) => {
                Err(Fault::usage(format!("{by} cannot be {}: {why}", mask::url(url))))
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
fn connecting(config: &Config) -> Connecting {
    let StoreWishes { patience, connections, lease, ttl } = config.store;
    Connecting { patience, connections: connections as usize, lease, ttl, ..Connecting::new(holder()) }
}

/// This process, for those who find something held by it.
pub(crate) fn holder() -> Holder {
    Holder { pid: std::process::id(), host: hostname(), program: program(), since: SystemClock.now() }
}

fn open_files(base: PathBuf) -> OpenedStore {
    let bar: OnceLock<indicatif::ProgressBar> = OnceLock::new();
    let progress = move |done: u64, total: u64| {
        let bar = bar.get_or_init(|| progress::bar("reading the journal", total));
        bar.set_position(done);
        if done >= total {
            bar.finish_and_clear();
        }
    };
    let files = Arc::new(FileStore::new(&base, holder()).with_progress(Arc::new(progress)));
    (Arc::clone(&files) as Arc<dyn Store>, Some(files))
}

/// The binary and its verb, for whoever finds the session held.
fn program() -> String {
    let words = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    let mut words = words.filter(|arg| !arg.starts_with('-'));
    [words.next(), words.next()].iter().flatten().map(|arg| short(arg)).collect::<Vec<_>>().join(" ")
}

fn short(arg: &str) -> String {
    arg.rsplit('/').next().unwrap_or(arg).chars().take(40).collect()
}
