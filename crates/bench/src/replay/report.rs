//! The figures of `komado-bench replay`, for people and for programs.

use super::Replayed;
use crate::error::Result;
use crate::machine::Machine;
use crate::output::{BenchOutput, number};
use crate::{command, round};
use komado_core::budget::{Budget, Preset};
use komado_engine::replay::ReplayReport;
use serde_json::json;

/// Conversations of one kind, beside the same without management.
#[derive(Default)]
struct Priced {
    conversations: u64,
    /// Those that are dearer with management.
    dearer: u64,
    /// The dearest of them.
    worst: f64,
    sum: ReplayReport,
}

impl Priced {
    fn add(&mut self, report: &ReplayReport) {
        self.conversations += 1;
        self.dearer += u64::from(report.cost_ratio > 1.0 + 1e-9);
        self.worst = self.worst.max(report.cost_ratio);
        self.sum.add(report);
    }

    fn as_json(&self) -> serde_json::Value {
        let price = (self.conversations > 0).then(|| round(self.sum.cost_ratio));
        let worst = (self.conversations > 0).then(|| round(self.worst));
        json!({ "conversations": self.conversations, "dearer": self.dearer, "price": price, "worst": worst })
    }
}

/// All conversations in one window.
#[derive(Default)]
pub(super) struct WindowFigures {
    window: u64,
    usable: u64,
    sum: ReplayReport,
    /// Conversations that would have fitted by themselves.
    short: Priced,
    long: Priced,
    during: Vec<f64>,
    once: Vec<f64>,
    used: u64,
    seen: u64,
}

impl WindowFigures {
    pub(super) fn new(budget: &Budget) -> Self {
        Self { window: budget.window, usable: budget.usable, ..Self::default() }
    }

    pub(super) fn add(&mut self, replayed: &Replayed) {
        let kind = if replayed.raw <= self.window { &mut self.short } else { &mut self.long };
        kind.add(&replayed.report);
        self.sum.add(&replayed.report);
        self.during.extend(&replayed.during);
        self.once.extend(replayed.once);
        self.used += replayed.used;
        self.seen += replayed.seen;
    }

    /// Share of the facts used that the model saw.
    #[allow(clippy::cast_precision_loss)]
    fn seen(&self) -> Option<f64> {
        (self.used > 0).then(|| self.seen as f64 / self.used as f64)
    }

    fn as_json(&self) -> serde_json::Value {
        json!({
            "window": self.window, "usable": self.usable,
            "requests": self.sum.calls, "edits": self.sum.edits, "largest_request": self.sum.peak_tokens,
            "price": round(self.sum.cost_ratio), "over_window": self.sum.over_window,
            "invalid": self.sum.invalid, "below_floor": self.sum.below_floor,
            "used_after_edit": shares(&self.during), "used_after_one_fit": shares(&self.once),
            "facts_used": self.used, "facts_seen": self.seen, "seen": self.seen().map(round),
            "short": self.short.as_json(), "long": self.long.as_json(),
        })
    }

    fn cells(&self) -> Vec<String> {
        let share = |of: &[f64], part: f64| quantile(of, part).map_or("-".into(), |n| format!("{n:.2}"));
        let price = |of: &Priced| match of.conversations {
            0 => "-".to_owned(),
            _ => format!("{:.2}", of.sum.cost_ratio),
        };
        vec![
            number(self.window),
            number(self.sum.edits),
            share(&self.during, 0.1),
            share(&self.during, 0.5),
            share(&self.once, 0.1),
            share(&self.once, 0.5),
            self.seen().map_or("-".into(), |seen| format!("{:.1}", 100.0 * seen)),
            number(self.used),
            price(&self.long),
            number(self.long.conversations),
            number(self.short.dearer),
            number(self.short.conversations),
            number(self.sum.peak_tokens),
            number(self.sum.below_floor),
        ]
    }
}

/// How a list of shares is spread.
fn shares(of: &[f64]) -> serde_json::Value {
    let at = |part| quantile(of, part).map(round);
    json!({ "times": of.len(), "least": at(0.0), "p10": at(0.1), "p50": at(0.5), "p90": at(0.9) })
}

/// The value below which this part of the values lies.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn quantile(of: &[f64], part: f64) -> Option<f64> {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * part).round() as usize).copied()
}

pub(super) fn as_json(rows: &[WindowFigures], preset: Preset, machine: &Machine) -> serde_json::Value {
    let windows: Vec<_> = rows.iter().map(WindowFigures::as_json).collect();
    json!({ "command": command(), "machine": machine, "preset": preset.name(), "windows": windows })
}

const HEAD: [&str; 14] = [
    "window", "edits", "p10", "p50", "once p10", "p50", "seen %", "of facts", "price", "long", "dearer",
    "short", "largest", "floor",
];

pub(super) fn as_text(rows: &[WindowFigures], out: &mut BenchOutput) -> Result {
    let mut table = vec![HEAD.map(str::to_owned).to_vec()];
    table.extend(rows.iter().map(WindowFigures::cells));
    out.table(&table, &(0..HEAD.len()).collect::<Vec<_>>())?;
    for line in [
        "",
        "p10, p50: share of what is usable that is used right after an edit; once: the whole conversation fitted at its end.",
        "Seen: facts that the model uses and that were said before, where the request would not have fitted; those it saw.",
        "Price: of the input of conversations that would not have fitted (long), beside the same without management.",
        "Dearer: conversations that would have fitted (short) and cost more with management. Floor: requests below it.",
    ] {
        out.line(line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let values: Vec<f64> = (0..=10).rev().map(f64::from).collect();
        assert_eq!([0.0, 0.1, 0.5, 1.0].map(|part| quantile(&values, part).unwrap()), [0.0, 1.0, 5.0, 10.0]);
        assert_eq!(quantile(&[], 0.5), None);
    }
}
