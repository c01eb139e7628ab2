//! Taking a secret out: the one change to what was said.
//!
//! Every journal line that holds the secret is written again without it, with a note of when and why; blobs that hold
//! it are replaced by blobs that do not; everything derived is made again. What was redacted cannot be brought back.

use crate::engine::Engine;
use crate::error::Result;
use komado_core::journal::{Entry, Record, encode};
use komado_core::message::{Message, Part};
use komado_core::{Seq, SessionId, ThreadId, View};
use komado_store::{Journal, Mode};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Seek, Write};

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// What is to be taken out.
pub enum What {
    /// Everything one entry says.
    Entry(ThreadId, Seq),
    /// Every place in the session that matches.
    Matching(Regex),
}

/// What was taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Redacted {
    /// Entries changed.
    pub entries: u64,
    /// Blobs replaced.
    pub blobs: u64,
}

impl Engine {
    /// Takes `what` out of a session, for `reason`.
    pub fn redact(&self, id: &SessionId, what: &What, reason: &str) -> Result<Redacted> {
        let note = format!(",\"redacted\":{}", serde_json::json!({ "at": self.now(), "reason": reason }));
        let mut done = Redacted::default();
        let blobs = match what {
            What::Matching(pattern) => self.redact_blobs(id, pattern)?,
            What::Entry(..) => BTreeMap::new(),
        };
        done.blobs = blobs.len() as u64;
        for header in self.store().threads(id)? {
            let mut journal = self.store().open(id, &header.thread, Mode::Amend)?;
            let changed = match what {
                What::Entry(thread, seq) if *thread == header.thread => {
                    journal.rewrite(&mut |at, line| (at == *seq).then(|| empty(line)).flatten().map(|l| noted(l, &note)))?
                }
                What::Entry(..) => 0,
                What::Matching(pattern) => {
                    journal.rewrite(&mut |_, line| without(line, pattern, &blobs).map(|l| noted(l, &note)))?
                }
            };
            done.entries += changed;
            let view = View::fold(&*journal, journal.last())?;
            journal.settle(&view)?;
        }
        self.store().sweep(id, &|blob| !blobs.contains_key(blob))?;
        Ok(done)
    }

    /// Writes blobs that hold the secret again without it; gives old and new names.
    fn redact_blobs(&self, id: &SessionId, pattern: &Regex) -> Result<BTreeMap<String, String>> {
        let mut renamed = BTreeMap::new();
        for blob in self.named_blobs(id)? {
            let mut clean = tempfile::SpooledTempFile::new(1 << 20);
            let mut found = false;
            let mut reader = BufReader::new(self.store().blob(id, &blob)?);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line)? > 0 {
                match std::str::from_utf8(&line) {
                    Ok(text) if pattern.is_match(text) => {
                        found = true;
                        clean.write_all(pattern.replace_all(text, REDACTED).as_bytes())?;
                    }
                    _ => clean.write_all(&line)?,
                }
                line.clear();
            }
            if found {
                clean.rewind()?;
                renamed.insert(blob, self.store().put_blob(id, &mut clean)?.id);
            }
        }
        Ok(renamed)
    }
}

/// Adds the note that a line was redacted.
fn noted(mut line: Vec<u8>, note: &str) -> Vec<u8> {
    while line.last().is_some_and(|b| *b == b'\n' || *b == b'}') && line.pop() != Some(b'}') {}
    line.extend_from_slice(note.as_bytes());
    line.extend_from_slice(b"}\n");
    line
}

