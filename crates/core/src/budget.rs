//! How much of a window may be filled, and when something must leave it.
//!
//! A [`Policy`] says by which rule; with a window it becomes a [`Budget`] of plain numbers. Everything that is sent
//! counts: system prompt, tool definitions, messages, summaries. What is left free is the model's answer (the reserve)
//! and a buffer for what no counter sees. A budget only judges; what is done about it is the [ladder](crate::ladder)'s.
//!
//! A large part of a view may be fixed: set-up, task, pins and the like never leave. Marks are therefore shares of what
//! may move, and so they follow the view: [`Budget::marks`].

use crate::View;
use crate::clip::ClipLimits;
use crate::head::EntrySource;
use crate::ladder::WorkingSet;
use crate::share::Shares;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The reserve for an answer, unless one is named; never more than a fifth of the window.
pub const RESERVE: u64 = 8192;

/// Tokens that a summary may take in a small window, up to a quarter of what may move.
const SUMMARY: u64 = 384;

/// Profiles may act from so many percent of the window on.
pub const PERCENT: std::ops::RangeInclusive<f64> = 5.0..=100.0;

/// By which rule a window is kept.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// Its name, to say why.
    pub preset: Preset,
    /// Tokens kept free for the answer, two fifths of what the instructions leave at most; by default the least of
    /// [`RESERVE`], a fifth of the window and a quarter of what the instructions leave.
    pub reserve: Option<u64>,
    /// The longest answer that is asked for: no more is kept free for it.
    pub longest: Option<u64>,
    /// Share of what the instructions leave that is kept free for what no counter sees.
    pub buffer: f64,
    /// When to act.
    pub trigger: Trigger,
    /// Percent of the window at which a model or profile acts; over the trigger where it has a value.
    pub thresholds: Thresholds,
    /// How far down, as a share of what may move; of what is usable in the presets that count so.
    pub low: f64,
    /// What an edit must free to be worth a break of the prefix, as a share of the same.
    pub min_gain: f64,
    /// What stays as it is at the end.
    pub keep: KeepRule,
    /// Tokens that tool outputs may take together.
    pub tools: ToolBudget,
    /// Which rungs may be stepped on.
    pub rungs: LadderRungs,
    /// The fewest messages worth a summary.
    pub min_messages: u32,
    /// Share of the same that a summary may take.
    pub summary: f64,
}

/// When to act.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Trigger {
    /// Above this share of what may move, on top of what is fixed.
    Movable(f64),
    /// Above this share of the window.
    AboveWindow(f64),
    /// At this share of the window or above.
    AtWindow(f64),
}

/// Percent of the window at which to act, for all and by name.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Thresholds {
    /// For everyone; the trigger decides when there is none.
    pub global: Option<f64>,
    /// For one model or profile. A value outside 5 to 100, such as -1, means: as for everyone.
    pub named: BTreeMap<String, f64>,
}

impl Thresholds {
    /// The value for the first of `names` that has one of its own, else the one for everyone.
    pub fn effective(&self, names: &[&str]) -> Option<f64> {
        let own = names.iter().filter_map(|name| self.named.get(*name)).find(|value| PERCENT.contains(value));
        own.copied().or(self.global)
    }
}

/// What stays as it is at the end of the conversation, whole units always.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum KeepRule {
    /// The last so many messages.
    Messages(u32),
    /// The last so many turns, each from a user's message on.
    Turns(u32),
    /// As much as this share of what is usable holds.
    Share(f64),
    /// As much as the mark to come down to has room for.
    Room,
}

/// Tokens that tool outputs may take together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ToolBudget {
    /// A quarter of the window, between 20,000 and 60,000.
    #[default]
    FromWindow,
    /// So many.
    Tokens(u64),
    /// As many as there are.
    Unbounded,
}

impl ToolBudget {
    /// In numbers.
    pub fn tokens(self, window: u64) -> Option<u64> {
        match self {
            Self::FromWindow => Some((window / 4).clamp(20_000, 60_000)),
            Self::Tokens(tokens) => Some(tokens),
            Self::Unbounded => None,
        }
    }
}

