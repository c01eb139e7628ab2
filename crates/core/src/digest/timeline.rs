//! What was done, in order: one line for each call, with what came of it.
//!
//! The newest steps are told in detail, older ones by their call, and the oldest as counts: "@12-@40: 9 reads in src/".
//! The same call with the same outcome is one step. It refuses to drop a step: what has no line of its own is counted.

mod line;
mod tally;

pub(super) use line::{TimelineItem, from_root, parse, under};
use tally::StepGroup;

use super::scan::one_line;
use super::words::Language;
use crate::Seq;
use std::collections::{BTreeMap, VecDeque};

/// Steps that are kept one by one; there may be twice as many between two foldings.
const STEPS: usize = 384;
/// Steps that become one group when there are too many.
const FOLD: usize = 16;
/// Groups that are kept.
const GROUPS: usize = 48;
/// Tokens that a line of counts should have.
const GROUP_COST: u64 = 40;

/// What kind of work a step was.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum StepKind {
    Edit,
    Run,
    Read,
    Search,
    Call,
}

impl StepKind {
    pub(super) const ALL: [Self; 5] = [Self::Edit, Self::Run, Self::Read, Self::Search, Self::Call];
}

/// What came of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StepEnd {
    /// It was answered.
    Done,
    Exit(i32),
    Failed,
    /// It has no answer.
    Open,
    Hits(u64),
}

impl StepEnd {
    pub(super) const fn is_bad(self) -> bool {
        matches!(self, Self::Failed) || matches!(self, Self::Exit(code) if code != 0)
    }
}

/// One call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) kind: StepKind,
    pub(super) seq: Seq,
    /// The file and the lines, the command, the pattern, or the tool and its values.
    pub(super) target: String,
    /// What an edit changed.
    pub(super) change: String,
    pub(super) end: StepEnd,
    /// The line of the answer that mattered.
    pub(super) note: String,
    /// How often it was done; 0 when it was joined with a later one.
    pub(super) count: u32,
    /// Tells calls apart that look alike in the few words kept of them; 0 when it is not known.
    pub(super) hash: u64,
}

impl Step {
    pub(super) fn new(kind: StepKind, seq: Seq, target: &str) -> Self {
        let (change, note) = (String::new(), String::new());
        Self { kind, seq, target: plain(target), change, end: StepEnd::Open, note, count: 1, hash: 0 }
    }

    pub(super) fn changing(mut self, change: &str) -> Self {
        self.change = plain(change);
        self
    }

    /// The words it is known by.
    fn key(&self) -> String {
        format!("{} {} => {}", self.kind as u8, self.target, self.change)
    }

    fn is_same_call(&self, other: &Self) -> bool {
        self.hash == other.hash || self.hash == 0 || other.hash == 0
    }
}

/// One line without the marks that divide a line of a timeline.
pub(super) fn plain(text: &str) -> String {
    one_line(text, 400).replace(" → ", " -> ").replace(" => ", " = > ").replace(" ×", " x")
}

/// All that was done.
#[derive(Clone, Default, Debug)]
pub(super) struct Timeline {
    /// The oldest steps, counted.
    groups: Vec<StepGroup>,
    steps: VecDeque<Step>,
    /// Number of the first of `steps`.
    base: u64,
    /// The newest step of each call.
    newest: BTreeMap<String, u64>,
}

