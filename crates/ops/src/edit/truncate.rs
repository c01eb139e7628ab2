//! Truncate: show a marker in place of a span.

use super::not_for_models;
use crate::address::AtThread;
use crate::change::{self, Changed};
use crate::span::Spans;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// Show a marker in place of entries.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Truncate {
    /// The session, or SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// The entries to hide, such as 3..50 or 3..10,12..50
    #[schemars(example = &"1..2")]
    pub span: Spans,
    /// The marker; one that counts the entries when left out
    #[arg(long)]
    pub text: Option<String>,
}

impl Operation for Truncate {
    const NAME: &'static str = "truncate";
    const TITLE: &'static str = "Show a marker in place of a span";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces =
        not_for_models("truncate", "/sessions/{session}/threads/{thread}/truncate");
    type Output = Changed;

    fn run(self, context: &Context) -> Outcome<Changed> {
        let (found, span) = (context.find_now(&self.at)?, self.span);
        span.check()?;
        let text = self.text.unwrap_or_else(|| format!("[{} entries not shown: {span}]", span.entries()));
        let changed = change::make(context, &found, Self::NAME, |thread| {
            thread.truncate(span.0.clone(), &text, "by_hand")
        })?;
        let undo = change::revert(&found, changed.seq);
        Ok(changed.told(format!("showing a marker in place of {span}"), undo))
    }
}
