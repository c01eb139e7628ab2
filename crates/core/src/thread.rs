//! A thread's birth certificate: the first line of its journal.
//!
//! A fork is this line and nothing else: it names the moment it goes on from, and shares every entry up to there with
//! the thread it left, number for number. So forking costs the same at ten entries and at ten million.

use crate::head::EntrySource;
use crate::journal::{Ending, Entry, LineWriter, VERSION};
use crate::raw::{BadField, RawObject};
use crate::{BadId, Seq, SessionId, ThreadId, View};
use serde::{Deserialize, Serialize};

/// A moment of a thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ThreadMoment"))]
pub struct Moment {
    /// The thread.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub thread: ThreadId,
    /// The entry.
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

/// Where a spawned thread is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadStatus {
    /// At work.
    Active,
    /// Waits to go on.
    Paused,
    /// Ended well.
    Completed,
    /// Broken off: by an error, by its parent, by the end of its process.
    Aborted,
}

crate::names! {
    /// The word for it.
    ThreadStatus { Active = "active", Paused = "paused", Completed = "completed", Aborted = "aborted" }
}

impl ThreadStatus {
    /// True while something may still be said.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Active | Self::Paused)
    }
}

impl From<Option<Ending>> for ThreadStatus {
    fn from(ending: Option<Ending>) -> Self {
        match ending {
            None => Self::Active,
            Some(Ending::Paused) => Self::Paused,
            Some(Ending::Completed) => Self::Completed,
            Some(Ending::Failed | Ending::Stopped | Ending::Aborted) => Self::Aborted,
        }
    }
}

/// A spawned thread, or a root that has spawned one, as the table of threads knows it: an index, made again from the
/// journals.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Branch {
    /// The session.
    pub session: SessionId,
    /// The thread.
    pub thread: ThreadId,
    /// The thread it was spawned from; none for the root.
    pub parent: Option<ThreadId>,
    /// How far below the root it is.
    pub depth: u32,
    /// What it has of its parent's window; 1 for the root.
    pub window_ratio: f64,
    /// Where it is in its life.
    pub status: ThreadStatus,
    /// What people call it.
    pub label: Option<String>,
    /// What was done in it.
    pub chronicle_summary: Option<String>,
    /// The process that ends it by ending itself.
    pub held_by: Option<String>,
    /// True when its parent's anchor says what is said here.
    pub told: bool,
    /// When it began.
    pub created_at: String,
    /// When it ended.
    pub completed_at: Option<String>,
}

/// The row of a thread, from its header and its journal. No anchor is looked at, so `told` is false: the process that opens
/// the parent brings that in line.
pub fn branch<S: EntrySource + ?Sized>(header: &Header, source: &S) -> Result<Branch, S::Error> {
    let view = View::fold(source, source.last())?;
    let share = view.share_in(source)?;
    let nearest = share.as_ref().and_then(|share| share.slices.last());
    let parent = header.parent.as_ref().map(|moment| &moment.thread);
    let parent = parent.or(nearest.map(|slice| &slice.thread)).cloned();
    let depth = match (&share, &parent) {
        (Some(share), _) => share.depth(),
        (None, Some(parent)) => 1 + depth(&*source.above(parent)?)?,
        (None, None) => 0,
    };
    let (ending, ended) = closed(&view, source)?;
    let status = ThreadStatus::from(ending);
    Ok(Branch {
        session: header.session.clone(),
        thread: header.thread.clone(),
        depth: u32::try_from(depth).unwrap_or(u32::MAX),
        // A thread whose share was never written has the whole window, as its view says.
        window_ratio: nearest.map_or(1.0, |slice| slice.ratio.get()),
        status,
        label: header.label.clone(),
        chronicle_summary: chronicle(&view, source)?,
        // A fork is not held by who holds the thread it left.
        held_by: share.filter(|_| view.share() > Some(header.base_seq())).and_then(|share| share.held_by),
        told: false,
        created_at: header.timestamp.clone(),
        completed_at: ended.filter(|_| !status.is_open()),
        parent,
    })
}

/// How far below the root a thread is, by its share.
fn depth<S: EntrySource + ?Sized>(source: &S) -> Result<usize, S::Error> {
    let share = View::fold(source, source.last())?.share_in(source)?;
    Ok(share.map_or(0, |share| share.depth()))
}

/// How a thread ended or paused, and when.
fn closed<S: EntrySource + ?Sized>(
    view: &View,
    source: &S,
) -> Result<(Option<Ending>, Option<String>), S::Error> {
    let Some(seq) = view.closed() else { return Ok((None, None)) };
    let record = source.record(seq)?;
    Ok(match record.entry {
        Entry::Close(close) => (Some(close.ending), Some(record.timestamp)),
        _ => (None, None),
    })
}

/// The words of the chronicle in force.
fn chronicle<S: EntrySource + ?Sized>(view: &View, source: &S) -> Result<Option<String>, S::Error> {
    let Some(seq) = view.chronicle() else { return Ok(None) };
    Ok(match source.record(seq)?.entry {
        Entry::Chronicle(chronicle) => Some(chronicle.text),
        _ => None,
    })
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

impl From<BadField> for BadHeader {
    fn from(bad: BadField) -> Self {
        Self::Shape(bad.to_string())
    }
}

#[derive(Deserialize)]
struct MomentLine {
    thread: String,
    seq: Seq,
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
        let mut line = LineWriter::begin(self.base_seq());
        line.op("journal")
            .field("version", &VERSION)
            .field("session", &self.session)
            .field("thread", &self.thread);
        line.maybe("base", self.base.as_ref()).maybe("parent", self.parent.as_ref());
        line.maybe("label", self.label.as_ref()).field("timestamp", &self.timestamp);
        line.end()
    }

    /// Reads a header line.
    pub fn decode(line: &str) -> Result<Self, BadHeader> {
        let shape = BadHeader::Shape;
        let object = RawObject::parse(line).map_err(|e| shape(e.to_string()))?;
        let text = |key: &str| -> Result<String, BadHeader> {
            object.read(key)?.ok_or_else(|| shape(format!("field `{key}` is missing")))
        };
        if text("op")? != "journal" {
            return Err(shape("field `op` is not \"journal\"".into()));
        }
        let found: u32 = object.read("version")?.unwrap_or(0);
        if found > VERSION {
            return Err(BadHeader::Newer { found, known: VERSION });
        }
        let moment = |key: &str| -> Result<Option<Moment>, BadHeader> {
            let line: Option<MomentLine> = object.read(key)?;
            line.map(|m| Ok(Moment { thread: ThreadId::new(m.thread)?, seq: m.seq })).transpose()
        };
        Ok(Self {
            session: SessionId::new(text("session")?)?,
            thread: ThreadId::new(text("thread")?)?,
            base: moment("base")?,
            parent: moment("parent")?,
            label: object.read("label")?,
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
