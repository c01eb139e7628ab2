//! The figures, for people and for programs.

use super::super::machine::Machine;
use super::super::{command, round};
use super::{Args, Measured, Step};
use crate::error::Result;
use crate::output::{BenchOutput, number};
use serde_json::{Value, json};

impl Step {
    fn append_ratio(&self) -> f64 {
        round(self.append.wall() / self.raw_append.wall())
    }

    fn open_ratio(&self) -> f64 {
        round(self.open.wall() / self.raw_open.wall())
    }
}

impl Measured {
    /// How much dearer an append and an opening are in the largest session than in the smallest.
    fn growth(&self) -> (f64, f64) {
        match (self.steps.first(), self.steps.last()) {
            (Some(first), Some(last)) => {
                (round(last.append.wall() / first.append.wall()), round(last.open.wall() / first.open.wall()))
            }
            _ => (0.0, 0.0),
        }
    }
}

pub(super) fn as_json(args: &Args, machine: &Machine, all: &[Measured]) -> Value {
    json!({
        "command": command(),
        "machine": machine,
        "entries": args.entries,
        "sample": args.sample,
        "stores": all.iter().map(store_json).collect::<Vec<_>>(),
    })
}

fn store_json(measured: &Measured) -> Value {
    let (append_growth, open_growth) = measured.growth();
    json!({
        "kind": measured.vitals.kind,
        "place": measured.vitals.place,
        "durability": measured.vitals.durability,
        "raw": measured.raw,
        "append_growth": append_growth,
        "open_growth": open_growth,
        "steps": measured.steps.iter().map(step_json).collect::<Vec<_>>(),
    })
}

fn step_json(step: &Step) -> Value {
    json!({
        "entries": step.entries,
        "us_per_append": round(step.append.wall()),
        "us_per_raw_append": round(step.raw_append.wall()),
        "append_ratio": step.append_ratio(),
        "us_per_open": round(step.open.wall()),
        "us_per_raw_read": round(step.raw_open.wall()),
        "open_ratio": step.open_ratio(),
        "writes_per_append": step.work.map(|(writes, _)| round(writes)),
        "syncs_per_append": step.work.map(|(_, syncs)| round(syncs)),
    })
}

pub(super) fn as_text(out: &mut BenchOutput, args: &Args, all: &[Measured]) -> Result {
    out.line(format!(
        "medians of {} appends and {} openings, in µs on the wall",
        number(args.sample),
        number((args.sample / 10).max(1))
    ))?;
    all.iter().try_for_each(|measured| store_text(out, measured))
}

fn store_text(out: &mut BenchOutput, measured: &Measured) -> Result {
    let title = out.bold(measured.vitals.kind);
    out.line("")?;
    out.line(format!("{title}  {}", measured.vitals.place))?;
    out.line(format!("       {}", measured.vitals.durability))?;
    out.line(format!("       beside {}", measured.raw))?;
    let head = ["entries", "append", "driver", "ratio", "open", "read last", "ratio"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for step in &measured.steps {
        rows.push(vec![
            number(step.entries),
            format!("{:.0}", step.append.wall()),
            format!("{:.0}", step.raw_append.wall()),
            format!("×{:.2}", step.append_ratio()),
            format!("{:.0}", step.open.wall()),
            format!("{:.0}", step.raw_open.wall()),
            format!("×{:.2}", step.open_ratio()),
        ]);
    }
    out.table(&rows, &[0, 1, 2, 3, 4, 5, 6])?;
    let (append, open) = measured.growth();
    out.line(format!("growth from first to last: append ×{append:.2}, open ×{open:.2}"))
}
