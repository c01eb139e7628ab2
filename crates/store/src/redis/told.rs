//! What the server's answers mean: errors that pass, errors that do not, and the words that scripts answer with.

use crate::{Error, Holder, Result};
use komado_core::session::State;
use komado_core::{SessionId, ThreadId};
use redis::{ErrorKind, FromRedisValue, RedisError, ServerErrorKind, Value};

/// What becomes of a call that failed.
pub(super) enum Fate {
    /// It may be made again.
    Again {
        why: String,
        /// True when the connection is of no more use.
        is_broken: bool,
    },
    /// It was refused.
    Refused(Error),
}

/// An address that the driver does not take.
pub(super) fn invalid(error: &RedisError) -> Error {
    Error::BadAddress { why: error.to_string() }
}

pub(super) fn fate(place: &str, error: &RedisError) -> Fate {
    use ServerErrorKind as Server;
    let again = |is_broken: bool| Fate::Again { why: error.to_string(), is_broken };
    match error.kind() {
        _ if error.is_timeout() || error.is_connection_dropped() => again(true),
        ErrorKind::Io if is_certificate(error) => refused(place, CERTIFICATE, error),
        ErrorKind::Io
        | ErrorKind::ClusterConnectionNotFound
        | ErrorKind::MasterNameNotFoundBySentinel
        | ErrorKind::Parse
        | ErrorKind::Server(Server::ReadOnly) => again(true),
        ErrorKind::Server(
            Server::BusyLoading
            | Server::TryAgain
            | Server::ClusterDown
            | Server::MasterDown
            | Server::Moved
            | Server::Ask,
        ) => again(false),
        ErrorKind::AuthenticationFailed => refused(place, WHO, error),
        ErrorKind::Server(Server::NoPerm) => refused(place, MAY, error),
        _ => by_code(place, error),
    }
}

const WHO: &str =
    "it does not know us; put the user and password into the address, as in redis://user:password@host";
const MAY: &str = "its user may not do this; allow the commands and the keys of our prefix (ACL SETUSER … ~prefix* ~{prefix* &prefix* +@all)";
const FULL: &str = "Redis is full; nothing was lost: raise maxmemory or remove sessions, and set maxmemory-policy noeviction";
const DISK: &str = "Redis cannot write to its disk; nothing was lost: free some space there and try again";
const CERTIFICATE: &str = "its certificate is not trusted; name the authority's with ?ca=FILE";

fn refused(place: &str, what: &str, error: &RedisError) -> Fate {
    Fate::Refused(Error::Refused { place: place.to_owned(), why: format!("{what} (it said: {error})") })
}

fn is_certificate(error: &RedisError) -> bool {
    error.to_string().contains("certificate")
}

fn by_code(place: &str, error: &RedisError) -> Fate {
    let text = error.to_string();
    let has = |word: &str| error.code() == Some(word) || text.contains(word);
    if has("OOM") {
        return refused(place, FULL, error);
    }
    if has("MISCONF") {
        return refused(place, DISK, error);
    }
    if has("NOAUTH") || has("WRONGPASS") {
        return refused(place, WHO, error);
    }
    if has("NOPERM") {
        return refused(place, MAY, error);
    }
    for passing in ["READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS"] {
        if has(passing) {
            return Fate::Again { why: text, is_broken: passing == "READONLY" };
        }
    }
    Fate::Refused(Error::Refused { place: place.to_owned(), why: text })
}

/// What a script answered: a word, and what goes with it.
pub(super) struct Said {
    pub(super) word: String,
    pub(super) rest: Vec<Value>,
}

/// Reads a value as what it should be.
pub(super) fn read<T: FromRedisValue>(value: Value) -> Result<T> {
    redis::from_redis_value(value).map_err(|e| Error::damaged("an answer of Redis", e))
}

impl Said {
    pub(super) fn of(value: Value) -> Result<Self> {
        let mut parts: Vec<Value> = read(value)?;
        if parts.is_empty() {
            return Err(Error::damaged("an answer of Redis", "it is empty"));
        }
        let rest = parts.split_off(1);
        Ok(Self { word: read(parts.swap_remove(0))?, rest })
    }

    /// The text at `i`; empty when there is none.
    pub(super) fn text(&self, i: usize) -> String {
        self.rest.get(i).cloned().and_then(|value| read(value).ok()).unwrap_or_default()
    }

    /// The number at `i`; 0 when there is none.
    pub(super) fn number(&self, i: usize) -> u64 {
        self.text(i).parse().unwrap_or_default()
    }

    /// Goes on with `ok`; any other word is an error.
    pub(super) fn fine(self, id: &SessionId) -> Result<Self> {
        let first = self.text(0);
        match self.word.as_str() {
            "ok" => Ok(self),
            "gone" => Err(Error::NoSession(id.clone())),
            "taken" => Err(Error::TakenOver(id.clone())),
            "busy" => Err(Error::Busy { session: id.clone(), holder: Holder::read(first.as_bytes()) }),
            "ended" => Err(Error::Ended(id.clone(), State::named(&first).map_or("ended", State::name))),
            "nothread" => match ThreadId::new(first) {
                Ok(thread) => Err(Error::NoThread(id.clone(), thread)),
                Err(e) => Err(Error::damaged(id.as_str(), e)),
            },
            other => Err(Error::damaged(id.as_str(), format!("Redis said {other:?}"))),
        }
    }
}
