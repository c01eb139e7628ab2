//! A session ends, waits, or goes on.

use super::by_people;
use crate::address::AtSession;
use crate::change::closing_words;
use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel};
use komado_agent::handler::{TaskMark, kept};
use komado_core::session::{Session, State};
use komado_core::{SessionId, ThreadId};
use komado_engine::{Engine, Result};
use komado_store::{BranchFilter, OpenMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A session's new state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct StateChange {
    /// The session.
    pub session: String,
    /// Where it is in its life now.
    pub status: State,
    /// When it ended.
    pub completed_at: Option<String>,
    /// Why it failed, stopped or waits.
    pub error_message: Option<String>,
    /// Child threads that ended with it, those further up first.
    pub aborted: Vec<String>,
    /// Where it is kept now, for a caller on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<Option<String>>,
    /// The command that undoes it.
    pub undo: String,
    /// The commands that let the child threads go on, in order.
    pub undo_aborted: Vec<String>,
}

/// Changes a session's state and tells.
pub(super) fn enter(
    context: &OperationContext,
    at: &AtSession,
    op: impl FnOnce(&Engine, &SessionId) -> Result<Session>,
) -> OpResult<StateChange> {
    let found = context.find(at)?;
    if found.seq.is_some() || !found.thread.is_root() {
        return Err(OpFault::usage(format!("name a session, without thread or moment: {}", found.session)));
    }
    let id = found.session;
    let undo = back_to(context, &context.session(&id)?)?;
    let before = open_children(context, &id)?;
    let session = op(&context.engine, &id)?;
    let after = open_children(context, &id)?;
    let aborted: Vec<String> =
        before.iter().filter(|thread| !after.contains(thread)).map(ToString::to_string).collect();
    let again = |thread: &String| format!("komado thread resume {id}/{thread}");
    Ok(StateChange {
        session: id.to_string(),
        status: session.status,
        completed_at: session.completed_at,
        error_message: session.error_message,
        folder: context.folder(&id),
        undo,
        undo_aborted: aborted.iter().map(again).collect(),
        aborted,
    })
}

/// The command that makes of a session what it is now, with the same result or reason.
fn back_to(context: &OperationContext, session: &Session) -> OpResult<String> {
    let verb = match session.status {
        State::Completed => "complete",
        State::Failed => "fail",
        State::Stopped => "stop",
        State::Paused => "pause",
        State::Queued | State::Running => return Ok(format!("komado session resume {}", session.meta.uuid)),
    };
    let id = SessionId::new(session.meta.uuid.as_str())?;
    let root = context.engine.open(&id, &ThreadId::root(), OpenMode::Read)?;
    // A session fails for a reason.
    let usual = (session.status == State::Failed).then(|| "unknown".to_owned());
    let words = closing_words(&root)?.or(usual).map_or(String::new(), |words| format!(" {words}"));
    Ok(format!("komado session {verb} {id}{words}"))
}

/// The child threads that have not ended, those further up first.
fn open_children(context: &OperationContext, id: &SessionId) -> OpResult<Vec<ThreadId>> {
    let mut branches = context.engine.store().branches(id, BranchFilter::All)?;
    branches.sort_by_key(|branch| branch.depth);
    let open = branches.into_iter().filter(|branch| branch.parent.is_some() && branch.status.is_open());
    Ok(open.map(|branch| branch.thread).collect())
}

/// Declares an operation that ends a session or lets it wait: its verb, its title, why it is done, and how.
macro_rules! ending {
    (
        $(#[$doc:meta])* $name:ident, $verb:literal, $title:literal,
        $(#[$about:meta])* $why:ident: $words:ty, $end:expr
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
        pub struct $name {
            /// The session
            #[arg(value_name = "SESSION")]
            #[serde(flatten)]
            pub at: AtSession,
            $(#[$about])*
            pub $why: $words,
        }

        impl Operation for $name {
            const ABOUT: OperationLabel = OperationLabel::edit($verb, $title);
            const INTERFACES: Interfaces =
                by_people(concat!("session ", $verb), concat!("/sessions/{session}/", $verb));
            type Output = StateChange;

            fn run(self, context: &OperationContext) -> OpResult<StateChange> {
                let end: fn(&Engine, &SessionId, $words) -> Result<Session> = $end;
                enter(context, &self.at, |engine, id| end(engine, id, self.$why))
            }
        }
    };
}

ending! {
    /// End a session well.
    Complete, "complete", "End a session well",
    /// Its result, for people
    result: Option<String>, Engine::complete
}

ending! {
    /// End a session that failed, with the reason.
    FailSession, "fail", "End a session with a reason",
    /// Why
    #[schemars(example = &"the build never passed")]
    reason: String, |engine, id, reason| engine.fail(id, &reason)
}

ending! {
    /// Stop a session: its user ends it.
    StopSession, "stop", "Stop a session",
    /// Why
    reason: Option<String>, Engine::stop
}

ending! {
    /// Let a session wait.
    Pause, "pause", "Let a session wait",
    /// Why
    reason: Option<String>, Engine::pause
}

/// Let a session go on, also one that has ended.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct ResumeSession {
    /// The session
    #[arg(value_name = "SESSION")]
    #[serde(flatten)]
    pub at: AtSession,
}

impl Operation for ResumeSession {
    const ABOUT: OperationLabel = OperationLabel::edit("resume", "Let a session go on");
    const INTERFACES: Interfaces = by_people("session resume", "/sessions/{session}/resume");
    type Output = StateChange;

    fn run(self, context: &OperationContext) -> OpResult<StateChange> {
        check_by_hand(context, &context.find(&self.at)?.session)?;
        enter(context, &self.at, |engine, id| engine.resume(id))
    }
}

/// Refuses to open the session of a task by hand: no worker would work on it, and the next one would end it. One that is
/// completed belongs to no worker any more. The queue is read for sessions of tasks only: a damaged one keeps no other from
/// going on.
fn check_by_hand(context: &OperationContext, id: &SessionId) -> OpResult {
    let row = context.engine.session(id)?;
    if !row.meta.task_key.is_task() || row.status == State::Completed {
        return Ok(());
    }
    let verb = if row.status.is_ended() { "retry" } else { "resume" };
    match context.engine.is_queued(id)? || is_noted(context, id)? {
        true => Err(OpFault::refused(format!("task {id} goes on in the queue: `komado task {verb} {id}`"))),
        false => Ok(()),
    }
}

/// True when a worker has noted in the journal that it works on it.
fn is_noted(context: &OperationContext, id: &SessionId) -> OpResult<bool> {
    let root = context.engine.open(id, &ThreadId::root(), OpenMode::Read)?;
    Ok(TaskMark::of(&root)?.is_some() || kept(&root)?.is_some())
}
