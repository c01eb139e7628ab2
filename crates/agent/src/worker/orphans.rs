//! Sessions of tasks that nobody works on and nobody will: their job is gone.
//!
//! A job leaves the queue when somebody takes it out or when its session has ended. Whoever was killed right after it was
//! taken out leaves a session that says it runs, for ever. It is put right: stopped, with the reason, and kept.

use crate::error::Result;
use crate::handler::Mark;
use komado_core::journal::{Close, Ending, Entry};
use komado_core::session::{State, TaskKey};
use komado_core::{Kind, SessionId, ThreadId, head};
use komado_engine::{Engine, Error as EngineError};
use komado_store::{Error as Store, Mode, Query};
use std::collections::HashSet;

const WHY: &str = "its job is no longer in the queue, and nobody works on it";

/// A session that was put right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Orphan {
    /// The session.
    pub session: SessionId,
    /// What it worked on.
    pub key: TaskKey,
}

/// Finds them and stops them; gives those that were stopped.
pub fn orphans(engine: &Engine) -> Result<Vec<Orphan>> {
    // Sessions first: one that is made while the queue is read is not among them.
    let mut found = Vec::new();
    engine.each_session(Query { status: Some(State::Running), ..Query::default() }, |row| {
        if row.meta.task_key.is_task() {
            found.push((SessionId::new(row.meta.uuid.as_str())?, row.meta.task_key.clone()));
        }
        Ok(())
    })?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let queued: HashSet<SessionId> =
        engine.jobs().map(|queued| Ok(queued?.job.session)).collect::<Result<_>>()?;
    let mut stopped = Vec::new();
    for (session, key) in found.into_iter().filter(|(session, _)| !queued.contains(session)) {
        if is_abandoned(engine, &session)? && stop(engine, &session)? {
            stopped.push(Orphan { session, key });
        }
    }
    Ok(stopped)
}

/// True when a worker began it and nobody writes it now. A session that somebody made by hand for an issue is theirs, and
/// so is one that they opened after it was completed.
fn is_abandoned(engine: &Engine, session: &SessionId) -> Result<bool> {
    Ok(engine.store().writer(session)?.is_none()
        && Mark::of_session(engine, session)?.is_some()
        && !was_completed(engine, session)?)
}

/// True when it was completed the last time it was closed.
fn was_completed(engine: &Engine, session: &SessionId) -> Result<bool> {
    let root = engine.open(session, &ThreadId::root(), Mode::Read)?;
    // Whether or not it was opened again since.
    for entry in head::back(root.source(), 0) {
        let (seq, head) = entry?;
        if head.kind == Kind::Close {
            let entry = root.record(seq)?.entry;
            return Ok(matches!(entry, Entry::Close(Close { ending: Ending::Completed, .. })));
        }
    }
    Ok(false)
}

fn stop(engine: &Engine, session: &SessionId) -> Result<bool> {
    match engine.stop(session, Some(WHY.to_owned())) {
        Ok(_) => Ok(true),
        Err(EngineError::Store(Store::Busy { .. } | Store::Ended(..)) | EngineError::Refused(_)) => Ok(false),
        Err(other) => Err(other.into()),
    }
}
