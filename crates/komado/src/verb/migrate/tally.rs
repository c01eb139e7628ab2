//! What a migration came to, session by session and in all.

use super::Way;
use crate::paper::{count, number};
use komado_core::SessionId;
use komado_engine::migrate::{Moved, Progress, Seal, Standing};
use serde_json::{Value, json};

/// Sums over all sessions.
#[derive(Default)]
pub(super) struct Tally {
    sessions: u64,
    entries: u64,
    blobs: u64,
    bytes: u64,
    /// What had to be copied for that.
    added: Progress,
    pub(super) lessons: u64,
    pub(super) jobs: u64,
    pub(super) removed: u64,
    pub(super) failed: u64,
    /// A digest over the digests of all sessions, in the order they were made.
    digest: blake3::Hasher,
}

impl Tally {
    pub(super) fn looked(&mut self, standing: &Standing) {
        self.sessions += 1;
        self.entries += standing.entries;
        self.added.entries += standing.entries.saturating_sub(standing.there);
    }

    pub(super) fn compared(&mut self, id: &SessionId, seal: &Seal) {
        self.sessions += 1;
        self.entries += seal.entries;
        self.blobs += seal.blobs;
        self.bytes += seal.bytes;
        self.digest.update(id.as_str().as_bytes()).update(b"\n");
        self.digest.update(seal.digest.as_bytes()).update(b"\n");
    }

    pub(super) fn moved(&mut self, id: &SessionId, moved: &Moved) {
        self.compared(id, &moved.seal);
        self.added.entries += moved.added.entries;
        self.added.blobs += moved.added.blobs;
        self.added.bytes += moved.added.bytes;
    }

    pub(super) fn json(&self) -> Value {
        json!({ "summary": {
            "sessions": self.sessions,
            "entries": self.entries,
            "outputs": self.blobs,
            "bytes": self.bytes,
            "added": added(&self.added),
            "lessons": self.lessons,
            "jobs": self.jobs,
            "removed": self.removed,
            "left": self.failed,
            "digest": self.digest.finalize().to_hex().as_str(),
        } })
    }

    pub(super) fn lines(&self, way: Way) -> Vec<String> {
        let sessions = count(self.sessions, "session");
        let what = format!("{sessions}, {} entries, {}", number(self.entries), count(self.blobs, "output"));
        let digest = self.digest.finalize().to_hex();
        let verified = format!("read back and the same; digest {digest}");
        match way {
            Way::Look => {
                vec![format!("would copy {} entries of {sessions}", number(self.added.entries))]
            }
            Way::Compare => vec![format!("{what}: {verified}")],
            Way::Copy | Way::Move => {
                let mut lines = vec![
                    format!("{what}: {verified}"),
                    format!(
                        "copied {} entries and {} that were not there, {} and {}",
                        number(self.added.entries),
                        count(self.added.blobs, "output"),
                        count(self.lessons, "lesson"),
                        count(self.jobs, "job")
                    ),
                ];
                if way == Way::Move {
                    lines.push(format!("removed {} from the source", count(self.removed, "session")));
                }
                lines
            }
        }
    }
}

fn added(progress: &Progress) -> Value {
    json!({ "entries": progress.entries, "outputs": progress.blobs, "bytes": progress.bytes })
}

/// What both stores hold, for programs.
pub(super) fn seal(seal: &Seal) -> Value {
    json!({
        "threads": seal.threads,
        "entries": seal.entries,
        "outputs": seal.blobs,
        "bytes": seal.bytes,
        "digest": seal.digest,
    })
}

/// The same for a session that was copied.
pub(super) fn moved(moved: &Moved) -> Value {
    let mut row = seal(&moved.seal);
    row["added"] = added(&moved.added);
    row["rounds"] = json!(moved.rounds);
    row
}

/// What would be copied, for programs.
pub(super) fn standing(standing: &Standing) -> Value {
    json!({ "threads": standing.threads, "entries": standing.entries, "there": standing.there })
}
