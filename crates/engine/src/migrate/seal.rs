//! What a store holds of a session, as one digest.
//!
//! Row, headers, lines and outputs, read back from the store; never what was just written, as it is in memory.

use super::copy::{blobs_of_line, is_there};
use super::{Error, Result, row};
use komado_core::SessionId;
use komado_store::{Mode, Store};
use serde::Serialize;
use std::collections::HashSet;
use std::io::Read;

/// Digest and size of a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Seal {
    /// BLAKE3 over everything.
    pub digest: String,
    /// Its threads.
    pub threads: u64,
    /// Its entries.
    pub entries: u64,
    /// Its outputs.
    #[serde(rename = "outputs")]
    pub blobs: u64,
    /// Bytes of lines and outputs.
    pub bytes: u64,
}

impl Seal {
    /// Reads a session of `store` from its first line to its last output.
    pub fn of(store: &dyn Store, id: &SessionId) -> Result<Self> {
        let mut hasher = blake3::Hasher::new();
        let mut seal = Self { digest: String::new(), threads: 0, entries: 0, blobs: 0, bytes: 0 };
        let session = row(store, id)?.ok_or_else(|| komado_store::Error::NoSession(id.clone()))?;
        hasher.update(&serde_json::to_vec(&session).map_err(std::io::Error::from)?);
        let mut named = HashSet::new();
        for header in store.threads(id)? {
            let journal = store.open(id, &header.thread, Mode::Read)?;
            hasher.update(&header.encode());
            for seq in header.base_seq() + 1..=journal.last() {
                let line = journal.line(seq)?;
                hasher.update(&line);
                seal.entries += 1;
                seal.bytes += line.len() as u64;
                if journal.head(seq)?.kind.is_item() {
                    blobs_of_line(&line, &mut named);
                }
            }
            seal.threads += 1;
        }
        let mut named: Vec<String> = named.into_iter().collect();
        named.sort();
        for blob in named {
            if let Some(bytes) = is_there(store.blob(id, &blob))? {
                seal.bytes += check_blob(id, &blob, bytes)?;
                seal.blobs += 1;
                hasher.update(blob.as_bytes());
            }
        }
        seal.digest = hasher.finalize().to_hex().to_string();
        Ok(seal)
    }
}

/// An output is called what its bytes come to; gives its size.
fn check_blob(id: &SessionId, blob: &str, mut bytes: impl Read) -> Result<u64> {
    let mut hasher = blake3::Hasher::new();
    let size = std::io::copy(&mut bytes, &mut hasher)?;
    let found = hasher.finalize().to_hex()[..blob.len().min(64)].to_owned();
    if found == blob {
        return Ok(size);
    }
    let (session, blob) = (id.clone(), blob.to_owned());
    Err(Error::Blob { session, blob, found, place: "a store" })
}
