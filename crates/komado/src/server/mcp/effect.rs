//! What a tool does to a session, told to clients as hints.

use rmcp::model::ToolAnnotations;

/// What a call does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Nothing changes.
    Reads,
    /// Something is added, and what the model saw stays as it was.
    Adds,
    /// What the model sees changes. The journal keeps everything, and each change can be undone.
    Edits,
    /// As `Edits`, and a second call finds nothing left to do.
    Settles,
}

impl Effect {
    /// The hints.
    pub(super) fn hints(self, title: &str) -> ToolAnnotations {
        let reads = self == Self::Reads;
        ToolAnnotations::with_title(title)
            .read_only(reads)
            .destructive(matches!(self, Self::Edits | Self::Settles))
            .idempotent(reads || self == Self::Settles)
            .open_world(false)
    }
}
