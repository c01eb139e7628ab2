//! What people do today: the conversation in a list, sent by an SDK for Python.

use super::super::place::BenchFolder;
use super::filling::RequestSession;
use super::sink::{Got, RequestSink};
use crate::error::{Error, Result};
use crate::output::say;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = include_str!("peer.py");
/// What tells a Python that can be measured from one that cannot.
const CHECK: &str =
    "import importlib.util as u, sys; sys.exit(not (u.find_spec('openai') or u.find_spec('httpx')))";

/// A Python with an SDK.
pub(in super::super) struct Python(PathBuf);

/// What the peer took.
pub(super) struct RequestPeer {
    pub(super) told: PeerFigures,
    pub(super) got: Got,
}

/// What the peer tells of itself, in bytes.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PeerFigures {
    pub(super) name: String,
    pub(super) messages: u64,
    pub(super) idle: u64,
    pub(super) peak: u64,
    /// The most there ever was, the imports included.
    pub(super) max: u64,
}

impl Python {
    /// The one that `KOMADO_PYTHON` names, the one that `make setup` makes, or the system's, if it has an SDK. Without any
    /// our own figures are still worth having; that there is nothing beside them is told.
    pub(in super::super) fn find() -> Result<Option<Self>> {
        if let Some(named) = std::env::var_os("KOMADO_PYTHON") {
            let named = PathBuf::from(named);
            return match is_fit(&named) {
                true => Ok(Some(Self(named))),
                false => Err(missing(&format!(
                    "KOMADO_PYTHON, {}, is no Python with openai or httpx",
                    named.display()
                ))),
            };
        }
        let made = Path::new("target/python/bin/python").to_owned();
        let beside =
            std::env::current_exe()?.ancestors().nth(2).map(|target| target.join("python/bin/python"));
        let known = [Some(made), beside, Some("python3".into())];
        let found = known.into_iter().flatten().find(|python| is_fit(python));
        if found.is_none() {
            say(
                "komado-bench: there is no Python with openai or httpx, so no peer is measured; `make setup` makes one",
            );
        }
        Ok(found.map(Self))
    }

    /// Where it is.
    pub(in super::super) fn path(&self) -> &Path {
        &self.0
    }

    /// Sends the messages of a session.
    pub(super) fn send(
        &self,
        place: &BenchFolder,
        sink: &RequestSink,
        built: &RequestSession,
    ) -> Result<RequestPeer> {
        let program = place.path("peer.py");
        std::fs::write(&program, PROGRAM)?;
        let messages = place.store.folder(&built.id)?.join("current.jsonl");
        let mut command = Command::new(&self.0);
        // Whatever the machine is set to, this request goes straight to the sink.
        command.arg(&program).arg(&messages).arg(sink.url()).env("NO_PROXY", "127.0.0.1");
        let out = command.stdin(Stdio::null()).stderr(Stdio::piped()).output()?;
        if !out.status.success() {
            let told = String::from_utf8_lossy(&out.stderr);
            let why = told.trim().lines().last().unwrap_or("it did not say why").to_owned();
            return Err(Error::failed(format!("the Python peer failed ({}): {why}", out.status)));
        }
        Ok(RequestPeer { told: serde_json::from_slice(&out.stdout)?, got: sink.last()? })
    }
}

fn is_fit(python: &Path) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", CHECK]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn missing(what: &str) -> Error {
    Error::failed(format!(
        "{what}, so there is no peer to measure: `make setup` makes one, --no-peer leaves it out"
    ))
}
