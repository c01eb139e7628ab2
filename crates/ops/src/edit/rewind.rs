//! Rewind: go back to a moment.

use super::everywhere;
use crate::address::AtEntry;
use crate::change::{self, Changed};
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// Go back to a moment, as if nothing after it had happened. Nothing is removed, and a rewind can be rewound.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Rewind {
    /// The moment to go back to, SESSION@SEQ
    #[arg(value_name = "SESSION@SEQ")]
    #[serde(flatten)]
    pub at: AtEntry,
}

impl Operation for Rewind {
    const NAME: &'static str = "rewind";
    const TITLE: &'static str = "Go back to a moment";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = everywhere("rewind", "/sessions/{session}/threads/{thread}/rewind");
    type Output = Changed;

    fn run(self, context: &Context) -> Outcome<Changed> {
        let (found, to) = (context.find(&self.at)?, self.at.seq);
        let changed = change::make(context, &found, Self::NAME, |thread| thread.rewind(to))?;
        let undo = change::rewind_before(&found, changed.seq);
        Ok(changed.told(format!("went back to @{to}; nothing was removed"), undo))
    }
}
