//! Unpin: take a pin back.

use super::everywhere;
use crate::address::AtEntry;
use crate::change::{self, Changed};
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// Take a pin back: edits may hide the message again.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Unpin {
    /// The pinned message, SESSION@SEQ
    #[arg(value_name = "SESSION@SEQ")]
    #[serde(flatten)]
    pub at: AtEntry,
}

impl Operation for Unpin {
    const NAME: &'static str = "unpin";
    const TITLE: &'static str = "Take a pin back";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces = everywhere("unpin", "/sessions/{session}/threads/{thread}/unpin");
    type Output = Changed;

    fn run(self, context: &Context) -> Outcome<Changed> {
        let (found, seq) = (context.find(&self.at)?, self.at.seq);
        let changed = change::make(context, &found, Self::NAME, |thread| thread.unpin(seq))?;
        let undo = format!("komado pin {}@{seq}", change::name(&found));
        Ok(changed.told(format!("unpinned @{seq}: edits may hide it again"), undo))
    }
}