/// The same entry, saying nothing.
fn empty(line: &str) -> Option<Vec<u8>> {
    let mut record: Record = komado_core::journal::decode(line).ok()?;
    match &mut record.entry {
        Entry::Message(message, _) => *message = empty_message(message),
        Entry::Setup(setup) => {
            setup.system = setup.system.as_ref().map(|_| REDACTED.to_owned());
            (setup.tools, setup.params) = (None, None);
        }
        Entry::Edit(edit) => {
            edit.show.iter_mut().for_each(|show| REDACTED.clone_into(&mut show.text));
            edit.replace.iter_mut().for_each(|swap| REDACTED.clone_into(&mut swap.text));
        }
        Entry::Anchor(anchor) => REDACTED.clone_into(&mut anchor.text),
        Entry::Close(close) => close.result = close.result.as_ref().map(|_| REDACTED.to_owned()),
        _ => return None,
    }
    Some(encode(&record))
}

fn empty_message(message: &Message) -> Message {
    let mut empty = message.saying(REDACTED);
    empty.extra = None;
    empty.parts.retain(|part| !matches!(part, Part::Reasoning { .. } | Part::Opaque(_)));
    for part in &mut empty.parts {
        match part {
            Part::Call(call) => (call.arguments, call.extra) = ("{}".into(), None),
            Part::Result(outcome) => outcome.output_ref = None,
            _ => {}
        }
    }
    empty
}

/// The line without what matches in any of its texts; `None` when nothing does.
fn without(line: &str, pattern: &Regex, blobs: &BTreeMap<String, String>) -> Option<Vec<u8>> {
    let cleaned = clean_json(line.trim_end(), pattern, blobs)?;
    let mut bytes = cleaned.into_bytes();
    bytes.push(b'\n');
    Some(bytes)
}

/// Cleans every text in a JSON document and leaves every other byte as it is. A text that is JSON itself (the
/// arguments of a call) is cleaned inside, too.
fn clean_json(json: &str, pattern: &Regex, blobs: &BTreeMap<String, String>) -> Option<String> {
    let mut out = String::with_capacity(json.len());
    let mut changed = false;
    let mut rest = json;
    while let Some(start) = rest.find('"') {
        let end = start + string_len(&rest[start..])?;
        out.push_str(&rest[..start]);
        let token = &rest[start..end];
        match clean_text(token, pattern, blobs) {
            Some(clean) => {
                out.push_str(&clean);
                changed = true;
            }
            None => out.push_str(token),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    changed.then_some(out)
}

/// Length of the JSON string that `text` begins with, quotes included.
fn string_len(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (i, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(i + 1),
            _ => {}
        }
    }
    None
}

fn clean_text(token: &str, pattern: &Regex, blobs: &BTreeMap<String, String>) -> Option<String> {
    let text: String = serde_json::from_str(token).ok()?;
    let inner = text.starts_with(['{', '[']) && serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
    let mut clean = if inner { clean_json(&text, pattern, blobs).unwrap_or_else(|| text.clone()) } else { text.clone() };
    if pattern.is_match(&clean) {
        clean = pattern.replace_all(&clean, REDACTED).into_owned();
    }
    for (old, new) in blobs {
        if clean.contains(old.as_str()) {
            clean = clean.replace(old.as_str(), new);
        }
    }
    (clean != text).then(|| Value::from(clean).to_string())
}

/// Opens a journal for reading; used by tests of what is left.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_texts_that_match_change_and_every_other_byte_stays() {
        let pattern = Regex::new("s3cret\"?x?").unwrap();
        let line = r#"{"seq":3,"n":1.0,"content":"a s3cret b","tool_calls":[{"arguments":"{\"k\":\"s3cret\\\"x\",\"n\":1.50}"}]}"#;
        let clean = clean_json(line, &pattern, &BTreeMap::new()).unwrap();
        assert_eq!(
            clean,
            r#"{"seq":3,"n":1.0,"content":"a [redacted] b","tool_calls":[{"arguments":"{\"k\":\"[redacted]\",\"n\":1.50}"}]}"#
        );
        assert_eq!(clean_json(r#"{"a":"b"}"#, &pattern, &BTreeMap::new()), None);
        let note = noted(b"{\"seq\":1}\n".to_vec(), ",\"redacted\":{}");
        assert_eq!(note, b"{\"seq\":1,\"redacted\":{}}\n");
    }
}
