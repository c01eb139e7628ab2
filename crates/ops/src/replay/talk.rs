//! Past conversations in files: OpenAI chat messages, one per line, one conversation per file.
//!
//! A line that cannot be read is named, with its file.

use crate::journal::MessageLines;
use crate::{Exit, Fault, Outcome};
use komado_core::message::Message;
use std::path::{Path, PathBuf};

/// The files named, and those in the folders named, each once and in order.
pub(super) fn list(given: &[PathBuf]) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in given {
        let wrong =
            |e: std::io::Error| Fault::new(Exit::NotFound, format!("cannot read {}: {e}", path.display()));
        if std::fs::metadata(path).map_err(wrong)?.is_dir() {
            let before = files.len();
            for entry in std::fs::read_dir(path).map_err(wrong)? {
                let file = entry.map_err(wrong)?.path();
                if file.extension().is_some_and(|e| e == "jsonl") {
                    files.push(file);
                }
            }
            if files.len() == before {
                return Err(Fault::usage(format!("there is no *.jsonl in {}", path.display())));
            }
        } else {
            files.push(path.clone());
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// One conversation.
pub(super) fn read(path: &Path) -> Outcome<Vec<Message>> {
    let wrong =
        |e: std::io::Error| Fault::new(Exit::NotFound, format!("cannot read {}: {e}", path.display()));
    let file = std::fs::File::open(path).map_err(wrong)?;
    let mut lines = MessageLines::new(Box::new(file), path.display().to_string());
    let mut talk = Vec::new();
    while let Some(message) = lines.read_message().map_err(wrong)? {
        talk.push(message.map_err(|why| lines.wrong(&why))?);
    }
    Ok(talk)
}