/// Which rungs may be stepped on before the window is full. When it is, every rung may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LadderRungs {
    /// Old outputs become placeholders.
    pub trim: bool,
    /// A summary stands for a span.
    pub condense: bool,
    /// How much a marker stands for.
    pub truncate: Truncate,
}

/// How much a truncation takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Truncate {
    /// Down to the low mark.
    ToLow,
    /// Half of the messages after the first, an even number.
    Half,
}

/// A policy with a window: plain numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Budget {
    /// By which rule.
    pub policy: Policy,
    /// The model's window.
    pub window: u64,
    /// Tokens of system prompt and tools in the view that it is for: they are known exactly once a request was answered, and
    /// do not grow. Reserve and buffer are parts of what they leave, or a large prompt would leave a conversation nothing.
    pub instructions: u64,
    /// Tokens of it that are seen of the threads above: they count, and are not to be touched. 0 for a root.
    pub above: u64,
    /// What the thread's own items, its answer and its buffer may take together: the window, for a root.
    pub room: u64,
    /// Tokens kept free for the answer.
    pub reserve: u64,
    /// Most tokens a request may have.
    pub usable: u64,
    /// Tokens from which on something is done, in a view of which nothing of its own is fixed: see [`Budget::marks`].
    pub act_at: u64,
    /// Tokens to come down to, in such a view.
    pub low: u64,
    /// Tokens that tool outputs may take together.
    pub tools: Option<u64>,
    /// The threshold that decided, in percent, where one did.
    pub threshold: Option<f64>,
}

/// The marks in force for a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BudgetMarks {
    /// Tokens from which on something is done.
    pub act_at: u64,
    /// Tokens to come down to.
    pub low: u64,
    /// Most tokens after an edit that could have come down to `low`: half of the way back.
    pub high: u64,
    /// What an edit must free before the window is full.
    pub min_gain: u64,
    /// Most tokens a summary may take.
    pub summary: u64,
}

/// What a budget says of a view.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetVerdict {
    /// True when something will be done before the next request.
    pub will_manage: bool,
    /// The rule that decided.
    pub rule: BudgetRule,
    /// Tokens of the view.
    pub tokens: u64,
    /// Tokens of its tool outputs.
    pub tool_tokens: u64,
    /// The model's window.
    pub window: u64,
    /// Tokens that are seen of the threads above; they are not to be touched.
    #[serde(default, skip_serializing_if = "is_none")]
    pub above: u64,
    /// Tokens of what no edit takes: system prompt and tools, the threads above, system messages at the beginning, anchors
    /// of open threads, pins, the task and the latest instruction.
    #[serde(default)]
    pub fixed: u64,
    /// Tokens kept free for the answer.
    pub reserve: u64,
    /// Most tokens a request may have.
    pub usable: u64,
    /// Tokens from which on something is done.
    pub act_at: u64,
    /// Tokens to come down to.
    pub low: u64,
    /// Tokens that tool outputs may take together.
    pub tool_budget: Option<u64>,
    /// Share of the window that is filled, in percent.
    pub percent: f64,
}

/// Why something is done, or nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum BudgetRule {
    /// There is room.
    Fits,
    /// Tool outputs take more than their budget.
    ToolBudget,
    /// The trigger was reached.
    SoftMark,
    /// A threshold in percent was reached.
    Threshold,
    /// The request would not fit.
    HardGate,
    /// Someone asked for it.
    ByHand,
}

crate::names! {
    /// The word in the journal.
    BudgetRule {
        Fits = "fits", ToolBudget = "tool_budget", SoftMark = "soft_mark", Threshold = "threshold",
        HardGate = "hard_gate", ByHand = "by_hand",
    }
}

impl BudgetRule {
    /// The rule in words for people; the journal and JSON keep [`Self::name`].
    pub const fn words(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::ToolBudget => "tool outputs over their budget",
            Self::SoftMark => "window nearly full",
            Self::Threshold => "threshold reached",
            Self::HardGate => "window full",
            Self::ByHand => "by hand",
        }
    }
}

