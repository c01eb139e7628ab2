//! A store by its URL.

use crate::{Error, Holder, Result, Store};
use std::sync::Arc;
use std::time::Duration;

/// How a server is spoken to.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// What others are told while we write.
    pub holder: Holder,
    /// How long one call may take, connecting included.
    pub patience: Duration,
    /// How many connections are opened at the most.
    pub connections: usize,
    /// How long a session is ours without a sign of life; then another process may take it over.
    pub lease: Duration,
    /// How long a session is kept after it was last used, where the store lets go of sessions by itself; `None` for ever.
    pub ttl: Option<Duration>,
}

impl ConnectOptions {
    /// The usual, for `holder`.
    pub fn new(holder: Holder) -> Self {
        Self {
            holder,
            patience: Duration::from_secs(10),
            connections: 16,
            lease: Duration::from_secs(6),
            ttl: Some(Duration::from_secs(7 * 24 * 3600)),
        }
    }
}

/// How the URLs of stores on servers begin.
pub const POSTGRES: [&str; 2] = ["postgres://", "postgresql://"];
/// The same for Redis.
pub const REDIS: [&str; 4] = ["redis://", "rediss://", "redis+cluster://", "redis+sentinel://"];

/// Opens the store on a server.
pub fn connect(url: &str, how: &ConnectOptions) -> Result<Arc<dyn Store>> {
    let begins = |starts: &[&str]| starts.iter().any(|start| url.starts_with(start));
    if begins(&POSTGRES) {
        return open_postgres(url, how);
    }
    if begins(&REDIS) {
        return open_redis(url, how);
    }
    // Only what can be a scheme is repeated: the rest may hold a password.
    let is_scheme =
        |word: &&str| word.len() <= 40 && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+');
    let what = url.split_once(':').map(|(scheme, _)| scheme).filter(is_scheme);
    let what = what.map_or_else(|| "an address without a scheme".to_owned(), |scheme| format!("{scheme:?}"));
    Err(Error::BadAddress {
        why: format!("there is no store for {what}; use file:, memory:, postgres:// or redis://"),
    })
}

#[cfg(feature = "postgres")]
use crate::postgres::open as open_postgres;

#[cfg(feature = "redis")]
use crate::redis::open as open_redis;

#[cfg(not(feature = "postgres"))]
fn open_postgres(_url: &str, _how: &ConnectOptions) -> Result<Arc<dyn Store>> {
    Err(not_built_in("PostgreSQL", "postgres"))
}

#[cfg(not(feature = "redis"))]
fn open_redis(_url: &str, _how: &ConnectOptions) -> Result<Arc<dyn Store>> {
    Err(not_built_in("Redis", "redis"))
}

/// That this build leaves a store out.
#[cfg(not(all(feature = "postgres", feature = "redis")))]
fn not_built_in(store: &str, feature: &str) -> Error {
    Error::BadAddress {
        why: format!("this build has no {store}; build it with the Cargo feature `{feature}`, or use file:"),
    }
}
