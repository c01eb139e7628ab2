//! Threads of a session: forks, and children that work in a share of the window.

mod end;
mod list;
mod share;
mod start;

pub use end::{
    AbortThread, ChronicleEntry, ChronicleWriter, EndThread, EndedThread, HowEnded, PauseThread,
    ReadChronicle, ThreadChronicle, WriteChronicle, WrittenBy, WrittenChronicle,
};
pub use list::{DrawThreads, ListThreads, ThreadRow, ThreadTree, TreeThread};
pub use share::{AboveShare, BalanceThread, Balanced, ResumeThread, Resumed, ShareEntry, WindowShare};
pub use start::{ChildOptions, Fork, Forked, Ran, RunThread, StartThread, Started, ratio, spawn_settings};

use crate::address::{AtThread, Target};
use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, Route};
use komado_core::Seq;
use komado_engine::engine::ResolvedAddress;
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change of a thread: a verb, a route and a tool.
const fn everywhere(verb: &'static str, path: &'static str) -> Interfaces {
    Interfaces::everywhere(verb, Route::post("threads", path))
}

/// The child thread that a request means, for an operation that changes what is now.
fn child(context: &OperationContext, at: &AtThread) -> OpResult<ResolvedAddress> {
    let found = context.find_now(at)?;
    match found.thread.is_root() {
        false => Ok(found),
        true => Err(OpFault::usage(format!(
            "name a child thread, such as {0}/stelis_1; `komado thread tree {0}` shows which there are",
            found.session
        ))),
    }
}

/// A thread, or one with its session.
const LISTENER: &str = concat!("^(", komado_core::id_pattern!(), "/)?", komado_core::id_pattern!(), "$");

/// Send a message from one thread to another of the same session, which hears them before its next request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct TellThread {
    /// The thread that speaks.
    #[serde(flatten)]
    pub at: AtThread,
    /// The thread that is to hear it, of the same session.
    #[schemars(regex(pattern = LISTENER), example = &"root")]
    pub to: String,
    /// The words.
    #[schemars(length(min = 1), example = &"the tests pass")]
    pub text: String,
}

/// Words that were told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct TellResult {
    /// The session.
    pub session: String,
    /// The thread that spoke.
    pub thread: String,
    /// The thread that hears it.
    pub to: String,
    /// The entry.
    pub seq: Seq,
    /// `tell`.
    pub op: &'static str,
}

impl Operation for TellThread {
    const ABOUT: OperationLabel = OperationLabel::add("thread_tell", "Send a message to another thread");
    const INTERFACES: Interfaces = everywhere("thread tell", "/sessions/{session}/threads/{thread}/tell");
    type Output = TellResult;

    fn run(self, context: &OperationContext) -> OpResult<TellResult> {
        let from = context.find_now(&self.at)?;
        let to = listener(context, &from, &self.to)?;
        if self.text.trim().is_empty() {
            return Err(OpFault::usage("nothing is told: write the words"));
        }
        let mut thread = context.open(&from, OpenMode::Write)?;
        let seq = thread.tell(&to.thread, &self.text)?;
        context.settle(&mut thread);
        Ok(TellResult {
            session: from.session.to_string(),
            thread: from.thread.to_string(),
            to: to.thread.to_string(),
            seq,
            op: "tell",
        })
    }
}

/// The thread that is to hear: a name is one of the speaker's session, an address must lead there.
fn listener(context: &OperationContext, from: &ResolvedAddress, to: &str) -> OpResult<ResolvedAddress> {
    let own = from.session.to_string();
    let (session, thread) = match to.split_once('/') {
        Some((session, thread)) => (session.to_owned(), thread),
        None => (own, to),
    };
    let target = Target { session: Some(session), thread: Some(thread.to_owned()), seq: None };
    // A name alone is in the failure; of an address its thread may be missing there.
    let named = |fault: OpFault| match to.contains('/') {
        true => fault.and(format!("it was to be told to {to:?}")),
        false => fault,
    };
    let found = context.find_now(target).map_err(named)?;
    match found.session == from.session {
        true => Ok(found),
        false => Err(OpFault::usage(format!(
            "threads of one session tell each other; {} is of session {}, not of {}",
            found.thread, found.session, from.session
        ))),
    }
}
