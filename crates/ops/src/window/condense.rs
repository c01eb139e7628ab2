//! Condense: show a summary in place of a span.

use super::{Fitted, Room};
use crate::address::AtThread;
use crate::change::{self, Changed};
use crate::fault::Exit;
use crate::operation::Route;
use crate::span::Spans;
use crate::{Context, Effect, Fault, Interfaces, Operation, Outcome};
use komado_core::Seq;
use komado_core::budget::Budget;
use komado_engine::Thread;
use komado_engine::engine::Found;
use komado_engine::model::ModelChoice;
use komado_provider::Cancel;
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Show a summary in place of entries: yours, with span and text, or one that is written now. The entries stay in the
/// journal; revert brings them back.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Condense {
    /// The session, or SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// The entries to hide, such as 3..50 or 3..10,12..50; left out: all but what is kept, in a summary written now
    #[schemars(example = &"1..2")]
    pub span: Option<Spans>,
    /// The summary for the span
    #[arg(long, requires = "span", help = "The summary for the span; standard input when left out")]
    #[schemars(example = &"They agreed on the plan.")]
    pub text: Option<String>,
    /// Which window, and by which rule; for a summary that is written now.
    #[command(flatten)]
    #[serde(flatten)]
    pub room: Room,
}

/// A summary that stands in place of entries.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Condensed {
    /// One that was given.
    Given(Changed),
    /// One that was written now.
    Written(Written),
}

/// A summary that was written now.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Written {
    /// The entry that made the change.
    pub seq: Seq,
    /// What was done, as for a fit.
    #[serde(flatten)]
    pub fitted: Fitted,
}

impl Operation for Condense {
    const NAME: &'static str = "condense";
    const TITLE: &'static str = "Show a summary in place of a span";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "condense",
        Route::post("view", "/sessions/{session}/threads/{thread}/condense"),
    );
    type Output = Condensed;

    fn run(self, context: &Context) -> Outcome<Condensed> {
        let (span, text) = match (self.span, self.text) {
            (Some(span), Some(text)) => (span, text),
            (None, None) => {
                let found = context.find_now(&self.at)?;
                let budget = |thread: &Thread<'_>| self.room.budget(context, thread);
                return condense_now(context, &found, budget, &ModelChoice::default())
                    .map(Condensed::Written);
            }
            _ => return Err(Fault::usage("span and text go together: give both, or neither")),
        };
        span.check()?;
        let found = context.find_now(&self.at)?;
        let changed = change::make(context, &found, Self::NAME, |thread| {
            thread.condense(span.0.clone(), &text, "by_hand")
        })?;
        let undo = change::revert(&found, changed.seq);
        Ok(Condensed::Given(changed.told(format!("showing the summary in place of {span}"), undo)))
    }
}

/// Condenses now, whether or not there is room.
pub fn condense_now(
    context: &Context,
    found: &Found,
    budget: impl FnOnce(&Thread<'_>) -> Outcome<Budget>,
    choice: &ModelChoice,
) -> Outcome<Written> {
    let mut thread = context.open(found, Mode::Write)?;
    let budget = budget(&thread)?;
    let meter = thread.meter();
    let mut writer = context.models().summariser(&found.session, meter, choice, None, &Cancel::default())?;
    let condensed = thread.condense_now(&mut context.config.models.summaries.ladder(budget, writer.by()));
    // Also after a failure: that a model was asked is in the journal.
    context.settle(&mut thread);
    let fitted = condensed?;
    match fitted.done.first().map(|done| done.seq) {
        Some(seq) => Ok(Written { seq, fitted: Fitted::of(found, fitted) }),
        None => Err(Fault::new(Exit::Refused, fitted.declined.join("; "))),
    }
}
