//! The figures of `komado-bench task`, for people and for programs.

use super::super::machine::Machine;
use super::super::{command, megabytes, round};
use super::grown::Grown;
use super::long::Long;
use super::peer::TaskPeer;
use super::ruler::Memory;
use super::worker::Worked;
use crate::error::Result;
use crate::output::{BenchOutput, number};
use serde_json::{Value, json};

/// What a process held: before its first turn was answered, at its last one, and at the most in between.
struct Held {
    idle: f64,
    end: f64,
    private: f64,
    peak: f64,
}

impl Held {
    fn of(seen: &[Memory]) -> Self {
        let (first, last) =
            (seen.first().copied().unwrap_or_default(), seen.last().copied().unwrap_or_default());
        let peak = seen.iter().skip(1).map(|memory| memory.peak).max().unwrap_or(first.rss);
        Self { idle: first.rss as f64, end: last.rss as f64, private: last.private as f64, peak: peak as f64 }
    }

    /// What the conversation took at the most.
    fn above_idle(&self) -> f64 {
        self.peak - self.idle
    }

    fn json(&self) -> Value {
        json!({
            "idle_rss_mb": megabytes(self.idle),
            "end_rss_mb": megabytes(self.end),
            "end_private_dirty_mb": megabytes(self.private),
            "peak_rss_mb": megabytes(self.peak),
            "above_idle_mb": megabytes(self.above_idle()),
        })
    }
}

impl Worked {
    fn held(&self) -> Held {
        Held::of(&self.seen)
    }
}

impl TaskPeer {
    fn held(&self) -> Held {
        Held::of(&self.seen)
    }
}

impl Grown {
    /// How much of the peer's memory above its idle is not needed, in percent.
    fn saving(&self, peer: &TaskPeer) -> f64 {
        round(100.0 * (1.0 - self.ours.held().above_idle() / peer.held().above_idle().max(1.0)))
    }
}

pub(super) fn grown_json(machine: &Machine, sizes: &[Grown]) -> Value {
    let one = |size: &Grown| {
        let mut ours = size.ours.held().json();
        ours["worker_rss_mb"] = json!(megabytes(size.ours.worker.rss as f64));
        ours["request_bytes"] = json!(size.ours.request);
        ours["seconds"] = json!(round(size.ours.seconds));
        let peer = size.peer.as_ref().map(|peer| {
            let mut told = peer.held().json();
            told["name"] = json!(peer.name);
            told["request_bytes"] = json!(peer.request);
            told["seconds"] = json!(round(peer.seconds));
            told
        });
        let saving = size.peer.as_ref().map(|peer| size.saving(peer));
        json!({ "mb": size.mb, "calls": size.calls, "task": ours, "peer": peer, "saving_percent": saving })
    };
    let sizes: Vec<Value> = sizes.iter().map(one).collect();
    json!({ "command": command(), "machine": machine, "sizes": sizes })
}

pub(super) fn grown_text(out: &mut BenchOutput, sizes: &[Grown]) -> Result {
    for size in sizes {
        let line =
            format!("{} MB of context in {} calls, all of it in every request", size.mb, number(size.calls));
        out.line(line)?;
        out.line("")?;
        out.table(&rows(size), &[1, 2])?;
        out.line("")?;
        let against = match &size.peer {
            Some(peer) => {
                let saving = out.bold(&format!("{:.1} %", size.saving(peer)));
                format!("{saving} less memory above idle than the peer: {}", peer.name)
            }
            None => "no peer was measured".to_owned(),
        };
        out.line(format!("against    {against}"))?;
        let worker = size.ours.worker.rss as f64 / 1e6;
        out.line(format!("worker     {worker:.1} MB beside it: the same program, without token tables"))?;
        out.line(format!("took       {:.1} s", size.ours.seconds))?;
        out.line("")?;
    }
    Ok(())
}

fn rows(size: &Grown) -> Vec<Vec<String>> {
    let mb = |bytes: f64| format!("{:.1}", bytes / 1e6);
    let figures = |held: Held, request: u64| {
        [request as f64, held.idle, held.end, held.private, held.peak, held.above_idle()]
    };
    let names = [
        "  largest request",
        "  memory, before the first turn",
        "  at the last turn",
        "  of it private and written",
        "  at the most",
        "  above idle",
    ];
    let mut rows: Vec<Vec<String>> = vec![vec!["MB".to_owned(), "the task".to_owned()]];
    let ours = figures(size.ours.held(), size.ours.request);
    rows.extend(names.iter().zip(ours).map(|(name, figure)| vec![(*name).to_owned(), mb(figure)]));
    if let Some(peer) = &size.peer {
        rows[0].push("the peer".to_owned());
        let theirs = figures(peer.held(), peer.request);
        rows.iter_mut().skip(1).zip(theirs).for_each(|(row, figure)| row.push(mb(figure)));
    }
    rows
}

pub(super) fn long_json(machine: &Machine, long: &Long) -> Value {
    let at = |(call, memory): &(u64, Memory)| {
        json!({
            "call": call,
            "rss_mb": megabytes(memory.rss as f64),
            "private_dirty_mb": megabytes(memory.private as f64),
        })
    };
    json!({
        "command": command(),
        "machine": machine,
        "calls": long.calls,
        "window": long.window,
        "at": long.at.iter().map(at).collect::<Vec<_>>(),
        "growth_mb": megabytes(long.growth()),
        "peak_rss_mb": megabytes(long.peak as f64),
        "worker_rss_mb": megabytes(long.worker.rss as f64),
        "request_bytes": long.request,
        "seconds": round(long.seconds),
    })
}

pub(super) fn long_text(out: &mut BenchOutput, long: &Long) -> Result {
    let (calls, window) = (number(long.calls), number(u64::from(long.window)));
    out.line(format!("{calls} calls with outputs of 20 to 200 KB, in a window of {window} tokens"))?;
    out.line("")?;
    let mut rows = vec![["call", "memory in MB", "of it private and written"].map(str::to_owned).to_vec()];
    rows.extend(long.at.iter().map(|(call, memory)| {
        let mb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
        vec![number(*call), mb(memory.rss), mb(memory.private)]
    }));
    out.table(&rows, &[0, 1, 2])?;
    out.line("")?;
    let growth = out.bold(&format!("{:+.1} MB", long.growth() / 1e6));
    let first = long.at.first().map_or(0, |(call, _)| *call);
    out.line(format!("growth     {growth} from call {} to call {calls}", number(first)))?;
    out.line(format!("peak       {:.1} MB", long.peak as f64 / 1e6))?;
    let each = 1000.0 * long.seconds / long.calls.max(1) as f64;
    out.line(format!("took       {:.1} s, {each:.1} ms for each call", long.seconds))
}