impl Timeline {
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.steps.is_empty()
    }

    /// A call was made; its number.
    pub(super) fn begin(&mut self, step: Step) -> u64 {
        self.steps.push_back(step);
        let number = self.base + self.steps.len() as u64 - 1;
        if self.steps.len() > 2 * STEPS {
            self.fold();
        }
        number
    }

    /// The call was answered.
    pub(super) fn finish(&mut self, number: u64, end: StepEnd, note: &str) {
        let Some(step) = number.checked_sub(self.base).and_then(|at| self.steps.get_mut(at as usize)) else {
            return;
        };
        step.end = end;
        step.note = plain(note);
        self.join(number);
    }

    /// A line of an earlier digest.
    pub(super) fn recall(&mut self, item: TimelineItem) {
        match item {
            TimelineItem::Group(group) => {
                self.groups.push(group);
                self.groups.sort_by_key(|group| (group.from, group.to));
                self.groups.dedup();
                self.fold_groups();
            }
            TimelineItem::Step(step) => {
                let at = self.steps.partition_point(|known| known.seq <= step.seq);
                let is_known = |known: &&Step| known.seq == step.seq;
                if self.steps.range(..at).rev().take_while(is_known).any(|known| *known == step) {
                    return;
                }
                self.newest.insert(step.key(), self.base + at as u64);
                self.steps.insert(at, step);
                if at + 1 < self.steps.len() {
                    // Where digests overlap the numbers behind it have moved.
                    let numbered = self.base..;
                    self.newest = self.steps.iter().map(Step::key).zip(numbered).collect();
                }
                if self.steps.len() > 2 * STEPS {
                    self.fold();
                }
            }
        }
    }

    /// Joins a step with the one before of the same call, where nothing else came of it or nothing was done between.
    fn join(&mut self, number: u64) {
        let at = (number - self.base) as usize;
        let key = self.steps[at].key();
        let before = self.newest.insert(key, number).filter(|before| *before < number);
        let Some(before) = before.and_then(|before| before.checked_sub(self.base)) else { return };
        let before = before as usize;
        let (old, new) = (&self.steps[before], &self.steps[at]);
        let next = || self.steps.range(before + 1..at).all(|step| step.count == 0);
        let alike = (old.end, &old.note) == (new.end, &new.note);
        if old.count > 0 && old.end != StepEnd::Open && old.is_same_call(new) && (alike || next()) {
            let count = std::mem::take(&mut self.steps[before].count);
            self.steps[at].count = self.steps[at].count.saturating_add(count);
        }
    }

    /// Counts the oldest steps.
    fn fold(&mut self) {
        let out: Vec<Step> = self.steps.drain(..STEPS).collect();
        self.base += STEPS as u64;
        let base = self.base;
        self.newest.retain(|_, number| *number >= base);
        let live: Vec<Step> = out.into_iter().filter(|step| step.count > 0).collect();
        self.groups.extend(live.chunks(FOLD).map(StepGroup::of));
        self.fold_groups();
    }

    fn fold_groups(&mut self) {
        if self.groups.len() > GROUPS {
            self.groups = self.groups.chunks(2).map(StepGroup::joined).collect();
        }
    }

    /// The lines of a text, oldest first, in at most `room` tokens as `cost` counts them.
    pub(super) fn lines(
        &self,
        language: Language,
        root: &str,
        room: u64,
        cost: impl Fn(&str) -> u64,
    ) -> Vec<String> {
        let steps: Vec<&Step> = self.steps.iter().filter(|step| step.count > 0).collect();
        // The newest in full, then by their calls, as long as there is room for the oldest to be counted.
        let full = self.newest_lines(&steps, room, |step| step.full(language, root), &cost);
        let (mut lines, mut used) = full;
        if lines.len() < steps.len() || !self.groups.is_empty() {
            let kept = room - (room / 3).clamp(GROUP_COST.min(room / 2), 2 * GROUP_COST);
            (lines, used) = self.newest_lines(&steps, kept * 3 / 5, |step| step.full(language, root), &cost);
            let older = &steps[..steps.len() - lines.len()];
            let (brief, more) =
                self.newest_lines(older, kept.saturating_sub(used), |step| step.brief(language, root), &cost);
            lines.extend(brief);
            used += more;
        }
        let counted = &steps[..steps.len() - lines.len()];
        lines.reverse();
        let mut all = self.counted(counted, language, root, room.saturating_sub(used), &cost);
        all.append(&mut lines);
        all
    }

    /// The lines of the newest of `steps` that fit, newest first, and what they cost.
    fn newest_lines(
        &self,
        steps: &[&Step],
        room: u64,
        line: impl Fn(&Step) -> String,
        cost: &impl Fn(&str) -> u64,
    ) -> (Vec<String>, u64) {
        let (mut lines, mut used) = (Vec::new(), 0);
        for step in steps.iter().rev() {
            let line = line(step);
            let tokens = cost(&line);
            if used + tokens > room {
                break;
            }
            used += tokens;
            lines.push(line);
        }
        (lines, used)
    }

    /// Lines of counts for all groups and for `steps`.
    fn counted(
        &self,
        steps: &[&Step],
        language: Language,
        root: &str,
        room: u64,
        cost: &impl Fn(&str) -> u64,
    ) -> Vec<String> {
        let mut groups = self.groups.clone();
        groups.extend(steps.iter().map(|step| StepGroup::of(std::slice::from_ref(*step))));
        if groups.is_empty() {
            return Vec::new();
        }
        let mut pieces = (room / GROUP_COST).clamp(1, 12) as usize;
        let mut places = 6;
        loop {
            let size = groups.len().div_ceil(pieces);
            let lines: Vec<String> = groups
                .chunks(size)
                .map(|chunk| StepGroup::joined(chunk).line(language, root, places))
                .collect();
            if lines.iter().map(|line| cost(line)).sum::<u64>() <= room {
                return lines;
            }
            if pieces > 1 {
                pieces -= 1;
            } else if places > 0 {
                places -= 1;
            } else {
                return Vec::new();
            }
        }
    }
}
