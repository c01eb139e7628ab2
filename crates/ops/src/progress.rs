//! How far has a long operation come?

/// How far a long operation has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The index of what was said is brought up to date.
    Indexing {
        /// Entries that are in it.
        done: u64,
        /// Entries that will be.
        total: u64,
    },
    /// Messages are appended.
    Appending {
        /// Entries so far.
        entries: u64,
    },
    /// Sessions are read for a report.
    Reading {
        /// Sessions so far.
        sessions: u64,
        /// Their entries so far.
        entries: u64,
    },
    /// Sessions are checked.
    Checking {
        /// Sessions so far.
        done: u64,
        /// All of them, where that is known.
        total: Option<u64>,
    },
    /// Sessions are copied from one store into another.
    Migrating {
        /// Sessions so far.
        done: u64,
        /// All of them, where that is known.
        total: Option<u64>,
    },
    /// An export is read.
    Importing {
        /// Lines so far.
        lines: u64,
    },
    /// Conversations are replayed.
    Replaying {
        /// Conversations so far.
        done: u64,
        /// All of them.
        total: u64,
    },
}
