//! Stelis threads: windows inside windows.
//!
//! A thread spawns another one for work that would crowd its own window. The child sees what protects each thread above
//! it, has its share of the window for itself, and may be spoken in without end: the parent holds one anchor for it, which
//! says that it works, and later what it did. Nothing here knows an "active thread": every handle names its own.
//!
//! Three things are written, always in this order: the row in the table of threads (so that whatever happens next, it
//! names what may have to be put right), the child's journal, the parent's anchor. The child's journal is the truth about
//! the child; row and anchor follow it, if need be when a thread of the session is next opened for writing.

mod anchor;
mod child;
mod chronicle;
mod finish;
mod fork;
mod life;
mod recover;
mod spawn;
mod tell;
mod tend;
mod tree;

pub use child::Child;
pub use chronicle::Telling;
pub use finish::{Finish, Finished};
pub use life::Resume;
pub use recover::Recovered;
pub use spawn::Spawn;
pub use tend::Tended;
pub use tree::{Node, Tree};

/// Most tokens of an anchor, where nobody says otherwise.
pub const ANCHOR_CAP: u64 = 1_000;
