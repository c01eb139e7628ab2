//! What to do when a view outgrows its budget: one step at a time, and always one that helps.
//!
//! From the lightest to the last: old outputs become placeholders (trim), a summary stands for the oldest blocks
//! (condense), a marker does (truncate), single messages are clipped. A step is a
//! pure function of the view, the budget and what this round has already tried; a text that must be written
//! is left to the caller. Every step makes the view smaller, so a round ends: with a view that fits, or, below the floor,
//! with a list of what takes how much.
//!
//! What no step touches: the setup, the system messages at the beginning, pins. What only the last rungs clip: the task,
//! the latest instruction, and what the model has not answered yet ([`WorkingSet`]). Calls and results leave together or
//! not at all. An edit uses the room there is: as little leaves as brings the view down to the low mark.

mod blocks;
mod clip;
mod cut;
mod excerpt;
mod trim;
mod working_set;

pub use blocks::{Block, Blocks};
pub(crate) use excerpt::clipped;
pub use working_set::WorkingSet;

use crate::budget::{Budget, BudgetMarks, BudgetRule, BudgetVerdict, Preset, Truncate};
use crate::head::{EntrySource, Kind};
use crate::journal::{EditKind, Replace};
use crate::{Meter, Seq, Span, View};
use serde::{Deserialize, Serialize};

/// What texts that stand for something tell the model about the originals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OriginalsHint {
    /// How to read and search them, for a model that has the tools.
    #[default]
    Tools,
    /// Only that they are kept.
    Kept,
}

/// What a round has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LadderRound {
    /// A summary was asked for: it is not asked for again.
    pub condensed: bool,
    /// An edit was made: the prefix is broken anyway, so the round goes on down to the low mark.
    pub edited: bool,
    /// What markers and notices say of the originals.
    pub reach: OriginalsHint,
}

/// One thing to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LadderStep {
    /// Show placeholders or clipped texts in place of what entries say.
    Replace {
        /// Why.
        rung: Rung,
        /// The entries and their texts.
        replace: Vec<Replace>,
    },
    /// Show a summary in place of spans.
    Condense {
        /// The spans.
        hide: Vec<Span>,
        /// Most tokens that may stand for them.
        limit: u64,
    },
    /// Show a marker in place of spans.
    Truncate {
        /// The spans.
        hide: Vec<Span>,
        /// The marker.
        marker: String,
    },
}

/// Which rung a step stands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rung {
    /// Old outputs become placeholders.
    Trim,
    /// A summary stands for a span.
    Condense,
    /// A marker stands for a span.
    Truncate,
    /// A message is shown in part.
    Clip,
}

crate::names! {
    /// Its name.
    Rung { Trim = "trim", Condense = "condense", Truncate = "truncate", Clip = "clip" }
}

impl LadderStep {
    /// Which rung it stands on.
    pub const fn rung(&self) -> Rung {
        match self {
            Self::Replace { rung, .. } => *rung,
            Self::Condense { .. } => Rung::Condense,
            Self::Truncate { .. } => Rung::Truncate,
        }
    }

    /// What kind of edit it makes.
    pub const fn kind(&self) -> EditKind {
        match self {
            Self::Replace { .. } => EditKind::Trim,
            Self::Condense { .. } => EditKind::Condense,
            Self::Truncate { .. } => EditKind::Truncate,
        }
    }
}

/// What is to be done now.
#[derive(Clone, PartialEq, Debug)]
pub enum LadderNext {
    /// Nothing: there is room, or nothing that is worth a change.
    Rest,
    /// This.
    Do(LadderStep),
    /// Nothing helps: what must stay is more than what is usable.
    Floor(Floor),
}

/// The next step for `view` under `budget`.
pub fn next<S: EntrySource + ?Sized>(
    view: &View,
    source: &S,
    budget: &Budget,
    meter: Meter,
    round: LadderRound,
) -> Result<LadderNext, S::Error> {
    if !round.edited && budget.has_room(view) {
        return Ok(LadderNext::Rest);
    }
    let scene = Scene::of(view, source, budget, meter, round.reach)?;
    if let Some(floor) = scene.hopeless()? {
        return Ok(LadderNext::Floor(floor));
    }
    if scene.verdict.will_manage
        && let Some(step) = scene.early(round)?
    {
        return Ok(LadderNext::Do(step));
    }
    if scene.is_full() {
        return scene.late(round);
    }
    let step = if round.edited { scene.settle()? } else { None };
    Ok(step.map_or(LadderNext::Rest, LadderNext::Do))
}

