//! What is asked of the server: a command, or a script by its digest.
//!
//! A script is sent by its digest and, where the server does not know it, once in full; that is how it gets there, after
//! a restart and on a new node of a cluster too.

use redis::aio::ConnectionLike;
use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind, ToRedisArgs, Value};
use std::sync::OnceLock;

/// A script that runs in the server, in one step.
pub(super) struct Lua {
    code: &'static str,
    digest: OnceLock<String>,
}

impl Lua {
    pub(super) const fn new(code: &'static str) -> Self {
        Self { code, digest: OnceLock::new() }
    }

    fn digest(&self) -> &str {
        self.digest.get_or_init(|| redis::Script::new(self.code).get_hash().to_owned())
    }
}

/// Something to ask.
pub(super) struct Ask {
    cmd: Cmd,
    script: Option<&'static Lua>,
    /// True when it says whether there is a server at all; then nobody waits for it to come.
    pub(super) is_greeting: bool,
    /// True when replicas must have it too.
    pub(super) must_spread: bool,
}

impl Ask {
    /// A command.
    pub(super) fn cmd(name: &str) -> Self {
        Self::of(redis::cmd(name), None)
    }

    /// A script with its keys.
    pub(super) fn script(script: &'static Lua, keys: &[String]) -> Self {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(script.digest()).arg(keys.len()).arg(keys);
        Self::of(cmd, Some(script))
    }

    fn of(cmd: Cmd, script: Option<&'static Lua>) -> Self {
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
    fn in_full(&self, script: &Lua) -> Cmd {
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
