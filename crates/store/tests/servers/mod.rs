//! PostgreSQL and Redis for tests: real servers, started by the project's own script, gone with the test.

#![allow(dead_code)]

pub(crate) mod proxy;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// Which server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Postgres,
    Redis,
    /// A Redis Cluster of three nodes.
    Cluster,
}

/// A server of one's own; it stops when this is dropped, or when the process ends.
pub(crate) struct Server {
    /// Where it is.
    pub(crate) url: String,
    child: Child,
    speaks: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Server {
    /// Starts one with what it is told beside the usual.
    pub(crate) fn start(kind: Kind, settings: &[&str]) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/server");
        let name = match kind {
            Kind::Postgres => "postgres",
            Kind::Redis => "redis",
            Kind::Cluster => "cluster",
        };
        let mut command = Command::new(script);
        command.arg(name).args(settings).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut speaks = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let line = heard(&mut speaks.1);
        let url = line
            .strip_prefix("ready ")
            .unwrap_or_else(|| panic!("{name} did not start: {line:?}"))
            .to_owned();
        Self { url, child, speaks: Mutex::new(speaks) }
    }

    /// One that all tests of this binary share; each uses a schema or prefix of its own.
    pub(crate) fn shared(kind: Kind) -> &'static Self {
        static ALL: [OnceLock<Server>; 3] = [OnceLock::new(), OnceLock::new(), OnceLock::new()];
        ALL[kind as usize].get_or_init(|| Self::start(kind, &[]))
    }

    /// `kill`, `start`, `freeze`, `thaw` or `pid`; gives the answer.
    pub(crate) fn tell(&self, word: &str) -> String {
        let mut speaks = self.speaks.lock().unwrap();
        writeln!(speaks.0, "{word}").unwrap();
        heard(&mut speaks.1)
    }
}

fn heard(from: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.child),
            rustix::process::Signal::TERM,
        );
        let _ = self.child.wait();
    }
}
