//! The keys: who made them for whom, and the digest of each.
//! //!
//! A key is 256 random bits, so its digest needs no salt and no slow hash: those make guessing dear where people choose the
//! secret, and here there is nothing to guess. It is looked up by its digest; how long that takes tells of the digest, which
//! no caller can steer. The file is replaced whole, under a lock, and readable by its owner alone.

use crate::{OpFault, OpResult, private};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How a key begins, so that one can be told from an upstream's, and found by tools that look for secrets in files.
pub const PREFIX: &str = "kmd_";

/// Which sessions a key leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sees {
    /// The user's own, and those that are listed.
    #[default]
    Own,
    /// Every session.
    All,
}

/// A key, without its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredKey {
    /// Its name.
    pub name: String,
    /// The digest of the secret.
    pub digest: String,
    /// Whose sessions are made with it.
    pub user: Option<String>,
    /// Which sessions it leads to.
    #[serde(default)]
    pub sees: Sees,
    /// Further sessions the key can read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// Requests a second, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// Requests at a time, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// When it is of no more use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// When it was made.
    pub created_at: String,
}

impl StoredKey {
    /// True when its time is over at `now`; times of one length compare as text.
    pub fn is_expired(&self, now: &str) -> bool {
        self.expires.as_deref().is_some_and(|end| end <= now)
    }
}

/// All keys, in the order they were made.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyFile {
    keys: Vec<StoredKey>,
}

/// Where the keys of a base folder are.
pub fn place(base_dir: &Path) -> PathBuf {
    base_dir.join("keys.json")
}

/// A new secret.
pub fn secret() -> OpResult<String> {
    Ok(format!("{PREFIX}{}", private::hex(&private::random()?)))
}

/// The digest under which a secret is kept.
pub fn digest(secret: &str) -> String {
    blake3::hash(secret.as_bytes()).to_hex().to_string()
}

impl KeyFile {
    /// The keys in a file; none where there is no file.
    pub fn read(path: &Path) -> OpResult<Self> {
        let wrong = |why: String| {
            OpFault::input(format!(
                "{}: {why}; mend the file or restore it: until then every request is refused",
                path.display()
            ))
        };
        match std::fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).map_err(|e| wrong(format!("not a list of keys: {e}"))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &StoredKey> {
        self.keys.iter()
    }

    /// The key whose secret this is.
    pub fn find(&self, secret: &str) -> Option<&StoredKey> {
        let digest = digest(secret);
        self.keys.iter().find(|key| key.digest == digest)
    }
}

/// Adds a key.
pub fn add(base_dir: &Path, key: StoredKey) -> OpResult {
    change(base_dir, |keys| {
        if keys.iter().any(|other| other.name == key.name) {
            return Err(OpFault::refused(format!(
                "there is a key {0} already; choose another name, or `komado admin key revoke {0}` first",
                key.name
            )));
        }
        keys.push(key);
        Ok(())
    })
}

/// Takes a key back.
pub fn revoke(base_dir: &Path, name: &str) -> OpResult {
    change(base_dir, |keys| {
        let before = keys.len();
        keys.retain(|key| key.name != name);
        match keys.len() == before {
            true => Err(OpFault::not_found(format!(
                "there is no key {name:?}; `komado admin key list` shows which there are"
            ))),
            false => Ok(()),
        }
    })
}

/// Two that change the keys at once are both heard.
fn change(base_dir: &Path, op: impl FnOnce(&mut Vec<StoredKey>) -> OpResult) -> OpResult {
    private::folder(base_dir)?;
    let path = place(base_dir);
    let lock = private::file(&path.with_extension("lock"))?;
    lock.lock()?;
    let mut keys = KeyFile::read(&path)?;
    op(&mut keys.keys)?;
    let text = serde_json::to_string_pretty(&keys)?;
    Ok(private::replace(&path, |out| writeln!(out, "{text}"))?)
}

/// Which file it is: another one after each change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyFileStamp {
    inode: u64,
    size: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl KeyFileStamp {
    /// `None` where there is no file.
    pub fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Self {
            inode: meta.ino(),
            size: meta.size(),
            seconds: meta.mtime(),
            nanoseconds: meta.mtime_nsec(),
        })
    }
}
