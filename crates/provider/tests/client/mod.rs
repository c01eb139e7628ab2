//! The client against servers that do as they are told: what is on the wire, what is tried again, what ends it.

#![allow(clippy::unwrap_used)]

mod again;
mod end;
mod memory;
mod probe;
pub(crate) mod server;
mod wire;

use komado_provider::{Body, Cancel, Client, Incoming, Patience, Provider, SendError, Waiting};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use tempfile::NamedTempFile;

/// Patient with the other side, and quick to try again.
fn patience() -> Patience {
    let (delay, longest_delay) = (Duration::from_millis(1), Duration::from_millis(20));
    Patience { delay, longest_delay, ..Patience::default() }
}

fn client() -> Client {
    Client::new(patience()).unwrap()
}

fn once() -> Client {
    Client::new(Patience { tries: 1, ..patience() }).unwrap()
}

fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// A file of this many zeros that takes no room on disk.
fn zeros(len: u64) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(len).unwrap();
    file
}

fn body(path: &Path) -> Body<'_> {
    Body::File { path, len: fs::metadata(path).unwrap().len() }
}

fn bytes(text: &str) -> Body<'static> {
    Body::Bytes(text.as_bytes().to_vec().into())
}

/// Sends `{}` and says what came of it, and each wait on the way.
fn send(client: &Client, to: &Provider) -> (Result<Incoming, SendError>, Vec<Waiting>) {
    let mut waits = Vec::new();
    let result = client.post(to, bytes("{}"), &Cancel::default(), &mut |waiting| waits.push(waiting));
    (result, waits)
}

fn text(result: Result<Incoming, SendError>) -> (u16, String) {
    let incoming = result.unwrap();
    (incoming.status, incoming.text(1 << 20).unwrap())
}