impl Budget {
    /// `policy` in a window of `window` tokens; `names` are the model and the profile, for their thresholds.
    pub fn new(policy: Policy, window: u64, names: &[&str]) -> Self {
        let threshold = policy.thresholds.effective(names);
        Self::of(policy, window, threshold, 0)
    }

    /// The same rule for `view`, whose instructions take their part of the window first.
    #[must_use]
    pub fn in_view(&self, view: &View) -> Self {
        self.beside(view.weight().instructions())
    }

    /// The same rule beside so many tokens of instructions. The other presets know of no such part.
    #[must_use]
    pub fn beside(&self, instructions: u64) -> Self {
        if instructions == self.instructions || self.policy.preset != Preset::Komado {
            return self.clone();
        }
        let own = Self::of(self.policy.clone(), self.room, self.threshold, instructions).raised(self.above);
        Self { window: self.window, ..own }
    }

    /// `policy` for a thread that has a share of `window`: its own marks, on top of what it sees of the threads above.
    pub fn shared(policy: Policy, shares: &Shares, window: u64, names: &[&str]) -> Self {
        let threshold = policy.thresholds.effective(names);
        Self::sharing(policy, shares, window, threshold)
    }

    /// The same rule, after the window was shared out otherwise. No mark moves up: it may have been moved down on purpose.
    /// One that knows of no threads above is that of the whole window, and becomes that of the share.
    #[must_use]
    pub fn reshared(&self, shares: &Shares) -> Self {
        let new = Self::sharing(self.policy.clone(), shares, self.window, self.threshold);
        let new = new.beside(self.instructions);
        if self.above == 0 {
            return new;
        }
        let usable = new.usable.min(self.usable);
        let act_at = new.act_at.min(usable + 1);
        Self { usable, act_at, low: new.low.min(act_at.saturating_sub(1)), ..new }
    }

    fn sharing(policy: Policy, shares: &Shares, window: u64, threshold: Option<f64>) -> Self {
        // What is seen of the threads above is counted no better than anything else: it takes its part of the buffer.
        let taken = at_least(shares.used(), 1.0 / (1.0 - policy.buffer).clamp(0.05, 1.0));
        let room = shares.room().min(window.saturating_sub(taken));
        Self { window, ..Self::of(policy, room, threshold, 0).raised(shares.used()) }
    }

    fn of(policy: Policy, window: u64, threshold: Option<f64>, instructions: u64) -> Self {
        let left = window.saturating_sub(instructions);
        // A model that may write as much as it reads would leave a small window no room for the conversation.
        let reserve = match policy.reserve {
            Some(given) => given.min(share(left, 0.4)),
            None => RESERVE.min(window / 5).min(left / 4),
        };
        let reserve = reserve.min(policy.longest.unwrap_or(u64::MAX));
        // What is left, rounded down: a buffer rounded down would take one token too many into odd windows.
        let free = window - left + share(left, 1.0 - policy.buffer);
        // A twentieth stays free, whatever the instructions take.
        let usable = free.saturating_sub(reserve).min(share(window, 0.95));
        let act_at = match (threshold, policy.trigger) {
            (Some(percent), _) => at_least(window, percent / 100.0),
            (None, Trigger::Movable(of)) => share(usable, of) + 1,
            (None, Trigger::AboveWindow(of)) => share(window, of) + 1,
            (None, Trigger::AtWindow(of)) => at_least(window, of),
        };
        let act_at = act_at.min(usable + 1);
        let low = share(usable, policy.low).min(act_at.saturating_sub(1));
        let tools = policy.tools.tokens(window);
        Self {
            policy,
            window,
            instructions,
            above: 0,
            room: window,
            reserve,
            usable,
            act_at,
            low,
            tools,
            threshold,
        }
    }

    /// Most tokens that the thread's own part of a request may have.
    pub const fn own(&self) -> u64 {
        self.usable.saturating_sub(self.above)
    }