/// The step that condenses now, whether or not there is room: everything but what is kept. `None` when that is too
/// little, or when nothing was said since the last time.
pub fn condense_now<S: EntrySource + ?Sized>(
    view: &View,
    source: &S,
    budget: &Budget,
    meter: Meter,
) -> Result<Option<LadderStep>, S::Error> {
    if let Some(edit) = view.edits().last() {
        let edit = source.head(edit)?;
        if edit.kind == Kind::Condense && edit.items == source.head(view.last())?.items {
            return Ok(None);
        }
    }
    Ok(Scene::by_hand(view, source, budget, meter, OriginalsHint::Kept)?.condense(1, 1))
}

/// The step that leaves the last `turns` turns of the user, whether or not there is room: a marker in place of all
/// before them. `None` when there are no more than that, or when a marker would be no smaller.
pub fn bound_turns<S: EntrySource + ?Sized>(
    view: &View,
    source: &S,
    budget: &Budget,
    meter: Meter,
    (turns, reach): (u32, OriginalsHint),
) -> Result<Option<LadderStep>, S::Error> {
    Scene::by_hand(view, source, budget, meter, reach)?.truncate_turns(turns)
}

/// So many tokens that may move are little.
const LITTLE: u64 = 4_096;

/// Everything a step is made from.
struct Scene<'a, S: ?Sized> {
    view: &'a View,
    source: &'a S,
    budget: &'a Budget,
    meter: Meter,
    reach: OriginalsHint,
    verdict: BudgetVerdict,
    marks: BudgetMarks,
    blocks: Blocks,
}

impl<'a, S: EntrySource + ?Sized> Scene<'a, S> {
    fn of(
        view: &'a View,
        source: &'a S,
        budget: &'a Budget,
        meter: Meter,
        reach: OriginalsHint,
    ) -> Result<Self, S::Error> {
        let blocks = Blocks::of(view, source, budget.usable)?;
        let (verdict, marks) = (budget.judge(view, blocks.fixed), budget.marks(blocks.fixed));
        Ok(Self { view, source, budget, meter, reach, verdict, marks, blocks })
    }

    /// The scene of a step that someone asked for.
    fn by_hand(
        view: &'a View,
        source: &'a S,
        budget: &'a Budget,
        meter: Meter,
        reach: OriginalsHint,
    ) -> Result<Self, S::Error> {
        let scene = Self::of(view, source, budget, meter, reach)?;
        let verdict = BudgetVerdict { rule: BudgetRule::ByHand, ..scene.verdict };
        Ok(Self { verdict, ..scene })
    }

    /// Steps that are taken for their worth: each must free enough to pay for the break of the prefix.
    fn early(&self, round: LadderRound) -> Result<Option<LadderStep>, S::Error> {
        let (rungs, gain) = (self.budget.policy.rungs, self.marks.min_gain);
        let only_tools = self.verdict.rule == BudgetRule::ToolBudget;
        if self.is_full()
            && let Some(step) = self.clip_large()?
        {
            return Ok(Some(step));
        }
        let may_condense = !only_tools && rungs.condense && !round.condensed;
        let trim = match rungs.trim {
            true => self.trim(if only_tools { self.tool_gain() } else { gain })?,
            false => None,
        };
        if let Some(step) = &trim
            && (self.is_enough(step) || !may_condense && self.after(step) <= self.budget.usable)
        {
            return self.if_worth(step.clone());
        }
        if !may_condense {
            return Ok(None);
        }
        // Where a trim is not enough, the summary is made of what was said, not of placeholders.
        if let Some(step) = self.condense(gain, self.budget.policy.min_messages) {
            return self.if_worth(step);
        }
        match trim.filter(|step| self.after(step) <= self.budget.usable) {
            Some(step) => self.if_worth(step),
            None => Ok(None),
        }
    }

    /// True when nothing else has to be done beside this step: it leads below the high mark. Where little may move it need
    /// only make room: the cache that the next step breaks is small, and what was said is worth more. To the other presets
    /// any step is enough that makes the view fit.
    fn is_enough(&self, step: &LadderStep) -> bool {
        let most = match self.counts_movable() {
            true if self.movable() <= LITTLE => self.marks.act_at.saturating_sub(1),
            true => self.marks.high,
            false => self.budget.usable,
        };
        self.after(step) <= most || !self.is_full() && !self.counts_movable()
    }

    /// Tokens of the view after a step.
    fn after(&self, step: &LadderStep) -> u64 {
        self.tokens().saturating_sub(self.reach(step).1)
    }

    /// After an edit that left the view above the high mark: what reached over the low mark is shown in part.
    fn settle(&self) -> Result<Option<LadderStep>, S::Error> {
        if !self.counts_movable() || self.tokens() <= self.marks.high {
            return Ok(None);
        }
        self.shrink_older()
    }

