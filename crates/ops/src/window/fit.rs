//! Fit: make the view fit its window.

use super::Room;
use crate::address::AtThread;
use crate::change;
use crate::operation::Route;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use komado_core::Seq;
use komado_core::budget::Verdict;
use komado_engine::Thread;
use komado_engine::engine::Found;
use komado_engine::fit::{Done, Ladder, Resliced};
use komado_engine::model::ModelChoice;
use komado_provider::Cancel;
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Make the view fit its window: trim old outputs, condense, truncate, as far as is needed. Says what was done and how to
/// undo it.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Fit {
    /// The session, or SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// Only say what would be done
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// First take back edits for which the window has room again
    #[arg(long)]
    #[serde(default)]
    pub relax: bool,
    /// Which window, and by which rule.
    #[command(flatten)]
    #[serde(flatten)]
    pub room: Room,
}

/// What was done to make a view fit, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Fitted {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The rule that decided, with its numbers.
    pub verdict: Verdict,
    /// The edits, in order.
    pub edits: Vec<MadeEdit>,
    /// What is seen of the threads above, where it was cut anew because the window is another.
    pub slices: Vec<Recut>,
    /// Summaries that could not be had, and why.
    pub declined: Vec<String>,
    /// Tokens of the view before.
    pub tokens_before: u64,
    /// Tokens of the view after.
    pub tokens_after: u64,
    /// Edits that were taken back first.
    pub reverted: Vec<Seq>,
    /// True when nothing was changed.
    pub dry_run: bool,
}

/// An edit that was made, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MadeEdit {
    /// Its entry.
    pub seq: Seq,
    /// The rung of the ladder: trim, condense, truncate or clip.
    pub rung: &'static str,
    /// The kind of entry.
    pub op: &'static str,
    /// The rule that asked for it.
    pub rule: String,
    /// Anything else worth knowing.
    pub note: Option<String>,
    /// What leaves the view or is shown otherwise, as first and last entry.
    pub spans: Vec<[Seq; 2]>,
    /// Tokens of the view before.
    pub tokens_before: u64,
    /// Tokens of the view after.
    pub tokens_after: u64,
    /// The model that wrote the text, when one did.
    pub model: Option<String>,
    /// The command that undoes it.
    pub undo: String,
}

impl MadeEdit {
    /// An edit of the thread `found`.
    pub fn of(found: &Found, done: &Done) -> Self {
        let cause = done.edit.cause.clone();
        Self {
            seq: done.seq,
            rung: done.rung.name(),
            op: done.edit.kind.name(),
            rule: cause.rule,
            note: cause.note,
            spans: done.touched().iter().map(|span| [span.from, span.to]).collect(),
            tokens_before: cause.before,
            tokens_after: cause.after,
            model: cause.model,
            undo: change::revert(found, done.seq),
        }
    }
}

/// What is seen of the threads above, cut anew for a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Recut {
    /// The entry that says so.
    pub seq: Seq,
    /// The window.
    pub window: u64,
    /// Tokens before.
    pub tokens_before: u32,
    /// Tokens after.
    pub tokens_after: u32,
}

impl From<&Resliced> for Recut {
    fn from(cut: &Resliced) -> Self {
        Self { seq: cut.seq, window: cut.window, tokens_before: cut.before, tokens_after: cut.after }
    }
}

impl Fitted {
    /// What was done in the thread `found`.
    pub(super) fn of(found: &Found, fitted: komado_engine::fit::Fitted) -> Self {
        Self {
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            edits: fitted.done.iter().map(|done| MadeEdit::of(found, done)).collect(),
            slices: fitted.share.iter().map(Recut::from).collect(),
            declined: fitted.declined,
            tokens_before: fitted.verdict.tokens,
            tokens_after: fitted.after,
            verdict: fitted.verdict,
            reverted: Vec::new(),
            dry_run: false,
        }
    }
}

impl Operation for Fit {
    const NAME: &'static str = "fit";
    const TITLE: &'static str = "Make the view fit its window";
    const EFFECT: Effect = Effect::Settle;
    const INTERFACES: Interfaces =
        Interfaces::everywhere("fit", Route::post("view", "/sessions/{session}/threads/{thread}/fit"));
    type Output = Fitted;

    fn run(self, context: &Context) -> Outcome<Fitted> {
        let found = context.find_now(&self.at)?;
        let mode = if self.dry_run { Mode::Read } else { Mode::Write };
        let mut thread = context.open(&found, mode)?;
        let budget = self.room.budget(context, &thread)?;
        let (meter, choice) = (thread.meter(), ModelChoice::default());
        let mut writer =
            context.models().summariser(&found.session, meter, &choice, None, &Cancel::default())?;
        let mut ladder = context.config.models.summaries.ladder(budget, writer.by());
        let done = self.climb(&mut thread, &mut ladder);
        if !self.dry_run {
            // Also after a failure: an edit before it is durable.
            context.settle(&mut thread);
        }
        let (reverted, fitted) = done?;
        Ok(Fitted { reverted, dry_run: self.dry_run, ..Fitted::of(&found, fitted) })
    }
}

impl Fit {
    /// Edits taken back, and what was done, or would be.
    fn climb(
        &self,
        thread: &mut Thread<'_>,
        ladder: &mut Ladder<'_>,
    ) -> Outcome<(Vec<Seq>, komado_engine::fit::Fitted)> {
        Ok(match (self.dry_run, self.relax) {
            (true, true) => thread.plan_relaxed(ladder)?,
            (true, false) => (Vec::new(), thread.plan(ladder)?),
            (false, true) => (thread.relax(&ladder.budget)?, thread.fit(ladder)?),
            (false, false) => (Vec::new(), thread.fit(ladder)?),
        })
    }
}
