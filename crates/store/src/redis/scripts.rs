//! The scripts that run in the server. Each file says first what it is given.

use crate::{Error, Holder, Result};
use komado_core::session::State;
use komado_core::{SessionId, ThreadId};
use redis::aio::ConnectionLike;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind, ToRedisArgs, Value};
use std::sync::OnceLock;

/// Scripts by their files, each with what the first file shares among them.
macro_rules! scripts {
    ($shared:literal: $($name:ident = $file:literal),+ $(,)?) => {
        $(pub(super) static $name: LuaScript = LuaScript::new(concat!(include_str!($shared), include_str!($file)));)+
    };
}

scripts! { "lua/lib.lua":
    CREATE = "lua/create.lua",
    OPEN = "lua/open.lua",
    KEEP = "lua/keep.lua",
    RELEASE = "lua/release.lua",
    WRITER = "lua/writer.lua",
    APPEND = "lua/append.lua",
    PAGE = "lua/page.lua",
    REWRITE = "lua/rewrite.lua",
    CHANGE = "lua/change.lua",
    REMOVE = "lua/remove.lua",
    SPAWN = "lua/spawn.lua",
    THREADS = "lua/threads.lua",
    LOOK = "lua/look.lua",
    PUT = "lua/put.lua",
    DROP = "lua/drop.lua",
    UNNAMED = "lua/unnamed.lua",
    NAMES = "lua/names.lua",
    FINISH = "lua/finish.lua",
    UNSETTLE = "lua/unsettle.lua",
    MAIL = "lua/mail.lua",
    FILL = "lua/fill.lua",
    CLEAR = "lua/clear.lua",
    BESIDE = "lua/beside.lua",
    NOTE = "lua/note.lua",
    LEARN = "lua/learn.lua",
}

scripts! { "lua/queue.lua":
    ENQUEUE = "lua/enqueue.lua",
    TAKE = "lua/take.lua",
    HIDE = "lua/hide.lua",
    END = "lua/end.lua",
    JOBS = "lua/jobs.lua",
    REQUEUE = "lua/requeue.lua",
    WITHDRAW = "lua/withdraw.lua",
}

/// A session's keys by their numbers, as Lua counts them.
pub(super) const HEART: u8 = 1;
pub(super) const TREE: u8 = 2;
pub(super) const OUTPUTS: u8 = 3;
pub(super) const SHELF: u8 = 4;

// What is asked of the server: a command, or a script by its digest.
//
// A script is sent by its digest and, where the server does not know it, once in full; that is how it gets there, after
// a restart and on a new node of a cluster too.

/// A script that runs in the server, in one step.
pub(super) struct LuaScript {
    code: &'static str,
    digest: OnceLock<String>,
}

impl LuaScript {
    pub(super) const fn new(code: &'static str) -> Self {
        Self { code, digest: OnceLock::new() }
    }

    fn digest(&self) -> &str {
        self.digest.get_or_init(|| redis::Script::new(self.code).get_hash().to_owned())
    }
}

/// Something to ask.
pub(super) struct RedisCall {
    cmd: Cmd,
    script: Option<&'static LuaScript>,
    /// True when it says whether there is a server at all; then the caller does not wait for it to come.
    pub(super) is_greeting: bool,
    /// True when replicas must have it too.
    pub(super) must_spread: bool,
}

impl RedisCall {
    /// A command.
    pub(super) fn cmd(name: &str) -> Self {
        Self::of(redis::cmd(name), None)
    }

    /// A script with its keys and what else it is given.
    pub(super) fn script(script: &'static LuaScript, keys: &[String], args: impl ToRedisArgs) -> Self {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(script.digest()).arg(keys.len()).arg(keys).arg(args);
        Self::of(cmd, Some(script))
    }

    fn of(cmd: Cmd, script: Option<&'static LuaScript>) -> Self {
        Self { cmd, script, is_greeting: false, must_spread: false }
    }

    pub(super) fn arg<T: ToRedisArgs>(mut self, arg: T) -> Self {
        self.cmd.arg(arg);
        self
    }

    pub(super) fn greeting(self) -> Self {
        Self { is_greeting: true, ..self }
    }

    /// Waits for replicas too, where that is wished for.
    pub(super) fn spread(self) -> Self {
        Self { must_spread: true, ..self }
    }

    pub(super) async fn put<C: ConnectionLike>(&self, line: &mut C) -> RedisResult<Value> {
        match (self.cmd.query_async(line).await, self.script) {
            (Err(error), Some(script)) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.in_full(script).query_async(line).await
            }
            (done, _) => done,
        }
    }

    /// The same with the script itself in place of its digest.
    fn in_full(&self, script: &LuaScript) -> Cmd {
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(script.code);
        for arg in self.cmd.args_iter().skip(2) {
            if let redis::Arg::Simple(bytes) = arg {
                cmd.arg(bytes);
            }
        }
        cmd
    }
}

// What the server's answers mean: errors that pass, errors that do not, and the words that scripts answer with.

/// What becomes of a call that failed.
pub(super) enum ScriptFailure {
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

pub(super) fn fate(place: &str, error: &RedisError) -> ScriptFailure {
    use ServerErrorKind as Server;
    let again = |is_broken: bool| ScriptFailure::Again { why: error.to_string(), is_broken };
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

fn refused(place: &str, what: &str, error: &RedisError) -> ScriptFailure {
    ScriptFailure::Refused(Error::Refused {
        place: place.to_owned(),
        why: format!("{what} (it said: {error})"),
    })
}

fn is_certificate(error: &RedisError) -> bool {
    error.to_string().contains("certificate")
}

fn by_code(place: &str, error: &RedisError) -> ScriptFailure {
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
            return ScriptFailure::Again { why: text, is_broken: passing == "READONLY" };
        }
    }
    ScriptFailure::Refused(Error::Refused { place: place.to_owned(), why: text })
}

/// What a script answered: a word, and what goes with it.
pub(super) struct ScriptReply {
    pub(super) word: String,
    pub(super) rest: Vec<Value>,
}

/// Reads a value as what it should be.
pub(super) fn read<T: FromRedisValue>(value: Value) -> Result<T> {
    redis::from_redis_value(value).map_err(|e| Error::damaged("an answer of Redis", e))
}

impl ScriptReply {
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
