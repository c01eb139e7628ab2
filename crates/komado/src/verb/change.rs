//! Changes that verbs make themselves.

use crate::app::App;
use crate::fault::Outcome;
use crate::render::Render;
use komado_core::Seq;
use komado_engine::engine::Found;
use komado_engine::{Result, Thread};
pub(super) use komado_ops::change::{Change, name, rewind_to};

/// Opens the thread for writing, makes one change, settles, and tells.
pub(super) fn make(
    app: &mut App,
    found: &Found,
    op: impl FnOnce(&mut Thread<'_>) -> Result<Seq>,
    tell: impl FnOnce(Seq) -> Change,
) -> Outcome {
    let changed = komado_ops::change::make(&app.context, found, op, tell)?;
    if app.paper.json { changed.json(&mut app.paper) } else { changed.text(&mut app.paper) }
}
