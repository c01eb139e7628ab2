//! Pin: keep a message in the view through every edit.

use super::everywhere;
use crate::address::AtEntry;
use crate::change::{self, Changed};
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// Keep a message in the view through every edit, word for word. A call is pinned with its results.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Pin {
    /// The message, SESSION@SEQ; a call is pinned with its results
    #[arg(value_name = "SESSION@SEQ")]
    #[serde(flatten)]
    pub at: AtEntry,
}

impl Operation for Pin {
    const NAME: &'static str = "pin";
    const TITLE: &'static str = "Pin a message";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces = everywhere("pin", "/sessions/{session}/threads/{thread}/pin");
    type Output = Changed;

    fn run(self, context: &Context) -> Outcome<Changed> {
        let (found, seq) = (context.find(&self.at)?, self.at.seq);
        let changed = change::make(context, &found, Self::NAME, |thread| thread.pin(seq))?;
        let undo = format!("komado unpin {}@{seq}", change::name(&found));
        Ok(changed.told(format!("pinned @{seq}: no edit hides it now"), undo))
    }
}
