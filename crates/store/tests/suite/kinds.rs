//! The stores that the suite is run on, and how each is opened anew.

use crate::servers::{self, Server};
use crate::suite::retried::Reopen;
use komado_core::SessionId;
use komado_store::{
    ConnectOptions, FileStore, Holder, Lessons, MemoryStore, PostgresStore, Queue, RedisStore, SessionQuery,
    Store,
};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use tempfile::TempDir;

/// A store of one kind, and how to open it anew.
pub(crate) trait Kind {
    /// The store.
    type Store: Store + 'static;
    /// How many calls are made to fail, each in a run of its own; of more calls every few.
    const FAILING: u64 = 150;
    /// An empty one.
    fn empty() -> Self;
    /// An empty one that costs little.
    fn light() -> Self;
    /// Opens it.
    fn open(&self) -> Self::Store;
    /// A way to open it again.
    fn reopen(&self) -> Reopen;
}

pub(crate) struct Memory(MemoryStore);

impl Kind for Memory {
    type Store = MemoryStore;

    fn empty() -> Self {
        Self(MemoryStore::default())
    }

    fn light() -> Self {
        Self::empty()
    }

    fn open(&self) -> MemoryStore {
        self.0.clone()
    }

    fn reopen(&self) -> Reopen {
        let store = self.0.clone();
        Box::new(move || Box::new(store.clone()))
    }
}

pub(crate) struct Files(TempDir);

fn holder() -> Holder {
    let (host, program, since) = ("here".into(), "the suite".into(), "now".into());
    Holder { pid: std::process::id(), host, program, since }
}

fn files(path: &Path) -> FileStore {
    FileStore::new(path, holder())
}

impl Kind for Files {
    type Store = FileStore;

    fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// In memory where there is such a folder.
    fn light() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn open(&self) -> FileStore {
        files(self.0.path())
    }

    fn reopen(&self) -> Reopen {
        let path = self.0.path().to_owned();
        Box::new(move || Box::new(files(&path)))
    }
}

/// A prefix of its own on a server that all cases share. Nothing here ends the server, so nothing needs its disk.
pub(crate) struct Redis(String);

impl Kind for Redis {
    type Store = RedisStore;
    const FAILING: u64 = 20;

    fn empty() -> Self {
        static SERVER: OnceLock<Server> = OnceLock::new();
        static CASES: AtomicU32 = AtomicU32::new(0);
        let server = SERVER.get_or_init(|| Server::start(servers::Kind::Redis, &["--appendfsync", "no"]));
        Self(format!("{}?prefix=case{}", server.url, CASES.fetch_add(1, Ordering::SeqCst)))
    }

    fn light() -> Self {
        Self::empty()
    }

    fn open(&self) -> RedisStore {
        RedisStore::open(&self.0, &ConnectOptions::new(holder())).unwrap()
    }

    fn reopen(&self) -> Reopen {
        let url = self.0.clone();
        Box::new(move || Box::new(RedisStore::open(&url, &ConnectOptions::new(holder())).unwrap()))
    }
}

/// A schema of its own on one server; whoever is done with it leaves it empty for the next.
pub(crate) struct Postgres {
    store: PostgresStore,
    /// As another process has it.
    other: PostgresStore,
}

static LEFT: Mutex<Vec<(PostgresStore, PostgresStore)>> = Mutex::new(Vec::new());

impl Postgres {
    fn connect() -> (PostgresStore, PostgresStore) {
        static SERVER: OnceLock<Server> = OnceLock::new();
        static SCHEMAS: AtomicUsize = AtomicUsize::new(0);
        // What outlives a power cut is shown elsewhere.
        let server = SERVER.get_or_init(|| Server::start(servers::Kind::Postgres, &["-c", "fsync=off"]));
        let url = format!("{}?schema=case_{}", server.url, SCHEMAS.fetch_add(1, Ordering::SeqCst));
        let how = ConnectOptions { connections: 4, ..ConnectOptions::new(holder()) };
        let open = || PostgresStore::open(&url, &how).unwrap();
        (open(), open())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for session in self.store.sessions(&SessionQuery::default()).unwrap() {
            self.store.remove(&SessionId::new(session.meta.uuid).unwrap()).unwrap();
        }
        for (about, _) in self.store.lessons().unwrap() {
            self.store.forget(&about).unwrap();
        }
        for queued in self.store.jobs(None, 0).unwrap() {
            self.store.withdraw(&queued.job.session).unwrap();
        }
        LEFT.lock().unwrap().push((self.store.clone(), self.other.clone()));
    }
}

impl Kind for Postgres {
    type Store = PostgresStore;
    const FAILING: u64 = 20;

    fn empty() -> Self {
        let left = LEFT.lock().unwrap().pop();
        let (store, other) = left.unwrap_or_else(Self::connect);
        Self { store, other }
    }

    fn light() -> Self {
        Self::empty()
    }

    fn open(&self) -> PostgresStore {
        self.store.clone()
    }

    fn reopen(&self) -> Reopen {
        let other = self.other.clone();
        Box::new(move || Box::new(other.clone()))
    }
}
