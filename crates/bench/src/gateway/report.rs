//! The figures of `komado-bench gateway`, for people and for programs.

use super::growth::Growth;
use super::load::Load;
use super::overhead::{GatewayRoute, Overhead};
use crate::error::Result;
use crate::machine::Machine;
use crate::output::{BenchOutput, number};
use crate::{command, megabytes, round};
use serde_json::{Value, json};

/// Everything that was measured.
pub(super) struct GatewayReport {
    pub(super) overhead: Vec<Overhead>,
    pub(super) load: Load,
    pub(super) growth: Growth,
}

/// The shares that are told.
const SHARES: [f64; 2] = [0.5, 0.99];

pub(super) fn as_json(machine: &Machine, report: &GatewayReport) -> Value {
    let GatewayReport { overhead, load, growth } = report;
    let way = |way: &GatewayRoute, direct: &GatewayRoute| {
        json!({
            "name": way.name,
            "requests": way.took.len(),
            "p50_ms": round(way.at(0.5)),
            "p99_ms": round(way.at(0.99)),
            "p50_ratio": round(way.at(0.5) / direct.at(0.5)),
            "p99_ratio": round(way.at(0.99) / direct.at(0.99)),
        })
    };
    let sizes = overhead.iter().map(|size| {
        let ways: Vec<Value> = size.ways.iter().map(|one| way(one, &size.ways[0])).collect();
        json!({ "bytes": size.bytes, "ways": ways })
    });
    json!({
        "command": command(),
        "machine": machine,
        "overhead": sizes.collect::<Vec<_>>(),
        "load": {
            "sessions": load.sessions,
            "requests": load.requests,
            "over_window": load.over_window,
            "edits": load.edits,
            "errors": load.wrong.len(),
            "faults": load.faults.len(),
            "lost": load.lost,
            "mixed": load.mixed,
            "peak_mb": megabytes(load.peak as f64),
        },
        "growth": {
            "requests": growth.requests,
            "cpu_ms_first": round(growth.cpu[0]),
            "cpu_ms_last": round(growth.cpu[1]),
            "wall_ratio": round(growth.wall[1] / growth.wall[0]),
            "cpu_ratio": round(growth.cpu[1] / growth.cpu[0].max(0.001)),
        },
    })
}

pub(super) fn as_text(out: &mut BenchOutput, report: &GatewayReport) -> Result {
    let GatewayReport { overhead, load, growth } = report;
    out.line("One request at a time, streamed, as a multiple of going direct")?;
    let mut rows = Vec::new();
    for size in overhead {
        for way in &size.ways {
            let ratio = |share: f64| format!("{:.2}", way.at(share) / size.ways[0].at(share));
            let milliseconds = |share: f64| format!("{:.2} ms", way.at(share));
            let [p50, p99] = SHARES;
            rows.push(vec![
                format!("{} KB", size.bytes >> 10),
                way.name.to_owned(),
                milliseconds(p50),
                ratio(p50),
                milliseconds(p99),
                ratio(p99),
            ]);
        }
    }
    let head = ["transcript", "way", "p50", "x direct", "p99", "x direct"].map(str::to_owned).to_vec();
    rows.insert(0, head);
    out.table(&rows, &[0, 2, 3, 4, 5])?;
    out.line("")?;
    out.line(format!(
        "{} conversations at once, {} requests, {} of them over the model's window: {} edits, {} errors, {} faults",
        number(u64::from(load.sessions)),
        number(u64::from(load.requests)),
        number(u64::from(load.over_window)),
        number(u64::from(load.edits)),
        load.wrong.len(),
        load.faults.len(),
    ))?;
    out.line(format!(
        "  messages lost: {}, conversations mixed: {}, most memory of the gateway: {} MB",
        load.lost,
        load.mixed,
        megabytes(load.peak as f64)
    ))?;
    out.line("")?;
    out.line(format!(
        "The same request {} times in one session: {:.2} ms of processor each at first, {:.2} at last (x{:.2})",
        number(u64::from(growth.requests)),
        growth.cpu[0],
        growth.cpu[1],
        growth.cpu[1] / growth.cpu[0].max(0.001)
    ))
}
