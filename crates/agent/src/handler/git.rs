//! What a task did to the hooks and settings of git in its folder: remembered when it begins, told when it ends.

use super::Kit;
use super::mark::{note, noted};
use crate::error::Result;
use crate::sandbox::Snapshot;
use komado_core::ThreadId;
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
    root.note(ABOUT, note(&Snapshot::of(folder))?)?;
    Ok(())
}

/// The words about the end of a task, with what changed since.
pub(super) fn with_changes(engine: &Engine, kit: &Kit<'_>, words: String) -> Result<String> {
    let Some(folder) = kit.folder.as_ref().or(kit.task.folder.as_ref()) else { return Ok(words) };
    let root = engine.open(kit.session, &ThreadId::root(), Mode::Read)?;
    let before: Option<Snapshot> = noted(&root, ABOUT)?;
    let changed = before.map(|before| before.changes(&Snapshot::of(folder)).to_string());
    Ok(match changed.filter(|changed| !changed.is_empty()) {
        Some(changed) => format!("{}\n\n{changed}", words.trim_end()),
        None => words,
    })
}
