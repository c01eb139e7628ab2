//! Fit and condense: make the view fit its window, or show a summary in place of a span.

use crate::address::{AtThread, Spans};
use crate::change;
use crate::choice::one_of;
use crate::{ChangedView, Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, Route};
use komado_core::budget::{Budget, BudgetVerdict, Preset};
use komado_core::session::Session;
use komado_core::{Seq, SessionId};
use komado_engine::Thread;
use komado_engine::engine::ResolvedAddress;
use komado_engine::fit::{DoneEdit, Ladder, Resliced};
use komado_engine::model::ModelChoice;
use komado_provider::Cancel;
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which window, and by which rule.
#[derive(Clone, Copy, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct WindowRule {
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = crate::choice::tokens::<u32>(1))]
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
    /// The budget preset; default: the settings
    #[arg(long, value_parser = one_of(&Preset::ALL, Preset::name))]
    pub preset: Option<Preset>,
}

impl WindowRule {
    /// The budget of a thread. A window that is not known is never guessed.
    pub fn budget(&self, context: &OperationContext, thread: &Thread<'_>) -> OpResult<Budget> {
        let session = context.session(thread.session())?;
        let window = window(context, &session, self.window)?;
        let policy = context.config.policy(self.preset);
        Ok(context.models().own_budget(thread, policy, window, &session.meta.config)?)
    }
}

/// The window of a session in tokens as we count them: `given`, else its own.
pub fn window(context: &OperationContext, session: &Session, given: Option<u32>) -> OpResult<u32> {
    let own: Option<SessionId> = session.meta.uuid.parse().ok();
    let models = context.models();
    let models = own.as_ref().map_or(models, |own| models.of(own));
    models.own_window(&session.meta.config, given).ok_or_else(|| {
        OpFault::usage(format!(
            "the window of session {} is not known; say it with --window TOKENS",
            session.meta.uuid
        ))
    })
}

/// Make the view fit its window: trim old outputs, condense, truncate, as far as is needed. Says what was done and how to
/// undo it.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Fit {
    /// The session, or SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// Show what would be done, and change nothing
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
    pub room: WindowRule,
}

/// What was done to make a view fit, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FittedWindow {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The rule that decided, with its numbers.
    pub verdict: BudgetVerdict,
    /// The edits, in order.
    pub edits: Vec<MadeEdit>,
    /// What is seen of the threads above, where it was cut anew because the window is another.
    pub slices: Vec<Resliced>,
    /// Summaries that could not be had, and why.
    pub declined: Vec<String>,
    /// Tokens of the view before.
    pub tokens_before: u64,
    /// Tokens of the view after.
    pub tokens_after: u64,
    /// Edits that were taken back: first, where that was asked for, and after the edits, where those left room.
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
    pub fn of(found: &ResolvedAddress, done: &DoneEdit) -> Self {
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

impl FittedWindow {
    /// What was done in the thread `found`.
    pub(super) fn of(found: &ResolvedAddress, fitted: komado_engine::fit::FitResult) -> Self {
        Self {
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            edits: fitted.done.iter().map(|done| MadeEdit::of(found, done)).collect(),
            slices: fitted.share.into_iter().collect(),
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
    const ABOUT: OperationLabel = OperationLabel::settle("fit", "Make the view fit its window");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("fit", Route::post("view", "/sessions/{session}/threads/{thread}/fit"));
    type Output = FittedWindow;

    fn run(self, context: &OperationContext) -> OpResult<FittedWindow> {
        let found = context.find_now(&self.at)?;
        let mode = if self.dry_run { OpenMode::Read } else { OpenMode::Write };
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
        let (mut reverted, mut fitted) = done?;
        reverted.append(&mut fitted.returned);
        Ok(FittedWindow { reverted, dry_run: self.dry_run, ..FittedWindow::of(&found, fitted) })
    }
}

impl Fit {
    /// Edits taken back, and what was done, or would be.
    fn climb(
        &self,
        thread: &mut Thread<'_>,
        ladder: &mut Ladder<'_>,
    ) -> OpResult<(Vec<Seq>, komado_engine::fit::FitResult)> {
        Ok(match (self.dry_run, self.relax) {
            (true, true) => thread.plan_relaxed(ladder)?,
            (true, false) => (Vec::new(), thread.plan(ladder)?),
            (false, true) => (thread.relax(&ladder.budget)?, thread.fit(ladder)?),
            (false, false) => (Vec::new(), thread.fit(ladder)?),
        })
    }
}

/// Say what would be done to make the view fit its window. Nothing is changed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct PlanFit {
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
    /// First take back edits for which the window has room again.
    #[serde(default)]
    pub relax: bool,
    /// Which window, and by which rule.
    #[serde(flatten)]
    pub room: WindowRule,
}

impl Operation for PlanFit {
    const ABOUT: OperationLabel = OperationLabel::read("plan", "What would make the view fit");
    const INTERFACES: Interfaces = Interfaces::only_http(
        Route::get("view", "/sessions/{session}/threads/{thread}/plan"),
        "`fit --dry-run` does this",
    )
    .not_mcp("`fit` with `dry_run` does this");
    type Output = FittedWindow;

    fn run(self, context: &OperationContext) -> OpResult<FittedWindow> {
        Fit { at: self.at, dry_run: true, relax: self.relax, room: self.room }.run(context)
    }
}

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
    pub room: WindowRule,
}

/// A summary that stands in place of entries.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Condensed {
    /// One that was given.
    Given(ChangedView),
    /// One that was written now.
    Written(SummaryWritten),
}

