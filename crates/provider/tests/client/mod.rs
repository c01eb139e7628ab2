//! The client against servers that do as they are told: what is on the wire, what is tried again, what ends it.

mod again;
mod end;
mod memory;
mod probe;
pub(crate) mod server;
mod wire;

use komado_provider::{
    Cancel, Client, ClientBody, ClientTimeouts, Provider, ProviderResponse, RetryWait, SendError,
};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use tempfile::NamedTempFile;

/// Patient with the other side, and quick to try again.
fn patience() -> ClientTimeouts {
    let (delay, longest_delay) = (Duration::from_millis(1), Duration::from_millis(20));
    ClientTimeouts { delay, longest_delay, ..ClientTimeouts::default() }
}

fn client() -> Client {
    Client::new(patience()).unwrap()
}

fn once() -> Client {
    Client::new(ClientTimeouts { tries: 1, ..patience() }).unwrap()
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

fn body(path: &Path) -> ClientBody<'_> {
    ClientBody::File { path, len: fs::metadata(path).unwrap().len() }
}

fn bytes(text: &str) -> ClientBody<'static> {
    ClientBody::Bytes(text.as_bytes().to_vec().into())
}

/// Sends `{}` and says what came of it, and each wait on the way.
fn send(client: &Client, to: &Provider) -> (Result<ProviderResponse, SendError>, Vec<RetryWait>) {
    let mut waits = Vec::new();
    let result = client.post(to, bytes("{}"), &Cancel::default(), &mut |waiting| waits.push(waiting));
    (result, waits)
}

fn text(result: Result<ProviderResponse, SendError>) -> (u16, String) {
    let incoming = result.unwrap();
    (incoming.status, incoming.text(1 << 20).unwrap())
}