    /// Before the window is full a step must pay for itself. Everything behind it has to be put into the provider's
    /// cache again; what it frees is no longer read from there by the requests to come, and half as many are to be
    /// expected as there have been.
    fn if_worth(&self, step: LadderStep) -> Result<Option<LadderStep>, S::Error> {
        // The other presets act at their marks, whatever it costs: that is what they are for.
        if self.is_full() || !self.counts_movable() {
            return Ok(Some(step));
        }
        let (from, freed) = self.reach(&step);
        let behind: u64 = self.blocks.row.iter().filter(|b| b.extent.to >= from).map(|b| b.free).sum();
        let calls = u64::from(self.source.head(self.view.last())?.items) / 2;
        // Written again at 1.25 instead of read at 0.1, against 0.1 for half of the calls: 1.15 / 0.05.
        let price = behind.saturating_sub(freed) * 23;
        Ok((freed * calls >= price).then_some(step))
    }

    /// Where a step begins to change the view, and what it frees.
    fn reach(&self, step: &LadderStep) -> (Seq, u64) {
        match step {
            LadderStep::Replace { replace, .. } => {
                let outputs = &self.blocks.outputs;
                let was = |seq| {
                    outputs.binary_search_by_key(&seq, |item| item.seq).map_or(0, |i| outputs[i].tokens)
                };
                let freed = replace.iter().map(|r| u64::from(was(r.seq).saturating_sub(r.tokens))).sum();
                (replace.first().map_or(0, |r| r.seq), freed)
            }
            LadderStep::Condense { hide, .. } | LadderStep::Truncate { hide, .. } => {
                let inside = |b: &&Block| hide.iter().any(|span| span.meets(b.extent));
                let free: u64 = self.blocks.row.iter().filter(inside).map(|b| b.free).sum();
                (hide.first().map_or(0, |span| span.from), free.saturating_sub(self.marks.summary))
            }
        }
    }

    /// Steps that are taken because the request would not fit: any gain will do.
    fn late(&self, round: LadderRound) -> Result<LadderNext, S::Error> {
        if self.budget.policy.rungs.condense
            && !round.condensed
            && let Some(step) = self.condense(1, 1)
        {
            return Ok(LadderNext::Do(step));
        }
        let steps = [
            Self::truncate,
            Self::shrink_older,
            Self::truncate_whole,
            Self::truncate_older,
            Self::truncate_opening,
            Self::clip_newest,
            Self::truncate_rest,
            Self::clip_unanswered,
        ];
        for step in steps {
            if let Some(step) = step(self)? {
                return Ok(LadderNext::Do(step));
            }
        }
        if self.tokens() <= self.budget.most() {
            return Ok(LadderNext::Rest);
        }
        Ok(LadderNext::Floor(self.floor()?))
    }

    /// Tokens of everything shown.
    fn tokens(&self) -> u64 {
        self.verdict.tokens
    }

    /// True when it pays that `shown` tokens stand for `free`: they free at least as much as they take, or it is just this
    /// that makes the request fit.
    fn pays(&self, free: u64, shown: u64) -> bool {
        let after = self.tokens().saturating_sub(free.saturating_sub(shown));
        let makes_fit = |most: u64| self.tokens() > most && after <= most;
        shown < free && (2 * shown <= free || makes_fit(self.budget.most()))
    }

    /// True when the request would not fit.
    fn is_full(&self) -> bool {
        self.verdict.rule == BudgetRule::HardGate
    }

    /// True when marks are shares of what may move.
    fn counts_movable(&self) -> bool {
        self.budget.policy.preset == Preset::Komado
    }

    /// Tokens that shares are taken of.
    fn movable(&self) -> u64 {
        match self.counts_movable() {
            true => self.budget.usable.saturating_sub(self.blocks.fixed),
            false => self.budget.own(),
        }
    }

    /// What stays before the newest unit and could be shorter.
    fn shrink_older(&self) -> Result<Option<LadderStep>, S::Error> {
        if !self.counts_movable() {
            return Ok(None);
        }
        if let Some(step) = self.clip_older()? {
            return Ok(Some(step));
        }
        if self.budget.policy.rungs.trim { self.trim(1) } else { Ok(None) }
    }

    fn truncate(&self) -> Result<Option<LadderStep>, S::Error> {
        if self.budget.policy.rungs.truncate == Truncate::Half
            && let Some(step) = self.truncate_half()?
        {
            return Ok(Some(step));
        }
        self.truncate_to_low()
    }
}

