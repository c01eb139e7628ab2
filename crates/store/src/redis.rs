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
//! whenever it is opened to write. A process that finds a name without a session takes it out, and puts it
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
mod blobs;
mod durability;
mod journal;
mod lease;
mod link;
mod news;
mod queue;
mod scripts;
mod search_index;
mod sessions;
mod tables;

use crate::connect::ConnectOptions;
use crate::lease::Leases;
use crate::{Result, Store};
use ::redis::ToRedisArgs;
use address::RedisAddress;
use durability::Durability;
use komado_core::SessionId;
use link::RedisLink;
use news::RedisListener;
use scripts::{LuaScript, RedisCall, ScriptReply};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Opens the store at `url`.
pub fn open(url: &str, how: &ConnectOptions) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(RedisStore::open(url, how)?))
}

/// Sessions in Redis. Clones share the connection.
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

struct Inner {
    link: Arc<RedisLink>,
    keys: Keys,
    lease: Duration,
    ttl: Option<Duration>,
    /// Who we are among all who ever opened this store.
    claim: String,
    nonces: AtomicU64,
    leases: Arc<Leases<lease::RedisLease>>,
    is_renewing: AtomicBool,
    news: RedisListener,
    promise: Durability,
    /// Sessions that were found to have ended by themselves.
    expired: AtomicU64,
    /// How far the sessions, and those of users, were last looked over.
    looked: std::sync::Mutex<[String; 2]>,
}

impl RedisStore {
    /// Opens the store at `url`; an error when there is none.
    pub fn open(url: &str, how: &ConnectOptions) -> Result<Self> {
        let address = RedisAddress::parse(url)?;
        let keys = Keys::new(&address.prefix);
        let link = RedisLink::new(address, how.patience)?;
        let promise = durability::promise(&link)?;
        let news = RedisListener::new(keys.news());
        let inner = Inner {
            link,
            keys,
            lease: how.lease,
            ttl: how.ttl,
            claim: claim(),
            nonces: AtomicU64::default(),
            leases: Leases::new(how.holder.clone()),
            is_renewing: AtomicBool::default(),
            news,
            promise,
            expired: AtomicU64::default(),
            looked: std::sync::Mutex::default(),
        };
        Ok(Self(Arc::new(inner)))
    }
}

/// A name that no other process has: the hasher's keys are the system's randomness.
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
    fn about(&self, id: &SessionId, script: &'static LuaScript, args: impl ToRedisArgs) -> RedisCall {
        RedisCall::script(script, &self.keys.session(id), args)
    }

    fn said(&self, ask: RedisCall) -> Result<ScriptReply> {
        ScriptReply::of(self.link.ask(ask)?.value)
    }

    /// Runs a script about a session; anything but `ok` is an error.
    fn run(&self, id: &SessionId, script: &'static LuaScript, args: impl ToRedisArgs) -> Result<ScriptReply> {
        self.said(self.about(id, script, args))?.fine(id)
    }

    /// The same for a change that replicas must have too.
    fn write(
        &self,
        id: &SessionId,
        script: &'static LuaScript,
        args: impl ToRedisArgs,
    ) -> Result<ScriptReply> {
        self.said(self.about(id, script, args).spread())?.fine(id)
    }
}

// The names of all keys.
//
// What belongs to one session shares a hash tag, so that one script may touch all of it on a cluster too.

/// Names keys under one prefix.
#[derive(Clone, Debug)]
struct Keys {
    prefix: String,
}

impl Keys {
    fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// All keys of a session, the one that decides whether it is there first.
    fn session(&self, id: &SessionId) -> Vec<String> {
        let tag = format!("{{{}:{id}}}", self.prefix);
        let rest = ["tree", "outputs", "shelf", "sheets"].map(|name| format!("{tag}:{name}"));
        std::iter::once(tag).chain(rest).collect()
    }

    /// The key that decides whether a session is there.
    fn heart(&self, id: &SessionId) -> String {
        format!("{{{}:{id}}}", self.prefix)
    }

    /// Sessions in the order of making.
    fn made(&self) -> String {
        format!("{{{}}}:sessions", self.prefix)
    }

    /// The same by user.
    fn users(&self) -> String {
        format!("{{{}}}:users", self.prefix)
    }

    fn lessons(&self) -> String {
        format!("{{{}}}:lessons", self.prefix)
    }

    /// The moments of one name.
    fn spots(&self, name: &str) -> String {
        format!("{{{}:spot:{}}}", self.prefix, blake3::hash(name.as_bytes()).to_hex())
    }

    /// A session's moments, each with the name it is found by. It outlives the session, to clean up after it.
    fn names(&self, id: &SessionId) -> String {
        format!("{{{}}}:spots:{id}", self.prefix)
    }

    /// Everything about the queue.
    fn queue(&self) -> Vec<String> {
        let names = [
            "jobs", "line", "ready", "hidden", "dead", "keys", "tries", "why", "tokens", "holders", "nonces",
        ];
        names.iter().map(|name| format!("{{{}:queue}}:{name}", self.prefix)).collect()
    }

    /// The channel that tells what happens.
    fn news(&self) -> String {
        format!("{}:news", self.prefix)
    }
}

/// A session in the order of making; `made` sorts as text.
fn made(created_at: &str, id: &SessionId) -> String {
    format!("{created_at}\0{id}")
}

/// The place of a session in the order of making, as an index names it: with or without whose it is.
fn place(member: &str) -> &str {
    let mut parts = member.rsplitn(3, '\0').skip(2);
    parts.next().map_or(member, |user| &member[user.len() + 1..])
}

/// What the names of one user's sessions begin with.
fn user(user: &str) -> String {
    format!("{}\0", &blake3::hash(user.as_bytes()).to_hex()[..32])
}
