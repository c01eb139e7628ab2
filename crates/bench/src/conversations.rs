//! Past conversations in files: OpenAI chat messages, one per line, one conversation per file.

use crate::error::{Error, Result};
use komado_core::message::Message;
use komado_core::openai;
use std::path::{Path, PathBuf};

/// The files named, and the `*.jsonl` in the folders named, each once and in order.
pub(crate) fn list(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in given {
        let wrong = |why: std::io::Error| unreadable(path, &why);
        if !std::fs::metadata(path).map_err(wrong)?.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        for entry in std::fs::read_dir(path).map_err(wrong)? {
            let file = entry.map_err(wrong)?.path();
            files.extend(Some(file).filter(|file| file.extension().is_some_and(|e| e == "jsonl")));
        }
        if files.len() == before {
            return Err(Error::usage(format!("there is no *.jsonl in {}", path.display())));
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// One conversation. An error names the line that cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<Message>> {
    let bytes = std::fs::read(path).map_err(|why| unreadable(path, &why))?;
    let mut messages = Vec::new();
    for (n, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let bad = |why: String| Error::input(format!("{} line {}: {why}", path.display(), n + 1));
        let line = std::str::from_utf8(line).map_err(|why| bad(format!("not UTF-8: {why}")))?;
        let line = line.trim_start_matches('\u{feff}').trim();
        if !line.is_empty() {
            messages.push(openai::read(line).map_err(|why| bad(why.to_string()))?);
        }
    }
    Ok(messages)
}

fn unreadable(path: &Path, why: &std::io::Error) -> Error {
    Error::not_found(format!("cannot read {}: {why}", path.display()))
}