/// A summary that was written now.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SummaryWritten {
    /// The entry that made the change.
    pub seq: Seq,
    /// What was done, as for a fit.
    #[serde(flatten)]
    pub fitted: FittedWindow,
}

impl Operation for Condense {
    const ABOUT: OperationLabel = OperationLabel::edit("condense", "Show a summary in place of a span");
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "edit condense",
        Route::post("view", "/sessions/{session}/threads/{thread}/condense"),
    );
    type Output = Condensed;

    fn run(self, context: &OperationContext) -> OpResult<Condensed> {
        let (span, text) = match (self.span, self.text) {
            (Some(span), Some(text)) => (span, text),
            (None, None) => {
                let found = context.find_now(&self.at)?;
                let budget = |thread: &Thread<'_>| self.room.budget(context, thread);
                return condense_now(context, &found, budget, &ModelChoice::default())
                    .map(Condensed::Written);
            }
            _ => return Err(OpFault::usage("span and text go together: give both, or neither")),
        };
        span.check()?;
        let found = context.find_now(&self.at)?;
        let changed = change::make(context, &found, Self::ABOUT.name, |thread| {
            thread.condense(span.0.clone(), &text, "by_hand")
        })?;
        let undo = change::revert(&found, changed.seq);
        Ok(Condensed::Given(changed.told(format!("showing the summary in place of {span}"), undo)))
    }
}

/// Condenses now, whether or not there is room.
pub fn condense_now(
    context: &OperationContext,
    found: &ResolvedAddress,
    budget: impl FnOnce(&Thread<'_>) -> OpResult<Budget>,
    choice: &ModelChoice,
) -> OpResult<SummaryWritten> {
    let mut thread = context.open(found, OpenMode::Write)?;
    let budget = budget(&thread)?;
    let meter = thread.meter();
    let mut writer = context.models().summariser(&found.session, meter, choice, None, &Cancel::default())?;
    let condensed = thread.condense_now(&mut context.config.models.summaries.ladder(budget, writer.by()));
    // Also after a failure: that a model was asked is in the journal.
    context.settle(&mut thread);
    let fitted = condensed?;
    match fitted.done.first().map(|done| done.seq) {
        Some(seq) => Ok(SummaryWritten { seq, fitted: FittedWindow::of(found, fitted) }),
        None => Err(OpFault::refused(fitted.declined.join("; "))),
    }
}
