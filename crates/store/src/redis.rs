//! Sessions in Redis: one server, a Sentinel's or a Cluster.
//!
//! # What is where
//!
//! With the prefix `komado`, a session `s` is up to five keys that share a hash tag, so that one script may touch all of
//! them on a cluster too. The first decides whether the session is there at all:
//!
//! | key | fields |
//! |---|---|
//! | `{komado:s}` (hash) | `session` the row as JSON, `status`, `born`; `threads` their number, `threads:N` a name, `thread:T` the header, `last:T` the last entry; `T@7` the line of entry 7, `T#7` its head; `lease:token`, `lease:until` (µs), `lease:claim`, `lease:holder` |
//! | `{komado:s}:tree` (hash) | `branch:T`, `parent:T`, `told:T`, `mail:T` |
//! | `{komado:s}:outputs` (hash) | `DIGEST` its bytes, lines and chunks; `DIGEST:0` … the chunks of 256 KiB |
//! | `{komado:s}:shelf` (hash), `{komado:s}:sheets` (sorted set) | the index of words |
//!
//! So `redis-cli HGET '{komado:s}' 'root@7'` shows an entry. What is not one session's is found under `{komado}:sessions` and
//! `{komado}:users` (sorted sets by time and id), `{komado}:lessons`, `{komado:spot:…}`, `{komado}:spots:s` and
//! `{komado:queue}:…`; `komado:news` is the channel that tells what happens. These are indexes: they may name a session
//! that is no more, never the other way round, since a session is put into them before it is made, again after that, and
//! whenever it is opened to write. Whoever finds a name without a session takes it out, and puts it
//! back when the session was made meanwhile.
//!
//! # Time to live
//!
//! Every use of a session puts off its end, by one script for all its keys and to the same millisecond; so at any instant
//! it is there as a whole or gone as a whole. Keys that are not a session's have no end.
//!
//! # What an acknowledged entry outlives
//!
//! | server | its process ends | its machine ends | failover |
//! |---|---|---|---|
//! | `appendonly yes`, `appendfsync always` | kept | kept | what was not copied yet is lost |
//! | `appendonly yes`, `appendfsync everysec` | kept | the last second may be lost | the same |
//! | `appendonly yes`, `appendfsync no` | kept | the last half minute or so may be lost | the same |
//! | only snapshots (`save`) | everything since the last one is lost | the same | the same |
//! | neither | everything is lost | the same | the same |
//! | any of them and `?wait=N` | as above | as above | kept where N replicas hold it |

mod address;
mod ask;
mod blobs;
mod journal;
mod keys;
mod lease;
mod lessons;
mod link;
mod news;
mod queue;
mod rows;
mod scripts;
mod sessions;
mod shelf;
mod spots;
mod stacks;
mod told;
mod tree;
mod vitals;

use crate::connect::Connecting;
use crate::{Holder, Result, Store};
use address::Address;
use ask::{Ask, Lua};
use keys::Keys;
use komado_core::SessionId;
use lease::Leases;
use link::Link;
use news::Newsroom;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use told::Said;
use vitals::Promise;

/// Opens the store at `url`.
pub fn open(url: &str, how: &Connecting) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(RedisStore::open(url, how)?))
}

/// Sessions in Redis. Clones share the connection.
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

struct Inner {
    link: Arc<Link>,
    keys: Keys,
    holder: Holder,
    lease: Duration,
    ttl: Option<Duration>,
    /// Who we are among all who ever opened this store.
    claim: String,
    nonces: AtomicU64,
    leases: Leases,
    news: Newsroom,
    promise: Promise,
    /// Sessions that were found to have ended by themselves.
    expired: AtomicU64,
    /// How far the sessions, and those of users, were last looked over.
    looked: std::sync::Mutex<[String; 2]>,
}

impl RedisStore {
    /// Opens the store at `url`; an error when there is none.
    pub fn open(url: &str, how: &Connecting) -> Result<Self> {
        let address = Address::parse(url)?;
        let keys = Keys::new(&address.prefix);
        let link = Link::new(address, how.patience)?;
        let promise = vitals::promise(&link)?;
        let news = Newsroom::new(keys.news());
        let (holder, lease, ttl) = (how.holder.clone(), how.lease, how.ttl);
        let (nonces, leases, expired) = (AtomicU64::default(), Leases::default(), AtomicU64::default());
        let (claim, looked) = (claim(), std::sync::Mutex::default());
        let inner =
            Inner { link, keys, holder, lease, ttl, claim, nonces, leases, news, promise, expired, looked };
        Ok(Self(Arc::new(inner)))
    }
}

/// A name that nobody else has: the hasher's keys are the system's randomness.
fn claim() -> String {
    let half = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", half(), half())
}

impl Inner {
    /// A name for one call, so that it is known when it is made again.
    fn nonce(&self) -> String {
        format!("{}-{}", self.claim, self.nonces.fetch_add(1, Ordering::Relaxed))
    }

    /// How long a session is kept, as scripts want to hear it: milliseconds, 0 for ever.
    fn ttl(&self) -> String {
        self.ttl.map_or_else(|| "0".to_owned(), |ttl| ttl.as_millis().max(1).to_string())
    }

    /// A script about a session.
    fn about(&self, id: &SessionId, script: &'static Lua) -> Ask {
        Ask::script(script, &self.keys.session(id))
    }

    fn said(&self, ask: Ask) -> Result<Said> {
        Said::of(self.link.ask(ask)?.value)
    }

    /// Asks about a session; anything but `ok` is an error.
    fn fine(&self, id: &SessionId, ask: Ask) -> Result<Said> {
        self.said(ask)?.fine(id)
    }
}
