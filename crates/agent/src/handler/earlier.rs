//! What earlier work on the same task came to: the summary of the newest session with its key.

use crate::error::Result;
use crate::source::head;
use crate::task::Task;
use komado_core::journal::{Close, Entry};
use komado_core::{Seq, SessionId, ThreadId};
use komado_engine::Engine;
use komado_store::{Mode, Query};

/// Most bytes of a summary that are inherited.
const MOST: usize = 16 << 10;

/// The summary of the newest session that ended with this task's key. One page of sessions at a time is looked at; a task
/// whose key is its session's own name has none.
pub(super) fn summary(engine: &Engine, task: &Task, session: &SessionId) -> Result<Option<String>> {
    if task.key.task_id == session.as_str() {
        return Ok(None);
    }
    let mut newest: Option<(String, SessionId)> = None;
    engine.each_session(Query::default(), |row| {
        let is_it =
            row.meta.task_key == task.key && row.status.is_ended() && row.meta.uuid != session.as_str();
        let ended = row.completed_at.clone().unwrap_or_else(|| row.updated_at.clone());
        if is_it && newest.as_ref().is_none_or(|(before, _)| *before <= ended) {
            newest = Some((ended, SessionId::new(row.meta.uuid.as_str())?));
        }
        Ok(())
    })?;
    match newest {
        Some((_, id)) => {
            Ok(closing(engine, &id)?.and_then(|(_, close)| close.result).map(|text| bounded(&text)))
        }
        None => Ok(None),
    }
}

/// What the journal says of a session's end, and where.
pub(super) fn closing(engine: &Engine, id: &SessionId) -> Result<Option<(Seq, Close)>> {
    let root = engine.open(id, &ThreadId::root(), Mode::Read)?;
    let Some(at) = root.view().closed() else { return Ok(None) };
    match root.record(at)?.entry {
        Entry::Close(close) => Ok(Some((at, close))),
        _ => Ok(None),
    }
}

fn bounded(text: &str) -> String {
    let kept = head(text, MOST);
    let rest = if kept.len() < text.len() { "…" } else { "" };
    format!("{kept}{rest}")
}
