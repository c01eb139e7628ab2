//! A thread's birth certificate: the first line of its journal.
//!
//! A fork is this line and nothing else: it names the moment it goes on from, and shares every entry up to there with
//! the thread it left, number for number. So forking costs the same at ten entries and at ten million.

use crate::journal::VERSION;
use crate::raw::Object;
use crate::{BadId, Seq, SessionId, ThreadId};
use serde::{Deserialize, Serialize};

/// A moment of a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moment {
    /// The thread.
    pub thread: ThreadId,
    /// Its last entry that counts.
    pub seq: Seq,
}

/// The first line of a journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The session it belongs to.
    pub session: SessionId,
    /// Its own name.
    pub thread: ThreadId,
    /// The moment it goes on from, for a fork.
    pub base: Option<Moment>,
    /// The anchor that started it, for a spawned thread.
    pub parent: Option<Moment>,
    /// What people call it.
    pub label: Option<String>,
    /// When it began.
    pub timestamp: String,
}

/// Why a line is not a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHeader {
    /// Not readable as a header.
    #[error("not a journal header: {0}")]
    Shape(String),
    /// An id that is none.
    #[error(transparent)]
    Id(#[from] BadId),
    /// Written by a newer komado.
    #[error(
        "the journal has format version {found}, this komado reads up to version {known}; use a newer komado"
    )]
    Newer {
        /// The journal's version.
        found: u32,
        /// Ours.
        known: u32,
    },
}

#[derive(Serialize, Deserialize)]
struct MomentLine {
    thread: String,
    seq: Seq,
}

#[derive(Serialize)]
struct HeaderLine<'a> {
    seq: Seq,
    op: &'static str,
    version: u32,
    session: &'a str,
    thread: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<MomentLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<MomentLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    timestamp: &'a str,
}

impl Header {
    /// The header of a session's first thread.
    pub fn root(session: SessionId, timestamp: impl Into<String>) -> Self {
        let thread = ThreadId::root();
        Self { session, thread, base: None, parent: None, label: None, timestamp: timestamp.into() }
    }

    /// The number before the thread's first own entry.
    pub fn base_seq(&self) -> Seq {
        self.base.as_ref().map_or(0, |moment| moment.seq)
    }

    /// As a line, line break included.
    pub fn encode(&self) -> Vec<u8> {
        let moment = |m: &Moment| MomentLine { thread: m.thread.to_string(), seq: m.seq };
        let line = HeaderLine {
            seq: self.base_seq(),
            op: "journal",
            version: VERSION,
            session: self.session.as_str(),
            thread: self.thread.as_str(),
            base: self.base.as_ref().map(moment),
            parent: self.parent.as_ref().map(moment),
            label: self.label.as_deref(),
            timestamp: &self.timestamp,
        };
        let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Reads a header line.
    pub fn decode(line: &str) -> Result<Self, BadHeader> {
        let shape = |e: String| BadHeader::Shape(e);
        let object = Object::parse(line).map_err(|e| shape(e.to_string()))?;
        let text = |key: &str| -> Result<String, BadHeader> {
            object
                .read(key)
                .map_err(|e| shape(e.to_string()))?
                .ok_or_else(|| shape(format!("field `{key}` is missing")))
        };
        if text("op")? != "journal" {
            return Err(shape("field `op` is not \"journal\"".into()));
        }
        let found: u32 = object.read("version").map_err(|e| shape(e.to_string()))?.unwrap_or(0);
        if found > VERSION {
            return Err(BadHeader::Newer { found, known: VERSION });
        }
        let moment = |key: &str| -> Result<Option<Moment>, BadHeader> {
            let line: Option<MomentLine> = object.read(key).map_err(|e| shape(e.to_string()))?;
            line.map(|m| Ok(Moment { thread: ThreadId::new(m.thread)?, seq: m.seq })).transpose()
        };
        Ok(Self {
            session: SessionId::new(text("session")?)?,
            thread: ThreadId::new(text("thread")?)?,
            base: moment("base")?,
            parent: moment("parent")?,
            label: object.read("label").map_err(|e| shape(e.to_string()))?,
            timestamp: text("timestamp")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_a_newer_one_is_refused() {
        let mut header = Header::root(SessionId::new("s").unwrap(), "2024-01-15T10:30:00Z");
        header.base = Some(Moment { thread: ThreadId::root(), seq: 9 });
        header.label = Some("別案".into());
        let line = String::from_utf8(header.encode()).unwrap();
        assert_eq!(Header::decode(&line), Ok(header));
        let newer = line.replace("\"version\":1", "\"version\":99");
        let why = Header::decode(&newer).unwrap_err().to_string();
        assert!(why.contains("version 99") && why.contains("newer komado"), "{why}");
    }
}
