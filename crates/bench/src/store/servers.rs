//! A PostgreSQL and a Redis of the bench's own, as the tests have them.

use crate::error::{Error, Result};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What starts them, from the project's folder.
const SCRIPT: &str = "scripts/server";

/// A server; it stops, and its folder goes, with this value.
pub(super) struct StoreServer {
    child: Child,
    /// Where it is.
    pub(super) url: String,
}

impl StoreServer {
    /// One of each.
    pub(super) fn both() -> Result<Vec<Self>> {
        if !Path::new(SCRIPT).exists() {
            return Err(Error::usage(format!(
                "--servers needs {SCRIPT}: run it in the project's folder, or name stores with --url"
            )));
        }
        ["postgres", "redis"].into_iter().map(Self::start).collect()
    }

    fn start(kind: &str) -> Result<Self> {
        let mut command = Command::new(SCRIPT);
        let mut child = command.arg(kind).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let url = line.trim_end().strip_prefix("ready ").map(str::to_owned);
        let mut server = Self { child, url: String::new() };
        server.url = url.ok_or_else(|| Error::failed(format!("{SCRIPT} {kind} did not start")))?;
        Ok(server)
    }
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        // It stops when no client speaks to it any more.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
