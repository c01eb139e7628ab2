//! The record of erasures: `erasures.jsonl` in the base folder.
//!
//! It says what was erased, when and by whom, and not who it was. A user stands there by a digest with a key of its own
//! (`erasures.key`, beside the record): lines about one user show that they are, a reader of both files can check a name, and the record
//! alone tells nothing, however many names are tried. The key is applied to the digest of the name, which is what
//! earlier versions wrote down: so their lines can be closed, too, without knowing the names.

use crate::private;
use crate::{Fault, Outcome};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The record, and the key to the digests in it.
pub(super) struct Erasures {
    record: PathBuf,
    key_at: PathBuf,
    key: [u8; 32],
}

impl Erasures {
    /// The record of a base folder.
    pub(super) fn open(base_dir: &Path) -> Outcome<Self> {
        private::folder(base_dir)?;
        let (record, key_at) = (base_dir.join("erasures.jsonl"), base_dir.join("erasures.key"));
        let mut file = private::file(&key_at)?;
        // Two that begin at once share one key, and none of them adds a line while the record is replaced.
        file.lock()?;
        let erasures = Self { key: key(&mut file, &key_at)?, record, key_at };
        erasures.close_old_lines()?;
        Ok(erasures)
    }

    /// What stands for a user.
    pub(super) fn digest(&self, user: &str) -> String {
        self.keyed(blake3::hash(user.as_bytes()).to_hex().as_str())
    }

    fn keyed(&self, plain: &str) -> String {
        blake3::keyed_hash(&self.key, plain.as_bytes()).to_hex().to_string()
    }

    /// Adds a line; durable when it returns.
    pub(super) fn add(&self, line: &Value) -> Outcome {
        let held = private::file(&self.key_at)?;
        held.lock()?;
        let mut file = private::file(&self.record)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(file.sync_all()?)
    }

    /// Lines of earlier versions hold the digest alone, which a list of names undoes.
    fn close_old_lines(&self) -> Outcome {
        let file = match File::open(&self.record) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let (mut lines, mut is_old) = (Vec::new(), false);
        for line in BufReader::new(file).lines() {
            let line = line?;
            let closed = self.closed(&line);
            is_old |= closed.is_some();
            lines.push(closed.unwrap_or(line));
        }
        if !is_old {
            return Ok(());
        }
        let written = |out: &mut dyn Write| lines.iter().try_for_each(|line| writeln!(out, "{line}"));
        Ok(private::replace(&self.record, written)?)
    }

    /// A line of an earlier version as it is written now; `None` for every other.
    fn closed(&self, line: &str) -> Option<String> {
        let mut row: Value = serde_json::from_str(line).ok()?;
        let plain = row.get("user_digest")?.as_str()?.to_owned();
        if row["keyed"] == true {
            return None;
        }
        row["user_digest"] = json!(self.keyed(&plain));
        row["keyed"] = json!(true);
        Some(row.to_string())
    }
}

/// The key in a file; one that is empty gets one.
fn key(file: &mut File, path: &Path) -> Outcome<[u8; 32]> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    if text.is_empty() {
        let key = private::random()?;
        file.write_all(format!("{}\n", private::hex(&key)).as_bytes())?;
        file.sync_all()?;
        return Ok(key);
    }
    blake3::Hash::from_hex(text.trim()).map(Into::into).map_err(|_| {
        Fault::input(format!(
            "{}: not 64 hexadecimal digits; restore the file, or move it away together with erasures.jsonl",
            path.display()
        ))
    })
}
