//! Where conversations are kept, and how they are found.
//!
//! The time and the names that a program does not bring itself are made here. They are the only ones in the library, and both
//! can be replaced: see [`Builder::clock`] and [`Builder::ids`].

use crate::error::{Error, ErrorKind, Result};
use crate::iter::Sessions;
use crate::session::SessionBuilder;
use komado_core::budget::{Policy, Preset};
use komado_engine::recall::{RecallHit, RecallQuery, RecallScope};
use komado_engine::{Clock, Engine};
use komado_store::{FileStore, Holder, MemoryStore, Store};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::sync::Arc;

/// A place where conversations are kept: a folder, this process's memory, or a server.
///
/// Clones share the place.
#[derive(Clone)]
pub struct Komado {
    pub(crate) engine: Engine,
    pub(crate) policy: Policy,
    ids: Arc<dyn Fn() -> String + Send + Sync>,
}

/// Chooses the clock, the ids and the policy before the place is opened.
pub struct Builder {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Fn() -> String + Send + Sync>,
    policy: Policy,
}

impl Komado {
    /// Conversations in a folder, which is made with the first of them.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        Self::builder().open(folder)
    }

    /// Conversations in memory; they end with the process.
    pub fn in_memory() -> Self {
        Self::builder().in_memory()
    }

    /// Conversations at an address: `file:FOLDER`, `memory:`, and with the features of the same names
    /// `postgres://…` and `redis://…`.
    pub fn connect(url: &str) -> Result<Self> {
        Self::builder().connect(url)
    }

    /// Chooses the clock, the ids and the policy first.
    pub fn builder() -> Builder {
        Builder {
            clock: Arc::new(ClockFn(system_time)),
            ids: Arc::new(random_id),
            policy: Preset::default().policy(),
        }
    }

    /// A session by its name. It is made when it is opened for the first time.
    pub fn session(&self, name: &str) -> SessionBuilder<'_> {
        SessionBuilder::new(self, name.to_owned())
    }

    /// A session with a name of its own.
    pub fn new_session(&self) -> SessionBuilder<'_> {
        SessionBuilder::new(self, (self.ids)())
    }

    /// Every session, in the order they were made.
    ///
    /// ```
    /// # fn main() -> komado_sdk::Result<()> {
    /// let komado = komado_sdk::Komado::in_memory();
    /// komado.session("licences").open()?;
    /// for session in komado.sessions() {
    ///     assert_eq!(session?.meta.uuid, "licences");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions::new(self.engine.store())
    }

    /// Searches everything that was said in all sessions, seen by a model or not; the best result first.
    pub fn recall(&self, query: &str) -> Result<std::vec::IntoIter<RecallHit>> {
        self.recall_in(&RecallScope::All, query)
    }

    pub(crate) fn recall_in(
        &self,
        scope: &RecallScope,
        query: &str,
    ) -> Result<std::vec::IntoIter<RecallHit>> {
        Ok(self.engine.recall(scope, &RecallQuery::new(query))?.into_iter())
    }

    /// The engine beneath, for everything that this crate does not show.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}

impl Builder {
    /// Tells the time by `clock`: RFC 3339 in UTC with microseconds, such as `2026-01-01T12:00:00.000000Z`.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(ClockFn(clock));
        self
    }

    /// Names new sessions by `ids`.
    #[must_use]
    pub fn ids(mut self, ids: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// Keeps windows by `policy`: when something leaves a view, and what.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Conversations in a folder, which is made with the first of them.
    pub fn open(self, folder: impl AsRef<Path>) -> Result<Komado> {
        let folder = folder.as_ref();
        if folder.is_file() {
            let text = format!("{} is a file, not a folder; name a folder", folder.display());
            return Err(Error::new(ErrorKind::Setting, text));
        }
        let store = FileStore::new(folder, holder(self.clock.now()));
        Ok(self.over(Arc::new(store)))
    }

    /// Conversations in memory; they end with the process.
    pub fn in_memory(self) -> Komado {
        self.over(Arc::new(MemoryStore::default()))
    }

    /// Conversations at an address: see [`Komado::connect`].
    pub fn connect(self, url: &str) -> Result<Komado> {
        if url == "memory:" {
            return Ok(self.in_memory());
        }
        match url.strip_prefix("file:").map(|path| path.trim_start_matches("//")) {
            Some("") => Err(Error::new(
                ErrorKind::Setting,
                format!("{url:?} names no folder; write file:FOLDER, such as file:contexts"),
            )),
            Some(folder) => self.open(folder),
            None => {
                let how = komado_store::ConnectOptions::new(holder(self.clock.now()));
                Ok(self.over(komado_store::connect(url, &how)?))
            }
        }
    }

    /// Conversations in a store of the program's own.
    pub fn over(self, store: Arc<dyn Store>) -> Komado {
        let Self { clock, ids, policy } = self;
        Komado { engine: Engine::new(store, clock), policy, ids }
    }
}

/// Tells the time by calling a function.
struct ClockFn<F>(F);

impl<F: Fn() -> String + Send + Sync> Clock for ClockFn<F> {
    fn now(&self) -> String {
        (self.0)()
    }
}

/// Now, by the system's clock: RFC 3339 in UTC with microseconds.
fn system_time() -> String {
    format!("{:.6}", jiff::Timestamp::now())
}

/// A random UUID.
fn random_id() -> String {
    // Each state has keys of its own, which come from the system's randomness.
    let random = || RandomState::new().build_hasher().finish();
    let (high, low) = (random(), random());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0x0fff,
        (low >> 48) & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

/// The machine's name.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// What other processes are told while this one writes.
fn holder(since: String) -> Holder {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_name());
    let program = program.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    Holder { pid: std::process::id(), host: host(), program, since }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_and_no_two_are_the_same() {
        let (one, other) = (random_id(), random_id());
        assert_ne!(one, other);
        assert_eq!(one.len(), 36, "{one}");
        assert_eq!(&one[14..15], "4", "{one}");
        assert!(matches!(&one[19..20], "8" | "9" | "a" | "b"), "{one}");
    }

    #[test]
    fn times_have_one_length_so_that_they_sort_as_text() {
        let time = system_time();
        assert_eq!((time.len(), &time[26..]), (27, "Z"), "{time}");
    }
}
