//! What a task did to the hooks and settings of git in its folder: remembered when it begins, told when it ends.

use super::Kit;
use crate::error::Result;
use crate::sandbox::Snapshot;
use komado_core::ThreadId;
use komado_core::raw::Raw;
use komado_engine::{Engine, Thread};
use komado_store::Mode;

/// What the note is about.
const ABOUT: &str = "git";

/// Notes how things are, before any tool runs.
pub(super) fn remember(root: &mut Thread<'_>, kit: &Kit<'_>) -> Result<()> {
    let Some(folder) = &kit.folder else { return Ok(()) };
    if root.noted(ABOUT)?.is_some() {
        return Ok(());
    }
    let text = serde_json::to_string(&Snapshot::of(folder)).and_then(Raw::parse);
    root.note(ABOUT, text.map_err(std::io::Error::from)?)?;
    Ok(())
}

/// The words about the end of a task, with what changed since.
pub(super) fn with_changes(engine: &Engine, kit: &Kit<'_>, words: String) -> Result<String> {
    let Some(folder) = kit.folder.as_ref().or(kit.task.folder.as_ref()) else { return Ok(words) };
    let root = engine.open(kit.session, &ThreadId::root(), Mode::Read)?;
    let before: Option<Snapshot> =
        root.noted(ABOUT)?.and_then(|(_, value)| serde_json::from_str(value.get()).ok());
    let changed = before.map(|before| before.changes(&Snapshot::of(folder)).to_string());
    Ok(match changed.filter(|changed| !changed.is_empty()) {
        Some(changed) => format!("{}\n\n{changed}", words.trim_end()),
        None => words,
    })
}
