//! Why a session was not moved.

use komado_core::{Seq, SessionId, ThreadId};
use komado_store::Holder;

/// What migration gives back.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with one session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// One of the stores could not.
    #[error(transparent)]
    Store(#[from] komado_store::Error),
    /// Somebody writes it at the source.
    #[error(
        "session {session} is being written by {holder}; it was left alone: run this again when they are done, or with \
         --live catch-up"
    )]
    Live {
        /// The session.
        session: SessionId,
        /// Who writes.
        holder: Holder,
    },
    /// It never held still.
    #[error(
        "session {session} was changed while it was copied (gone over {rounds} times); what was copied is kept: run this \
         again when nobody writes it"
    )]
    Growing {
        /// The session.
        session: SessionId,
        /// How often it was gone over.
        rounds: u32,
    },
    /// Another session of this name.
    #[error(
        "the target has another session {0}, made at another time or with other settings; nothing was overwritten: remove \
         it there, or leave this one out"
    )]
    Taken(SessionId),
    /// The target says something else.
    #[error(
        "the target has something else at {session}/{thread}@{seq}; nothing was overwritten: remove the session there, or \
         leave it out"
    )]
    Differs {
        /// The session.
        session: SessionId,
        /// The thread.
        thread: ThreadId,
        /// The first entry that is not the same; for a header that is not the same, the one before its own first.
        seq: Seq,
    },
    /// The target does not have it.
    #[error("the target has no session {0}; run this without --verify-only")]
    Absent(SessionId),
    /// The digests differ.
    #[error(
        "session {session} is not the same in both stores: {source_digest} at the source, {target_digest} at the target; \
         run this without --verify-only"
    )]
    Unequal {
        /// The session.
        session: SessionId,
        /// Its digest at the source.
        source_digest: String,
        /// Its digest at the target.
        target_digest: String,
    },
    /// A blob that is not what its name says.
    #[error(
        "output {blob} of session {session} reads as {found}: {place} gave back other bytes than were put"
    )]
    Blob {
        /// The session.
        session: SessionId,
        /// The blob's name.
        blob: String,
        /// What its bytes are called.
        found: String,
        /// Which store.
        place: &'static str,
    },
    /// Two names for one place.
    #[error("source and target are the same store; give two different ones")]
    SameStore,
    /// A blob could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}