    /// The marks for a view of which `fixed` tokens never leave.
    pub fn marks(&self, fixed: u64) -> BudgetMarks {
        let movable = self.usable.saturating_sub(fixed);
        let on_top = |of: f64| fixed + share(movable, of);
        let act_at = match (self.threshold, self.policy.trigger) {
            (None, Trigger::Movable(of)) => on_top(of) + 1,
            _ => self.act_at,
        };
        let act_at = act_at.min(self.usable + 1);
        let (low, whole, least) = match self.policy.preset {
            // Where little may move, a tenth of it is no summary.
            Preset::Komado => (on_top(self.policy.low), movable, SUMMARY.min(movable / 4)),
            // The other presets know of no fixed part.
            _ => (self.low, self.own(), 0),
        };
        let low = low.min(act_at.saturating_sub(1));
        BudgetMarks {
            act_at,
            low,
            high: low.midpoint(act_at),
            min_gain: share(whole, self.policy.min_gain).max(1),
            summary: share(whole, self.policy.summary).max(least).clamp(96, 4_096),
        }
    }

    /// True when nothing has to be done, by the view's weight alone. Near the marks it is false, and
    /// [`Budget::will_manage`] looks closer.
    pub fn has_room(&self, view: &View) -> bool {
        let weight = view.weight();
        let marks = self.marks(weight.setup + weight.above);
        self.rule(view, &marks) == BudgetRule::Fits
    }

    /// Says, before doing anything, whether something will be done, and by which rule.
    pub fn will_manage<S: EntrySource + ?Sized>(
        &self,
        view: &View,
        source: &S,
    ) -> Result<BudgetVerdict, S::Error> {
        Ok(self.judge(view, WorkingSet::of(view, source)?.fixed))
    }

    /// The verdict on a view of which `fixed` tokens never leave.
    pub(crate) fn judge(&self, view: &View, fixed: u64) -> BudgetVerdict {
        let (tokens, tool_tokens) = (view.tokens(), view.weight().said[3]);
        let marks = self.marks(fixed);
        let rule = self.rule(view, &marks);
        BudgetVerdict {
            will_manage: rule != BudgetRule::Fits,
            rule,
            tokens,
            tool_tokens,
            window: self.window,
            above: self.above,
            fixed,
            reserve: self.reserve,
            usable: self.usable,
            act_at: marks.act_at,
            low: marks.low,
            tool_budget: self.tools,
            percent: percent(tokens, self.window),
        }
    }

    fn rule(&self, view: &View, marks: &BudgetMarks) -> BudgetRule {
        let tokens = view.tokens();
        if tokens > self.usable {
            BudgetRule::HardGate
        } else if tokens >= marks.act_at && self.policy.acts_early() {
            if self.threshold.is_some() { BudgetRule::Threshold } else { BudgetRule::SoftMark }
        } else if self.policy.rungs.trim && self.tools.is_some_and(|most| view.weight().said[3] > most) {
            BudgetRule::ToolBudget
        } else {
            BudgetRule::Fits
        }
    }

    /// Limits for an output on arrival: those given, and no more than about a quarter of what is usable. A byte for each
    /// usable token is that quarter in what people and programs mostly write.
    pub fn limits(&self, given: &ClipLimits) -> ClipLimits {
        let most = usize::try_from(self.own()).unwrap_or(usize::MAX).max(1_024);
        ClipLimits { max_message_bytes: given.max_message_bytes.min(most), ..*given }
    }

    /// Most tokens of a request when only a user's own words are left to be cut: half of the room for the answer and of
    /// the buffer may go.
    pub fn stretch(&self) -> u64 {
        self.usable.midpoint((self.room + self.above).max(self.usable))
    }

    /// Most tokens of a request when what must stay is more than what is usable: the answer and the buffer give way,
    /// down to a twentieth of the room.
    pub fn most(&self) -> u64 {
        (share(self.room, 0.95) + self.above).max(self.usable)
    }

    /// The same room on top of `above` tokens that count and are not for it to touch: what a spawned thread sees of the
    /// threads above it.
    #[must_use]
    fn raised(&self, above: u64) -> Self {
        Self {
            window: self.window + above,
            above: self.above + above,
            usable: self.usable + above,
            act_at: self.act_at + above,
            low: self.low + above,
            ..self.clone()
        }
    }

