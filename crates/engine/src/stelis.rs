//! Stelis threads: windows inside windows.
//!
//! A thread spawns another one for work that would crowd its own window. The child sees what protects each thread above
//! it, has its share of the window for itself, and may be spoken in without end: the parent holds one anchor for it, which
//! says that it works, and later what it did. Nothing here knows an "active thread": every handle names its own.
//!
//! Three places say how a child stands. The row in the table of threads is written first, so that whatever happens next,
//! it names what may have to be put right. A spawn then writes the parent's anchor and the child's journal; every later
//! change is said in the child's journal, which is the truth about the child, and the anchor follows it, if need be when a
//! thread of the session is next opened for writing.

mod anchor;
mod finish;
mod spawn;
mod tend;

pub(crate) use anchor::gist;
pub use finish::{ChronicleBy, Finish, Finished, RetoldChronicle};
pub use spawn::{Child, ResumeChild, Spawn};
pub(crate) use tend::SharedAnchor;
pub use tend::{RecoveredThread, SessionTree, TendedChild, ThreadNode};

/// Most tokens of an anchor, unless set.
pub const ANCHOR_CAP: u64 = 1_000;
