//! What can go wrong between a caller and a store.

use komado_core::admit::EntryRefusal;
use komado_core::ladder::Floor;
use komado_core::{BadId, Seq};

/// What the engine gives back.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store could not.
    #[error(transparent)]
    Store(#[from] komado_store::Error),
    /// The entry may not be appended.
    #[error(transparent)]
    Refused(#[from] EntryRefusal),
    /// Not an id.
    #[error(transparent)]
    Id(#[from] BadId),
    /// A prefix that fits several.
    #[error("{given:?} fits several: {}; write more of it", .fits.join(", "))]
    Ambiguous {
        /// What was given.
        given: String,
        /// What it fits.
        fits: Vec<String>,
    },
    /// A prefix that fits nothing.
    #[error("there is no {what} {given:?}; {hint}")]
    Unknown {
        /// A session or a thread.
        what: &'static str,
        /// What was given.
        given: String,
        /// Where to look.
        hint: &'static str,
    },
    /// A moment after the end.
    #[error("{}", no_moment(.thread, *.seq, *.last))]
    NoMoment {
        /// The thread.
        thread: String,
        /// What was asked for.
        seq: Seq,
        /// Its last entry.
        last: Seq,
    },
    /// A result that names no call and fits none.
    #[error("a tool's result names no call, and {0}; name it: --call ID, or tool_call_id in a message")]
    NoCallFits(String),
    /// An edit that makes the view no smaller.
    #[error(
        "this {edit} would free nothing: the view has {before} tokens and would have {after}; write a shorter text, or name more entries"
    )]
    NoGain {
        /// The kind of edit.
        edit: &'static str,
        /// Tokens of the view.
        before: u64,
        /// Tokens it would have.
        after: u64,
    },
    /// What must stay is more than the window holds.
    #[error("{0}")]
    Floor(Floor),
    /// A spawned thread cannot work in what it has of the window.
    #[error("{0}")]
    NoRoom(Box<crate::share::NoRoom>),
    /// What must be seen of a thread above is more than what protects it.
    #[error(transparent)]
    TooMuch(#[from] komado_core::slice::SliceTooLarge),
    /// Only a spawned thread has a share.
    #[error("thread {0} was not spawned, so it has the whole window; name a spawned one")]
    NotSpawned(String),
    /// A spawned thread whose share was never written.
    #[error("thread {0} was never begun: the process that spawned it ended; start another one")]
    NeverBegun(String),
    /// A thread that cannot hold one more anchor.
    #[error(
        "thread {thread} cannot start another thread: of its {room} tokens it can use {most}, and with one more anchor what \
         must stay takes {must}: system prompt and tools {setup}, pins and system messages {pinned}, anchors of threads that \
         have not ended {anchors}; end one of those, unpin something, or use a larger window"
    )]
    Crowded {
        /// The thread.
        thread: String,
        /// What it has of the window.
        room: u64,
        /// What of that its items may take.
        most: u64,
        /// What must stay.
        must: u64,
        /// System prompt and tools.
        setup: u64,
        /// Pins, and system messages at the beginning.
        pinned: u64,
        /// Open anchors, the new one included.
        anchors: u64,
    },
    /// The ladder did not come to an end; nothing is lost, but this is our fault.
    #[error(
        "after {steps} edits the view still has {tokens} tokens and nothing settles; this is a fault in komado, please report it"
    )]
    Endless {
        /// Edits made.
        steps: usize,
        /// Tokens of the view.
        tokens: u64,
    },
    /// A thread that may not spawn another one.
    #[error(
        "thread {thread} is {depth} deep and at most {most} levels are allowed: end it and start from its parent, or raise \
         threads.max_depth (STELIS_MAX_DEPTH)"
    )]
    TooDeep {
        /// The thread.
        thread: String,
        /// How far below the root it is.
        depth: u32,
        /// How deep threads may nest.
        most: u32,
    },
    /// An anchor that could not even name its thread.
    #[error(
        "an anchor of at most {cap} tokens is too small: its first lines alone take {needed}; allow more"
    )]
    AnchorCap {
        /// Tokens allowed.
        cap: u64,
        /// Tokens of what an anchor must say.
        needed: u64,
    },
    /// An edit over the anchor of a child that has not ended.
    #[error("@{seq} is the anchor of {thread}, which is at work; end or abort it first, or leave it out")]
    OpenAnchor {
        /// The anchor.
        seq: Seq,
        /// The child.
        thread: String,
    },
    /// A thread that cannot hear.
    #[error("thread {thread} cannot be told anything: {why}")]
    NoListener {
        /// The thread.
        thread: String,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// Words that are none.
    #[error("the {0} is empty; say something")]
    NoWords(&'static str),
    /// An anchor is needed in a thread that someone else writes.
    #[error(
        "thread {thread} needs an anchor in its parent {parent}, which is open elsewhere; close that first"
    )]
    ParentBusy {
        /// The thread to be forked or resumed.
        thread: String,
        /// Its parent.
        parent: String,
    },
    /// A child cannot go on under a thread that has ended.
    #[error("thread {thread} was spawned from {parent}, which has ended; resume that first")]
    ParentEnded {
        /// The child.
        thread: String,
        /// Its parent.
        parent: String,
    },
    /// A thread that has not ended.
    #[error("thread {0} is active: there is nothing to resume")]
    NotClosed(String),
    /// A conversation that has nothing for a model to answer.
    #[error("{0}")]
    NothingToAnswer(&'static str),
    /// No model can be asked.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Model(#[from] crate::model::ModelError),
    /// Someone stopped it.
    #[error("stopped; nothing was sent, and nothing but the attempt is in the journal")]
    Cancelled,
    /// A request brought no answer. What was said before it is kept, and the thread goes on.
    #[cfg(feature = "client")]
    #[error("{why} (journaled as @{seq})")]
    Unanswered {
        /// The entry that says so.
        seq: Seq,
        /// Why.
        why: crate::exchange::UnansweredReason,
    },
    /// An export that cannot be read.
    #[error("line {line} of the export: {why}; nothing was imported")]
    BadExport {
        /// Where.
        line: u64,
        /// What.
        why: String,
    },
    /// The session is not in a state for this.
    #[error("session {session} is {state}: {why}")]
    WrongState {
        /// The session.
        session: String,
        /// Its state.
        state: &'static str,
        /// What would be needed.
        why: &'static str,
    },
    /// A search for nothing.
    #[error("the query is empty; say what to look for")]
    NoQuery,
    /// A pattern that is none.
    #[error("not a pattern: {0}")]
    BadPattern(#[from] regex::Error),
    /// A pattern that would leave nothing.
    #[error("the pattern {0:?} matches the empty text, and so everything; write one that does not")]
    MatchesAll(String),
    /// Reading or writing outside the store failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// What kind of failure it is: what a program can do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting, an option or an address is missing or wrong.
    Setting,
    /// What was named is not there.
    NotFound,
    /// Another process is writing.
    Busy,
    /// It would leave a view that cannot be sent, or change nothing; or the session is not in a state for it.
    Refused,
    /// The input is not what it should be.
    Input,
    /// The server that holds the sessions does not answer.
    Away,
    /// Something else failed.
    Failed,
}

/// Says what there is, where an entry is not.
fn no_moment(thread: &str, seq: Seq, last: Seq) -> String {
    let short = thread.strip_suffix("/root").unwrap_or(thread);
    let has = match last {
        0 => "has no entries yet".to_owned(),
        1 => "has 1 entry".to_owned(),
        last => format!("has {last} entries"),
    };
    format!("{thread} {has}; @{seq} is not there; `komado log {short}` lists them")
}

impl Error {
    /// True when what must be shown is more than there is room for.
    pub(crate) const fn is_no_room(&self) -> bool {
        matches!(self, Self::Floor(_) | Self::NoRoom(_) | Self::TooMuch(_))
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => kind_of_store(error),
            #[cfg(feature = "client")]
            Self::Model(error) => error.kind(),
            Self::ParentBusy { .. } => ErrorKind::Busy,
            Self::Unknown { .. } | Self::Ambiguous { .. } | Self::NoMoment { .. } => ErrorKind::NotFound,
            Self::Id(_)
            | Self::BadExport { .. }
            | Self::BadPattern(_)
            | Self::MatchesAll { .. }
            | Self::NoWords { .. }
            | Self::NoQuery => ErrorKind::Input,
            #[cfg(feature = "client")]
            Self::Unanswered { .. } => ErrorKind::Failed,
            Self::Endless { .. } | Self::Cancelled | Self::Io(_) => ErrorKind::Failed,
            _ => ErrorKind::Refused,
        }
    }
}

/// What kind of failure of a store it is.
pub fn kind_of_store(error: &komado_store::Error) -> ErrorKind {
    use komado_store::Error as Store;
    match error {
        Store::NoSession(_) | Store::NoThread(..) | Store::NoBlob(..) => ErrorKind::NotFound,
        Store::Busy { .. } => ErrorKind::Busy,
        Store::Away { .. } => ErrorKind::Away,
        Store::BadAddress { .. } => ErrorKind::Setting,
        Store::Ended(..)
        | Store::SessionExists(_)
        | Store::ThreadExists(..)
        | Store::Moved { .. }
        | Store::TakenOver(_)
        | Store::NotYours(_) => ErrorKind::Refused,
        _ => ErrorKind::Failed,
    }
}
