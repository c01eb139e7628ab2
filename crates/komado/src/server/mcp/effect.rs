//! What an operation does to a session, told to clients as hints.

use komado_ops::Effect;
use rmcp::model::ToolAnnotations;

/// The hints of a tool.
pub(super) fn hints(effect: Effect, title: &str) -> ToolAnnotations {
    let reads = effect == Effect::Read;
    ToolAnnotations::with_title(title)
        .read_only(reads)
        .destructive(matches!(effect, Effect::Edit | Effect::Settle | Effect::Remove))
        .idempotent(reads || effect == Effect::Settle)
        .open_world(false)
}