/// What stands in place of spans that are left out without a summary, in the language of `words`.
pub fn marker(hide: &[Span], words: &str, reach: OriginalsHint) -> String {
    let hull = Span::new(hide.first().map_or(0, |s| s.from), hide.last().map_or(0, |s| s.to));
    let (from, to) = (hull.from, hull.to);
    let read = format!("tool_output_cache({{\"ref_id\":\"@{from}\"}})");
    let kana = |c: char| ('\u{3041}'..='\u{30ff}').contains(&c);
    let is_tools = reach == OriginalsHint::Tools;
    if words.chars().any(kana) {
        let kept = if is_tools {
            format!("残っており、{read} で読めます")
        } else {
            "残っています".to_owned()
        };
        return format!("[以前のメッセージ (@{from}-@{to}) は省略されています。記録は{kept}。]");
    }
    let kept = if is_tools { format!(": read one with {read}") } else { String::new() };
    format!("[Earlier messages (@{from}-@{to}) are left out to save room. They are kept{kept}.]")
}

/// What stands in place of a tool's output: how much it was, and under what name it is kept.
pub fn placeholder(seq: Seq, output: Option<&crate::message::OutputRef>, lines: u64) -> String {
    match output {
        Some(output) => {
            format!("[tool output trimmed; ref={}; {} lines]", output.id, output.line_count.unwrap_or(lines))
        }
        None => format!("[tool output trimmed; ref=@{seq}; {lines} lines]"),
    }
}

// What must stay, when that is more than what is usable: named, with numbers, and with what to do about it.

/// The least that a view can be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Floor {
    /// Most tokens a request may have, were nothing but a twentieth of the window left for the answer.
    pub most: u64,
    /// Tokens of what must stay.
    pub floor: u64,
    /// Tokens of the view as it is.
    pub tokens: u64,
    /// System prompt and tool definitions.
    pub setup: u64,
    /// What is seen of the threads above.
    pub above: u64,
    /// System messages at the beginning.
    pub system: u64,
    /// Anchors of child threads that are at work or wait.
    pub anchors: u64,
    /// Pinned entries.
    pub pinned: u64,
    /// The task and the latest instruction; what is larger than half of the room, as short as it can be shown.
    pub requests: u64,
    /// What the model has not answered yet, as short as it can be shown.
    pub newest: u64,
    /// The marker for everything else, or that where it is smaller.
    pub marker: u64,
}

impl std::fmt::Display for Floor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the window holds {} tokens at most, and what must stay takes {}: system prompt and tools {}",
            self.most, self.floor, self.setup
        )?;
        if self.above > 0 {
            write!(f, ", what is seen of the threads above {}", self.above)?;
        }
        write!(f, ", system messages {}", self.system)?;
        if self.anchors > 0 {
            write!(f, ", anchors of threads that have not ended {}", self.anchors)?;
        }
        write!(
            f,
            ", pins {}, requests {}, what is not answered yet {}, marker {}; use a larger window, ",
            self.pinned, self.requests, self.newest, self.marker
        )?;
        if self.above > 0 {
            f.write_str("balance the shares of the threads, ")?;
        }
        if self.anchors > 0 {
            f.write_str("end a child thread, ")?;
        }
        f.write_str("unpin something, or shorten the setup")
    }
}

impl<S: EntrySource + ?Sized> Scene<'_, S> {
    /// What must stay, when that alone is more than a request may have: then nothing is done at all.
    fn hopeless(&self) -> Result<Option<Floor>, S::Error> {
        if self.tokens() <= self.budget.most() {
            return Ok(None);
        }
        let floor = self.floor()?;
        Ok((floor.floor > floor.most).then_some(floor))
    }

    /// What takes how much when nothing more can leave.
    fn floor(&self) -> Result<Floor, S::Error> {
        let mut requests: u64 = self.requests().map(|item| u64::from(item.tokens)).sum();
        for item in self.large()? {
            requests -= u64::from(item.tokens) - self.least(item)?;
        }
        let rest = self.blocks.rest();
        let unit: u64 = self.blocks.row.iter().map(|block| block.free).sum::<u64>() - rest;
        let mut newest = unit;
        for &item in self.blocks.newest.iter().chain(&self.blocks.spoken) {
            newest -= u64::from(item.tokens) - self.least(item)?;
        }
        let marker = self.marker_tokens()?.min(rest);
        let (weight, blocks) = (self.view.weight(), &self.blocks);
        let mut floor = Floor {
            most: self.budget.most(),
            floor: 0,
            tokens: self.tokens(),
            setup: weight.setup,
            above: weight.above,
            system: blocks.system,
            anchors: blocks.anchors,
            pinned: blocks.pinned,
            requests,
            newest,
            marker,
        };
        floor.floor = floor.setup
            + floor.above
            + floor.system
            + floor.anchors
            + floor.pinned
            + requests
            + newest
            + marker;
        Ok(floor)
    }
}
