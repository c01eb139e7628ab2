//! Trim: show a placeholder in place of what an entry says.

use super::not_for_models;
use crate::address::AtThread;
use crate::change::{self, Changed};
use crate::span::Spans;
use crate::{Context, Effect, Fault, Interfaces, Operation, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// Entries that one call may trim: each is named in the edit.
const MOST: u64 = 10_000;

/// Show a placeholder in place of what entries say.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Trim {
    /// The session, or SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// The entries, such as 7 or 7,9,12
    #[schemars(example = &"1..2")]
    pub span: Spans,
    /// The placeholder; one that names the entry when left out
    #[arg(long)]
    pub text: Option<String>,
}

impl Operation for Trim {
    const NAME: &'static str = "trim";
    const TITLE: &'static str = "Show a placeholder in place of what entries say";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = not_for_models("trim", "/sessions/{session}/threads/{thread}/trim");
    type Output = Changed;

    fn run(self, context: &Context) -> Outcome<Changed> {
        let (found, span) = (context.find_now(&self.at)?, self.span);
        span.check()?;
        if span.entries() > MOST {
            let named = span.entries();
            return Err(Fault::usage(format!("{named} entries are named, and {MOST} is the most at a time")));
        }
        let seqs = span.0.iter().flat_map(|span| span.from..=span.to);
        let usual = |seq| format!("[output trimmed; entry @{seq} keeps it]");
        let places: Vec<_> = seqs.map(|seq| (seq, self.text.clone().unwrap_or_else(|| usual(seq)))).collect();
        let changed = change::make(context, &found, Self::NAME, |thread| thread.trim(places, "by_hand"))?;
        let undo = change::revert(&found, changed.seq);
        Ok(changed.told(format!("showing placeholders for {span}"), undo))
    }
}
