//! Revert: undo one edit.

use super::everywhere;
use crate::address::AtEntry;
use crate::change::{self, Changed};
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use komado_core::journal::Entry;
use komado_store::Mode;
use schemars::JsonSchema;
use serde::Deserialize;

/// Undo one edit of the view, and keep everything that was said since.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Revert {
    /// The edit (or the revert) to undo, SESSION@SEQ; `context` lists them
    #[arg(value_name = "SESSION@SEQ")]
    #[serde(flatten)]
    pub at: AtEntry,
}

impl Operation for Revert {
    const NAME: &'static str = "revert";
    const TITLE: &'static str = "Undo an edit";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = everywhere("revert", "/sessions/{session}/threads/{thread}/revert");
    type Output = Changed;

    fn run(self, context: &Context) -> Outcome<Changed> {
        let (found, target) = (context.find(&self.at)?, self.at.seq);
        // Undoing an undo brings an edit back; what undoes that is reverting the edit itself.
        let edit = match context.engine.open(&found.session, &found.thread, Mode::Read)?.record(target)?.entry
        {
            Entry::Revert { target: edit } => Some(edit),
            _ => None,
        };
        let changed = change::make(context, &found, Self::NAME, |thread| thread.revert(target))?;
        let undo = change::revert(&found, edit.unwrap_or(changed.seq));
        Ok(changed.told(format!("undid @{target}; everything said since stays"), undo))
    }
}