    /// The same rule, with less of the window: after a provider said that the request was too large. All of it gets
    /// smaller, so the room beside what is seen of the threads above does, by as many tokens.
    #[must_use]
    pub fn shrunk(&self, by: f64) -> Self {
        let usable = share(self.usable, by);
        let part = match self.own() {
            0 => 0.0,
            _ if self.above == 0 => by,
            own => usable.saturating_sub(self.above) as f64 / own as f64,
        };
        let mark = |mark: u64| share(mark.saturating_sub(self.above), part) + self.above;
        let act_at = mark(self.act_at).max(1).min(usable + 1);
        Self {
            window: share(self.window, by),
            room: share(self.room + self.above, by).saturating_sub(self.above),
            usable,
            act_at,
            low: mark(self.low).min(act_at.saturating_sub(1)),
            ..self.clone()
        }
    }
}

impl Policy {
    /// True when something is done before the window is full.
    pub const fn acts_early(&self) -> bool {
        self.rungs.trim || self.rungs.condense
    }
}

impl BudgetVerdict {
    /// The numbers in one line.
    pub fn numbers(&self) -> String {
        let above = match self.above {
            0 => String::new(),
            above => format!(", {above} of them from the threads above"),
        };
        format!(
            "{} tokens{above}, {} fixed; window {}, reserve {}, usable {}; acts at {}, down to {}",
            self.tokens, self.fixed, self.window, self.reserve, self.usable, self.act_at, self.low
        )
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_none(tokens: &u64) -> bool {
    *tokens == 0
}

/// A part of `whole`, rounded down.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
pub fn share(whole: u64, of: f64) -> u64 {
    // A hair above, so that 0.7 of 100 is 70 and not 69.
    (whole as f64 * of + 1e-6).floor().max(0.0) as u64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn at_least(whole: u64, of: f64) -> u64 {
    (whole as f64 * of - 1e-6).ceil().max(0.0) as u64
}

#[allow(clippy::cast_precision_loss)]
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

// Policies with names: our own, and those that reproduce the numbers of the systems we grew out of.

/// A policy with a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum Preset {
    /// Soft and low marks over what may move, a hard one over what is usable.
    #[default]
    Komado,
    /// Contexts in files: above 0.7 of the window, five messages kept, no fewer than ten summarised.
    Seed000,
    /// Output cache and compaction: from 0.8 of the limit on, one turn kept.
    Seed001,
    /// Condense, then truncate: from a percentage on, or above 0.9 of the window less the reserve; three messages kept.
    Seed002,
}

crate::names! {
    /// Its name in settings and on the command line.
    Preset { Komado = "komado", Seed000 = "seed000", Seed001 = "seed001", Seed002 = "seed002" }
}

impl Preset {
    /// Its policy.
    pub fn policy(self) -> Policy {
        let ours = Policy {
            preset: self,
            reserve: None,
            longest: None,
            buffer: 0.1,
            trigger: Trigger::Movable(0.9),
            thresholds: Thresholds::default(),
            low: 0.6,
            min_gain: 0.25,
            keep: KeepRule::Room,
            tools: ToolBudget::FromWindow,
            rungs: LadderRungs { trim: true, condense: true, truncate: Truncate::ToLow },
            min_messages: 4,
            summary: 0.1,
        };
        let condense_only = LadderRungs { trim: false, ..ours.rungs };
        match self {
            Self::Komado => ours,
            Self::Seed000 => Policy {
                trigger: Trigger::AboveWindow(0.7),
                low: 0.5,
                keep: KeepRule::Messages(5),
                min_messages: 10,
                tools: ToolBudget::Unbounded,
                rungs: condense_only,
                ..ours
            },
            Self::Seed001 => Policy {
                trigger: Trigger::AtWindow(0.8),
                low: 0.5,
                keep: KeepRule::Turns(1),
                min_messages: 1,
                ..ours
            },
            Self::Seed002 => Policy {
                reserve: Some(RESERVE),
                thresholds: Thresholds { global: Some(100.0), ..Thresholds::default() },
                low: 0.5,
                keep: KeepRule::Messages(3),
                min_messages: 2,
                tools: ToolBudget::Unbounded,
                rungs: LadderRungs { truncate: Truncate::Half, ..condense_only },
                ..ours
            },
        }
    }
}
